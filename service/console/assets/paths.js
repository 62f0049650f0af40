// The flow taken apart into paths, those that carry most first.

import { ask, graphPath, text } from "./api.js";
import { bar, dataTable, fill, h, number, problemBox } from "./dom.js";

const TOP = 25;

export class Paths {
  constructor(page) {
    this.page = page;
    this.id = "paths";
    this.title = "Paths";
    this.result = h("div", { "aria-live": "polite" });
    this.element = h("div", {}, h("p", {}, h("button", { type: "button", class: "first", onclick: () => this.read() }, "Show the paths")), this.result);
    this.forget();
  }

  forget() {
    fill(this.result, h("p", { class: "empty" }, "The flow as paths from source to sink, those that carry most first. Choose one to see it in the picture."));
  }

  async read() {
    if (!this.page.question.isFilled()) {
      fill(this.result, h("p", { class: "notice" }, "Name a source and a sink first: the paths are those of their flow."));
      return;
    }
    const onJob = (job) => fill(this.result, h("p", {}, bar(job.progress?.fraction ?? NaN, "Paths"), ` ${job.status}`));
    onJob({ status: "asking" });
    try {
      const question = { ...this.page.terminals(), fields: ["value", "paths"], paths: { top: TOP } };
      this.show(await text(ask(graphPath(this.page.name, "/max-flow"), question, { onJob })));
    } catch (error) {
      fill(this.result, problemBox(error));
    }
  }

  show({ paths, version }) {
    const net = this.page.network;
    const columns = [{ name: "Rank", figure: true }, { name: "Carries", figure: true }, { name: "Edges", figure: true }, { name: "From" }, { name: "To" }, { name: "" }];
    const rows = paths.amount.map((amount, at) => {
      const edges = paths.edges.slice(paths.offsets[at], paths.offsets[at + 1]);
      const choose = () => this.page.picture.choose(edges.map((id) => net.rowOf(id)).filter((row) => row !== undefined), true);
      const name = `Show path ${at + 1} in the picture`;
      return [number(at + 1), number(amount), number(edges.length), String(paths.source[at]), String(paths.sink[at]),
        h("button", { type: "button", class: "row", disabled: !net, "aria-label": name, onclick: choose }, "show")];
    });
    const table = dataTable("Paths by what they carry", columns, rows, "Nothing flows, so there is no path.");
    table.classList.add("tall");
    const rest = paths.of > rows.length ? ` The others carry ${number(paths.rest)} together.` : "";
    fill(this.result, h("p", { class: "dim small" }, `At version ${version}: ${number(rows.length)} of ${number(paths.of)} paths.${rest}`), table);
  }
}
