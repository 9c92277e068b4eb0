// SPDX-License-Identifier: MIT
// Numbers for people, as `weir report --human` writes them; what was not measured is a dot.

const times: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];
const counts: [number, string][] = [
  [1e12, " T"],
  [1e9, " G"],
  [1e6, " M"],
  [1e3, " k"],
];
const bytes: [number, string][] = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
  [1, "B"],
];

function scaled(value: number, units: [number, string][]): string | undefined {
  for (const [size, unit] of units)
    if (Math.abs(value) >= size) return `${size === 1 ? value : (value / size).toFixed(2)}${unit.startsWith(" ") ? unit : ` ${unit}`}`;
  return undefined;
}

export function human(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || Number.isNaN(value)) return ".";
  if (unit === "ns") return scaled(value, times) ?? "0";
  if (unit === "bytes") return scaled(value, bytes) ?? "0";
  return scaled(value, counts) ?? String(Math.round(value));
}

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return ".";
  return value < 1e5 ? String(value) : (scaled(value, counts) ?? String(value));
}

export function percent(part: number, whole: number): string {
  return whole > 0 && !Number.isNaN(part) ? `${((100 * part) / whole).toFixed(2)} %` : ".";
}

// What was not measured is no 0.
export function percentOf(part: number | null | undefined, whole: number): string {
  return part === null || part === undefined ? "." : percent(part, whole);
}

// Characters that are not seen, and change what is: controls, and those that turn the direction of writing around.
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// A name as it is shown: it may not look like another one.
export function shown(name: string): string {
  return name.replace(unseen, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// The middle of a name that is too long says least.
export function shorten(name: string, chars: number): string {
  const all = shown(name);
  if (all.length <= chars || chars < 3) return all;
  const letters = isAscii.test(all) ? all : [...all];
  const head = Math.ceil((chars - 1) * 0.6);
  const [begin, end] = [letters.slice(0, head), letters.slice(Math.max(head, letters.length - (chars - 1 - head)))];
  return typeof letters === "string" ? `${begin as string}…${end as string}` : `${(begin as string[]).join("")}…${(end as string[]).join("")}`;
}
const isAscii = /^[ -~]*$/;

// The same in so many pixels: letters of other scripts may be wider than those that `chars` is reckoned by.
export function fitted(c: Pick<CanvasRenderingContext2D, "measureText">, name: string, chars: number, pixels: number): string {
  let text = shorten(name, chars);
  if (isAscii.test(text.replace("…", ""))) return text;
  for (let n = Math.min(chars, text.length); n > 3; ) {
    const width = c.measureText(text).width;
    if (width <= pixels) break;
    n = Math.max(3, Math.min(n - 1, Math.floor((n * pixels) / width)));
    text = shorten(name, n);
  }
  return text;
}
