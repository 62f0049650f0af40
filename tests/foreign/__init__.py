"""Other libraries' own tests of maximum flows, run on answers of the service."""
