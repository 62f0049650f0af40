"""Flows with lower bounds: one maximum flow, in a network made for the question, finds one or what prevents it."""
