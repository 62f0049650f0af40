"""Networks as arrays: how they are given, checked, kept, named by terminals, and changed."""
