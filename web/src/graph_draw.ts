// SPDX-License-Identifier: MIT
// The call graph as a picture: boxes with names, arcs as wide as the time that flows through them.
import type { Graph, GraphArc, GraphBox, WidthRule } from "./answers";
import { charWidthOf, monospace, type Surface } from "./flame_draw";
import { signed, signOf } from "./difference";
import { count, fitted, human, percentOf } from "./format";

export type Datum = "none" | "self" | "self %" | "cum" | "cum %" | "calls" | "difference";
export const data: Datum[] = ["none", "self", "self %", "cum", "cum %", "calls"];
export const diffData: Datum[] = [...data, "difference"]; // of two traces, of cum

export interface GraphLook {
  rule: WidthRule;
  nameChars: number;
  left: Datum;
  right: Datum;
  unit: string;
  isSelected: (box: GraphBox) => boolean;
  matches: ((name: string) => boolean) | undefined;
}

export interface GraphView {
  x: number; // of the picture's left upper corner, in the graph's own units
  y: number;
  zoom: number;
}

const charWidth = 7; // that weir reckons with; the font is made to fit
const frameMargin = 8; // pixels between the overview and its border

export function datumText(box: GraphBox, datum: Datum, g: Graph, unit: string): string {
  switch (datum) {
    case "self":
      return human(box.base, unit);
    case "self %":
      return percentOf(box.base, g.whole);
    case "cum":
      return human(box.cum, unit);
    case "cum %":
      return percentOf(box.cum, g.whole);
    case "calls":
      return count(box.calls);
    case "difference":
      return box.more ? signed(box.more.cum, unit) : "";
    default:
      return "";
  }
}

function line(s: Surface, points: number[], v: GraphView): void {
  const px = (i: number): number => (points[i]! - v.x) * v.zoom;
  const py = (i: number): number => (points[i + 1]! - v.y) * v.zoom;
  s.c.beginPath();
  s.c.moveTo(px(0), py(0));
  for (let i = 2; i < points.length; i += 2) {
    const middle = (px(i - 2) + px(i)) / 2;
    s.c.bezierCurveTo(middle, py(i - 2), middle, py(i), px(i), py(i));
  }
  s.c.stroke();
}

// Curves of line() lie between their points.
function isSeen(s: Surface, points: number[], v: GraphView): boolean {
  const margin = 10; // the widest arc
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    left = Math.min(left, points[i]!);
    right = Math.max(right, points[i]!);
    top = Math.min(top, points[i + 1]!);
    bottom = Math.max(bottom, points[i + 1]!);
  }
  return (right - v.x) * v.zoom > -margin && (left - v.x) * v.zoom < s.width + margin && (bottom - v.y) * v.zoom > -margin && (top - v.y) * v.zoom < s.height + margin;
}

function drawArc(s: Surface, g: Graph, arc: GraphArc, v: GraphView, look: GraphLook): void {
  if (!isSeen(s, arc.points, v)) return;
  const from = g.boxes[arc.from]!;
  const to = g.boxes[arc.to]!;
  const isNear = look.isSelected(from) || look.isSelected(to);
  s.c.strokeStyle = isNear ? s.colours.accent : s.colours.line;
  s.c.lineWidth = Math.max(0.5, arc.width[look.rule] * Math.min(1, v.zoom));
  s.c.setLineDash(arc.exact ? [] : [6, 3]);
  s.c.globalAlpha = arc.back ? 0.6 : 1;
  line(s, arc.points, v);
  s.c.setLineDash([]);
  s.c.globalAlpha = 1;
}

// None shown: filled; those over the filter: half; all: open. A leaf has none.
function drawArrow(s: Surface, box: GraphBox, x: number, y: number, h: number): void {
  if (box.state === "leaf") return;
  const r = Math.min(6, h / 3);
  s.c.strokeStyle = s.c.fillStyle = s.colours.text;
  s.c.lineWidth = 1.2;
  s.c.beginPath();
  s.c.moveTo(x, y - r);
  s.c.lineTo(x + r * 1.4, y);
  s.c.lineTo(x, y + r);
  s.c.closePath();
  s.c.stroke();
  if (box.state === "folded") s.c.fill();
  if (box.state === "filtered") {
    s.c.beginPath();
    s.c.moveTo(x, y);
    s.c.lineTo(x + r * 1.4, y);
    s.c.lineTo(x, y + r);
    s.c.closePath();
    s.c.fill();
  }
}

function fillOf(s: Surface, box: GraphBox): string {
  if (box.before && box.after && box.more) return s.colours.change(box.more.cum ?? 0, Math.max(box.before.cum ?? 0, box.after.cum ?? 0));
  return s.colours.fill(box.image ?? "", box.routine ? 1 : 0);
}

// On a ground of its own, since arcs run there.
function drawLabel(s: Surface, text: string, x: number, y: number, pixels: number): void {
  s.c.globalAlpha = 0.85;
  s.c.fillStyle = s.colours.background;
  s.c.fillRect(x - 1, y - pixels + 1, s.c.measureText(text).width + 2, pixels + 2);
  s.c.globalAlpha = 1;
  s.c.fillStyle = s.colours.text;
  s.c.fillText(text, x, y);
}

function drawBox(s: Surface, g: Graph, box: GraphBox, v: GraphView, look: GraphLook): void {
  const x = (box.x - v.x) * v.zoom;
  const y = (box.y - v.y) * v.zoom;
  const [w, h] = [box.w * v.zoom, box.h * v.zoom];
  if (x > s.width || y > s.height || x + w < 0 || y + h < 0) return;
  const isSelected = look.isSelected(box);
  const isMatch = look.matches?.(box.name);
  s.c.fillStyle = isMatch ? s.colours.match : fillOf(s, box);
  s.c.fillRect(x, y, w, h);
  if (!box.exact && s.colours.hatch) {
    s.c.fillStyle = s.colours.hatch;
    s.c.fillRect(x, y, w, h);
  }
  s.c.strokeStyle = isSelected ? s.colours.accent : s.colours.line;
  s.c.lineWidth = isSelected ? 3 : 1;
  s.c.strokeRect(x, y, w, h);
  if (box.recursive) {
    s.c.strokeStyle = s.colours.text;
    s.c.lineWidth = 1.5;
    s.c.beginPath();
    s.c.arc(x + w / 2, y, Math.min(14, w / 4) * Math.min(1, v.zoom), Math.PI, 0);
    s.c.stroke();
  }
  drawArrow(s, box, x + w - 12 * v.zoom, y + h / 2, h);
  if (v.zoom < 0.5) return;
  s.c.fillStyle = s.colours.text;
  const fitting = Math.min(1, charWidth / charWidthOf(s.c));
  s.c.font = `${12 * fitting * v.zoom}px ${monospace}`;
  const chars = Math.min(look.nameChars, Math.floor((box.w - 22) / charWidth) - (box.more ? 2 : 0));
  s.c.fillText((box.more ? `${signOf(box.more.cum)} ` : "") + fitted(s.c, box.name, chars, chars * charWidth * v.zoom), x + 6 * v.zoom, y + h / 2 + 4);
  const pixels = Math.min(13, Math.floor(11 * v.zoom * 2) / 2);
  s.c.font = `${pixels}px system-ui, sans-serif`;
  const left = datumText(box, look.left, g, look.unit);
  const right = datumText(box, look.right, g, look.unit);
  if (left) drawLabel(s, left, x - s.c.measureText(left).width - 4, y + h / 2 - 5 * v.zoom, pixels);
  if (right) drawLabel(s, right, x + w + 3, y + h / 2 - 5 * v.zoom, pixels);
}

export function drawGraph(s: Surface, g: Graph, v: GraphView, look: GraphLook): void {
  s.c.fillStyle = s.colours.background;
  s.c.fillRect(0, 0, s.width, s.height);
  for (const arc of g.arcs) drawArc(s, g, arc, v, look);
  for (const box of g.boxes) drawBox(s, g, box, v, look);
}

// A skeleton of all, with the part that the other pane shows, and the neighbours of the selected one.
export function drawOverview(s: Surface, g: Graph, seen: GraphView, seenWidth: number, seenHeight: number, isSelected: (box: GraphBox) => boolean): GraphView {
  const zoom = Math.min((s.width - 2 * frameMargin) / Math.max(g.w, 1), (s.height - 2 * frameMargin) / Math.max(g.h, 1), 1);
  const v = { x: (g.w - s.width / zoom) / 2, y: (g.h - s.height / zoom) / 2, zoom };
  const near = new Set<number>();
  s.c.fillStyle = s.colours.background;
  s.c.fillRect(0, 0, s.width, s.height);
  for (const arc of g.arcs) {
    const isNear = isSelected(g.boxes[arc.from]!) || isSelected(g.boxes[arc.to]!);
    if (isNear) near.add(arc.from).add(arc.to);
    s.c.strokeStyle = isNear ? s.colours.accent : s.colours.line;
    s.c.lineWidth = isNear ? 1.5 : 0.5;
    line(s, arc.points, v);
  }
  g.boxes.forEach((box, i) => {
    s.c.fillStyle = isSelected(box) ? s.colours.accent : near.has(i) ? s.colours.match : s.colours.faint;
    s.c.fillRect((box.x - v.x) * zoom, (box.y - v.y) * zoom, Math.max(2, box.w * zoom), Math.max(2, box.h * zoom));
  });
  drawFrame(s, v, seen, seenWidth, seenHeight);
  return v;
}

// What is outside of it is dimmed; its lines are seen also where it is larger than the overview.
function drawFrame(s: Surface, v: GraphView, seen: GraphView, seenWidth: number, seenHeight: number): void {
  const left = Math.max(1, Math.min((seen.x - v.x) * v.zoom, s.width - 7));
  const top = Math.max(1, Math.min((seen.y - v.y) * v.zoom, s.height - 7));
  const right = Math.min(s.width - 1, Math.max((seen.x + seenWidth / seen.zoom - v.x) * v.zoom, 7));
  const bottom = Math.min(s.height - 1, Math.max((seen.y + seenHeight / seen.zoom - v.y) * v.zoom, 7));
  s.c.globalAlpha = 0.55;
  s.c.fillStyle = s.colours.background;
  s.c.fillRect(0, 0, s.width, top);
  s.c.fillRect(0, bottom, s.width, s.height - bottom);
  s.c.fillRect(0, top, left, bottom - top);
  s.c.fillRect(right, top, s.width - right, bottom - top);
  s.c.globalAlpha = 1;
  s.c.strokeStyle = s.colours.accent;
  s.c.lineWidth = 2;
  s.c.strokeRect(left, top, right - left, bottom - top);
}

export function boxAt(g: Graph, v: GraphView, x: number, y: number): number {
  const [gx, gy] = [v.x + x / v.zoom, v.y + y / v.zoom];
  return g.boxes.findIndex((b) => gx >= b.x && gx <= b.x + b.w && gy >= b.y && gy <= b.y + b.h);
}
