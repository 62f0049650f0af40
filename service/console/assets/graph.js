// The page of one graph: what is known of it, who shows it, and what happens when it changes.

import { ROOT, feed, graphPath, request, text } from "./api.js";
import { ago, bytes, fill, h, number, problemBox, say } from "./dom.js";
import { EdgePanel } from "./edge.js";
import { EdgeTable } from "./edges.js";
import { Events } from "./events.js";
import { History } from "./history.js";
import { Parts } from "./parts.js";
import { Paths } from "./paths.js";
import { Picture } from "./picture.js";
import { Question } from "./question.js";
import { Study } from "./study.js";

const REFRESH_MS = 400, AGE_MS = 5000;

class Page {
  constructor(name) {
    this.name = name;
    this.info = null;
    this.tag = null; // the version that is shown, as If-Match wants it
    this.network = null;
    this.answer = null;
    this.ending = new AbortController();
    this.head = h("div");
    this.age = h("dd");
    this.trouble = h("div");
    this.question = new Question(this);
    this.picture = new Picture(this);
    this.edge = new EdgePanel(this);
    this.tables = [new EdgeTable(this), new Paths(this), new Study(this), new Parts(this), new History(this), new Events(this)];
    [this.edges, this.paths, this.study, this.parts, this.history, this.events] = this.tables;
  }

  async start(main) {
    const card = (id, title, part, kind = "") => h("section", { class: `card ${kind}`, "aria-labelledby": id }, h("h2", { id }, title), part.element);
    main.replaceChildren(this.head, this.trouble, h("div", { class: "graph" },
      this.picture.element,
      h("div", { class: "side" }, card("ask", "Maximum flow", this.question, "ask"), card("edge", "Edge", this.edge, "one")),
      h("section", { class: "card tables", "aria-label": "Tables" }, tabs(this.tables))));
    await this.readInfo();
    if (!this.info) {
      main.querySelector(".graph").hidden = true;
      return;
    }
    this.question.takeTerminals(this.info);
    await this.picture.read();
    if (this.question.isFilled()) await this.question.solve();
    this.showEdges();
    this.history.read();
    setInterval(() => this.showAge(), AGE_MS);
    feed(this.name, {
      signal: this.ending.signal,
      onEvent: (type, data) => this.changed(type, data),
      onState: (state, error) => this.events.told(state, error),
    });
  }

  async readInfo() {
    try {
      const answer = await request(graphPath(this.name));
      this.tag = answer.headers.get("etag");
      this.info = await text(answer);
      this.showHead();
      fill(this.trouble);
    } catch (error) {
      const again = error.code === "unknown_graph" ? null : () => location.reload();
      fill(this.trouble, problemBox(error, again), h("p", {}, h("a", { href: new URL("console", ROOT).href }, "Back to the overview")));
      fill(this.head, h("h1", {}, this.name));
    }
  }

  showHead() {
    const { info } = this;
    const facts = [["version", number(info.version)], ["vertices", number(info.n_vertices)], ["edges", number(info.n_edges)],
      ["memory", bytes(info.bytes) + (info.device_bytes ? ` + ${bytes(info.device_bytes)} on the device` : "")],
      ["worker", `${info.worker} (${info.engine})`]];
    this.showAge();
    fill(this.head, h("h1", {}, this.name),
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))), h("div", {}, h("dt", {}, "changed"), this.age)), h("p"));
  }

  showAge() {
    this.age.textContent = ago(this.info.updated_at);
  }

  // Something was committed, by whoever: read and solve once for all that comes together.
  changed(type, data) {
    this.events.add(type, data);
    if (type === "graph.deleted") {
      fill(this.trouble, h("p", { class: "notice bad", role: "alert" }, "This graph was deleted. What is shown is what it was."));
      return;
    }
    if (type !== "version" && type !== "reset") return;
    clearTimeout(this.refreshing);
    this.refreshing = setTimeout(() => this.refresh(data), REFRESH_MS);
  }

  async refresh(data) {
    if (this.isBusy) {
      this.isLate = true;
      return;
    }
    this.isBusy = true;
    try {
      await this.readAgain(data);
    } finally {
      this.isBusy = false;
    }
    if (this.isLate) {
      this.isLate = false;
      await this.refresh(data);
    }
  }

  async readAgain(data) {
    const before = this.answer;
    await this.readInfo();
    await this.picture.read();
    if (before) await this.question.solve({ quietly: true });
    this.showEdges();
    if (before && this.answer && data?.version) {
      const same = before.value === this.answer.value;
      say(`Version ${this.answer.version}: the flow ${same ? `stays ${number(this.answer.value)}` : `was ${number(before.value)} and is ${number(this.answer.value)}`}.`);
    }
  }

  // An answer has come: everything that shows flows shows it.
  solved(answer, columns) {
    this.answer = answer;
    if (this.network && columns) this.network.carry(columns);
    this.parts.forget();
    this.picture.paint();
    this.showEdges();
    this.paths.forget();
    this.history.add(answer, new Date());
  }

  // As the network is now, also where no answer has come for it.
  showEdges() {
    this.edges.show();
    this.edge.show();
  }

  choose(row, { isFar = false } = {}) {
    this.picture.choose([row], isFar);
    this.edge.choose(row);
    this.edges.mark(row);
  }

  terminals() {
    return this.question.terminals();
  }
}

function tabs(parts) {
  const panels = parts.map((part) => h("div", { role: "tabpanel", id: `panel-${part.id}`, "aria-labelledby": `tab-${part.id}`, tabindex: "-1", hidden: true }, part.element));
  const buttons = parts.map((part, at) => h("button", { role: "tab", type: "button", id: `tab-${part.id}`, "aria-controls": `panel-${part.id}`, onclick: () => open(at) }, part.title));
  const open = (at) => {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === at));
      button.tabIndex = i === at ? 0 : -1;
      panels[i].hidden = i !== at;
    });
    parts[at].opened?.();
  };
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "What is listed" }, buttons);
  list.addEventListener("keydown", (event) => {
    const now = buttons.indexOf(document.activeElement), last = buttons.length - 1;
    const to = { ArrowRight: now < last ? now + 1 : 0, ArrowLeft: now > 0 ? now - 1 : last, Home: 0, End: last };
    if (!(event.key in to)) return;
    event.preventDefault();
    const at = to[event.key];
    open(at);
    buttons[at].focus();
  });
  open(0);
  return [list, panels];
}

const main = document.getElementById("main");
const page = new Page(main.dataset.graph);
addEventListener("pagehide", () => page.ending.abort());
page.start(main);
