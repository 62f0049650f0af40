// Which flow is asked for, and what came of it.

import { ask, graphPath, text } from "./api.js";
import { bar, fill, h, milliseconds, number, problemBox } from "./dom.js";
import { integerOr } from "./network.js";
import { readNpz } from "./npz.js";

const TRIES = 3;

export class Question {
  constructor(page) {
    this.page = page;
    this.source = h("input", { id: "source", autocomplete: "off", spellcheck: "false" });
    this.sink = h("input", { id: "sink", autocomplete: "off", spellcheck: "false" });
    this.result = h("div", { "aria-live": "polite" }, h("p", { class: "empty" }, "Name a source and a sink, then solve."));
    const field = (input, label, role) => h("div", { class: "field" }, h("label", { for: input.id }, label),
      h("div", { class: "beside" }, input, h("button", { type: "button", class: "quiet", "aria-label": `Pick the ${role} in the picture`, onclick: () => this.pick(input, role) }, "Pick")));
    this.button = h("button", { class: "first" }, "Solve");
    this.element = h("div", {},
      h("form", { onsubmit: (event) => { event.preventDefault(); this.solve(); } },
        field(this.source, "Source, or several with commas", "source"), field(this.sink, "Sink, or several with commas", "sink"), this.button),
      this.result);
  }

  takeTerminals(info) {
    if (info.source !== null) this.source.value = info.source;
    if (info.sink !== null) this.sink.value = info.sink;
  }

  pick(input, role) {
    this.page.picture.pick(role, (vertex) => {
      input.value = String(vertex);
      input.focus();
      this.page.picture.showTerminals();
    });
  }

  isFilled() {
    return Boolean(this.source.value.trim() && this.sink.value.trim());
  }

  terminals() {
    return { sources: this.names(this.source.value), sinks: this.names(this.sink.value) };
  }

  // A label may have a comma in it, or a blank at its end, so what is typed is first taken as one name.
  names(typed) {
    const places = this.page.network?.places;
    const known = (name) => [name, integerOr(name)].find((one) => places?.has(one));
    const whole = [typed, typed.trim()].map(known).find((name) => name !== undefined);
    if (whole !== undefined) return [whole];
    return typed.split(",").map((name) => name.trim()).filter(Boolean).map((name) => known(name) ?? integerOr(name));
  }

  async solve({ quietly = false } = {}) {
    if (!this.isFilled()) {
      fill(this.result, h("p", { class: "notice" }, "Name a source and a sink, or pick them in the picture."));
      return;
    }
    this.button.disabled = true;
    const onJob = (job) => fill(this.result, h("p", {}, bar(job.progress?.fraction ?? NaN, "Solving"), ` ${job.status}`));
    if (!quietly) onJob({ status: "solving" });
    try {
      const { answer, columns } = await this.both(onJob);
      this.page.solved(answer, columns);
      this.show(answer, columns);
    } catch (error) {
      fill(this.result, problemBox(error));
    }
    this.button.disabled = false;
  }

  // The value as JSON, which stays with its job and is small; cut and flow as columns. Both of one version.
  async both(onJob) {
    const path = graphPath(this.page.name, "/max-flow"), terminals = this.terminals();
    for (let attempt = 1; ; attempt += 1) {
      const answer = await text(ask(path, { ...terminals, fields: ["value"] }, { onJob }));
      if (!this.page.network) return { answer, columns: null };
      const question = { ...terminals, fields: ["cut", "flow"], min_version: answer.version };
      const columns = await readNpz(await (await ask(path, question, { accept: "application/x-npz", onJob })).arrayBuffer());
      if (columns.answer.version === answer.version || attempt === TRIES) return { answer, columns };
    }
  }

  show(answer, columns) {
    const proven = answer.certificate?.valid;
    const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
    const cut = columns?.answer?.cut;
    const paying = columns ? counted(["edge", columns["cut.edges"]], ["vertex", columns["cut.limited"]]) : null;
    fill(this.result, h("div", { class: "value", id: "value" }, number(answer.value)),
      h("p", {}, h("span", { class: proven ? "tag good" : "tag bad" }, proven ? "proven" : "not proven"), " ",
        h("span", { class: "tag", title: answer.reason }, answer.mode)),
      h("dl", { class: "facts small" }, fact("version", number(answer.version)), fact("engine", answer.engine),
        fact("solved in", milliseconds(answer.timings_ms.solve)),
        paying === null ? null : fact("cut", `${paying}${cut?.unique ? ", the only one" : ""}`),
        answer.lower === "ignored" ? fact("lower bounds", "ignored: headrace circulation keeps them") : null));
  }
}

const SEVERAL = { edge: "edges", vertex: "vertices" };

// What pays for a cut, kind by kind; edges where nothing does.
function counted(...kinds) {
  const counts = kinds.map(([one, column]) => [column?.length || 0, one]);
  const shown = counts.filter(([count]) => count);
  return (shown.length ? shown : counts.slice(0, 1)).map(([count, one]) => `${number(count)} ${count === 1 ? one : SEVERAL[one]}`).join(" and ");
}
