// SPDX-License-Identifier: MIT
// Rows of the timeline beside calls and samples: when a thread was off the CPU, what of it was executed step by
// step, and what happened between two steps.
import type { Timeline } from "./answers";
import type { Surface } from "./flame_draw";
import { count, human } from "./format";
import type { Look } from "./timeline_look";

// Where times are, of the part that is looked at.
interface Place {
  look: Look;
  x: (time: number) => number;
}
const isSeen = (p: Place, from: number, to: number): boolean => to >= p.look.from && from <= p.look.to;

export const waitHeight = 14;
export const stepHeight = 30;
const runHeight = 12;
const nearest = 5; // pixels to a mark

// Kinds of marks between steps, as docs/format/steps.md numbers them.
const marks: { one: string; many: string; shape: "tick" | "triangle" | "box" }[] = [
  { one: "instruction", many: "instructions", shape: "box" },
  { one: "system call", many: "system calls", shape: "tick" },
  { one: "signal", many: "signals", shape: "triangle" },
  { one: "change of code", many: "changes of code", shape: "tick" },
  { one: "new process or thread", many: "new processes or threads", shape: "triangle" },
  { one: "exec", many: "execs", shape: "triangle" },
  { one: "end", many: "ends", shape: "triangle" },
  { one: "begin of tracing", many: "begins of tracing", shape: "triangle" },
  { one: "stretch untraced", many: "stretches untraced", shape: "box" },
  { one: "gap", many: "gaps", shape: "box" },
];
const [kindRun, kindResume, kindPause, kindLost] = [0, 7, 8, 9];

const named = (kind: number, n: number): string => `${count(n)} ${n === 1 ? marks[kind]?.one : marks[kind]?.many}`;

export function hasSteps(t: Timeline): boolean {
  return t.stepFrom.length > 0;
}

// What the rows have, in words: who does not see the picture has that.
export function rowsInWords(t: Timeline): string[] {
  const said: string[] = [];
  let waits = 0;
  let waited = 0;
  for (let i = 0; i < t.waitFrom.length; i++) {
    waits += t.waitN[i]!;
    waited += t.waitTo[i]! - t.waitFrom[i]!;
  }
  if (waits) said.push(`off the CPU ${count(waits)} times, about ${human(waited, "ns")}`);
  const sums = new Map<number, number>();
  for (let i = 0; i < t.stepFrom.length; i++) sums.set(t.stepKind[i]!, (sums.get(t.stepKind[i]!) ?? 0) + t.stepN[i]!);
  for (const kind of [...sums.keys()].sort((a, b) => a - b)) if (kind !== kindResume) said.push(named(kind, sums.get(kind)!));
  return said;
}

// Empty boxes: nothing ran. Those that could have gone on are half as high.
export function drawWaits(s: Surface, t: Timeline, p: Place, top: number): void {
  s.c.fillStyle = s.colours.text;
  s.c.font = "12px system-ui, sans-serif";
  s.c.fillText("off the CPU", 6, top + 11);
  s.c.strokeStyle = s.colours.faint;
  s.c.lineWidth = 1;
  for (let i = 0; i < t.waitFrom.length; i++) {
    if (!isSeen(p, t.waitFrom[i]!, t.waitTo[i]!)) continue;
    const [left, right] = [p.x(t.waitFrom[i]!), p.x(t.waitTo[i]!)];
    const h = t.waitReady[i] ? (waitHeight - 2) / 2 : waitHeight - 2;
    if (right - left < 2) {
      s.c.fillStyle = s.colours.faint;
      s.c.fillRect(left, top + waitHeight - h, 1, h);
    } else s.c.strokeRect(left + 0.5, top + waitHeight - h + 0.5, right - left - 1, h - 1);
  }
}

function drawMark(s: Surface, kind: number, x: number, top: number): void {
  const shape = marks[kind]?.shape ?? "tick";
  if (shape === "tick") {
    s.c.fillRect(x - 0.5, top, 1.5, stepHeight - runHeight - 4);
    return;
  }
  s.c.beginPath();
  s.c.moveTo(x - 4, top);
  s.c.lineTo(x + 4, top);
  s.c.lineTo(x, top + 9);
  s.c.closePath();
  s.c.fill();
}

// From where tracing stopped to where it went on, or to the end.
function gapEnd(t: Timeline, i: number): number {
  for (let k = i + 1; k < t.stepFrom.length; k++) if (t.stepKind[k] === kindRun || t.stepKind[k] === kindResume) return t.stepFrom[k]!;
  return t.to;
}

function drawGap(s: Surface, left: number, right: number, top: number): void {
  s.c.strokeStyle = s.colours.faint;
  s.c.lineWidth = 1;
  s.c.strokeRect(left + 0.5, top + 0.5, Math.max(right - left - 1, 2), runHeight - 1);
  if (!s.colours.hatch) return;
  s.c.fillStyle = s.colours.hatch;
  s.c.fillRect(left, top, Math.max(right - left, 3), runHeight);
}

export function drawSteps(s: Surface, t: Timeline, p: Place, top: number): void {
  const runs = top + stepHeight - runHeight;
  s.c.fillStyle = s.colours.text;
  s.c.font = "12px system-ui, sans-serif";
  s.c.fillText("steps", 6, top + stepHeight - 2);
  for (let i = 0; i < t.stepFrom.length; i++) {
    const kind = t.stepKind[i]!;
    const isGap = kind === kindPause || kind === kindLost;
    const end = isGap ? gapEnd(t, i) : t.stepTo[i]!;
    if (!isSeen(p, t.stepFrom[i]!, end)) continue;
    const [left, right] = [p.x(t.stepFrom[i]!), p.x(end)];
    if (isGap) drawGap(s, left, right, runs);
    else if (kind === kindRun) {
      s.c.fillStyle = s.colours.accent;
      s.c.globalAlpha = 0.55;
      s.c.fillRect(left, runs, Math.max(right - left - 0.5, 0.8), runHeight);
      s.c.globalAlpha = 1;
    } else {
      s.c.fillStyle = s.colours.text;
      drawMark(s, kind, left, top);
    }
  }
}

export function waitAt(t: Timeline, x: (time: number) => number, at: number): string {
  for (let i = 0; i < t.waitFrom.length; i++) {
    if (at < x(t.waitFrom[i]!) - 1 || at > Math.max(x(t.waitTo[i]!), x(t.waitFrom[i]!) + 1)) continue;
    const name = t.names[t.waitName[i]!] ?? "?";
    const n = t.waitN[i]!;
    const what = t.waitReady[i] ? "could run, another thread had the CPU" : name === "?" ? "off the CPU" : `waits in ${name}`;
    return `${what}${n > 1 ? ` and ${n - 1} more short waits` : ""}  ·  ${human(t.waitTo[i]! - t.waitFrom[i]!, "ns")}`;
  }
  return "";
}

// A mark before the run that it lies in: it is the smaller one.
export function stepAt(t: Timeline, x: (time: number) => number, at: number): string {
  let best = -1;
  let least = nearest + 1;
  for (let i = 0; i < t.stepFrom.length; i++) {
    const isRun = t.stepKind[i] === kindRun;
    const distance = isRun ? (x(t.stepFrom[i]!) <= at && at <= x(t.stepTo[i]!) ? nearest : Infinity) : Math.abs(x(t.stepFrom[i]!) - at);
    if (distance < least) [best, least] = [i, distance];
  }
  if (best < 0) return "";
  const [kind, n] = [t.stepKind[best]!, t.stepN[best]!];
  if (kind === kindRun) return `${count(n)} instructions  ·  ${human(t.stepTo[best]! - t.stepFrom[best]!, "ns")} with the tracing`;
  return `${t.stepWords[best]}${n > 1 ? ` and ${n - 1} more ${marks[kind]?.many}` : ""}`;
}
