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
import { jsonBodySerializer } from "./generated/core/bodySerializer.gen.js";
import { getJob, getJobResult } from "./generated/sdk.gen.js";
import type { ProblemInfo } from "./generated/types.gen.js";

export * from "./generated/index.js";
export type { Client };

export interface Connection {
  /** Where the service listens. */
  url: string;
  /** Shown with each request. */
  apiKey?: string;
  /** In place of the platform's. */
  fetch?: typeof fetch;
}

/**
 * The service refused a request: `code` is stable, and docs/api.md says what each means. `retryAfterS` is when it asks to
 * be called again, in seconds, where it is busy or away (429, 503).
 */
export class Refused extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    readonly problem: ProblemInfo | undefined,
    message: string,
    readonly retryAfterS?: number,
  ) {
    super(`${code}: ${message}`);
    this.name = "Refused";
  }
}

/**
 * A client whose functions wait for their answer, as long as the service works on it. They throw `Refused` for what the
 * service refuses, and `RangeError` for an answer with a number that JavaScript would round: ask for that one
 * with `headers: strings`. One that is asked with `headers: { Prefer: "respond-async" }` is not waited for: `finished`
 * takes its `response`. A body that is text, bytes or a Blob is sent as it is: a file, whose kind `Content-Type` says.
 */
export function connect({ url, apiKey, fetch: ownFetch }: Connection): Client {
  const headers = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  const client = createClient({
    baseUrl: url.replace(/\/+$/, ""),
    throwOnError: true,
    headers,
    bodySerializer: (body) => (isFile(body) ? body : jsonBodySerializer.bodySerializer(body)),
    requestValidator: async (request) => refuseNames((request as { path?: Record<string, unknown> }).path ?? {}),
    ...(ownFetch === undefined ? {} : { fetch: ownFetch }),
  });
  client.interceptors.response.use(async (response, request) => {
    const isAsync = request.headers.get("prefer")?.includes("respond-async");
    const answer = response.status === 202 && !isAsync ? await followed(client, response, request) : response;
    const type = answer.headers.get("content-type") ?? "";
    if (answer.ok && type.startsWith("application/json") && !type.includes("numbers=string")) {
      refuseRounded(await answer.clone().text());
    }
    return answer;
  });
  client.interceptors.error.use((error, response) => {
    const problem = isProblem(error) ? error : undefined;
    if (error instanceof Error && problem === undefined) return error;
    const said = problem?.detail ?? (typeof error === "string" && error !== "" ? error : response?.statusText);
    const code = problem?.code ?? "unexpected_answer";
    return new Refused(code, response?.status ?? 0, problem, said ?? "no answer", retryAfterS(response));
  });
  return client;
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

/** Headers that ask for each amount as a string, whatever its size: as BigInt takes it if the graph has no decimals. */
export const strings = { Accept: "application/json; numbers=string" } as const;

/**
 * Wait for a job and return its answer. `response` is that of a request with `headers: { Prefer: "respond-async" }`.
 *
 * @throws `Refused` if the job failed or was cancelled.
 */
export async function finished<T>(client: Client, response: Response): Promise<T> {
  const id = jobOf(response);
  await ended(client, id);
  const { data } = await getJobResult({ client, path: { job_id: id } });
  return data as T;
}

/** The answer of the job that the service makes of a long question. */
async function followed(client: Client, response: Response, request: Request): Promise<Response> {
  const id = jobOf(response);
  await ended(client, id);
  const options = { client, path: { job_id: id }, parseAs: "stream", headers: { Accept: accept(request) } } as const;
  return (await getJobResult(options)).response;
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

async function ended(client: Client, id: string): Promise<void> {
  for (let pause = FIRST_MS; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    const { data: job } = await getJob({ client, path: { job_id: id } });
    if (job.status !== "queued" && job.status !== "running") return;
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

function isProblem(error: unknown): error is ProblemInfo {
  return typeof error === "object" && error !== null && "code" in error && "detail" in error;
}

/** Texts, which may hold anything, and numbers that are long enough to be rounded. */
const TEXTS_AND_LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.]{15,}(?:[eE][+-]?\d+)?/g;

function refuseRounded(text: string): void {
  for (const [token] of text.matchAll(TEXTS_AND_LONG)) {
    if (!token.startsWith('"') && isRounded(token)) {
      throw new RangeError(`the answer has ${token}, which JavaScript would round: ask with headers: strings`);
    }
  }
}

/** A binary float, as coordinates are, comes as its shortest decimal, which JavaScript writes with the same digits. */
function isRounded(number: string): boolean {
  const read = Number(number);
  if (/^-?\d+$/.test(number) && !Number.isSafeInteger(read)) return true;
  return digits(number) !== digits(String(read));
}

/** Without sign, point, exponent, and zeros at either end. */
function digits(number: string): string {
  return number.replace(/[eE].*/, "").replace(/\D/g, "").replace(/^0+|0+$/g, "");
}
