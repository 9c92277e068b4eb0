// SPDX-License-Identifier: MIT
// Answers that are arrays: docs/format/view-answers.md. The arrays are views of the answer, not copies.

export type NumberArray = Uint8Array | Uint16Array | Uint32Array | Float64Array;
export type Arrays = Map<string, NumberArray>;

const magic = 0x31305657; // "WV01"

export function readArrays(bytes: ArrayBuffer): Arrays {
  const view = new DataView(bytes);
  if (bytes.byteLength < 8 || view.getUint32(0, true) !== magic) throw new Error("the answer is no arrays");
  const arrays: Arrays = new Map();
  let at = 8;
  for (let i = view.getUint32(4, true); i > 0; i--) {
    at = (at + 7) & ~7;
    const nameBytes = view.getUint32(at, true);
    const elementBytes = view.getUint32(at + 4, true);
    const n = Number(view.getBigUint64(at + 8, true));
    const name = new TextDecoder().decode(new Uint8Array(bytes, at + 16, nameBytes));
    at += 16 + ((nameBytes + 7) & ~7);
    arrays.set(name, viewOf(bytes, at, elementBytes, n));
    at += n * elementBytes;
  }
  return arrays;
}

function viewOf(bytes: ArrayBuffer, at: number, elementBytes: number, n: number): NumberArray {
  switch (elementBytes) {
    case 1:
      return new Uint8Array(bytes, at, n);
    case 2:
      return new Uint16Array(bytes, at, n);
    case 4:
      return new Uint32Array(bytes, at, n);
    default:
      return new Float64Array(bytes, at, n);
  }
}

function need<T extends NumberArray>(arrays: Arrays, name: string, type: new (n: number) => T): T {
  const array = arrays.get(name);
  if (!(array instanceof type)) throw new Error(`the answer has no array '${name}'`);
  return array;
}
export const u8 = (a: Arrays, name: string): Uint8Array => need(a, name, Uint8Array);
export const u32 = (a: Arrays, name: string): Uint32Array => need(a, name, Uint32Array);
export const f64 = (a: Arrays, name: string): Float64Array => need(a, name, Float64Array);

// Texts with a NUL behind each.
export function texts(a: Arrays, name: string): string[] {
  const all = new TextDecoder().decode(u8(a, name)).split("\0");
  all.pop();
  return all;
}
