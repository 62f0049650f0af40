"""The published GPU max-flow systems, for comparison: schedules of launches, what they work on, and their engine."""
