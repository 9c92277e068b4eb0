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

// The middle of a name that is too long says least.
export function shorten(name: string, chars: number): string {
  if (name.length <= chars || chars < 3) return name;
  const head = Math.ceil((chars - 1) * 0.6);
  return `${name.slice(0, head)}…${name.slice(name.length - (chars - 1 - head))}`;
}
