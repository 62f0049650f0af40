// Reads npz: a zip of arrays, as docs/formats.md has them. Integers keep their width, so amounts stay exact.

const ARRAYS = {
  b1: Uint8Array, u1: Uint8Array, i1: Int8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
  i8: BigInt64Array, u8: BigUint64Array, f4: Float32Array, f8: Float64Array,
};
const END = 0x06054b50, ENTRY = 0x02014b50;

// The arrays by name; columns of text are arrays of strings; `answer` is the parsed JSON of all that is no column.
export async function readNpz(buffer) {
  const found = {};
  for (const [name, bytes] of await Promise.all(entries(buffer).map(unpacked))) {
    found[name.replace(/\.npy$/, "")] = readNpy(bytes);
  }
  for (const name of Object.keys(found).filter((name) => name.endsWith(".utf8"))) {
    const column = name.slice(0, -5);
    found[column] = texts(found[name], found[`${column}.offsets`]);
  }
  if (found.answer) found.answer = JSON.parse(new TextDecoder().decode(found.answer));
  return found;
}

function entries(buffer) {
  const view = new DataView(buffer);
  let at = buffer.byteLength - 22;
  while (at >= 0 && view.getUint32(at, true) !== END) at -= 1;
  if (at < 0) throw new Error("this is no npz file");
  const count = view.getUint16(at + 10, true);
  let place = view.getUint32(at + 16, true);
  const found = [];
  for (let i = 0; i < count; i += 1) {
    if (view.getUint32(place, true) !== ENTRY) throw new Error("this npz file is damaged");
    const nameLength = view.getUint16(place + 28, true);
    const more = view.getUint16(place + 30, true) + view.getUint16(place + 32, true);
    const local = view.getUint32(place + 42, true);
    const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(buffer, place + 46, nameLength));
    const bytes = new Uint8Array(buffer, begin, view.getUint32(place + 20, true));
    found.push({ name, bytes, isPacked: view.getUint16(place + 10, true) === 8 });
    place += 46 + nameLength + more;
  }
  return found;
}

async function unpacked({ name, bytes, isPacked }) {
  if (!isPacked) return [name, bytes];
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return [name, new Uint8Array(await new Response(stream).arrayBuffer())];
}

function readNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isLong = view.getUint8(6) > 1;
  const begin = isLong ? 12 : 10;
  const length = isLong ? view.getUint32(8, true) : view.getUint16(8, true);
  const head = new TextDecoder().decode(bytes.subarray(begin, begin + length));
  const [, type] = /'descr':\s*'[<|=]?([a-z]\d)'/.exec(head) || [];
  if (!ARRAYS[type]) throw new Error(`this npz file has a column of another kind: ${head}`);
  return new ARRAYS[type](bytes.slice(begin + length).buffer);
}

function texts(utf8, offsets) {
  const decoder = new TextDecoder();
  const found = new Array(Math.max(0, offsets.length - 1));
  for (let i = 0; i < found.length; i += 1) found[i] = decoder.decode(utf8.subarray(Number(offsets[i]), Number(offsets[i + 1])));
  return found;
}
