// The REST API of the same origin. The browser shows the cookie of the session; no key is ever in a script's reach.

export const ROOT = new URL("../../", import.meta.url);
const STRINGS = "application/json; numbers=string";
const LONGEST_WAIT_S = 20;

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `The service answered ${status}.`);
    this.status = status;
    this.code = told.code || "unknown";
    this.told = told;
  }
}

export function graphPath(name, rest = "") {
  return `v1/graphs/${encodeURIComponent(name)}${rest}`;
}

// Integers beyond 2^53 become BigInt where the browser tells their digits.
function exact(_key, value, context) {
  const isCut = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isCut && context && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

export function parse(text) {
  return JSON.parse(text, exact);
}

export function write(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

export async function request(path, { method = "GET", body, headers = {}, signal, accept = "application/json" } = {}) {
  let answer;
  try {
    answer = await fetch(new URL(path, ROOT), {
      method, body, signal, headers: { Accept: accept, ...headers }, credentials: "same-origin", cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { code: "unreachable", detail: "The service does not answer. Is it running?" });
  }
  if (!answer.ok) throw await refused(answer);
  return answer;
}

async function refused(answer) {
  let told = {};
  try {
    told = parse(await answer.text());
  } catch { /* a proxy in between, perhaps: the status says enough */ }
  return new Problem(answer.status, told);
}

export async function get(path, options) {
  return parse(await (await request(path, options)).text());
}

export function send(method, path, value, options = {}) {
  const headers = { "Content-Type": "application/json", ...options.headers };
  return request(path, { ...options, method, headers, body: write(value) });
}

// Ask a question; long ones are followed as jobs. `onJob` gets the job each time that its progress is known.
export async function ask(path, question, { accept = STRINGS, wait = 1, onJob = () => {}, signal, method = "POST" } = {}) {
  const headers = { Prefer: wait ? `wait=${wait}` : "respond-async" };
  const answer = await send(method, path, question, { accept, headers, signal });
  return answer.status === 202 ? follow((await answer.json()).id, accept, onJob, signal) : answer;
}

// Wait for a job, and get its result. What is aborted here is cancelled there.
export async function follow(id, accept, onJob, signal) {
  const path = `v1/jobs/${id}`;
  const cancel = () => request(path, { method: "DELETE" }).catch(() => {});
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    for (;;) {
      const job = await get(path, { signal });
      onJob(job);
      if (!["queued", "running"].includes(job.status)) break;
      await pause(400, signal);
    }
    return await request(`${path}/result`, { accept, signal, headers: { Prefer: `wait=${LONGEST_WAIT_S}` } });
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

export const text = async (answer) => parse(await (await answer).text());

export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    }, { once: true });
  });
}

// The change feed: calls `onEvent` with each event, comes back after a lost connection, and never gives up silently.
export async function feed(name, { onEvent, onState, signal, last }) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const headers = last ? { "Last-Event-ID": last } : {};
      const accept = "text/event-stream; numbers=string";
      const answer = await request(graphPath(name, "/events"), { accept, headers, signal });
      onState("live");
      wait = 500;
      for await (const event of eventsOf(answer.body)) {
        last = event.id || last;
        if (event.data) onEvent(event.type, parse(event.data));
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      const isOver = [401, 403, 404].includes(error.status);
      onState(isOver ? "over" : "lost", error);
      if (isOver) return;
    }
    await pause(wait, signal).catch(() => {});
    wait = Math.min(2 * wait, 15000);
  }
}

const LONGEST_EVENT = 1 << 20;

async function* eventsOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    if (rest.length > LONGEST_EVENT) throw new Problem(0, { detail: "an event of the feed has no end" });
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { type: "message", data: "", id: "" };
      for (const line of block.split(/\r?\n/)) {
        const at = line.indexOf(":");
        if (at <= 0) continue;
        const value = line.slice(at + 1).replace(/^ /, "");
        if (line.startsWith("event:")) event.type = value;
        else if (line.startsWith("id:")) event.id = value;
        else if (line.startsWith("data:")) event.data += value;
      }
      yield event;
    }
  }
}
