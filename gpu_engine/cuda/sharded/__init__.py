"""One network over several devices, which reach each other's memory: contiguous ranges of vertices, a shard each."""
