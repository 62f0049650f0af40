"""One file for each resource of the API."""
