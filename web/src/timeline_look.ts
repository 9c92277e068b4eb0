// SPDX-License-Identifier: MIT
// The part of the timeline that is looked at: the wheel moves it, and the selection of all panes stays as it is.
// It is drawn at once from what is there, and weir is asked for a finer picture of it.

export interface Look {
  from: number; // ns since the start
  to: number;
}

export const columns = 1200;
const shortest = 10; // ns

// As wide as it is, within all of it.
function within(look: Look, all: Look): Look {
  const span = Math.min(look.to - look.from, all.to - all.from);
  const from = Math.max(all.from, Math.min(look.from, all.to - span));
  return { from, to: from + span };
}

export function moved(look: Look, by: number, all: Look): Look {
  return within({ from: look.from + by, to: look.to + by }, all);
}

// The time `at` stays where it is.
export function zoomed(look: Look, factor: number, at: number, all: Look): Look {
  const least = Math.min(shortest, all.to - all.from) / (look.to - look.from);
  const f = Math.max(factor, least);
  return within({ from: at - (at - look.from) * f, to: at + (look.to - at) * f }, all);
}

export function isAll(look: Look, all: Look): boolean {
  return look.from <= all.from && look.to >= all.to;
}

// What to ask for: as much again on both sides, so that moving finds something there.
export function toAsk(look: Look, all: Look): Look & { columns: number } {
  const span = look.to - look.from;
  return { from: Math.floor(Math.max(all.from, look.from - span)), to: Math.ceil(Math.min(all.to, look.to + span)), columns: 3 * columns };
}

// It has all of what is looked at; `isFine`: in columns that are narrow enough as well.
export function covers(picture: Look & { columns: number }, look: Look, isFine: boolean): boolean {
  const narrow = (picture.to - picture.from) / picture.columns <= (1.5 * (look.to - look.from)) / columns;
  return picture.from <= look.from && picture.to >= look.to && (narrow || !isFine);
}
