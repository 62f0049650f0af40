/** Against the service at HEADRACE_URL. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as passed } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import {
  connect,
  deleteGraph,
  deleteWatch,
  exportGraph,
  finished,
  getCapacities,
  getGraph,
  getVertices,
  graphEvents,
  jobEvents,
  type MaxFlowInfo,
  maxFlow,
  patchCapacities,
  putGraph,
  putWatch,
  Refused,
  type ServiceEvent,
  strings,
} from "../src/index.js";

const url = process.env.HEADRACE_URL ?? "http://127.0.0.1:8080";
const client = connect({ url: `${url}/` });
const path = { name: "typescript" };
const body = { sources: ["s"], sinks: ["t"] };

async function load(capacity: (number | string)[] = [3, 2.5, 4, 2]): Promise<void> {
  const columns = { tail: ["s", "s", "a", "b"], head: ["a", "b", "t", "t"], capacity };
  await putGraph({ client, path, body: columns });
}

test("a graph is loaded, solved and updated", async () => {
  await load();
  const { data } = await maxFlow({ client, path, body });
  assert.equal(data.value, 5);
  assert.equal(data.certificate.valid, true);
  const { data: update, response } = await patchCapacities({ client, path, body: { edges: [0, 3], set: [3.5, 1] } });
  assert.deepEqual([update.version, update.flow_states?.[0]?.value], [2, 4.5]);
  assert.equal(response.status, 200);
  const { data: page } = await getCapacities({ client, path });
  assert.deepEqual(page.capacity, [3.5, 2.5, 4, 1]);
});

test("a job is waited for", async () => {
  await load();
  const { response } = await maxFlow({ client, path, body, headers: { Prefer: "respond-async" } });
  assert.equal(response.status, 202);
  const answer = await finished<MaxFlowInfo>(client, response);
  assert.equal(answer.value, 5);
});

test("so is what becomes a job because it takes long", async () => {
  await load();
  const { data, response } = await maxFlow({ client, path, body, headers: { Prefer: "wait=0" } });
  assert.equal(data.value, 5);
  assert.equal(response.status, 200);
});

test("who aborts waits no longer for a job", async () => {
  await load();
  const running = async (request: Request): Promise<Response> => {
    if (request.method === "GET") return Response.json({ id: "1", status: "running" });
    return Response.json({ id: "1" }, { status: 202, headers: { Location: "/v1/jobs/1" } });
  };
  const slow = connect({ url, fetch: running as typeof fetch });
  const isTimeout = (error: unknown) => error instanceof DOMException && error.name === "TimeoutError";
  await assert.rejects(maxFlow({ client: slow, path, body, signal: AbortSignal.timeout(50) }), isTimeout);
  const { response } = await maxFlow({ client: slow, path, body, headers: { Prefer: "respond-async" } });
  await assert.rejects(finished(slow, response, AbortSignal.timeout(50)), isTimeout);
});

test("events have types, and a loop that is broken off ends their connection", async () => {
  await load();
  await putWatch({ client, path: { ...path, watch: "main" }, body });
  await patchCapacities({ client, path, body: { edges: [0], set: [1] } });
  const seen: ServiceEvent[] = [];
  for await (const event of graphEvents({ client, path, headers: { "last-event-id": "0" } })) {
    seen.push(event);
    if (event.event === "value.changed" && event.data.value === 3) break;
  }
  const again = graphEvents({ client, path, headers: { "last-event-id": seen.at(-2)?.id } });
  assert.deepEqual((await again.next()).value, seen.at(-1));
  await again.return();
  const { response } = await maxFlow({ client, path, body, headers: { Prefer: "respond-async" } });
  const job_id = response.headers.get("location")?.split("/").pop() ?? "";
  let last: ServiceEvent | undefined;
  for await (const event of jobEvents({ client, path: { job_id } })) last = event;
  assert.deepEqual([last?.event, last?.data.status], ["done", "succeeded"]);
});

test("signal ends events however long they have been read", async () => {
  await load();
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const abort = new AbortController();
  const headers = { "last-event-id": "0", Accept: "text/event-stream; numbers=string" };
  const events = graphEvents({ client, path, headers, signal: abort.signal });
  await events.next();
  const end = assert.rejects(async () => {
    for await (const _ of events);
  }, /enough/);
  for (let i = 0; i < 10; i++) {
    collect();
    await passed(10);
  }
  abort.abort(new Error("enough"));
  await Promise.race([end, passed(5000).then(() => assert.fail("they go on"))]);
});

test("events that are refused are an error, and so are numbers that JavaScript would round", async () => {
  await assert.rejects(graphEvents({ client, path: { name: "no-such-graph" } }).next(), { code: "unknown_graph" });
  await assert.rejects(jobEvents({ client, path: { job_id: "none" } }).next(), { code: "unknown_job" });
  const told = 'event: value.changed\ndata: {"value": 9007199254740993}\nid: 1\n\n';
  const large = connect({ url, fetch: async () => new Response(told) });
  await assert.rejects(graphEvents({ client: large, path }).next(), /RangeError: .*text\/event-stream; numbers=string/);
});

test("events go on where they were after a lost connection", async () => {
  const asked: (string | null)[] = [];
  const cut = async (request: Request): Promise<Response> => {
    const after = request.headers.get("last-event-id");
    asked.push(after);
    if (asked.length === 2) return Response.json({ code: "worker_unavailable", detail: "" }, { status: 503 });
    if (asked.length === 3) return new Response("<html>Bad Gateway</html>", { status: 502 }); // of a proxy meanwhile
    return new Response(`event: version\ndata: {"version": ${asked.length}}\nid: ${asked.length}\n\nid: 9\ndata: {`);
  };
  const events = graphEvents({ client: connect({ url, fetch: cut as typeof fetch }), path });
  assert.deepEqual([(await events.next()).value?.id, (await events.next()).value?.id], ["1", "4"]);
  assert.deepEqual(asked, [null, "1", "1", "1"]);
  await events.return();
});

test("what the caller has already is not modified", async () => {
  await load();
  const { response } = await getGraph({ client, path });
  const headers = { "If-None-Match": response.headers.get("etag") ?? "" };
  await assert.rejects(getGraph({ client, path, headers }), { code: "not_modified", status: 304 });
});

test("a refusal is thrown with its code", async () => {
  const asked = maxFlow({ client, path: { name: "no-such-graph" }, body });
  await assert.rejects(asked, (error: unknown) => {
    assert.ok(error instanceof Refused);
    assert.deepEqual([error.code, error.status], ["unknown_graph", 404]);
    assert.match(error.message, /no-such-graph/);
    return true;
  });
});

test("numbers that JavaScript would round are refused, and come whole as strings", async () => {
  const large = "9007199254740993";
  await load([large, 0, large, 0]);
  await assert.rejects(maxFlow({ client, path, body }), (error) => error instanceof RangeError && !/done/.test(error.message));
  const { data } = await maxFlow({ client, path, body, headers: { ...strings } });
  assert.equal(BigInt(String(data.value)), 9007199254740993n);
  const change = { client, path, body: { edges: [1], add: [1] } };
  await assert.rejects(patchCapacities(change), /RangeError: .*ask with headers: strings; what was asked for is done$/);
  await assert.rejects(patchCapacities({ ...change, query: { dry_run: true } }), /RangeError: .*ask with headers: strings$/);
  assert.equal((await getGraph({ client, path })).data.version, 2);
});

test("so are those that are sent, while Infinity is an amount without limit", async () => {
  for (const amount of [2 ** 53, -(2 ** 60), NaN, -Infinity]) await assert.rejects(load([amount, 1, 1, 1]), RangeError);
  await load([Infinity, 0, 7, 0]);
  const { data } = await getCapacities({ client, path });
  assert.deepEqual(data.capacity, ["inf", 0, 7, 0]);
});

test("names that JavaScript would round, such as cells of H3, come whole as strings and are sent as BigInt", async () => {
  const cells = [617700169958293503n, 617700169958293505n, 5n];
  const columns = { tail: cells.slice(0, 2), head: cells.slice(1), capacity: [3, 2n], vertex_labels: cells };
  await putGraph({ client, path, body: { ...columns, edge_ids: [2n ** 53n + 1n, 2] } });
  const between = { sources: [cells[0]!], sinks: [5] };
  await assert.rejects(getCapacities({ client, path }), RangeError);
  const { data: page } = await getCapacities({ client, path, headers: { ...strings } });
  assert.deepEqual([page.tail, page.edge_ids], [cells.slice(0, 2).map(String), ["9007199254740993", 2]]);
  const edges = page.edge_ids.map(BigInt);
  await patchCapacities({ client, path, body: { edges, set: [7, 4] } });
  assert.equal((await maxFlow({ client, path, body: between })).data.value, 4);
  const told = 'event: x\ndata: {"edges": [9007199254740993], "value": "1"}\nid: 1\n\n';
  const large = connect({ url, fetch: async () => new Response(told) });
  const headers = { Accept: "text/event-stream; numbers=string" };
  const { value: event } = await graphEvents({ client: large, path, headers }).next();
  assert.deepEqual(event?.data, { edges: ["9007199254740993"], value: "1" });
});

test("so are amounts with decimals of more digits than JavaScript keeps", async () => {
  const long = "500000000.123456789";
  await load([long, 0, long, 0]);
  await assert.rejects(maxFlow({ client, path, body }), RangeError);
  const { data } = await maxFlow({ client, path, body, headers: { ...strings } });
  assert.equal(data.value, long);
});

test("coordinates are read, however many digits they have", async () => {
  const x = [-0.12755999999999998, 0.9333333333333333, 1e-7, 123456789.12345679];
  const y = [51.50999999999999, 0, -0.1, 1e22];
  await putGraph({ client, path, body: { tail: [0, 1, 2], head: [1, 2, 3], capacity: [1, 0.1, 1e-9], x, y } });
  const { data } = await getVertices({ client, path, query: { all: true } });
  assert.deepEqual([data.x, data.y], [x, y]);
});

test("a file is loaded as text, as bytes and as a Blob", async () => {
  const query = { decimals: 1 };
  const csv = "tail,head,capacity\ns,a,3\na,t,2.5\n";
  await putGraph({ client, path, query, body: csv, headers: { "Content-Type": "text/csv" } });
  assert.equal((await maxFlow({ client, path, body })).data.value, 2.5);
  const { response } = await exportGraph({ client, path, parseAs: "stream" });
  const bytes = new Uint8Array(await response.arrayBuffer());
  for (const file of [bytes, new Blob([bytes])]) {
    await deleteGraph({ client, path });
    const { data } = await putGraph({ client, path, body: file, headers: { "Content-Type": "application/x-npz" } });
    assert.deepEqual([data.n_edges, data.decimals], [2, 1]);
  }
  const accept = { Accept: "application/vnd.apache.arrow.stream" } as const;
  const page = await getCapacities({ client, path, headers: accept, parseAs: "stream" });
  const arrow = new Uint8Array(await page.response.arrayBuffer());
  await putGraph({ client, path, body: arrow, headers: { "Content-Type": accept.Accept } });
  assert.equal((await maxFlow({ client, path, body })).data.value, 2.5);
});

test("names that would change the path are refused before they are sent", async () => {
  await load();
  for (const name of [".", "..", ""]) {
    await assert.rejects(deleteWatch({ client, path: { ...path, watch: name } }), RangeError);
    await assert.rejects(deleteGraph({ client, path: { name } }), RangeError);
  }
  assert.equal((await maxFlow({ client, path, body })).data.value, 5); // the graph of the watch is still there
});

test("a refusal says when to come back", async () => {
  const answers = { "2": 2, "0.5": 0.5, "Thu, 26 Nov 2026 12:00:00 GMT": undefined };
  for (const [said, after] of Object.entries(answers)) {
    const problem = JSON.stringify({ code: "rate_limited", detail: "too much" });
    const headers = { "Content-Type": "application/problem+json", "Retry-After": said };
    const busy = connect({ url, fetch: async () => new Response(problem, { status: 429, headers }) });
    await assert.rejects(maxFlow({ client: busy, path, body }), (error: unknown) => {
      assert.ok(error instanceof Refused);
      assert.deepEqual([error.code, error.retryAfterS], ["rate_limited", after]);
      return true;
    });
  }
});

test("a page in place of an answer is an error", async () => {
  const headers = { "Content-Type": "text/html; charset=utf-8" };
  for (const status of [200, 502]) {
    const answer = async () => new Response(`<html>${"log in ".repeat(1000)}`, { status, headers });
    await assert.rejects(maxFlow({ client: connect({ url, fetch: answer }), path, body }), (error: unknown) => {
      assert.ok(error instanceof Refused && error.message.length < 600);
      assert.deepEqual([error.code, error.status], ["unexpected_answer", status]);
      return true;
    });
  }
});

test("a request is made without `client`, which Deno takes for its own", async () => {
  const Platform = globalThis.Request;
  globalThis.Request = class extends Platform {
    constructor(url: string, options: RequestInit) {
      assert.ok(!("client" in options));
      super(url, options);
    }
  } as typeof Request;
  await load().finally(() => {
    globalThis.Request = Platform;
  });
});

test("an empty key is none", async () => {
  const asked: (string | null)[] = [];
  const answer = async (request: Request): Promise<Response> => {
    asked.push(request.headers.get("authorization"));
    return Response.json({ value: 1 });
  };
  for (const apiKey of ["", "hr_1"]) {
    await maxFlow({ client: connect({ url, apiKey, fetch: answer as typeof fetch }), path, body });
  }
  assert.deepEqual(asked, [null, "Bearer hr_1"]);
});

test("a service that is not there is an error of the platform", async () => {
  const nobody = connect({ url: "http://127.0.0.1:9" });
  await assert.rejects(maxFlow({ client: nobody, path, body }), TypeError);
});

test("a graph is deleted", async () => {
  await load();
  await deleteGraph({ client, path });
  await assert.rejects(deleteGraph({ client, path }), Refused);
});
