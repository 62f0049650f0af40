// The vertices in parts of about equal weight: edges within a part take its colour, those between parts that of a cut.

import { ask, graphPath, text } from "./api.js";
import { bar, dataTable, fill, h, number, problemBox, say } from "./dom.js";
import { N_COLOURS } from "./map.js";
import { swatch } from "./picture.js";

export class Parts {
  constructor(page) {
    this.page = page;
    this.id = "parts";
    this.title = "Parts";
    this.k = h("input", { id: "k", type: "number", min: "2", max: String(N_COLOURS), value: "4", required: true });
    this.epsilon = h("input", { id: "epsilon", type: "number", min: "0", max: "1", step: "0.01", value: "0.03", required: true });
    this.weights = h("select", { id: "weights" }, h("option", { value: "one" }, "one each"), h("option", { value: "capacity" }, "their capacity"));
    this.button = h("button", { class: "first" }, "Divide");
    this.result = h("div", { "aria-live": "polite" });
    const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
    this.element = h("div", {}, h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.divide(); } },
      field("Parts", this.k), field("Heavier by at most", this.epsilon), field("Edges weigh", this.weights), this.button), this.result);
    this.forget();
  }

  // No more parts than vertices can be asked for.
  opened() {
    const most = Math.max(2, Math.min(N_COLOURS, this.page.info?.n_vertices ?? N_COLOURS));
    this.k.max = String(most);
    if (Number(this.k.value) > most) this.k.value = String(most);
  }

  // The picture shows the flow again.
  forget() {
    this.page.picture.divide(null);
    fill(this.result, h("p", { class: "empty" }, "The vertices in parts of about equal weight, with as little between them as is found. The graph stays as it is."));
  }

  async divide() {
    const onJob = (job) => fill(this.result, h("p", {}, bar(job.progress?.fraction ?? NaN, "Parts"), ` ${job.status}`));
    onJob({ status: "asking" });
    this.button.disabled = true;
    try {
      const question = { k: Number(this.k.value), epsilon: this.epsilon.value, weights: this.weights.value, fields: ["parts"] };
      this.show(await text(ask(graphPath(this.page.name, "/partition"), question, { onJob })));
    } catch (error) {
      fill(this.result, problemBox(error));
    }
    this.button.disabled = false;
  }

  show(answer) {
    const { page } = this, columns = [{ name: "Part" }, { name: "Vertices", figure: true }];
    if (page.network) page.picture.divide(page.network.partsOf(answer.parts));
    page.picture.map.fit(); // a chosen edge had led into one of them
    const rows = answer.n_vertices.map((count, part) => [h("span", {}, swatch(`p${part}`, 5), ` ${part + 1}`), number(count)]);
    const back = h("button", { type: "button", class: "quiet", onclick: () => { this.forget(); page.picture.paint(); } }, "Show the flow again");
    const held = answer.balanced ? "" : ` ${answer.reason}`;
    fill(this.result, h("p", { class: "dim small" }, `At version ${answer.version}: ${number(answer.cut_edges)} edges between parts weigh ${number(answer.value)}.${held} `, back),
      dataTable("Parts and how many vertices each has", columns, rows, ""));
    if (page.network) page.picture.paint();
    say(`${number(answer.k)} parts: the picture shows them.`);
  }
}
