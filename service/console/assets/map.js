// The network on a canvas. What is seen is drawn once into a picture larger than the view, which a pan or zoom only
// moves; it is drawn anew, some thousand edges a frame, when the view rests or leaves it. So 100,000 edges stay fluid.

import { Grid } from "./grid.js";

const MARGIN = 0.35;
const EDGES_A_FRAME = 12000;
const REST_MS = 140;
const DETAIL_EDGES = 400;
const LABEL_CELL = 8, ABOVE_LINE = 12, BELOW_LINE = 4, PIXELS_A_LABEL = 3200;
export const CLOSED = 5, CUT = 6, PART = 7, N_COLOURS = 8;
const PARTS = Array.from({ length: N_COLOURS }, (_, part) => `p${part}`);
const CLASSES = ["idle", "f1", "f2", "f3", "f4", "closed", "cut", ...PARTS];
const WIDTH = [1, 1.5, 2.1, 2.7, 3.4, 1.6, 4.6, ...PARTS.map(() => 2.7)];

export class NetworkMap {
  // `under` says how many pixels at the lower edge a text covers.
  constructor(canvas, { onPick, under }) {
    this.canvas = canvas;
    this.under = under;
    this.context = canvas.getContext("2d");
    this.onPick = onPick;
    this.grid = null;
    this.marks = [];
    this.cutVertices = [];
    this.chosen = [];
    this.view = { x: 0, y: 0, scale: 1 };
    this.picture = null;
    this.work = null;
    this.restAt = 0;
    this.drawn = 0; // how often the picture was finished
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  // Positions by vertex, y upwards; rows are the edges that are shown.
  show({ x, y, tail, head, rows, lanes, label }) {
    const isFirst = !this.grid;
    Object.assign(this, { x, y, tail, head, lanes, label });
    this.grid = new Grid(x, y, tail, head, rows);
    if (isFirst) this.fit();
    this.repaint();
  }

  // The class of each edge, and the vertices that are ringed, since their capacity is in the cut.
  paint(classes, cutVertices) {
    Object.assign(this, { classes, cutVertices });
    this.repaint();
  }

  // Rows that stand out: an edge, or those of a path.
  choose(rows) {
    this.chosen = rows;
    this.frame();
  }

  mark(marks) {
    this.marks = marks;
    this.frame();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const wasEmpty = !this.width;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    if (wasEmpty) this.fit();
    this.repaint();
  }

  fit(rows = null) {
    if (!this.grid || !this.width) return;
    let { west, east, south, north } = this.grid.box;
    if (rows && rows.length) {
      [west, east, south, north] = [Infinity, -Infinity, Infinity, -Infinity];
      for (const v of rows.flatMap((row) => [this.tail[row], this.head[row]])) {
        [west, east] = [Math.min(west, this.x[v]), Math.max(east, this.x[v])];
        [south, north] = [Math.min(south, this.y[v]), Math.max(north, this.y[v])];
      }
      if (!Number.isFinite(west + south)) return;
      const most = 0.05 * Math.max(this.grid.box.east - this.grid.box.west, this.grid.box.north - this.grid.box.south);
      const more = Math.max(0.12 * Math.max(east - west, north - south), most);
      [west, east, south, north] = [west - more, east + more, south - more, north + more];
    }
    const under = this.under();
    const scale = Math.min((this.width - 50) / (east - west || 1), Math.max(40, this.height - under - 50) / (north - south || 1));
    this.view = { x: (west + east) / 2, y: (south + north) / 2 - under / 2 / scale, scale };
    this.least = Math.min(this.least ?? Infinity, scale / 4);
    this.repaint();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const { view } = this;
    const scale = Math.max(this.least || 0, Math.min(view.scale * factor, 1e9));
    const x = view.x + (px - this.width / 2) / view.scale, y = view.y - (py - this.height / 2) / view.scale;
    this.view = { scale, x: x - (px - this.width / 2) / scale, y: y + (py - this.height / 2) / scale };
    this.moved();
  }

  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x - dx / this.view.scale, y: this.view.y + dy / this.view.scale };
    this.moved();
  }

  // The picture moves at once; it is drawn anew when the view rests, or shows what the picture has not.
  moved() {
    this.restAt = performance.now() + REST_MS;
    this.frame();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.repaint(), REST_MS);
    if (this.picture && !this.work && !this.covers()) this.repaint();
  }

  covers() {
    const { picture: old, view } = this;
    const away = (2 * MARGIN * old.scale) / view.scale;
    const dx = Math.abs(view.x - old.x) * view.scale, dy = Math.abs(view.y - old.y) * view.scale;
    const ratio = view.scale / old.scale;
    return ratio < 3 && (0.5 + MARGIN) * ratio * this.width >= this.width / 2 + dx
      && (0.5 + MARGIN) * ratio * this.height >= this.height / 2 + dy && away > 0;
  }

  screen(v) {
    return [(this.x[v] - this.view.x) * this.view.scale + this.width / 2, this.height / 2 - (this.y[v] - this.view.y) * this.view.scale];
  }

  repaint() {
    if (!this.grid || !this.width || !this.classes) return;
    cancelAnimationFrame(this.work?.request);
    const canvas = document.createElement("canvas");
    const width = Math.round(this.width * (1 + 2 * MARGIN)), height = Math.round(this.height * (1 + 2 * MARGIN));
    [canvas.width, canvas.height] = [width * this.ratio, height * this.ratio];
    const context = canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.lineCap = "round";
    const next = { canvas, ...this.view, width, height };
    this.work = { request: 0 };
    const steps = this.draw(context, next);
    const go = () => {
      if (!steps.next().done) {
        this.work.request = requestAnimationFrame(go);
        return;
      }
      this.picture = next;
      this.work = null;
      this.drawn += 1;
      this.frame();
    };
    go();
  }

  // Draws by class, idle edges first; gives way after some thousand edges.
  * draw(context, to) {
    const style = getComputedStyle(document.documentElement);
    const halfWidth = to.width / 2 / to.scale, halfHeight = to.height / 2 / to.scale;
    const byClass = CLASSES.map(() => []);
    let seen = 0;
    const left = to.x - this.width / 2 / to.scale, right = 2 * to.x - left;
    const low = to.y - this.height / 2 / to.scale, high = 2 * to.y - low;
    this.grid.within(to.x - halfWidth, to.x + halfWidth, to.y - halfHeight, to.y + halfHeight, (row) => {
      byClass[this.classes[row]].push(row);
      const x = this.x[this.tail[row]], y = this.y[this.tail[row]];
      seen += x >= left && x <= right && y >= low && y <= high;
    });
    this.seen = seen;
    const thin = Math.max(0.4, Math.min(1, 60 / Math.sqrt(this.seen + 1)));
    let budget = EDGES_A_FRAME;
    for (let kind = 0; kind < CLASSES.length; kind += 1) {
      context.strokeStyle = context.fillStyle = style.getPropertyValue(`--${CLASSES[kind]}`);
      context.lineWidth = WIDTH[kind] * (kind === CUT ? Math.max(0.75, thin) : thin);
      context.setLineDash(kind === CLOSED ? [4, 4] : []);
      for (let from = 0; from < byClass[kind].length; from += EDGES_A_FRAME) {
        const part = byClass[kind].slice(from, from + EDGES_A_FRAME);
        this.stroke(context, to, part);
        budget -= part.length;
        if (budget <= 0) {
          yield;
          budget = EDGES_A_FRAME;
        }
      }
    }
  }

  stroke(context, to, rows) {
    const { x, y, tail, head, lanes } = this, { scale } = to;
    const shiftX = to.width / 2 - to.x * scale, shiftY = to.height / 2 + to.y * scale;
    const hasArrows = this.seen <= DETAIL_EDGES && this.direction;
    context.beginPath();
    for (const row of rows) {
      let ax = x[tail[row]] * scale + shiftX, ay = shiftY - y[tail[row]] * scale;
      let bx = x[head[row]] * scale + shiftX, by = shiftY - y[head[row]] * scale;
      if (lanes && lanes[row]) {
        const length = Math.hypot(bx - ax, by - ay) || 1, sign = tail[row] < head[row] ? 1 : -1;
        const ox = (-(by - ay) / length) * lanes[row] * sign, oy = ((bx - ax) / length) * lanes[row] * sign;
        [ax, bx, ay, by] = [ax + ox, bx + ox, ay + oy, by + oy];
      }
      context.moveTo(ax, ay);
      context.lineTo(bx, by);
      if (hasArrows) this.arrow(context, ax, ay, bx, by, this.direction(row));
    }
    context.stroke();
  }

  arrow(context, ax, ay, bx, by, direction) {
    const length = Math.hypot(bx - ax, by - ay);
    if (!direction || length < 22) return;
    const ux = ((bx - ax) / length) * direction, uy = ((by - ay) / length) * direction;
    const mx = (ax + bx) / 2 + 3 * ux, my = (ay + by) / 2 + 3 * uy;
    context.moveTo(mx - 6 * ux - 4 * uy, my - 6 * uy + 4 * ux);
    context.lineTo(mx, my);
    context.lineTo(mx - 6 * ux + 4 * uy, my - 6 * uy - 4 * ux);
  }

  frame() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.compose();
    });
  }

  compose() {
    const { context, picture, view } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    if (!picture || !this.grid) return;
    const ratio = view.scale / picture.scale;
    const left = this.width / 2 + (picture.x - view.x) * view.scale - (picture.width / 2) * ratio;
    const top = this.height / 2 - (picture.y - view.y) * view.scale - (picture.height / 2) * ratio;
    context.drawImage(picture.canvas, left, top, picture.width * ratio, picture.height * ratio);
    this.overlay(context);
  }

  overlay(context) {
    const style = getComputedStyle(document.documentElement);
    this.standOut(context, style);
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const box = { w: this.width / 2 / this.view.scale, h: this.height / 2 / this.view.scale };
    if (this.seen <= DETAIL_EDGES) this.labels(context, style, box);
    this.ring(context, style);
    for (const { vertex, letter } of this.marks) {
      if (!Number.isFinite(this.x[vertex])) continue;
      const [px, py] = this.screen(vertex);
      context.fillStyle = style.getPropertyValue(letter === "s" ? "--accent" : "--ink");
      context.beginPath();
      context.arc(px, py, 9, 0, 7);
      context.fill();
      context.fillStyle = style.getPropertyValue("--card");
      context.fillText(letter, px, py);
    }
  }

  ring(context, style) {
    const marked = new Set(this.marks.map(({ vertex }) => vertex));
    context.strokeStyle = style.getPropertyValue("--cut");
    context.lineWidth = 4;
    for (const v of this.cutVertices.filter((one) => Number.isFinite(this.x[one]))) {
      context.beginPath();
      context.arc(...this.screen(v), marked.has(v) ? 12 : 7, 0, 7);
      context.stroke();
    }
  }

  standOut(context, style) {
    const rows = this.chosen.filter((row) => Number.isFinite(this.x[this.tail[row]] + this.x[this.head[row]]));
    const own = (row) => `--${CLASSES[this.classes?.[row] ?? 0]}`;
    context.lineCap = "round";
    for (const [width, color] of [[12, () => "--map"], [8, () => "--chosen"], [4, () => "--map"], [3, own]]) {
      context.lineWidth = width;
      for (const row of rows) {
        context.strokeStyle = style.getPropertyValue(color(row));
        context.beginPath();
        context.moveTo(...this.screen(this.tail[row]));
        context.lineTo(...this.screen(this.head[row]));
        context.stroke();
      }
    }
  }

  labels(context, style, box) {
    const shown = new Set();
    this.grid.within(this.view.x - box.w, this.view.x + box.w, this.view.y - box.h, this.view.y + box.h, (row) => {
      shown.add(this.tail[row]);
      shown.add(this.head[row]);
    });
    const hasRoom = this.width * this.height > PIXELS_A_LABEL * shown.size;
    const taken = new Set(), marked = new Set([...this.marks.map(({ vertex }) => vertex), ...this.cutVertices]);
    [context.lineWidth, context.lineJoin, context.strokeStyle] = [4, "round", style.getPropertyValue("--map")];
    for (const v of shown) {
      const [px, py] = this.screen(v);
      context.fillStyle = style.getPropertyValue("--dim");
      context.beginPath();
      context.arc(px, py, hasRoom ? 3.5 : 2, 0, 7);
      context.fill();
      if (!hasRoom) continue;
      const name = this.label(v), half = context.measureText(name).width / 2 + 3, isHere = px >= 0 && px <= this.width;
      const at = [isHere ? Math.max(half, Math.min(this.width - half, px)) : px, py - (marked.has(v) ? 18 : 12)];
      const [left, right, top, bottom] = [at[0] - half, at[0] + half, at[1] - ABOVE_LINE, at[1] + BELOW_LINE].map((edge) => Math.floor(edge / LABEL_CELL));
      const cells = [];
      for (let column = left; column <= right; column += 1) for (let row = top; row <= bottom; row += 1) cells.push(`${column} ${row}`);
      if (cells.some((cell) => taken.has(cell))) continue; // a name over another is read by nobody
      cells.forEach((cell) => taken.add(cell));
      context.fillStyle = style.getPropertyValue("--ink");
      context.strokeText(name, ...at); // edges do not run through it
      context.fillText(name, ...at);
    }
  }

  // The nearest edge within `reach` pixels, and the nearest vertex; -1 where there is none.
  at(px, py, reach) {
    const x = this.view.x + (px - this.width / 2) / this.view.scale, y = this.view.y - (py - this.height / 2) / this.view.scale;
    const far = reach / this.view.scale;
    let row = -1, nearest = far, vertex = -1, closest = Infinity;
    this.grid.within(x - far, x + far, y - far, y + far, (one) => {
      const ax = this.x[this.tail[one]], ay = this.y[this.tail[one]], bx = this.x[this.head[one]], by = this.y[this.head[one]];
      const length = (bx - ax) ** 2 + (by - ay) ** 2;
      const t = length ? Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
      const distance = Math.hypot(ax + t * (bx - ax) - x, ay + t * (by - ay) - y);
      if (distance < nearest) [row, nearest] = [one, distance];
      for (const v of [this.tail[one], this.head[one]]) {
        const away = Math.hypot(this.x[v] - x, this.y[v] - y);
        if (away < closest) [vertex, closest] = [v, away];
      }
    });
    return { row, vertex };
  }
}
