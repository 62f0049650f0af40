// Places for vertices that have none: in layers from the source on; of a large network, around its cut.

const SWEEPS = 8;
const MOST_AROUND = 600;
const HUB = 24; // a vertex with more edges, such as a terminal of many places, is an end of the picture
export const SMALL_EDGES = 4000;

// Edges by end, both ways.
function neighbours(n, tail, head, rows) {
  const offsets = new Int32Array(n + 1);
  for (const row of rows) {
    offsets[tail[row] + 1] += 1;
    offsets[head[row] + 1] += 1;
  }
  for (let v = 0; v < n; v += 1) offsets[v + 1] += offsets[v];
  const fill = offsets.slice(0, n), others = new Int32Array(2 * rows.length), through = new Int32Array(2 * rows.length);
  for (const row of rows) {
    through[fill[tail[row]]] = row;
    others[fill[tail[row]]++] = head[row];
    through[fill[head[row]]] = row;
    others[fill[head[row]]++] = tail[row];
  }
  return { offsets, others, through };
}

function layersFrom(n, near, starts, along) {
  const layer = new Int32Array(n).fill(-1);
  let front = [...starts];
  for (const v of front) layer[v] = 0;
  for (let depth = 1; front.length; depth += 1) {
    const next = [];
    for (const v of front) {
      for (let i = near.offsets[v]; i < near.offsets[v + 1]; i += 1) {
        const w = near.others[i];
        if (layer[w] < 0 && along(near.through[i], v)) {
          layer[w] = depth;
          next.push(w);
        }
      }
    }
    front = next;
  }
  return layer;
}

// x by layer, y by the mean of the neighbours, so that few edges cross.
function spread(n, layer, near, shown) {
  const byLayer = new Map();
  for (const v of shown) {
    if (!byLayer.has(layer[v])) byLayer.set(layer[v], []);
    byLayer.get(layer[v]).push(v);
  }
  const layers = [...byLayer.keys()].sort((a, b) => a - b);
  const x = new Float64Array(n).fill(NaN), y = new Float64Array(n).fill(NaN);
  const put = (vertices) => vertices.forEach((v, at) => { y[v] = (vertices.length - 1) / 2 - at; });
  layers.forEach((key, at) => {
    put(byLayer.get(key));
    for (const v of byLayer.get(key)) x[v] = at;
  });
  const middle = (v) => {
    let sum = 0, count = 0;
    for (let i = near.offsets[v]; i < near.offsets[v + 1]; i += 1) {
      const w = near.others[i];
      if (Number.isFinite(y[w]) && layer[w] !== layer[v]) {
        sum += y[w];
        count += 1;
      }
    }
    return count ? sum / count : y[v];
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const key of sweep % 2 ? [...layers].reverse() : layers) {
      const keyed = byLayer.get(key).map((v) => [middle(v), v]).sort((a, b) => b[0] - a[0]);
      byLayer.set(key, keyed.map(([, v]) => v));
      put(byLayer.get(key));
    }
  }
  const tallest = Math.max(1, ...layers.map((key) => byLayer.get(key).length));
  for (const key of layers) {
    const stretch = Math.min(3, tallest / byLayer.get(key).length) ** 0.6;
    for (const v of byLayer.get(key)) y[v] *= stretch;
  }
  const wide = Math.max(1, layers.length - 1), high = Math.max(1, tallest - 1);
  const factor = (0.6 * wide) / high;
  for (const v of shown) y[v] *= factor;
  return { x, y };
}

// The whole of a small network: left to right from the sources.
export function layered(net, sources) {
  const rows = Array.from({ length: net.m }, (_, row) => row);
  const near = neighbours(net.n, net.tail, net.head, rows);
  const starts = sources.length ? sources : net.n ? [0] : [];
  const forward = (row, from) => net.undirected[row] || net.tail[row] === from;
  const layer = layersFrom(net.n, near, starts, forward);
  const deepest = layer.reduce((most, one) => Math.max(most, one), 0);
  for (let v = 0; v < net.n; v += 1) if (layer[v] < 0) layer[v] = deepest + 1;
  return { ...spread(net.n, layer, near, Array.from({ length: net.n }, (_, v) => v)), rows };
}

// What lies around the cut: what leads to it on the left, what leads on from it on the right.
export function aroundCut(net) {
  const all = Array.from({ length: net.m }, (_, row) => row);
  const near = neighbours(net.n, net.tail, net.head, all);
  const isSource = new Int8Array(net.n);
  const layer = new Int32Array(net.n).fill(-1);
  const chosen = new Set();
  let front = [];
  for (const row of net.cutRows.slice(0, MOST_AROUND / 2)) {
    const back = net.flow[row] < 0;
    for (const [v, side] of [[net.tail[row], !back], [net.head[row], back]]) {
      if (!isSource[v]) {
        isSource[v] = side ? 1 : 2;
        layer[v] = 0;
        front.push(v);
      }
    }
    chosen.add(row);
  }
  const paying = new Set(net.cutVertices.map(({ vertex }) => vertex));
  for (const v of [...paying].slice(0, MOST_AROUND / 2)) {
    if (isSource[v]) continue;
    isSource[v] = 1;
    layer[v] = 0;
    front.push(v);
  }
  // What leaves a vertex whose capacity is in the cut lies beyond it.
  const sideOf = (row, v) => (paying.has(v) && (net.tail[row] === v) === net.flow[row] >= 0 ? 2 : isSource[v]);
  for (let depth = 1; front.length && chosen.size < MOST_AROUND; depth += 1) {
    const next = [];
    for (const v of front) {
      if (near.offsets[v + 1] - near.offsets[v] > HUB && !paying.has(v)) continue;
      for (let i = near.offsets[v]; i < near.offsets[v + 1] && chosen.size < MOST_AROUND; i += 1) {
        const w = near.others[i], row = near.through[i];
        if (net.cut[row]) continue;
        if (!isSource[w]) {
          isSource[w] = sideOf(row, v);
          layer[w] = depth;
          next.push(w);
        }
        chosen.add(row);
      }
    }
    front = next;
  }
  const shown = [];
  for (let v = 0; v < net.n; v += 1) {
    if (isSource[v]) {
      shown.push(v);
      layer[v] = isSource[v] === 1 ? -1 - layer[v] : layer[v];
    }
  }
  return { ...spread(net.n, layer, near, shown), rows: [...chosen] };
}
