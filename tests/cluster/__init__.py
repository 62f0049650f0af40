"""Workers in a Ray cluster of several nodes on this machine; needs the extra `ray`: `make cluster`."""
