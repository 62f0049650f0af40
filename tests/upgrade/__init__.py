"""Data directories that earlier releases wrote, and what they answered."""
