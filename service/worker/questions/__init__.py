"""One file for each question that a graph can be asked; they change nothing."""
