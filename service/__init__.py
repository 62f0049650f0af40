"""The Headrace service: API processes, workers, and the Redis between them."""
