"""Columns of text and of exact decimal numbers, without an object for each row."""
