"""What the service is connected by: the address of Redis, and the files of certificates."""
