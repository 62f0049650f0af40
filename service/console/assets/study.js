// The closure study: which single closure costs most, as a ranked list.

import { ask, graphPath, text } from "./api.js";
import { bar, dataTable, fill, h, number, problemBox, say } from "./dom.js";

export class Study {
  constructor(page) {
    this.page = page;
    this.id = "study";
    this.title = "Closure study";
    this.candidates = h("select", { id: "candidates" }, h("option", { value: "all" }, "every edge"), h("option", { value: "cut" }, "the edges of the minimum cut"));
    this.top = h("select", { id: "top" }, [10, 25, 100].map((count) => h("option", { value: String(count) }, `the worst ${count}`)));
    this.button = h("button", { class: "first" }, "Run the study");
    this.result = h("div", { "aria-live": "polite" }, h("p", { class: "empty" }, "Which single closure costs the flow most? The study tries the candidates one by one; the graph stays as it is."));
    this.element = h("div", {}, h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.run(); } },
      h("div", { class: "field" }, h("label", { for: "candidates" }, "Close in turn"), this.candidates),
      h("div", { class: "field" }, h("label", { for: "top" }, "List"), this.top), this.button), this.result);
  }

  async run() {
    if (!this.page.question.isFilled()) {
      fill(this.result, h("p", { class: "notice" }, "Name a source and a sink first: the study is about their flow."));
      return;
    }
    const ending = new AbortController();
    const stop = h("button", { type: "button", class: "quiet", onclick: () => ending.abort() }, "Cancel the study");
    const onJob = ({ progress, status }) => {
      const counted = progress?.of ? `${number(progress.done)} of ${number(progress.of)} with flow` : status;
      fill(this.result, h("p", {}, bar(progress?.fraction ?? NaN, "Study"), ` ${counted} `, stop));
    };
    onJob({ status: "asking" });
    this.button.disabled = true;
    try {
      const question = { ...this.page.terminals(), candidates: this.candidates.value, top: Number(this.top.value) };
      const study = await text(ask(graphPath(this.page.name, "/closure-study"), question, { wait: 0, onJob, signal: ending.signal }));
      this.show(study);
      say("The closure study is done.");
    } catch (error) {
      fill(this.result, error.name === "AbortError" ? h("p", { class: "notice" }, "The study was cancelled.") : problemBox(error));
    }
    this.button.disabled = false;
  }

  show(study) {
    const net = this.page.network, worst = Math.max(1, ...study.answers.map((answer) => Number(answer.loss)));
    const columns = [{ name: "Rank", figure: true }, { name: "Edge" }, { name: "Between" }, { name: "Loss", figure: true }, { name: "" }, { name: "Flow left", figure: true }];
    const rows = study.answers.map((answer, at) => {
      const [id] = answer.edges, row = net?.rowOf(id);
      const name = row === undefined ? String(id) : h("button", { class: "row", type: "button", onclick: () => this.page.choose(row, { isFar: true }) }, String(id));
      const ends = row === undefined ? "" : net.ends(row).join(" – ");
      const loss = h("progress", { max: worst, value: Number(answer.loss), "aria-hidden": "true" });
      return [number(at + 1), name, ends, number(answer.loss), loss, number(answer.value)];
    });
    const table = dataTable("Closures by what they cost", columns, rows, "No closure costs anything: nothing flows.");
    table.classList.add("tall");
    fill(this.result, h("p", { class: "dim small" }, `At version ${study.version}, of a flow of ${number(study.base.value)}: ${number(study.candidates)} candidates, `
      + `${number(study.solved)} solved. None that is not listed costs more than ${number(study.skipped_at_most)}.`), table);
  }
}
