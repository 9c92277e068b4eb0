// SPDX-License-Identifier: MIT
// The flame graph as a picture: boxes of a tree that lies in arrays. What is narrower than a pixel is drawn
// as one with its neighbours, and what is outside of the view is not looked at, so that the time of a frame
// follows from the pixels and not from the size of the tree.
import { flagChain, flagSampled, type Names, type Tree } from "./answers";
import type { Palette } from "./colours";
import { signOf } from "./difference";
import { fitted } from "./format";

export const rowHeight = 19;
const textMargin = 4;
const narrowest = 0.7; // pixels

export interface View {
  from: number; // in units of the metric
  to: number;
  top: number; // pixels above the first row
  up?: boolean; // the first row is the lowest
}

export interface Marks {
  selected: number; // a routine, or -1
  matches: Uint8Array | undefined; // by routine
  current: number; // a box, or -1
}

export interface Surface {
  c: CanvasRenderingContext2D;
  width: number;
  height: number;
  colours: Palette;
}

export const monospace = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
let charWidth = 0;

// How wide a character of 12 pixels is here: fonts differ, and what is too long would be cut off in the middle of one.
export function charWidthOf(c: CanvasRenderingContext2D): number {
  if (!charWidth) {
    c.font = `12px ${monospace}`;
    charWidth = c.measureText("0123456789").width / 10;
  }
  return charWidth;
}

export function scaleOf(view: View, width: number): number {
  return width / Math.max(view.to - view.from, 1e-9);
}

interface Pen extends Surface {
  tree: Tree;
  names: Names;
  marks: Marks;
}

function fillOf(p: Pen, i: number, routine: number): string {
  const { diff } = p.tree;
  if (diff) return p.colours.change(diff.moreCum[i]!, Math.max(diff.cum[i]!, p.tree.cum[i]!));
  return p.colours.fill(p.names.image[routine] ?? "", p.names.kind[routine] ?? 0);
}

function drawBox(p: Pen, i: number, x: number, w: number, y: number): void {
  const routine = p.tree.routine[i]!;
  const flags = p.tree.flags[i]!;
  const isMatch = p.marks.matches?.[routine];
  const nameOf = p.tree.names ?? p.names.name;
  const { c, colours } = p;
  const charWidth = charWidthOf(c);

  c.globalAlpha = p.marks.matches && !isMatch ? 0.35 : 1;
  c.fillStyle = isMatch ? colours.match : fillOf(p, i, routine);
  c.fillRect(x, y, Math.max(w - 1, narrowest), rowHeight - 1);
  if (flags & flagSampled && colours.hatch && w > 3) {
    c.fillStyle = colours.hatch;
    c.fillRect(x, y, w - 1, rowHeight - 1);
  }
  if (flags & flagChain && w > 3) {
    c.fillStyle = colours.accent;
    c.fillRect(x, y, w - 1, 2);
  }
  c.globalAlpha = 1;
  if (routine === p.marks.selected || i === p.marks.current) {
    c.strokeStyle = i === p.marks.current ? colours.accent : colours.text;
    c.lineWidth = i === p.marks.current ? 2 : 1;
    c.strokeRect(x + 0.5, y + 0.5, Math.max(w - 2, 1), rowHeight - 2);
  }
  const left = Math.max(x, 0);
  const chars = Math.floor((Math.min(x + w, p.width) - left - 2 * textMargin) / charWidth);
  if (chars < 3) {
    // Where no name fits, the sign does: colour is not to be the only one that says it.
    if (p.tree.diff && w > charWidth + 1) {
      c.fillStyle = colours.text;
      c.fillText(signOf(p.tree.diff.moreCum[i]!), left + (w - charWidth) / 2, y + rowHeight - 6);
    }
    return;
  }
  c.fillStyle = colours.text;
  c.fillText(fitted(c, `${p.tree.diff ? `${signOf(p.tree.diff.moreCum[i]!)} ` : ""}${nameOf[routine] ?? ""}`, chars, chars * charWidth), left + textMargin, y + rowHeight - 6);
}

// Boxes narrower than a pixel, from x to x + w.
function drawSpeck(p: Pen, x: number, w: number, y: number): void {
  p.c.fillStyle = p.colours.speck;
  p.c.fillRect(x, y, Math.max(w, narrowest), rowHeight - 1);
}

// Gives the number of boxes that were looked at.
export function drawFlame(s: Surface, tree: Tree, names: Names, view: View, marks: Marks): number {
  const p: Pen = { ...s, tree, names, marks };
  const scale = scaleOf(view, s.width);
  let looked = 0;

  s.c.fillStyle = s.colours.background;
  s.c.fillRect(0, 0, s.width, s.height);
  charWidthOf(s.c);
  s.c.font = `12px ${monospace}`;
  s.c.textBaseline = "alphabetic";
  for (let i = 0; i < tree.n; looked++) {
    const left = tree.left[i]!;
    const width = tree.width[i]!;
    const below = tree.depth[i]! * rowHeight - view.top;
    const y = view.up ? s.height - rowHeight - below : below;
    const x = (left - view.from) * scale;
    const w = width * scale;

    if (left + width <= view.from || left >= view.to || below >= s.height) {
      i = tree.end[i]!;
      continue;
    }
    if (w < narrowest) {
      i = drawSpecks(p, i, view, scale, y);
      continue;
    }
    if (below > -rowHeight) drawBox(p, i, x, w, y);
    i++;
  }
  return looked;
}

// This box and the narrow ones behind it in the same row, as one; gives the first box behind them.
function drawSpecks(p: Pen, first: number, view: View, scale: number, y: number): number {
  const { tree } = p;
  const depth = tree.depth[first]!;
  let i = first;
  let right = tree.left[first]!;

  while (i < tree.n && tree.depth[i] === depth && tree.width[i]! * scale < narrowest && tree.left[i]! < view.to) {
    right = tree.left[i]! + tree.width[i]!;
    i = tree.end[i]!;
  }
  if (right > tree.left[first]! && y > -rowHeight && y < p.height)
    drawSpeck(p, (tree.left[first]! - view.from) * scale, (right - tree.left[first]!) * scale, y);
  return i === first ? tree.end[first]! : i;
}

// The box at a place in units and rows, or -1.
export function boxAt(tree: Tree, at: number, depth: number): number {
  let i = 0;
  while (i < tree.n) {
    if (at < tree.left[i]!) return -1;
    if (at >= tree.left[i]! + tree.width[i]!) i = tree.end[i]!;
    else if (tree.depth[i] === depth) return i;
    else i++;
  }
  return -1;
}

export function deepest(tree: Tree): number {
  let depth = 0;
  for (let i = 0; i < tree.n; i++) if (tree.depth[i]! > depth) depth = tree.depth[i]!;
  return depth;
}

export function parentOf(tree: Tree, i: number): number {
  const depth = tree.depth[i]!;
  for (let k = i - 1; k >= 0; k--) if (tree.depth[k]! < depth) return k;
  return -1;
}
