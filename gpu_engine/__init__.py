"""The Headrace solver library: arrays in, arrays out. Knows no HTTP, no Redis, no service."""
