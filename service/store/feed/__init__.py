"""The change feed of each graph name: what has happened, and what its watches were told last."""
