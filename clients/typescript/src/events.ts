/**
 * Server-sent events as asynchronous iterators, in place of the generated functions of these names: those ask for ever
 * where the service refuses, tell no types of events, and leave the connection open to whoever stops reading.
 */
import type { Client } from "./generated/client/index.js";
import type { GraphEventsData, JobEventsData } from "./generated/types.gen.js";
import { quoted, refuseRounded } from "./numbers.js";
import { Refused } from "./refused.js";
import { paused } from "./waiting.js";

/** One of them: `id` is where another reader goes on, as its header `last-event-id`. */
export interface ServiceEvent {
  id: string | undefined;
  event: string;
  data: Record<string, unknown>;
}

type Told<Data extends { path: Record<string, string>; headers?: Record<string, unknown> }> = {
  client: Client;
  path: Data["path"];
  headers?: (Data["headers"] & { Accept?: string | undefined }) | undefined;
  signal?: AbortSignal | undefined;
};

/**
 * What happens to a graph, from now on or behind `headers: { "last-event-id": id }`, without end. It comes back by itself
 * after a lost connection, and goes on where it was; to break off the loop, or `signal`, ends it.
 *
 * @throws `Refused` for what the service refuses; `RangeError` for a number that JavaScript would round: ask with
 * `headers: { Accept: "text/event-stream; numbers=string" }`.
 */
export function graphEvents(options: Told<GraphEventsData>): AsyncGenerator<ServiceEvent, void, undefined> {
  return told(options, "/v1/graphs/{name}/events");
}

/** The events of a job, the last of which is `done`; as `graphEvents` otherwise. */
export function jobEvents(options: Told<JobEventsData>): AsyncGenerator<ServiceEvent, void, undefined> {
  return told(options, "/v1/jobs/{job_id}/events", "done");
}

const ATTEMPTS = 6;
const FIRST_MS = 500;
const LONGEST_MS = 30_000;

async function* told(
  { client, headers, ...options }: Told<GraphEventsData | JobEventsData>,
  url: string,
  last?: string,
): AsyncGenerator<ServiceEvent, void, undefined> {
  const place = { id: headers?.["last-event-id"] ?? undefined };
  const hasStrings = headers?.Accept?.includes("numbers=string") ?? false;
  let isKnown = false; // the first time a service that is away is an error, later on it may come back
  for (let failures = 0; ; ) {
    try {
      const asked = { ...headers, "last-event-id": place.id };
      const { response } = await client.get({ ...options, url, headers: asked, parseAs: "stream", throwOnError: true });
      if (response.status === 204 || response.body === null) return;
      isKnown = true;
      let blocks = 0; // the first says where the events begin, another one that the connection has lasted
      for await (const event of read(response.body, place, options.signal)) {
        blocks += 1;
        if (event !== undefined || blocks > 1) failures = 0;
        if (event === undefined) continue;
        if (!hasStrings) refuseRounded(event.text, 'headers: { Accept: "text/event-stream; numbers=string" }');
        yield { id: event.id, event: event.event, data: JSON.parse(quoted(event.text)) };
        if (event.event === last) return;
      }
      throw new TypeError("the events broke off");
    } catch (error) {
      failures += 1;
      if (!isKnown || options.signal?.aborted || !mayPass(error) || failures > ATTEMPTS) throw error;
      const asked_ms = error instanceof Refused ? 1000 * (error.retryAfterS ?? 0) : 0;
      await paused(Math.max(asked_ms, Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS)), options.signal);
    }
  }
}

/** A service that is busy or away, and a proxy that has no answer of it. */
const PASSING = [429, 502, 503, 504];

/** A lost connection is a TypeError of `fetch`. */
function mayPass(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Refused && PASSING.includes(error.status));
}

/**
 * What each block of lines is: an event, or `undefined`. `place` is behind the blocks that are whole. It listens to
 * `signal` itself: Node forgets that of a request once it has collected the request, however long its body is read.
 */
async function* read(
  body: ReadableStream<Uint8Array>,
  place: { id: string | undefined },
  signal: AbortSignal | undefined,
): AsyncGenerator<Written | undefined, void, undefined> {
  const reader = body.getReader();
  const aborted = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", aborted);
  const decoder = new TextDecoder();
  try {
    for (let text = ""; ; ) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return;
      const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) yield parsed(block, place);
    }
  } finally {
    signal?.removeEventListener("abort", aborted);
    await reader.cancel().catch(() => {}); // else the connection stays open; one that is lost cannot be cancelled
  }
}

/** An event whose data are text yet. */
type Written = Omit<ServiceEvent, "data"> & { text: string };

function parsed(block: string, place: { id: string | undefined }): Written | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^([^:]+):? ?(.*)$/.exec(line) ?? [];
    if (field === "id") place.id = value;
    else if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  if (data.length === 0) return undefined;
  return { id: place.id, event, text: data.join("\n") };
}
