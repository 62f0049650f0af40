"""k-way partitions of a network: its vertices in k parts of about equal weight, with little between them."""
