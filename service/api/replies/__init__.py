"""What callers get: answers, problems, long results, streams of events."""
