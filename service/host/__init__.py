"""What runs on the one machine of `headrace serve`: its processes, the embedded Redis server, the data directory."""
