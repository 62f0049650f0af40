// The columns of one graph: rows of edges, names, coordinates, and what a flow says of each edge.

import { Problem, graphPath, request, text } from "./api.js";
import { readNpz } from "./npz.js";

const PAGE = 100000;
const MOST_EDGES = 2000000; // about 100 MB in the browser
const TRIES = 4;
const DEGREES = new Set(["EPSG:4326", "OGC:CRS84", "WGS84", "URN:OGC:DEF:CRS:OGC:1.3:CRS84"]); // longitude and latitude

export async function npz(path, options = {}) {
  return readNpz(await (await request(path, { ...options, accept: "application/x-npz" })).arrayBuffer());
}

// A whole number of units as a decimal, exactly.
export function decimal(units, decimals) {
  const digits = String(units);
  if (!decimals) return digits;
  const negative = digits.startsWith("-");
  const padded = digits.replace("-", "").padStart(decimals + 1, "0");
  const fraction = padded.slice(-decimals).replace(/0+$/, "");
  return `${negative ? "-" : ""}${padded.slice(0, -decimals)}${fraction ? `.${fraction}` : ""}`;
}

// An integer as JSON of the API has it too, whatever the width of its column: a BigInt only beyond 2^53.
const plain = (name) => (typeof name === "bigint" && Number.isSafeInteger(Number(name)) ? Number(name) : name);

// What is typed for an integer, or the text that it is.
export function integerOr(typed) {
  return /^-?\d{1,19}$/.test(typed) ? plain(BigInt(typed)) : typed;
}

export class Network {
  constructor(info, version, edges, vertices) {
    this.info = info;
    this.version = version;
    this.decimals = info.decimals;
    this.ids = edges.ids;
    this.m = edges.ids.length;
    this.capacities = edges.capacity;
    this.lowers = edges.lower; // where edges have lower bounds, and so with costs
    this.costs = edges.cost;
    this.unlimited = edges.unlimited;
    this.closed = edges.closed;
    this.undirected = edges.undirected;
    this.x = vertices.x ?? null;
    this.y = vertices.y ?? null;
    this.isGeographic = DEGREES.has(info.coordinates?.toUpperCase());
    this.name(edges, info.coordinates ? vertices.vertices : null);
    this.limit(vertices);
    this.forget();
  }

  // Vertices are counted from 0 here, whatever their names are.
  name(edges, names) {
    this.places = new Map();
    this.vertices = [];
    const place = (column) => {
      const name = plain(column);
      let at = this.places.get(name);
      if (at === undefined) {
        at = this.vertices.length;
        this.places.set(name, at);
        this.vertices.push(name);
      }
      return at;
    };
    (names || []).forEach(place);
    this.tail = Int32Array.from(edges.tail, place);
    this.head = Int32Array.from(edges.head, place);
    this.n = this.vertices.length;
    this.rows = null;
  }

  // What the vertices let through that do not let through all, by their places here.
  limit({ vertices, capacity, unlimited }) {
    this.limits = new Map();
    vertices.forEach((name, at) => {
      const place = this.places.get(plain(name));
      if (place !== undefined && !unlimited[at]) this.limits.set(place, decimal(capacity[at], this.decimals));
    });
  }

  rowOf(id) {
    if (!this.rows) this.rows = new Map(Array.from(this.ids, (one, row) => [plain(one), row]));
    return this.rows.get(plain(id));
  }

  // The part of each vertex, by its place here.
  partsOf({ vertices, part }) {
    const found = new Int16Array(this.n).fill(-1);
    vertices.forEach((name, at) => {
      const place = this.places.get(plain(name));
      if (place !== undefined) found[place] = part[at];
    });
    return found;
  }

  forget() {
    this.amounts = null;
    this.flow = new Float64Array(this.m);
    this.cut = new Uint8Array(this.m);
    this.cutRows = [];
    this.cutVertices = []; // those whose capacity the cut pays, with what it is
  }

  // What an answer with the columns of cut and flow says, row by row.
  carry(answer) {
    this.forget();
    this.amounts = new Map();
    const edges = answer["flow.edges"] || [], amounts = answer["flow.amount"] || [];
    for (let i = 0; i < edges.length; i += 1) {
      const row = this.rowOf(edges[i]);
      if (row === undefined) continue;
      this.amounts.set(row, amounts[i]);
      this.flow[row] = Number(amounts[i]);
    }
    this.cutRows = Array.from(answer["cut.edges"] || [], (id) => this.rowOf(id)).filter((row) => row !== undefined);
    for (const row of this.cutRows) this.cut[row] = 1;
    const limited = Array.from(answer["cut.limited"] || [], (name, at) => ({ vertex: this.places.get(plain(name)), pays: answer["cut.vertex_pays"][at] }));
    this.cutVertices = limited.filter(({ vertex }) => vertex !== undefined);
  }

  get isSolved() {
    return this.amounts !== null;
  }

  capacity(row) {
    return this.unlimited[row] ? "inf" : decimal(this.capacities[row], this.decimals);
  }

  // Null where no edge of the graph has any.
  lower(row) {
    return this.lowers ? decimal(this.lowers[row], this.decimals) : null;
  }

  cost(row) {
    return this.costs ? decimal(this.costs[row], this.info.cost_decimals ?? 0) : null;
  }

  amount(row) {
    return decimal(this.amounts?.get(row) ?? 0, this.decimals);
  }

  // Of the capacity, what is used: 0 to 1; of an edge without a limit next to nothing.
  load(row) {
    const flow = Math.abs(this.flow[row]);
    if (!flow) return 0;
    const most = Number(this.capacities[row]);
    return this.unlimited[row] ? Number.MIN_VALUE : most > 0 ? Math.min(1, flow / most) : 1;
  }

  used(row) {
    return this.unlimited[row] ? "no limit" : `${Math.round(100 * this.load(row))} %`;
  }

  get hasCut() {
    return this.cutRows.length + this.cutVertices.length > 0;
  }

  rowsAt(vertices) {
    const wanted = new Set(vertices), found = [];
    for (let row = 0; wanted.size && row < this.m; row += 1) if (wanted.has(this.tail[row]) || wanted.has(this.head[row])) found.push(row);
    return found;
  }

  ends(row) {
    return [this.vertices[this.tail[row]], this.vertices[this.head[row]]];
  }
}

// Read all edges, the capacities of vertices, and the coordinates if there are some, at one version. `onPart` gets the fraction that is there.
export async function readNetwork(name, onPart = () => {}) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readOnce(name, onPart);
    } catch (error) {
      if (error.code !== "version_conflict" || attempt === TRIES) throw error; // it was changed between two pages
    }
  }
}

async function readOnce(name, onPart) {
  const answer = await request(graphPath(name));
  const tag = answer.headers.get("etag");
  const info = await text(answer);
  if (info.n_edges > MOST_EDGES) {
    const detail = `${info.n_edges.toLocaleString("en")} edges are too many to be read into a page, which takes ${MOST_EDGES.toLocaleString("en")}.`;
    throw new Problem(0, { code: "too_many", title: "The picture is left out.", detail });
  }
  const headers = tag ? { "If-Match": tag } : {};
  const edges = await pages(graphPath(name, "/capacities"), headers, (done) => onPart(done / Math.max(1, info.n_edges)));
  // Of a graph without coordinates those that have a capacity are all that there is to know.
  const vertices = await pages(graphPath(name, "/vertices"), headers, () => {}, info.coordinates ? "&all=true" : "");
  return new Network(info, info.version, { ids: edges.edge_ids, ...edges }, vertices);
}

async function pages(path, headers, onRows, more = "") {
  const parts = [];
  for (let offset = 0; offset !== null;) {
    const part = await npz(`${path}?offset=${offset}&limit=${PAGE}${more}`, { headers });
    parts.push(part);
    offset = part.answer.next ?? null;
    onRows(offset ?? Infinity);
  }
  const columns = {};
  for (const column of Object.keys(parts[0])) {
    if (!/^(answer)$|\.(utf8|offsets)$/.test(column)) columns[column] = joined(parts.map((part) => part[column]));
  }
  return columns;
}

const WIDTHS = [Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Float32Array, Float64Array, BigInt64Array];

// Pages of one column may have different widths.
function joined(parts) {
  if (parts.length === 1) return parts[0];
  if (Array.isArray(parts[0])) return parts.flat();
  const widest = WIDTHS[Math.max(...parts.map((part) => WIDTHS.indexOf(part.constructor)))];
  const all = new widest(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(widest === BigInt64Array && part.constructor !== BigInt64Array ? BigInt64Array.from(part, BigInt) : part, at);
    at += part.length;
  }
  return all;
}
