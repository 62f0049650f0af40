// One edge: what is known of it, what another capacity would do, and the same for real.

import { ask, graphPath, send, text } from "./api.js";
import { bar, cutOff, fill, h, may, number, problemBox, say, signed } from "./dom.js";

const AMOUNT = /^(\d+(\.\d+)?|inf)$/;

export class EdgePanel {
  constructor(page) {
    this.page = page;
    this.row = -1;
    this.element = h("div");
    this.tried = h("div", { "aria-live": "polite" });
    this.show();
  }

  choose(row) {
    this.row = row;
    fill(this.tried);
    this.show();
  }

  show() {
    const net = this.page.network;
    if (!net || this.row < 0 || this.row >= net.m) {
      const how = net?.m === 0 ? "The graph has no edges." : "Choose an edge in the picture or in the table: then try what its closure or another capacity would do.";
      fill(this.element, h("p", { class: "empty" }, how));
      return;
    }
    const { row } = this;
    const [tail, head] = net.ends(row);
    const limited = [...new Set([net.tail[row], net.head[row]])].filter((at) => net.limits.has(at));
    const typed = this.amount?.value;
    const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
    const tags = [net.cut[row] ? h("span", { class: "tag cut" }, "in the cut") : null, net.closed[row] ? h("span", { class: "tag bad" }, "closed") : null];
    this.amount = h("input", { id: "amount", inputmode: "decimal", autocomplete: "off", placeholder: "new capacity, or inf" });
    if (typed && document.activeElement?.id === "amount") this.amount.value = typed;
    const tryIt = (operation) => () => this.attempt(operation());
    const close = net.closed[row] ? h("button", { type: "button", onclick: tryIt(() => ({ op: "reopen" })) }, "Try reopening it")
      : h("button", { type: "button", onclick: tryIt(() => ({ op: "close" })) }, "Try closing it");
    const set = (event) => {
      event.preventDefault();
      const amount = this.amount.value.trim();
      if (AMOUNT.test(amount)) this.attempt({ set: [amount] });
      else fill(this.tried, h("p", { class: "notice bad", role: "alert" }, "A capacity is a number such as 12 or 12.5, or inf for an edge without a limit."));
    };
    fill(this.element,
      h("p", {}, h("strong", { class: "mono" }, String(net.ids[row])), " ", h("span", { class: "dim" }, `${tail} ${net.undirected[row] ? "–" : "→"} ${head}`), " ", ...tags.filter(Boolean)),
      h("dl", { class: "facts small" }, fact("capacity", number(net.capacity(row))),
        net.lowers ? fact("lower bound", number(net.lower(row))) : null,
        net.costs ? fact("cost", number(net.cost(row))) : null,
        limited.map((at) => fact(`capacity of ${cutOff(String(net.vertices[at]), 24)}`, number(net.limits.get(at)))),
        net.isSolved ? fact("flow", number(net.amount(row))) : null,
        net.isSolved ? fact("used", net.used(row)) : null),
      h("p", {}, close),
      h("form", { onsubmit: set }, h("label", { for: "amount" }, "Another capacity"), h("div", { class: "beside" }, this.amount, h("button", {}, "Try it"))),
      this.tried);
  }

  // What the change would do: a scenario, which changes nothing.
  async attempt(operation) {
    const { page, row } = this;
    if (!page.question.isFilled()) {
      fill(this.tried, h("p", { class: "notice" }, "Name a source and a sink above: a scenario is about their flow."));
      return;
    }
    const id = page.network.ids[row], change = { edges: [id], ...operation };
    const words = operation.op === "close" ? "closed" : operation.op === "reopen" ? "open again" : `at capacity ${number(operation.set[0])}`;
    fill(this.tried, h("p", {}, bar(NaN, "Trying"), " Trying…"));
    try {
      const question = { ...page.terminals(), scenarios: [{ batch: [change] }] };
      const answer = await text(ask(graphPath(page.name, "/what-if"), question));
      const [result] = answer.answers;
      if (result.error) {
        const problem = Object.assign(new Error(result.error.detail), { code: result.error.code, told: { title: "This cannot be tried." } });
        fill(this.tried, problemBox(problem));
        return;
      }
      this.showAttempt(answer, result, change, words);
    } catch (error) {
      fill(this.tried, problemBox(error));
    }
  }

  showAttempt(answer, result, change, words) {
    const isLoss = String(result.change).startsWith("-");
    const kind = isLoss ? "change bad" : String(result.change) === "0" ? "change" : "change good";
    const apply = h("button", { type: "button", class: "danger", disabled: !may("update"), onclick: () => this.apply(answer.version, change, apply) }, "Apply for real");
    fill(this.tried, h("div", { class: "notice", id: "tried" },
      h("p", {}, `With ${change.edges[0]} ${words}, the flow would be ${number(result.value)}:`),
      h("p", { class: kind }, String(result.change) === "0" ? "no change" : signed(result.change)),
      h("p", { class: "dim small" }, `A scenario at version ${answer.version}; the graph is as it was.`),
      h("p", {}, apply), may("update") ? null : h("p", { class: "dim small" }, "Applying needs a key with the scope update.")));
  }

  // The same change as a PATCH of the version that it was tried on.
  async apply(version, change, button) {
    button.disabled = true;
    const generation = this.page.network?.info.generation;
    try {
      const headers = { "If-Match": generation ? `"${generation}-${version}"` : `"${version}"`, Prefer: "wait=60" };
      const path = graphPath(this.page.name, "/capacities");
      const done = await text(send("PATCH", path, change, { headers, accept: "application/json; numbers=string" }));
      fill(this.tried, h("p", { class: "notice", id: "applied" }, done.version ? `Applied: the graph is at version ${done.version}.` : "Accepted: the list of jobs shows how far it is."));
      say(`Applied to ${change.edges[0]}.`);
      this.page.history.take({ result: done, finished_at: new Date().toISOString() });
      if (!this.page.events.isLive) await this.page.refresh(done);
    } catch (error) {
      fill(this.tried, problemBox(error));
    }
  }
}
