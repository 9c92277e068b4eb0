// SPDX-License-Identifier: MIT
// How far weir is with what the page waits for: it reads the trace anew for another selection, and a large one takes its time.
import { useEffect, useState } from "preact/hooks";
import type { Answers } from "./answers";
import type { Progress } from "./engine";
import { percent } from "./format";
import { answers } from "./store";

const patience = 400; // ms without a word
const interval = 250;

// undefined: nothing takes long.
function useWorking(): Progress | undefined {
  const [working, set] = useState<Progress | undefined>(undefined);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (a: Answers): Promise<void> => {
      const progress = await a.progress()?.catch(() => undefined); // the question itself will say why
      set(a.isWaiting ? (progress ?? { done: 0, whole: 0 }) : undefined);
      timer = a.isWaiting ? setTimeout(() => void look(a), interval) : undefined;
    };
    const begin = (a: Answers): void => {
      if (a.isWaiting) timer ??= setTimeout(() => void look(a), patience);
      else {
        clearTimeout(timer);
        timer = undefined;
        set(undefined);
      }
    };
    void answers.then((a) => {
      a.onWaiting(() => begin(a));
      begin(a);
    }, () => undefined);
    return () => clearTimeout(timer);
  }, []);
  return working;
}

export function Working({ isFirst }: { isFirst?: boolean }) {
  const progress = useWorking();
  if (!progress && !isFirst) return null;
  const { done, whole } = progress ?? { done: 0, whole: 0 };
  return (
    <p class={isFirst ? "working first" : "working"} role="status">
      {isFirst || whole ? "Reading the trace" : "Working"}
      {whole ? (
        <>
          : {percent(Math.min(done, whole), whole)} <progress value={Math.min(done, whole)} max={whole} aria-label="of the trace is read" />
        </>
      ) : (
        " …"
      )}
    </p>
  );
}
