import type { ProblemInfo } from "./generated/types.gen.js";

/**
 * The service refused a request: `code` is stable, and docs/api.md says what each means. `retryAfterS` is when it asks to
 * be called again, in seconds, where it is busy or away (429, 503). What `If-None-Match` names is `not_modified` (304).
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
