/**
 * Client for Headrace, generated from its OpenAPI document: one function for each operation, named as there.
 *
 * ```ts
 * import { connect, maxFlow, putGraph } from "headrace";
 *
 * const client = connect({ url: "http://127.0.0.1:8080" });
 * await putGraph({ client, path: { name: "city" }, body: { tail: [0, 1], head: [1, 2], capacity: [3, 2] } });
 * const { data } = await maxFlow({ client, path: { name: "city" }, body: { sources: [0], sinks: [2] } });
 * ```
 */
import { type Client, createClient } from "./generated/client/index.js";
import { getJob, getJobResult } from "./generated/sdk.gen.js";
import type { ProblemInfo } from "./generated/types.gen.js";
import { quoted, refuseRounded, written } from "./numbers.js";
import { Refused } from "./refused.js";
import { paused } from "./waiting.js";

export * from "./generated/index.js";
export { graphEvents, jobEvents, type ServiceEvent } from "./events.js";
export { Refused };
export type { Client };

export interface Connection {
  /** Where the service listens. */
  url: string;
  /** Shown with each request; an empty one is none. */
  apiKey?: string | undefined;
  /** In place of the platform's. */
  fetch?: typeof fetch | undefined;
}

/**
 * A client whose functions wait for their answer, as long as the service works on it. They throw `Refused` for what the
 * service refuses, and `RangeError` for an answer with a number that JavaScript would round: ask for that one
 * with `headers: strings`. One that is asked with `headers: { Prefer: "respond-async" }` is not waited for: `finished`
 * takes its `response`. A body that is text, bytes or a Blob is sent as it is: a file, whose kind `Content-Type` says. Of
 * any other body `Infinity` is sent as `"inf"`, a BigInt as the number it is, and a number that JavaScript may have
 * rounded is a `RangeError`.
 */
export function connect({ url, apiKey, fetch: ownFetch }: Connection): Client {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  const client = createClient({
    baseUrl: url.replace(/\/+$/, ""),
    throwOnError: true,
    headers,
    bodySerializer: (body) => (isFile(body) ? body : written(body)),
    requestValidator: async (request) => {
      const asked = request as { path?: Record<string, unknown>; client?: Client };
      delete asked.client; // else it is an option of `Request`, where Deno has one of this name
      refuseNames(asked.path ?? {});
    },
    ...(ownFetch === undefined ? {} : { fetch: ownFetch }),
  });
  client.interceptors.response.use(async (response, request) => {
    const isAsync = request.headers.get("prefer")?.includes("respond-async");
    const answer = response.status === 202 && !isAsync ? await followed(client, response, request) : response;
    const type = answer.headers.get("content-type") ?? "";
    if (answer.ok && type.startsWith("text/html") && !accept(request).includes("text/html")) {
      throw new Refused("unexpected_answer", answer.status, undefined, "a page answers in place of the service");
    }
    if (!answer.ok || !type.startsWith("application/json")) return answer;
    const text = await answer.clone().text();
    if (!type.includes("numbers=string")) refuseRounded(text, `headers: strings${changes(request) ? DONE : ""}`);
    const exact = quoted(text);
    return exact === text ? answer : new Response(exact, answer);
  });
  client.interceptors.error.use((error, response) => {
    const problem = isProblem(error) ? error : undefined;
    if (error instanceof Error && problem === undefined) return error;
    const text = typeof error === "string" && error !== "" ? error.slice(0, SHOWN) : response?.statusText;
    const code = problem?.code ?? (response?.status === 304 ? "not_modified" : "unexpected_answer");
    const said = problem?.detail ?? text ?? "no answer";
    return new Refused(code, response?.status ?? 0, problem, said, retryAfterS(response));
  });
  return client;
}

/** Characters of an answer that is not of this API, such as a page of a proxy. */
const SHOWN = 500;

/** So that nobody sends a change again whose answer alone was thrown away. */
const DONE = "; what was asked for is done";

function changes({ method, url }: Request): boolean {
  const { pathname, searchParams } = new URL(url);
  const isChange = method === "PUT" || method === "PATCH" || pathname.endsWith(":restore");
  return isChange && searchParams.get("dry_run") !== "true";
}

function isFile(body: unknown): boolean {
  return typeof body === "string" || body instanceof Blob || body instanceof Uint8Array;
}

/** `.` and `..` are ways in a path: to delete the watch `..` would delete its graph. */
function refuseNames(path: Record<string, unknown>): void {
  for (const [parameter, name] of Object.entries(path)) {
    if (name === "" || name === "." || name === "..") {
      throw new RangeError(`${parameter} is ${JSON.stringify(name)}, which is no name and would change the path`);
    }
  }
}

/** A date counts as none given. */
function retryAfterS(response: Response | undefined): number | undefined {
  const said = response?.headers.get("retry-after") ?? "";
  return /^\d+(\.\d+)?$/.test(said) ? Number(said) : undefined;
}

/**
 * Headers that ask for each amount as a string, whatever its size: as BigInt takes it if the graph has no decimals. Names
 * of vertices and edges that JavaScript would round are strings as well.
 */
export const strings = { Accept: "application/json; numbers=string" } as const;

/**
 * Wait for a job and return its answer. `response` is that of a request with `headers: { Prefer: "respond-async" }`. Who
 * aborts by `signal` waits no longer; the job goes on, unless `cancelJob` ends it.
 *
 * @throws `Refused` if the job failed or was cancelled.
 */
export async function finished<T>(client: Client, response: Response, signal?: AbortSignal): Promise<T> {
  const id = jobOf(response);
  await ended(client, id, signal);
  const { data } = await getJobResult({ client, path: { job_id: id }, signal });
  return data as T;
}

/** The answer of the job that the service makes of a long question. */
async function followed(client: Client, response: Response, request: Request): Promise<Response> {
  const id = jobOf(response);
  const { signal } = request;
  await ended(client, id, signal);
  const headers = { Accept: accept(request) };
  return (await getJobResult({ client, path: { job_id: id }, parseAs: "stream", headers, signal })).response;
}

function accept(request: Request): string {
  return request.headers.get("accept") ?? "application/json";
}

function jobOf(response: Response): string {
  const id = response.headers.get("location")?.split("/").pop();
  if (id === undefined) throw new TypeError("the answer names no job: ask with Prefer: respond-async");
  return id;
}

const FIRST_MS = 20;
const LONGEST_MS = 1000;

async function ended(client: Client, id: string, signal?: AbortSignal): Promise<void> {
  for (let pause = FIRST_MS; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    const { data: job } = await getJob({ client, path: { job_id: id }, signal });
    if (job.status !== "queued" && job.status !== "running") return;
    await paused(pause, signal);
  }
}

function isProblem(error: unknown): error is ProblemInfo {
  return typeof error === "object" && error !== null && "code" in error && "detail" in error;
}
