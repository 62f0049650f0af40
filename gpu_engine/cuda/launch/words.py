"""Words by which the host tells something to a kernel that is running."""

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array


class Word:
    """The first four bytes of an array. A busy device clears memory long after it was told to, and what was written
    there before is lost: so a word is written after the clearing."""

    def __init__(self, cleared: Array) -> None:
        """The current stream was told to clear the array before."""
        self._at = cleared.view(np.uint8)[:4]
        self._cleared = cupy.cuda.Event(disable_timing=True)
        self._cleared.record()

    def write(self, word: int) -> None:
        """By a copy on a stream of its own, as a kernel is running on the other. Waits for the copy."""
        with self._at.device, cupy.cuda.Stream(non_blocking=True) as stream:
            stream.wait_event(self._cleared)
            self._at.set(np.array([word], np.int32).view(np.uint8), stream=stream)
            stream.synchronize()
