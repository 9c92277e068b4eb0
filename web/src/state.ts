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
    pane: text("pane"),
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
  if (!state.selected || name !== state.selected) return false;
  return !state.image || (state.image.includes("/") ? (image ?? "") : lastPart(image)) === state.image;
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
