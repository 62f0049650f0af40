"""Many terminal pairs on one network: the values of their maximum flows, a Gomory-Hu tree, and the global minimum
cut."""
