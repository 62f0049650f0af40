"""The processes of `deploy/`, started as its files say, on a machine without a container engine or a cluster."""
