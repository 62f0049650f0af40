// Which edges lie in a rectangle: edges by the cell of their middle, and the long ones in a list of their own.

export class Grid {
  constructor(x, y, tail, head, rows) {
    this.rows = rows;
    const count = rows.length;
    let west = Infinity, east = -Infinity, south = Infinity, north = -Infinity;
    for (const row of rows) {
      for (const v of [tail[row], head[row]]) {
        west = Math.min(west, x[v]);
        east = Math.max(east, x[v]);
        south = Math.min(south, y[v]);
        north = Math.max(north, y[v]);
      }
    }
    if (!count) [west, east, south, north] = [0, 1, 0, 1];
    this.box = { west, east, south, north };
    this.side = Math.max(1, Math.min(256, Math.floor(Math.sqrt(count / 4))));
    this.width = (east - west) / this.side || 1;
    this.height = (north - south) / this.side || 1;
    const isLong = (row) => Math.abs(x[tail[row]] - x[head[row]]) > 4 * this.width || Math.abs(y[tail[row]] - y[head[row]]) > 4 * this.height;
    const cellOf = (row) => this.column((x[tail[row]] + x[head[row]]) / 2) + this.side * this.line((y[tail[row]] + y[head[row]]) / 2);
    this.long = rows.filter(isLong);
    const short = this.long.length ? rows.filter((row) => !isLong(row)) : rows;
    this.offsets = new Int32Array(this.side * this.side + 1);
    for (const row of short) this.offsets[cellOf(row) + 1] += 1;
    for (let cell = 0; cell < this.side * this.side; cell += 1) this.offsets[cell + 1] += this.offsets[cell];
    const next = this.offsets.slice();
    this.sorted = new Int32Array(short.length);
    for (const row of short) this.sorted[next[cellOf(row)]++] = row;
  }

  column(x) {
    return Math.max(0, Math.min(this.side - 1, Math.floor((x - this.box.west) / this.width)));
  }

  line(y) {
    return Math.max(0, Math.min(this.side - 1, Math.floor((y - this.box.south) / this.height)));
  }

  // Calls `each` with rows; some may lie a little beside the rectangle.
  within(west, east, south, north, each) {
    for (const row of this.long) each(row);
    const first = this.column(west - 2 * this.width), last = this.column(east + 2 * this.width);
    for (let line = this.line(south - 2 * this.height); line <= this.line(north + 2 * this.height); line += 1) {
      const end = this.offsets[line * this.side + last + 1];
      for (let i = this.offsets[line * this.side + first]; i < end; i += 1) each(this.sorted[i]);
    }
  }
}
