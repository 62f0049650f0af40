/** Numbers that JavaScript cannot hold: of answers, and of bodies that are to be sent. */

/** Texts, which may hold anything, and numbers that are long enough to be rounded. */
const TEXTS_AND_LONG = /"(?:[^"\\]|\\.)*"|-?\d[\d.]{15,}(?:[eE][+-]?\d+)?/g;

/** `asked` is how numbers are asked for as strings. @throws `RangeError` */
export function refuseRounded(text: string, asked = "headers: strings"): void {
  for (const [token] of text.matchAll(TEXTS_AND_LONG)) {
    if (!token.startsWith('"') && isRounded(token)) {
      throw new RangeError(`the answer has ${token}, which JavaScript would round: ask with ${asked}`);
    }
  }
}

/** With the integers that JavaScript would round, as names of vertices and edges may be, as strings. */
export function quoted(text: string): string {
  return text.replace(TEXTS_AND_LONG, (token) => (!token.startsWith('"') && isRounded(token) ? `"${token}"` : token));
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

/** Stands before the digits of a BigInt until the body is text: half a surrogate pair, which no text that is sent has. */
const BIG = "\ud800";
const BIG_WRITTEN = /"\\ud800(-?\d+)"/g;

/**
 * The body as JSON, with `Infinity` as the amount without limit that it means, and a BigInt as a number.
 *
 * @throws `RangeError` for NaN, and for whole numbers beyond 2^53, which may be other ones than were written.
 */
export function written(body: unknown): string | undefined {
  const text: string | undefined = JSON.stringify(body, (_name, value) =>
    typeof value === "number" ? sendable(value) : typeof value === "bigint" ? BIG + value : value,
  );
  return text?.replace(BIG_WRITTEN, "$1");
}

/** From here on there are no amounts, and JavaScript writes an exponent. */
const LARGE = 1e21;

function sendable(number: number): number | string {
  if (number === Infinity) return "inf";
  if (!Number.isFinite(number)) throw new RangeError(`the body has ${number}, which is no amount`);
  if (Number.isInteger(number) && !Number.isSafeInteger(number) && Math.abs(number) < LARGE) {
    throw new RangeError(`the body has ${number}, which JavaScript may have rounded: write it as a BigInt`);
  }
  return number;
}
