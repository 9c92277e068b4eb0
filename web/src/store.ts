// SPDX-License-Identifier: MIT
// The one place that knows what is shown; panes read it by hooks and change it by change().
import { useEffect, useState } from "preact/hooks";
import { Answers } from "./answers";
import { openEngine } from "./engine";
import { shown } from "./format";
import { lastPart, readState, type State, writeState } from "./state";

let state = readState(location.hash);
const listeners = new Set<() => void>();
let hovered = "";
const hoverListeners = new Set<() => void>();
let isPair = false; // of traces, in which one image may have two paths

export function setPair(is: boolean): void {
  isPair = is;
}

export const answers: Promise<Answers> = openEngine().then((engine) => new Answers(engine));

addEventListener("hashchange", () => {
  state = readState(location.hash);
  for (const tell of listeners) tell();
});

export function current(): State {
  return state;
}

// A step that back undoes; `silently`: it replaces the last one (typing, dragging).
export function change(some: Partial<State>, silently = false): void {
  // Another function is in an image of its own; who knows which one says it.
  const image = some.image ?? (some.selected !== undefined && some.selected !== state.selected ? "" : state.image);
  const hash = writeState({ ...state, ...some, image: isPair ? lastPart(image) : image });
  if (hash === writeState(state)) return;
  if (silently) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  state = readState(hash);
  for (const tell of listeners) tell();
}

export function useAppState(): State {
  const [, again] = useState(0);
  useEffect(() => {
    const tell = (): void => again((n) => n + 1);
    listeners.add(tell);
    return () => void listeners.delete(tell);
  }, []);
  return state;
}

// What is under the pointer, in one line that is always at the same place.
export function hover(name: string): void {
  const text = shown(name);
  if (text === hovered) return;
  hovered = text;
  for (const tell of hoverListeners) tell();
}
export function useHover(): string {
  const [, again] = useState(0);
  useEffect(() => {
    const tell = (): void => again((n) => n + 1);
    hoverListeners.add(tell);
    return () => void hoverListeners.delete(tell);
  }, []);
  return hovered;
}

export type Loaded<T> = { value?: T; error?: string; isOld: boolean };

// The answer to a question; the last one stays, marked as old, until the next is there.
export function useAnswer<T>(key: string, ask: (a: Answers) => Promise<T>): Loaded<T> {
  const [loaded, set] = useState<Loaded<T> & { key: string }>({ key: "", isOld: true });
  useEffect(() => {
    let isWanted = true;
    const mine = answers.then((a) => a.forOne());
    mine
      .then(ask)
      .then((value) => isWanted && set({ key, value, isOld: false }))
      .catch((e: unknown) => isWanted && set({ key, error: e instanceof Error ? e.message : String(e), isOld: false }));
    return () => {
      isWanted = false;
      void mine.then((a) => a.release(), () => undefined);
    };
  }, [key]);
  return { ...loaded, isOld: loaded.key !== key };
}
