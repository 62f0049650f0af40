"""Tell an object from its background in a noisy image by a minimum cut (Boykov and Jolly 2001), and draw it.

Start the service first: `headrace serve`. The image and what was found in it are written to segmentation.png.
"""

# %% The picture: an object in noise
import struct
import zlib
from pathlib import Path

import numpy as np
from headrace import Client, Grid

SIDE, SMOOTH = 512, 60  # pixels; what each step of the outline costs, in grey levels
row, column = np.mgrid[:SIDE, :SIDE]
truth = (np.hypot(row - 200, column - 180) < 120) | (abs(row - 330) < 110) & (abs(column - 340) < 80)
noise = np.random.default_rng(1).normal(0, 60, truth.shape)
image = (np.where(truth, 150, 105) + noise).clip(0, 255).astype(np.uint8)

# %% Each pixel leans to a side by its brightness, and each step of the outline has a price
lean = image.astype(int) - 128  # bright pixels lean to the object, which is the source's side, dark ones to the sink's
grid = Grid(lean.clip(0), -lean.clip(None, 0), links=SMOOTH)
with Client() as hr:
    found = grid.mask(hr.put_graph("image", grid).min_cut())
rows, columns = np.nonzero(found)
print(f"The object: {found.sum():,} pixels, rows {rows.min()}-{rows.max()}, columns {columns.min()}-{columns.max()}.")
print(f"Pixels told wrongly: {np.mean(found != truth):.2%}; by brightness alone {np.mean((lean > 0) != truth):.2%}.")

# %% The picture and what was found in it, as a PNG
lines = np.insert(np.hstack([image, found * np.uint8(255)]), 0, 0, axis=1)  # in a PNG each line begins with a 0
size = struct.pack(">2I5B", 2 * SIDE, SIDE, 8, 0, 0, 0, 0)
parts = [b"IHDR" + size, b"IDAT" + zlib.compress(lines.tobytes()), b"IEND"]
chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in parts]
Path("segmentation.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
