"""Proofs of answers, from the network and the answer alone: nothing here knows an engine or a solver."""
