"""What Redis keeps: the catalogue, the update log, snapshots and blobs. Only commands of Redis 6.2, MULTI, no Lua."""
