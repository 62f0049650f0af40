"""Many terminal pairs on one network: their values, a cut tree, and the least cut of all."""
