"""How one worker runs commands: reads them, orders them, ends each with one reply."""
