// What happens to the graph, as its change feed tells it.

import { graphPath, send } from "./api.js";
import { dataTable, fill, h, may, number, problemBox, say } from "./dom.js";

const KEPT = 200;
const NAMES = { version: "new version", "value.changed": "value changed", "cut.changed": "cut changed", "graph.deleted": "deleted", reset: "events were missed" };

export class Events {
  constructor(page) {
    this.page = page;
    this.id = "events";
    this.title = "Events";
    this.isLive = false;
    this.list = [];
    this.state = h("p", { class: "dim small" }, "Connecting to the change feed…");
    this.told_ = h("div");
    this.body = h("div");
    this.button = h("button", { type: "button", disabled: !may("update"), onclick: () => this.watch() }, "Watch this flow");
    this.element = h("div", {}, this.state, h("p", {}, this.button, " ", h("span", { class: "dim small" },
      may("update") ? "A watch is solved at each version: its value and cut are told here, and to webhooks." : "A watch needs a key with the scope update.")), this.told_, this.body);
    this.show();
  }

  told(state, error) {
    this.isLive = state === "live";
    const texts = { live: "Connected to the change feed.", lost: "The change feed is interrupted; trying again…", over: `The change feed has ended: ${error?.message || ""}` };
    fill(this.state, h("span", { class: this.isLive ? "good" : "bad" }, h("span", { class: "dot" }), texts[state]));
  }

  add(type, data) {
    this.list.unshift({ type, data, at: new Date() });
    this.list.length = Math.min(this.list.length, KEPT);
    this.show();
  }

  show() {
    const columns = [{ name: "Time" }, { name: "Event" }, { name: "Version", figure: true }, { name: "What", class: "wrap" }];
    const rows = this.list.map(({ type, data, at }) => [at.toLocaleTimeString(), NAMES[type] || type, number(data.version), what(type, data)]);
    const table = dataTable("Events", columns, rows, "Nothing has happened since this page was opened.");
    table.classList.add("tall");
    fill(this.body, table);
  }

  async watch() {
    const { page } = this;
    try {
      await send("PUT", graphPath(page.name, "/watches/console"), page.terminals());
      fill(this.told_);
      say("The flow is watched, as the watch named console.");
    } catch (error) {
      fill(this.told_, problemBox(error));
    }
  }
}

function what(type, data) {
  if (type === "value.changed") return `${data.watch}: ${number(data.old_value)} → ${number(data.value)}`;
  if (type !== "cut.changed") return "";
  const some = (ids, sign) => (ids || []).slice(0, 6).map((id) => `${sign}${id}`);
  const more = (data.cut_added?.length || 0) + (data.cut_removed?.length || 0) > 12 || data.truncated ? " …" : "";
  return `${data.watch}: ${[...some(data.cut_added, "+"), ...some(data.cut_removed, "−")].join(" ")}${more}`;
}
