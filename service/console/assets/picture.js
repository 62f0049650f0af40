// The map and what stands around it: legend, buttons, and which part of a network is drawn.

import { bar, fill, h, number, problemBox } from "./dom.js";
import { listen } from "./gestures.js";
import { SMALL_EDGES, aroundCut, layered } from "./layout.js";
import { CLOSED, CUT, NetworkMap, PART } from "./map.js";
import { readNetwork } from "./network.js";

const LANES_UP_TO = 20000;
const LABEL_LETTERS = 24;
const LEGEND = [["idle", "no flow", 2], ["f1", "a little", 3], ["f3", "more", 4], ["f4", "full", 5], ["cut", "minimum cut", 6], ["closed", "closed", 3]];
const BETWEEN = [["cut", "between parts", 6], ["closed", "closed", 3]];
const SVG = "http://www.w3.org/2000/svg";

export function swatch(kind, width) {
  const svg = document.createElementNS(SVG, "svg"), line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ width: 26, height: 10, "aria-hidden": "true" })) svg.setAttribute(name, value);
  for (const [name, value] of Object.entries({ x1: 2, x2: 24, y1: 5, y2: 5, "stroke-width": width })) line.setAttribute(name, value);
  if (kind === "closed") line.setAttribute("stroke-dasharray", "4 4");
  line.style.stroke = `var(--${kind})`;
  svg.append(line);
  return svg;
}

export class Picture {
  constructor(page) {
    this.page = page;
    this.picking = null;
    this.parts = null; // by vertex, and of which network, while these are shown in place of the flow
    this.legend = h("ul", { class: "legend" });
    this.canvas = h("canvas", { tabindex: "0", role: "img", "aria-describedby": "map-help" });
    this.note = h("p", { class: "over", id: "map-help" }, "Loading the network…");
    this.map = new NetworkMap(this.canvas, { onPick: (found) => this.picked(found), under: () => this.note.offsetHeight });
    listen(this.map);
    addEventListener("keydown", ({ key }) => key === "Escape" && this.picking && this.pick(null, null));
    const button = (label, text, act) => h("button", { class: "quiet", type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.toCut = h("button", { class: "quiet", type: "button", disabled: true, onclick: () => this.showCut() }, "Show the cut");
    this.element = h("section", { class: "card stage", "aria-label": "Picture of the network" },
      h("div", { class: "bar" }, this.legend,
        h("div", { class: "zoom" }, this.toCut, button("Zoom in", "+", () => this.map.zoom(1.5)),
          button("Zoom out", "−", () => this.map.zoom(1 / 1.5)), button("Show all", "All", () => this.map.fit()))),
      h("div", { class: "canvas" }, this.canvas, this.note));
  }

  async read() {
    try {
      this.page.network = await readNetwork(this.page.name, (part) => fill(this.note, bar(part, "Reading"), " Reading the network"));
      this.page.tag = `"${this.page.network.info.generation}-${this.page.network.version}"`;
      this.place();
      this.paint();
    } catch (error) {
      this.page.network = null;
      this.note.textContent = "";
      fill(this.page.trouble, problemBox(error, () => location.reload()));
    }
  }

  // Coordinates where the graph has them; a layout where it is small; else what lies around its cut.
  place() {
    const net = this.page.network;
    const label = (v) => {
      const letters = Array.from(String(net.vertices[v])); // no emoji is cut in two
      return letters.length > LABEL_LETTERS ? `${letters.slice(0, LABEL_LETTERS - 1).join("")}…` : letters.join("");
    };
    const all = () => Array.from({ length: net.m }, (_, row) => row);
    let placed = null;
    if (net.x) {
      const north = net.isGeographic ? net.y[0] || 0 : 0;
      const narrow = net.isGeographic ? Math.cos((Math.min(85, Math.abs(north)) * Math.PI) / 180) : 1;
      placed = { x: net.x.map((x) => x * narrow), y: net.y, rows: all() };
      this.kind = `${number(net.m)} edges at their coordinates.`;
    } else if (net.m <= SMALL_EDGES) {
      const sources = this.page.terminals().sources.map((name) => net.places.get(name)).filter((v) => v !== undefined);
      placed = layered(net, sources);
      this.kind = "In layers from the source, as the graph has no coordinates.";
    } else if (net.hasCut) {
      placed = aroundCut(net);
      this.kind = `${number(placed.rows.length)} edges around the minimum cut, of ${number(net.m)}: the graph has no coordinates.`;
    }
    this.isAround = !net.x && net.m > SMALL_EDGES;
    this.map.direction = (row) => (net.flow[row] < 0 ? -1 : net.flow[row] > 0 || !net.undirected[row] ? 1 : 0);
    const lanes = net.m <= LANES_UP_TO && placed ? lanesOf(net, placed.rows) : null;
    if (placed) {
      if (this.isAround) this.map.grid = null; // another part: shown whole
      this.say(); // what is fitted leaves room for it
      this.map.show({ ...placed, tail: net.tail, head: net.head, lanes, label });
    } else {
      this.kind = `${number(net.m)} edges without coordinates: solve, and what lies around the minimum cut is drawn.`;
    }
    if (!net.m) this.kind = "There is nothing to draw: the graph has no edges.";
    this.canvas.setAttribute("aria-label", `Network ${this.page.name}. ${this.kind} The table of edges below has the same.`);
  }

  // Parts by vertex, in place of the flow; null: the flow again. Whoever calls paints.
  divide(parts) {
    const k = parts ? Math.max(...new Set(parts)) + 1 : 0;
    this.parts = parts && { parts, of: this.page.network };
    const shown = parts ? [...Array.from({ length: k }, (_, part) => [`p${part}`, `part ${part + 1}`, 5]), ...BETWEEN] : LEGEND;
    fill(this.legend, shown.map(([kind, text, width]) => h("li", {}, swatch(kind, width), text)));
  }

  showCut() {
    if (this.parts) {
      this.page.parts.forget();
      this.paint();
    }
    const net = this.page.network;
    this.map.fit([...net.cutRows, ...net.rowsAt(net.cutVertices.map(({ vertex }) => vertex))]);
  }

  paint() {
    const net = this.page.network;
    if (!net) return;
    if (this.parts && this.parts.of !== net) this.page.parts.forget(); // the graph has changed since
    if (this.isAround && net.hasCut) this.place();
    const classes = new Uint8Array(net.m);
    for (let row = 0; row < net.m; row += 1) {
      const load = net.load(row), part = this.parts?.parts[net.tail[row]];
      if (net.closed[row]) classes[row] = CLOSED;
      else if (this.parts) classes[row] = part === this.parts.parts[net.head[row]] ? PART + part : CUT;
      else if (net.cut[row]) classes[row] = CUT;
      else if (load > 0) classes[row] = load >= 1 ? 4 : load >= 0.66 ? 3 : load >= 0.33 ? 2 : 1;
    }
    this.map.paint(classes, this.parts ? [] : net.cutVertices.map(({ vertex }) => vertex));
    this.toCut.disabled = !net.hasCut;
    this.say();
    this.showTerminals();
  }

  say() {
    const picking = this.picking && `Click a vertex to be the ${this.picking.role}, or press Escape.`;
    const help = this.page.network.m ? " Drag, scroll or use the arrow keys, + and −; click an edge." : "";
    this.note.textContent = picking || this.kind + help;
  }

  showTerminals() {
    const net = this.page.network;
    if (!net) return;
    const { sources, sinks } = this.page.terminals();
    const marks = (names, letter) => names.slice(0, 200).map((name) => ({ vertex: net.places.get(name), letter })).filter((mark) => mark.vertex !== undefined);
    this.map.mark([...marks(sources, "s"), ...marks(sinks, "t")]);
  }

  pick(role, onVertex) {
    this.picking = onVertex && { role, onVertex };
    this.canvas.classList.toggle("picking", Boolean(onVertex));
    if (this.page.network) this.say();
  }

  picked({ row, vertex }) {
    if (this.picking && vertex >= 0) {
      const { onVertex } = this.picking;
      this.pick(null, null);
      onVertex(this.page.network.vertices[vertex]);
    } else if (row >= 0) this.page.choose(row);
  }

  choose(rows, isFar) {
    this.map.choose(rows);
    if (isFar && this.map.grid) this.map.fit(rows);
  }
}

// Edges between the same two vertices lie beside each other: how many pixels each is off the line.
function lanesOf(net, rows) {
  const count = new Map(), lanes = new Float32Array(net.m);
  const key = (row) => Math.min(net.tail[row], net.head[row]) * net.n + Math.max(net.tail[row], net.head[row]);
  for (const row of rows) count.set(key(row), (count.get(key(row)) || 0) + 1);
  const next = new Map();
  for (const row of rows) {
    const of = count.get(key(row));
    if (of === 1) continue;
    const at = next.get(key(row)) || 0;
    next.set(key(row), at + 1);
    lanes[row] = (at - (of - 1) / 2) * 7;
  }
  return lanes;
}
