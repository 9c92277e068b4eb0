// SPDX-License-Identifier: MIT
// The hottest path: from the thread that used most always to the callee that used most, as long as that is more
// than what the function used itself. It is where somebody begins who sees a profile for the first time.
import { flagSampled, flagThread, type Meta, type Tree } from "./answers";
import { human, percent, shown } from "./format";
import { Bar, Sure } from "./parts";
import { selection } from "./state";
import { change, useAnswer, useAppState } from "./store";

const leastPart = 0.02; // of the whole; below it no path is hotter than another
const mostSteps = 40; // that are listed

// The children of a box, or all threads, of which the widest comes back; -1: there is none.
function widest(tree: Tree, from: number, to: number): number {
  let best = -1;
  for (let i = from; i < to; i = tree.end[i]!) if (best < 0 || tree.width[i]! > tree.width[best]!) best = i;
  return best;
}

// What of a box's width is no child's.
function ownWidth(tree: Tree, box: number): number {
  let own = tree.width[box]!;
  for (let i = box + 1; i < tree.end[box]!; i = tree.end[i]!) own -= tree.width[i]!;
  return own;
}

export function hottestPath(tree: Tree): number[] {
  const path: number[] = [];
  let at = widest(tree, 0, tree.n);
  const least = at < 0 ? 0 : leastPart * tree.width[at]!;
  while (at >= 0) {
    path.push(at);
    const next = widest(tree, at + 1, tree.end[at]!);
    if (next < 0 || tree.width[next]! < least || ownWidth(tree, at) >= tree.width[next]!) break;
    at = next;
  }
  return path;
}

interface Step {
  box: number;
  times: number; // the function calls itself
}

function stepsOf(tree: Tree, path: number[]): Step[] {
  const steps: Step[] = [];
  for (const box of path) {
    const last = steps.at(-1);
    if (tree.flags[box]! & flagThread) continue;
    if (last && tree.routine[last.box] === tree.routine[box]) last.times++;
    else steps.push({ box, times: 1 });
  }
  return steps;
}

// What the detail shows while no function is selected.
export function HottestPath({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  // The questions of the flame graph, whose answers are kept.
  const answer = useAnswer(JSON.stringify(keys) + state.order, (a) => Promise.all([a.tree({ ...keys, order: state.order }), a.names(keys)]));
  if (!answer.value || answer.isOld) return null;
  const [tree, names] = answer.value;
  const steps = stepsOf(tree, hottestPath(tree));
  const hidden = Math.max(0, steps.length - mostSteps);
  if (!steps.length) return null;
  return (
    <section class="hottest" aria-label="The hottest path">
      <h2>The hottest path</h2>
      <ol class="arcs">
        {steps.slice(hidden).map(({ box, times }, i) => {
          const name = names.name[tree.routine[box]!] ?? "";
          const isExact = (tree.flags[box]! & flagSampled) === 0;
          return (
            <li key={box}>
              {i === 0 && hidden > 0 && <p class="empty">{hidden} outer functions, then</p>}
              <button onClick={() => change({ selected: name, image: names.image[tree.routine[box]!] ?? "" })} title={names.image[tree.routine[box]!]}>
                <Sure exact={isExact} />
                <span class="name">
                  {shown(name)}
                  {times > 1 ? ` (${times} deep)` : ""}
                </span>
                <span class="time">{human(tree.cum[box], meta.unit)}</span>
                <span class="besides">{percent(tree.cum[box]!, meta.total)}</span>
                <Bar part={tree.cum[box]!} whole={meta.total} exact={isExact} />
              </button>
            </li>
          );
        })}
      </ol>
      <p class="empty">Each calls the one below it. Select one to see who calls it, whom it calls, and its source.</p>
    </section>
  );
}
