"""Commands to the worker that owns a graph, replies, progress and cancel, over Redis Streams."""
