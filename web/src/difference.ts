// SPDX-License-Identifier: MIT
// Two traces in words: what was before, what is after, and the sign of the difference, which stands beside every
// colour. A difference of estimates comes with the numbers of samples that both are from.
import { flagAbsent, flagExact, type Meta, type Side, type Sides, type Tree, type TreeDiff } from "./answers";
import { count, human } from "./format";
import type { State } from "./state";

export function isCompared(meta: Meta, state: State): boolean {
  return meta.traces.length === 2 && state.show === "";
}

// "?": one of the two was not measured.
export function signOf(more: number | null): "+" | "-" | "=" | "?" {
  if (more === null || Number.isNaN(more)) return "?";
  return more > 0 ? "+" : more < 0 ? "-" : "=";
}

// The class of what is shown in a colour, too.
export function changeClass(more: number | null): string {
  return more === null ? "" : more > 0 ? "more" : more < 0 ? "less" : "same";
}

export function signed(more: number | null, unit: string): string {
  if (more === null || Number.isNaN(more)) return ".";
  return more ? `${signOf(more)}${human(Math.abs(more), unit)}` : "=";
}

export function sampleCount(n: number | null, exact: boolean): string {
  return exact || n === null ? "" : `${count(n)} sample${n === 1 ? "" : "s"}`;
}

function known(exact: boolean, samples: number | null): string {
  return exact ? " (exact)" : samples === null ? "" : ` (${sampleCount(samples, false)})`;
}

function sideWords(side: Side, figure: "base" | "cum", unit: string): string {
  if (!side.there) return "not there";
  return human(side[figure], unit) + known(side.exact, figure === "base" ? side.samples : side.samples_cum);
}

// "with all it calls before 1 s (10 samples), after 2 s (21 samples): +1 s"
export function describeSides(sides: Sides, unit: string): string {
  const words = (figure: "base" | "cum"): string =>
    `before ${sideWords(sides.before, figure, unit)}, after ${sideWords(sides.after, figure, unit)}: ${signed(sides.more[figure], unit)}`;
  const calls = sides.more.calls === null ? "" : `  ·  ${count(sides.before.calls)} calls, then ${count(sides.after.calls)}`;
  return `with all it calls ${words("cum")}  ·  itself ${words("base")}${calls}`;
}

export function describeBox(tree: Tree, diff: TreeDiff, unit: string, i: number): string {
  const side = (flags: number, cum: number, samples: number): string =>
    flags & flagAbsent ? "not there" : human(cum, unit) + known((flags & flagExact) !== 0, samples);
  const routine = tree.routine[i]!;
  const more = diff.moreCum[i]!;
  const parts = [
    `${signOf(more)} ${diff.names.name[routine] ?? ""}`,
    `with all it calls before ${side(diff.flags[i]!, diff.cum[i]!, diff.samples[i]!)}, after ${side(diff.flagsAfter[i]!, tree.cum[i]!, diff.samplesAfter[i]!)}: ${signed(more, unit)}`,
    `itself before ${human(diff.base[i]!, unit)}, after ${human(tree.base[i]!, unit)}: ${signed(diff.moreBase[i]!, unit)}`,
  ];
  const [before, after] = [diff.calls[i]!, tree.calls[i]!];
  if (!Number.isNaN(before) || !Number.isNaN(after)) parts.push(`${count(before)} calls, then ${count(after)}`);
  if (diff.names.image[routine]) parts.push(diff.names.image[routine]!);
  return parts.join("  ·  ");
}

// What keeps two figures from being measured alike, in sentences; none: nothing is known to.
export function measuredOtherwise(before: Meta, after: Meta): string[] {
  const how = (m: Meta): string => (m.exact && m.estimates ? "by events and by samples" : m.exact ? "by events (exact)" : "by samples (estimated)");
  const said: string[] = [];
  if (before.unit !== after.unit) said.push(`${after.metric} is in '${before.unit}' before and in '${after.unit}' after`);
  if (how(before) !== how(after)) said.push(`before ${how(before)}, after ${how(after)}`);
  const facts: [key: string, what: string][] = [
    ["frequency", "samples a second"],
    ["event", "sampled event"],
    ["mode", "way of recording"],
    ["cpu", "processor"],
  ];
  for (const [key, what] of facts) {
    const [a, b] = [before.facts[key], after.facts[key]];
    if (a !== b && (before.has.samples || after.has.samples)) said.push(`${what}: ${a ?? "not said"} before, ${b ?? "not said"} after`);
  }
  const isLossy = (m: Meta): boolean => m.loss.samples_lost > 0 || m.loss.events_lost > 0 || m.loss.records_lost > 0 || m.loss.cut;
  if (isLossy(before)) said.push("data was lost before");
  if (isLossy(after)) said.push("data was lost after");
  return said;
}
