"""The HTTP server: one connection, its parser, its limits, TLS."""
