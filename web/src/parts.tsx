// SPDX-License-Identifier: MIT
// What several panes are made of.
import type { ComponentChildren } from "preact";
import { human, percent, shown } from "./format";

// A pane that has nothing to show says why, and what to do.
export function Empty({ children }: { children: ComponentChildren }) {
  return (
    <p class="empty" role="status">
      {children}
    </p>
  );
}

// A name of which nothing is left out; one that would push all else away is small, and scrolls.
export function LongName({ name }: { name: string }) {
  return name.length > 80 ? (
    <span class="long-name" tabIndex={0}>
      {shown(name)}
    </span>
  ) : (
    <span>{shown(name)}</span>
  );
}

// By routine, whether a name is meant by the search.
export function matcher(test: ((name: string) => boolean) | undefined, names: string[]): Uint8Array | undefined {
  if (!test) return undefined;
  const matches = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) if (test(names[i]!)) matches[i] = 1;
  return matches;
}

// Exact figures are solid, estimates hatched, everywhere.
export function Sure({ exact }: { exact: boolean }) {
  return (
    <span class={exact ? "sure exact" : "sure estimate"} title={exact ? "measured by events" : "estimated by samples"} role="img" aria-label={exact ? "exact" : "estimated"} />
  );
}

export function Bar({ part, whole, exact }: { part: number; whole: number; exact: boolean }) {
  const width = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
  return (
    <span class="bar" aria-hidden="true">
      <span class={exact ? "exact" : "estimate"} style={{ width: `${width}%` }} />
    </span>
  );
}

// A share of the whole, as wide as all others; what it is a share of is said when somebody points at it.
export function Part({ part, whole, unit }: { part: number | null; whole: number; unit: string }) {
  return (
    <span class="part" title={human(part, unit)}>
      {part === null ? "." : percent(part, whole)}
    </span>
  );
}
