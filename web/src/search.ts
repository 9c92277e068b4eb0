// SPDX-License-Identifier: MIT
// What the search means, for all panes at once: weir says which functions match and what part of all they are.
import { useMemo } from "preact/hooks";
import type { Matches } from "./answers";
import { selection } from "./state";
import { useAnswer, useAppState } from "./store";

export interface Search {
  test: ((name: string) => boolean) | undefined; // undefined: nothing is searched, or the answer is not there yet
  answer: Matches | undefined;
  error: string;
}

export function useSearch(): Search {
  const state = useAppState();
  const keys = selection(state);
  const text = state.search;
  const isOpen = text.startsWith("/") && !/^\/.+\/$/.test(text); // an expression that is not yet typed to its end
  const answer = useAnswer(`${JSON.stringify(keys)}${isOpen ? "" : text}`, async (a) => (text && !isOpen ? a.matches({ ...keys, search: text }) : undefined));
  return useMemo(() => {
    if (!text) return { test: undefined, answer: undefined, error: "" };
    if (isOpen) return { test: undefined, answer: undefined, error: "an expression ends with /" };
    const names = answer.value && new Set(answer.value.names);
    return { test: answer.error ? () => false : names && ((name: string) => names.has(name)), answer: answer.isOld ? undefined : answer.value, error: answer.isOld ? "" : (answer.error ?? "") };
  }, [text, answer.value, answer.error, answer.isOld]);
}
