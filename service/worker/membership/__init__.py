"""Which worker is alive and which graphs are its own: lease, heartbeat, takeover, and the way back."""
