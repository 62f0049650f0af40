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

/**
 * The body as JSON, with `Infinity` as the amount without limit that it means.
 *
 * @throws `RangeError` for NaN, and for whole numbers beyond 2^53, which may be other ones than were written.
 */
export function written(body: unknown): string {
  return JSON.stringify(body, (_name, value) => (typeof value === "number" ? sendable(value) : plain(value)));
}

/** From here on there are no amounts, and JavaScript writes an exponent. */
const LARGE = 1e21;

function sendable(number: number): number | string {
  if (number === Infinity) return "inf";
  if (!Number.isFinite(number)) throw new RangeError(`the body has ${number}, which is no amount`);
  if (Number.isInteger(number) && !Number.isSafeInteger(number) && Math.abs(number) < LARGE) {
    throw new RangeError(`the body has ${number}, which JavaScript may have rounded: write such amounts as strings`);
  }
  return number;
}

function plain(value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
