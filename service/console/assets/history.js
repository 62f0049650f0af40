// The values of this flow over time: from the updates whose jobs are kept, and from what is solved here.

import { get, parse, request, write } from "./api.js";
import { dataTable, fill, h, milliseconds, number } from "./dom.js";

const LISTED = 400, READ = 40, KEPT = 300;
const LONGEST_BYTES = 100000;
const KINDS = ["patch", "patch-edges", "patch-vertices", "restore"]; // their answers say of which terminals a value is
const SVG = "http://www.w3.org/2000/svg";

export class History {
  constructor(page) {
    this.page = page;
    this.id = "history";
    this.title = "History";
    this.points = new Map();
    this.element = h("div", {}, h("p", { class: "empty" }, "Solve, and the values are listed here."));
    this.width = 0; // of the chart, whose texts keep their size on a phone
    new ResizeObserver(() => {
      if (this.element.clientWidth && this.element.clientWidth !== this.width) this.show();
    }).observe(this.element);
  }

  // Results of long answers are left where they are: a value is short.
  async read() {
    try {
      const { jobs } = await get(`v1/jobs?limit=${LISTED}`);
      const ours = jobs.filter((job) => job.graph === this.page.name && job.status === "succeeded" && KINDS.includes(job.kind));
      for (const job of ours.slice(0, READ)) {
        const answer = await request(`v1/jobs/${job.id}`);
        if (Number(answer.headers.get("content-length")) > LONGEST_BYTES) {
          await answer.body?.cancel();
          continue;
        }
        this.take(parse(await answer.text()));
      }
      this.show();
    } catch { /* the list of jobs is a help, and what is solved here is shown without it */ }
  }

  take(job) {
    const { result } = job;
    const wanted = write(this.page.terminals());
    const at = new Date(job.finished_at);
    if (!result || !this.isOfThisLoad(at)) return;
    for (const state of result.flow_states || []) {
      if (state.value !== null && write({ sources: state.sources, sinks: state.sinks }) === wanted) {
        this.add({ ...state, version: result.version }, at);
      }
    }
  }

  isOfThisLoad(at) {
    return at >= new Date(this.page.info?.created_at || 0);
  }

  // One point for a version: the first solve of it, which was the work.
  add(answer, at) {
    const before = this.points.get(answer.version);
    if (!before || (before.mode === "unchanged" && answer.mode !== "unchanged")) {
      this.points.set(answer.version, { version: answer.version, value: String(answer.value), mode: answer.mode, ms: answer.timings_ms?.solve, at });
    }
    while (this.points.size > KEPT) this.points.delete(Math.min(...this.points.keys()));
    this.show();
  }

  show() {
    const points = [...this.points.values()].sort((a, b) => a.version - b.version);
    if (!points.length) return;
    const columns = [{ name: "Version", figure: true }, { name: "Time", class: "whole" }, { name: "Value", figure: true }, { name: "Mode" }, { name: "Solved in", figure: true }];
    const rows = [...points].reverse().map((point) => [number(point.version), point.at.toLocaleString(), number(point.value), point.mode, point.ms === undefined ? "–" : milliseconds(point.ms)]);
    const table = dataTable("Values by version", columns, rows, "");
    table.classList.add("tall");
    this.width = this.element.clientWidth;
    fill(this.element, chart(points, this.width || 720), h("p", { class: "dim small" }, "■ cold   ● warm   ○ unchanged"), table);
  }
}

function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const LONGEST_TICK = 12;

// A value of the axis, in as many decimals as tell it from the others; as a power of ten where that is too long for it.
export function tick(value, range) {
  const decimals = Math.max(0, Math.min(100, 2 - Math.floor(Math.log10(range))));
  const shown = number(String(Number(value.toFixed(decimals))));
  return shown.length <= LONGEST_TICK && !shown.includes("e") ? shown : value.toExponential(2).replace("e+", "e");
}

// A value holds until the next version, so the line goes in steps.
function chart(points, width) {
  const height = 200, left = 78, right = 16, top = 16, bottom = 28;
  const values = points.map((point) => Number(point.value));
  const low = Math.min(0, ...values), most = Math.max(...values), high = most > low ? most : low + 1;
  const first = points[0].version, last = Math.max(points[points.length - 1].version, first + 1);
  const x = (version) => left + ((version - first) / (last - first)) * (width - left - right);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `Value by version, ${points.length} points; the table below has them` });
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(draw("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "axis" }));
    svg.append(draw("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, tick(value, high - low)));
  }
  const steps = points.map((point, at) => `${at ? `H${x(point.version)}V` : `M${x(point.version)},`}${y(Number(point.value))}`).join("");
  svg.append(draw("path", { d: steps, class: "curve" }));
  for (const point of points) {
    const mark = point.mode === "cold" ? draw("rect", { x: x(point.version) - 4, y: y(Number(point.value)) - 4, width: 8, height: 8, class: "cold" })
      : draw("circle", { cx: x(point.version), cy: y(Number(point.value)), r: 4, class: point.mode === "warm" ? "warm" : "unchanged" });
    mark.append(draw("title", {}, `version ${point.version}: ${point.value}, ${point.mode}`));
    svg.append(mark);
  }
  svg.append(draw("text", { x: left, y: height - 8 }, `version ${first}`));
  if (points.length > 1) svg.append(draw("text", { x: width - right, y: height - 8, "text-anchor": "end" }, `version ${last}`));
  return svg;
}
