// The table beside the picture: every edge can be reached from the keyboard here.

import { dataTable, fill, h, number } from "./dom.js";
import { decimal } from "./network.js";

const SHOWN = 100;

export class EdgeTable {
  constructor(page) {
    this.page = page;
    this.id = "edges";
    this.title = "Edges";
    this.from = 0;
    this.chosen = -1;
    const again = () => { this.from = 0; this.show(); };
    this.which = h("select", { id: "which", onchange: again },
      [["cut", "of the minimum cut"], ["flow", "with flow, the fullest first"], ["closed", "that are closed"], ["all", "all, in their order"]].map(([value, text]) => h("option", { value }, text)));
    this.search = h("input", { id: "search", type: "search", autocomplete: "off", placeholder: "id or vertex", oninput: again });
    this.body = h("div");
    this.element = h("div", {},
      h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "which" }, "Edges"), this.which),
        h("div", { class: "field" }, h("label", { for: "search" }, "Find"), this.search)), this.body);
  }

  rows(net) {
    const wanted = this.search.value.trim();
    const all = (keep) => {
      const found = [];
      for (let row = 0; row < net.m; row += 1) if (keep(row)) found.push(row);
      return found;
    };
    if (wanted) return this.named(wanted, net, all);
    const kind = this.which.value;
    if (kind === "cut") return net.cutRows;
    if (kind === "closed") return all((row) => net.closed[row]);
    if (kind === "flow") return all((row) => net.flow[row]).sort((a, b) => net.load(b) - net.load(a) || Math.abs(net.flow[b]) - Math.abs(net.flow[a]));
    return all(() => true);
  }

  // Whole names first; where nothing has this name, it is a part of one.
  named(wanted, net, all) {
    const names = (row) => [net.ids[row], ...net.ends(row)].map(String);
    const found = all((row) => names(row).includes(wanted));
    const part = wanted.toLowerCase();
    return found.length ? found : all((row) => names(row).some((name) => name.toLowerCase().includes(part)));
  }

  show() {
    const net = this.page.network;
    if (!net) {
      fill(this.body, h("p", { class: "empty" }, "The edges of this graph are not read into the page."));
      return;
    }
    const rows = this.rows(net);
    this.from = Math.min(this.from, Math.max(0, Math.floor((rows.length - 1) / SHOWN) * SHOWN));
    const columns = [{ name: "Edge" }, { name: "From" }, { name: "To" }, { name: "Capacity", figure: true },
      { name: "Flow", figure: true }, { name: "Used", figure: true }, { name: "" }];
    const shown = rows.slice(this.from, this.from + SHOWN).map((row) => [
      h("button", { class: "row", type: "button", "data-row": String(row), onclick: () => this.page.choose(row, { isFar: true }) }, String(net.ids[row])),
      ...net.ends(row).map(String), number(net.capacity(row)), net.isSolved ? number(net.amount(row)) : "–",
      net.isSolved ? net.used(row) : "–",
      net.cut[row] ? h("span", { class: "tag cut" }, "cut") : net.closed[row] ? h("span", { class: "tag bad" }, "closed") : ""]);
    const table = dataTable("Edges", columns, shown, this.ifEmpty(net));
    table.classList.add("tall");
    fill(this.body, table, this.pager(rows.length), this.vertices(net));
    this.mark(this.chosen);
  }

  // Below the edges of the cut: the vertices whose capacity it pays.
  vertices(net) {
    if (this.which.value !== "cut" || this.search.value.trim() || !net.cutVertices.length) return null;
    const rows = net.cutVertices.slice(0, SHOWN).map(({ vertex, pays }) => [
      h("button", { class: "row", type: "button", onclick: () => this.page.picture.choose(net.rowsAt([vertex]), true) }, String(net.vertices[vertex])),
      number(decimal(pays, net.decimals)), h("span", { class: "tag cut" }, "cut")]);
    const table = dataTable("Vertices whose capacity the cut pays", [{ name: "Vertex" }, { name: "Capacity", figure: true }, { name: "" }], rows, "");
    table.classList.add("tall");
    const rest = net.cutVertices.length - rows.length;
    return [h("h3", {}, "Vertices whose capacity the cut pays"), table, rest ? h("p", { class: "dim small" }, `and ${number(rest)} more`) : null];
  }

  ifEmpty(net) {
    if (!net.m) return "The graph has no edges.";
    if (this.search.value.trim()) return "No edge and no vertex has this in its name.";
    return { cut: net.isSolved ? "The cut pays for no edge." : "Solve, and the edges of the minimum cut are listed here.",
      flow: net.isSolved ? "No edge carries flow." : "Solve, and the edges that carry flow are listed here.",
      closed: "No edge is closed." }[this.which.value];
  }

  pager(count) {
    if (!count) return null;
    if (count <= SHOWN) return h("p", { class: "dim small" }, `${number(count)} ${count === 1 ? "edge" : "edges"}`);
    const go = (step) => () => { this.from = Math.max(0, this.from + step); this.show(); };
    return h("div", { class: "row" }, h("button", { class: "quiet", disabled: !this.from, onclick: go(-SHOWN) }, "Before"),
      h("button", { class: "quiet", disabled: this.from + SHOWN >= count, onclick: go(SHOWN) }, "Next"),
      h("span", { class: "dim small" }, `${number(this.from + 1)} to ${number(Math.min(count, this.from + SHOWN))} of ${number(count)}`));
  }

  mark(row) {
    this.chosen = row;
    for (const button of this.body.querySelectorAll("button.row")) button.closest("tr").classList.toggle("chosen", Number(button.dataset.row) === row);
  }
}
