"""The console: pages of the service for people. Static files and the frames around them; no state, and no HTTP."""
