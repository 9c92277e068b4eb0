// SPDX-License-Identifier: MIT
// What the page shows is said by the part of its address behind '#': every change is a step that the
// browser's own back and forward undo and redo, and an address can be sent to somebody.
import type { Keys } from "./engine";

export interface State {
  pane: string; // which one is shown beside the functions
  metric: string; // "" = the trace's first
  thread: string;
  from: string; // ns since the start, or ""
  to: string;
  transforms: string[];
  selected: string; // name of a function, or ""
  image: string; // which of those that have this name; "": the first one
  search: string;
  graph: string; // what the call graph was asked for, as its keys
  order: string; // of siblings
  up: string; // "1": the flame graph stands on its threads
  sort: string; // column of the functions; "-" before it: the least first
  widths: string; // of functions, detail and names in pixels, "430,250,180"; "" = as they are at first
  show: string; // of two traces: "before", "after", or "" for the difference
}

export const paneIds = ["flame", "graph", "callers", "timeline", "source", "threads", "modules", "hooks", "probes"] as const;

const none: State = {
  pane: "flame",
  metric: "",
  thread: "",
  from: "",
  to: "",
  transforms: [],
  selected: "",
  image: "",
  search: "",
  graph: "",
  order: "",
  up: "",
  sort: "base",
  widths: "",
  show: "",
};

export function readState(hash: string): State {
  const keys = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key: keyof State): string => keys.get(key) ?? (none[key] as string);
  return {
    pane: paneIds.find((id) => id === keys.get("pane")) ?? none.pane,
    metric: text("metric"),
    thread: text("thread"),
    from: text("from"),
    to: text("to"),
    transforms: splitTransforms(keys.get("transforms") ?? ""),
    selected: text("selected"),
    image: text("image"),
    search: text("search"),
    graph: text("graph"),
    order: text("order"),
    up: text("up"),
    sort: text("sort"),
    widths: text("widths"),
    show: text("show"),
  };
}

export function writeState(state: State): string {
  const keys = new URLSearchParams();
  for (const key of Object.keys(none) as (keyof State)[]) {
    const value = state[key];
    const text = Array.isArray(value) ? value.join(";") : value;
    if (text !== (Array.isArray(none[key]) ? "" : none[key])) keys.set(key, text);
  }
  return `#${keys.toString()}`;
}

// The keys of a question that say which profile it is about.
export function selection(state: State): Keys {
  return {
    metric: state.metric,
    thread: state.thread,
    from: state.from,
    to: state.to,
    transform: state.transforms.join(";"),
    trace: state.show === "before" ? 1 : undefined, // without a number it is the newest
  };
}

// By which images of two traces are the same.
export function lastPart(path: string | null | undefined): string {
  return (path ?? "").replace(/ \(deleted\)$/, "").replace(/^.*\/(?=.)/, "");
}

// Several images may have a function of one name: `main`, `_start`, `init`. An image that stands there without its
// folders is that of two traces.
export function isSelected(state: State, name: string | undefined, image: string | null | undefined): boolean {
  return state.selected !== "" && name !== undefined && isFunction(name, image, state.selected, state.image);
}

// `inImage`: "" is any.
function isFunction(name: string, image: string | null | undefined, called: string, inImage: string): boolean {
  return name === called && (!inImage || (inImage.includes("/") ? (image ?? "") : lastPart(image)) === inImage);
}

// As weir splits them: a ';' in an expression between slashes is not between two transforms.
export function splitTransforms(list: string): string[] {
  const parts: string[] = [];
  let rest = list;
  while (rest) {
    const regex = /^[a-z-]+=\/(.*?)\/(?=;|$)/.exec(rest);
    const end = regex ? regex[0].length : rest.indexOf(";") < 0 ? rest.length : rest.indexOf(";");
    if (end) parts.push(rest.slice(0, end));
    rest = rest.slice(end + 1);
  }
  return parts;
}

// A transform of one function by its whole name; a name that would be taken apart becomes an expression.
export function transformOf(kind: string, name: string): string {
  const isPlain = !/[;]/.test(name) && !name.startsWith("/");
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return isPlain ? `${kind}=${name}` : `${kind}=/^${escaped}$/`;
}

// Widths that somebody chose; 0: as it is at first.
export function widthsOf(state: State): [functions: number, detail: number, names: number] {
  const [a, b, c] = state.widths.split(",").map((w) => Number(w) || 0);
  return [a ?? 0, b ?? 0, c ?? 0];
}

// A function in an address. Its number would not do: a transform, a thread, a stretch of time give other numbers.
const wholeProgram = "@"; // is number 0
export function functionKey(name: string, image: string | null | undefined): string {
  return encodeURIComponent(name) + (image ? `@${encodeURIComponent(image)}` : "");
}
export function keyOfNumber(number: number, name: string, image: string | null | undefined): string {
  return number ? functionKey(name, image) : wholeProgram;
}

export function functionName(key: string): string {
  return decodeKey(key.split("@")[0]!);
}

// The numbers that functions have in a selection; those that are not in it have none.
export function numbersOf(keys: string[], names: { name: string[]; image: string[] }): number[] {
  const numbers: number[] = [];
  for (const key of keys) {
    const [name, image] = key.split("@").map(decodeKey);
    const number = key === wholeProgram ? 0 : names.name.findIndex((n, i) => i > 0 && isFunction(n, names.image[i], name!, image ?? ""));
    if (number >= 0) numbers.push(number);
  }
  return numbers;
}

// An address may have been cut or made by hand.
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
