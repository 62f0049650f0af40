"""What a process says of itself: its log, its traces, and the buckets of its histograms."""
