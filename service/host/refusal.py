"""Why `headrace serve` or `headrace worker` does not start."""


class CannotServe(RuntimeError):
    """A reason not to start, in words for the person who asked."""
