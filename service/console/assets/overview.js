// Graphs, workers and jobs, read again every few seconds while the page is looked at.

import { ROOT, Problem, follow, get, graphPath, request } from "./api.js";
import { ago, bar, bytes, cutOff, dataTable, fill, h, may, number, problemBox, say, share, span } from "./dom.js";
import { SAMPLE } from "./sample.js";

const JOBS = 25, LISTED = 100;
const READING = ["capacities", "vertices"]; // pages of a graph, as this console reads them
const EVERY_MS = 2000;
const SUFFIXES = {
  npz: "application/x-npz", json: "application/json", arrow: "application/vnd.apache.arrow.stream",
  arrows: "application/vnd.apache.arrow.stream", max: "text/x-dimacs", dimacs: "text/x-dimacs", min: "text/x-dimacs",
  mtx: "text/x-matrix-market", csv: "text/csv",
};
const ACTIVE = ["queued", "running"];

const graphs = h("div"), workers = h("div"), jobs = h("div"), head = h("div"), trouble = h("div");
const named = (path) => new URL(path, ROOT).href;
const graphPage = (name) => named(`console/graphs/${encodeURIComponent(name)}`);

function showHead(status) {
  const ready = status.workers.filter((worker) => worker.alive && worker.ready).length;
  const absent = status.workers.length - ready;
  const text = ready ? `${ready} ${ready === 1 ? "worker" : "workers"} at work${absent ? `, ${absent} not` : ""}`
    : "No worker takes commands yet: the first start compiles the solvers, for about a minute";
  const gone = "The files of Redis were removed or replaced: everything is lost when Redis stops. Export the graphs";
  const durable = status.redis.data_gone ? gone : status.redis.appendonly === false ? "Redis keeps nothing on disk" : "";
  fill(head,
    h("div", { class: "head" }, h("h1", {}, "Overview"), h("span", { class: "dim small" }, `Headrace ${status.version}`)),
    h("p", { class: ready && !absent ? "good" : "bad" }, h("span", { class: "dot" }), text),
    durable && h("p", { class: "bad" }, durable));
}

function showGraphs(status) {
  const columns = [{ name: "Graph" }, { name: "Version", figure: true }, { name: "Vertices", figure: true },
    { name: "Edges", figure: true }, { name: "Memory", figure: true }, { name: "On device", figure: true },
    { name: "Flows kept", figure: true }, { name: "Worker" }, { name: "Changed", figure: true }];
  const rows = [...status.graphs].sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at)).map((graph) => [
    h("a", { href: graphPage(graph.name) }, graph.name), number(graph.version), number(graph.n_vertices),
    number(graph.n_edges), bytes(graph.bytes), graph.device_bytes ? bytes(graph.device_bytes) : "–",
    number(graph.flow_states), graph.worker, ago(graph.updated_at)]);
  const more = status.n_graphs > rows.length ? `The first ${rows.length} by name of ${number(status.n_graphs)}.` : "";
  const none = may("admin") ? "No graph is loaded. Choose a file below, or load the sample town to look around."
    : "No graph is loaded that your key may see. Somebody with the scope admin can load one.";
  fill(graphs, dataTable("Graphs", columns, rows, none), more && h("p", { class: "dim small" }, more));
}

function showWorkers(status) {
  const columns = [{ name: "Worker" }, { name: "State" }, { name: "Engine" }, { name: "Graphs", figure: true },
    { name: "Memory", figure: true }, { name: "Device memory", figure: true }, { name: "Waiting", figure: true }];
  const rows = status.workers.map((worker) => [
    worker.name, stateOf(worker), worker.engine, number(worker.graphs), share(worker.bytes, worker.budget_bytes),
    share(worker.device_bytes, worker.device_budget_bytes),
    worker.waiting ? `${number(worker.waiting)}, ${span(worker.oldest_s)}` : "0"]);
  const notes = status.workers.flatMap((worker) => worker.notes.map((note) => h("p", { class: "bad" }, `${worker.name}: ${note}`)));
  fill(workers, dataTable("Workers", columns, rows, "No worker has ever reported. Start one: headrace serve"), notes);
}

function stateOf(worker) {
  if (!worker.alive) return h("span", { class: "tag bad" }, "away");
  if (worker.compiling) {
    const { done, of } = worker.compiling;
    return h("span", {}, `compiling ${done} of ${of} `, bar(done / of, "Kernels compiled"));
  }
  if (worker.draining) return h("span", { class: "tag", title: "It gives its graphs away, and gets none" }, "draining");
  return h("span", { class: worker.ready ? "tag good" : "tag" }, worker.ready ? "ready" : "starting");
}

function showJobs(page) {
  const columns = [{ name: "Job" }, { name: "Status" }, { name: "Progress" }, { name: "Graph" },
    { name: "Begun", figure: true }, { name: "Took", figure: true }];
  const shown = page.jobs.filter((job) => !READING.includes(job.kind) || ACTIVE.includes(job.status)).slice(0, JOBS);
  const held = document.activeElement?.dataset?.job;
  fill(jobs, dataTable("Jobs", columns, shown.map(jobRow), "Nothing has been asked yet."));
  if (held) jobs.querySelector(`[data-job="${CSS.escape(held)}"]`)?.focus();
}

function jobRow(job) {
  const isActive = ACTIVE.includes(job.status);
  const took = job.finished_at && job.started_at ? span((Date.parse(job.finished_at) - Date.parse(job.started_at)) / 1000) : "–";
  const kind = { succeeded: "good", failed: "bad", cancelled: "bad" }[job.status];
  const status = h("span", { class: `tag ${kind || ""}` }, job.cancelling && isActive ? "cancelling" : job.status);
  const stop = h("button", { class: "quiet", disabled: !may("update") || job.cancelling, "data-job": job.id,
    title: may("update") ? null : "This needs a key with the scope update", onclick: () => cancel(job),
    "aria-label": `Cancel ${job.kind} of ${job.graph}` }, "Cancel");
  const progress = isActive ? h("span", { class: "doing" }, progressOf(job, isActive), stop) : progressOf(job, isActive);
  return [job.kind, status, progress, h("a", { href: graphPage(job.graph) }, job.graph), ago(job.created_at), took];
}

function progressOf(job, isActive) {
  if (job.error) return h("span", { class: "dim", title: job.error.detail }, cutOff(job.error.detail || job.error.title, 48));
  if (!isActive) return "";
  if (job.status === "queued") return job.position ? `${number(job.position)} before it` : "next";
  const progress = job.progress || {};
  if (Number.isFinite(progress.fraction)) {
    const percent = `${Math.floor(100 * progress.fraction)} %`;
    return h("span", {}, bar(progress.fraction, `Progress of ${job.kind}`), ` ${percent}`);
  }
  return h("span", {}, bar(NaN, `Progress of ${job.kind}`), progress.phase ? ` ${progress.phase}` : "");
}

async function cancel(job) {
  try {
    const now = await get(`v1/jobs/${job.id}`, { method: "DELETE" });
    say(now.cancelling || now.status === "cancelled" ? `${job.kind} of ${job.graph} is being cancelled.`
      : `Too late: ${job.kind} of ${job.graph} is ${now.status}.`);
  } catch (error) {
    say(error.message);
  }
  await refresh();
}

function loadForm() {
  const file = h("input", { type: "file", id: "file", accept: Object.keys(SUFFIXES).map((suffix) => `.${suffix}`).join(",") });
  const name = h("input", { id: "name", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}", placeholder: "city", maxLength: 128, required: true, autocomplete: "off",
    title: "Letters from a to z, digits, '.', '_' and '-', first a letter or digit" });
  const replace = h("input", { type: "checkbox", id: "replace" });
  const told = h("div");
  file.addEventListener("change", () => {
    fill(told);
    if (file.files[0] && !name.value) name.value = file.files[0].name.replace(/\.[^.]+$/, "").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  });
  const put = async (graph, body, type, headers = {}) => {
    fill(told, h("p", {}, bar(NaN, "Loading"), ` Loading ${graph}…`));
    try {
      const answer = await request(graphPath(graph), { method: "PUT", body, headers: { "Content-Type": type, Prefer: "wait=2", ...headers } });
      if (answer.status === 202) await follow((await answer.json()).id, "*/*", (job) => showLoad(told, graph, job));
      fill(told, h("p", {}, h("span", { class: "good" }, "Loaded. "), h("a", { href: graphPage(graph) }, `Open ${graph}`)));
      say(`${graph} is loaded.`);
    } catch (error) {
      const isTaken = error.code === "version_conflict" && "If-None-Match" in headers;
      fill(told, isTaken ? nameTaken(graph) : problemBox(error));
    }
    await refresh();
  };
  const submit = (event) => {
    event.preventDefault();
    const chosen = file.files[0];
    const type = chosen && SUFFIXES[chosen.name.split(".").pop().toLowerCase()];
    if (!type) {
      const detail = chosen ? `${chosen.name} has none of the suffixes ${Object.keys(SUFFIXES).join(", ")}.` : "No file is chosen.";
      fill(told, problemBox(new Problem(0, { title: "Choose a file of a network.", detail })));
      return;
    }
    put(name.value, chosen, type, replace.checked ? {} : { "If-None-Match": "*" });
  };
  const sample = () => put("sample-town", JSON.stringify(SAMPLE), "application/json", { "If-None-Match": "*" });
  const form = h("form", { onsubmit: submit },
    h("div", { class: "row" }, h("div", { class: "field" }, h("label", { for: "file" }, "File of a network"), file),
      h("div", { class: "field" }, h("label", { for: "name" }, "Name of the graph"), name)),
    h("p", { class: "dim small" }, "npz, Arrow, JSON, CSV, DIMACS or Matrix Market, told by the suffix."),
    h("div", { class: "row" }, h("button", { class: "first" }, "Load"), h("label", { class: "inline" }, replace, "Replace a graph of this name"),
      h("button", { type: "button", onclick: sample }, "Load the sample town")), told);
  return may("admin") ? form : h("p", { class: "empty" }, "Loading a graph needs a key with the scope admin.");
}

function nameTaken(graph) {
  return h("p", { class: "notice", role: "alert" }, `There is a graph ${graph} already. `, h("a", { href: graphPage(graph) }, `Open ${graph}`),
    ", replace it, or choose another name.");
}

function showLoad(told, graph, job) {
  const { phase, fraction } = job.progress || {};
  fill(told, h("p", {}, bar(fraction ?? NaN, "Loading"), ` ${graph}: ${phase || job.status}`));
}

async function refresh() {
  try {
    const [status, page] = await Promise.all([get("status"), get(`v1/jobs?limit=${LISTED}`)]);
    showHead(status);
    showGraphs(status);
    showWorkers(status);
    showJobs(page);
    fill(trouble);
  } catch (error) {
    fill(trouble, problemBox(error, refresh));
  }
}

function start() {
  const main = document.getElementById("main");
  const card = (id, title, ...content) => h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), ...content);
  main.replaceChildren(head, trouble, card("graphs", "Graphs", graphs),
    h("div", { class: "two" }, card("load", "Load a graph", loadForm()), card("workers", "Workers", workers)),
    card("jobs", "Latest jobs", jobs));
  const tick = async () => {
    if (!document.hidden) await refresh();
    setTimeout(tick, EVERY_MS);
  };
  tick();
}

start();
