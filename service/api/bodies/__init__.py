"""What callers send: received within bounds, and read by processes of their own."""
