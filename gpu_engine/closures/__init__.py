"""What closures of edges and vertices cost."""
