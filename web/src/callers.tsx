// SPDX-License-Identifier: MIT
// Bottom-up: all functions, of which each opens to its callers; and the ways to the selected one as a flame
// graph that stands on it.
import { useMemo, useState } from "preact/hooks";
import type { FlatRow, Meta, Names, Tree } from "./answers";
import { FlameView } from "./flame";
import { human, percent, shown } from "./format";
import { NoFunctions } from "./function_table";
import { Bar, Empty, Sure } from "./parts";
import { useRows } from "./rows";
import { useSearch } from "./search";
import { isSelected, selection } from "./state";
import { change, useAnswer, useAppState } from "./store";

const linePixels = 22;

interface Line {
  key: string; // function, or its path of callers: "12/0/3"
  name: string;
  image: string; // "" where it is not known, as of callers
  depth: number;
  cum: number;
  base: number | null;
  exact: boolean;
  canOpen: boolean;
}

function childLines(root: string, tree: Tree, opened: Set<string>): Line[] {
  const lines: Line[] = [];
  for (let i = 1; i < tree.n; ) {
    const key = `${root}/${i}`;
    lines.push({ key, name: tree.names?.[tree.routine[i]!] ?? "", image: "", depth: tree.depth[i]!, cum: tree.cum[i]!, base: null, exact: (tree.flags[i]! & 2) === 0, canOpen: tree.end[i]! > i + 1 });
    i = opened.has(key) ? i + 1 : tree.end[i]!;
  }
  return lines;
}

function CallersList({ meta, names }: { meta: Meta; names: Names }) {
  const state = useAppState();
  const keys = selection(state);
  const search = useSearch();
  const [opened, setOpened] = useState<Set<string>>(new Set());
  const [at, setAt] = useState("");
  const flat = useAnswer(JSON.stringify(keys), (a) => a.report<FlatRow>("flat", { ...keys, sort: "base" }));
  const numbers = useMemo(() => new Map(names.name.map((n, i) => [`${n}\n${names.image[i] ?? ""}`, i])), [names]);
  const roots = [...opened].filter((k) => !k.includes("/"));
  const trees = useAnswer(JSON.stringify(keys) + roots.join(), async (a) => new Map(await Promise.all(roots.map(async (r) => [r, await a.callers({ ...keys, routine: r })] as const))));
  const lines = useMemo(() => {
    const rows = (flat.value?.rows ?? []).filter((r) => r.kind !== "thread" && (!search.test || search.test(r.name)));
    return rows.flatMap((r): Line[] => {
      const key = String(numbers.get(`${r.name}\n${r.image ?? ""}`) ?? 0);
      const tree = opened.has(key) ? trees.value?.get(key) : undefined;
      return [{ key, name: r.name, image: r.image ?? "", depth: 0, cum: r.cum ?? NaN, base: r.base, exact: r.exact, canOpen: true }, ...(tree ? childLines(key, tree, opened) : [])];
    });
  }, [flat.value, trees.value, search.test, opened, numbers]);
  const { list, first, last, onScroll, show } = useRows(lines.length, linePixels);
  const toggle = (key: string, to: boolean): void => {
    const next = new Set(opened);
    if (to) next.add(key);
    else next.delete(key);
    setOpened(next);
  };
  const onKeyDown = (e: KeyboardEvent): void => {
    const i = lines.findIndex((l) => l.key === at);
    const line = lines[i];
    const go = (to: number): void => {
      setAt(lines[to]?.key ?? "");
      show(to);
    };
    const steps: Record<string, () => void> = {
      ArrowDown: () => go(Math.min(lines.length - 1, i + 1)),
      ArrowUp: () => go(Math.max(0, i - 1)),
      PageDown: () => go(Math.min(lines.length - 1, i + 20)),
      PageUp: () => go(Math.max(0, i - 20)),
      Home: () => go(0),
      End: () => go(lines.length - 1),
      ArrowRight: () => line?.canOpen && toggle(line.key, true),
      ArrowLeft: () => line && toggle(line.key, false),
      Enter: () => line && change({ selected: line.name, image: line.image }),
    };
    const now = steps[e.key];
    if (!now) return;
    e.preventDefault();
    e.stopPropagation();
    now();
  };
  if (flat.error ?? trees.error) return <Empty>{flat.error ?? trees.error}</Empty>;
  return (
    <div class="bottom-up" role="tree" ref={list} tabIndex={0} aria-label={`${lines.length} functions and callers; arrow keys walk and open`} onScroll={onScroll} onKeyDown={onKeyDown}>
      <div class="lines" role="presentation" style={{ height: `${lines.length * linePixels}px` }}>
      {lines.slice(first, last).map((l, i) => (
        <div key={l.key} role="treeitem" aria-level={l.depth + 1} aria-expanded={l.canOpen ? opened.has(l.key) : undefined} aria-selected={l.key === at} style={{ top: `${(first + i) * linePixels}px` }} class={l.key === at ? "line at" : isSelected(state, l.name, l.image || state.image) ? "line selected" : "line"} onClick={() => setAt(l.key)} onDblClick={() => change({ selected: l.name, image: l.image })}>
          <span class="share">
            <Bar part={l.cum} whole={meta.total} exact={l.exact} />
            {percent(l.cum, meta.total)}
          </span>
          <span class="share">{l.base === null ? "" : human(l.base, meta.unit)}</span>
          <span class="name" style={{ paddingLeft: `${l.depth * 16}px` }}>
            {l.canOpen ? (
              <button tabIndex={-1} class="open" aria-label={opened.has(l.key) ? "close" : "callers"} onClick={() => toggle(l.key, !opened.has(l.key))}>
                {opened.has(l.key) ? "▾" : "▸"}
              </button>
            ) : (
              <span class="open" />
            )}
            <Sure exact={l.exact} />{" "}
            <button tabIndex={-1} class="plain" title={l.name} onClick={() => change({ selected: l.name, image: l.image })}>
              {l.depth ? "← " : ""}
              {shown(l.name)}
            </button>
          </span>
        </div>
      ))}
      </div>
      {!lines.length && !flat.isOld && <NoFunctions meta={meta} />}
    </div>
  );
}

export function CallersPane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const key = JSON.stringify(keys);
  const names = useAnswer(key, (a) => a.names(keys));
  const routine = names.value && !names.isOld ? names.value.name.findIndex((name, i) => isSelected(state, name, names.value!.image[i])) : -1;
  const tree = useAnswer(`${key}${routine}`, async (a) => (routine > 0 ? a.callers({ ...keys, routine }) : undefined));

  if (!meta.has.tree) return <Empty>{meta.metric} is counted by function, not by call, so there are no callers. Choose another metric.</Empty>;
  if (names.error ?? tree.error) return <Empty>{names.error ?? tree.error}</Empty>;
  if (!names.value) return <Empty>…</Empty>;
  return (
    <>
      <p class="heads">
        <span>Self+desc.</span>
        <span>Self</span>
        <span>Function, and below it who calls it</span>
      </p>
      <CallersList meta={meta} names={names.value} />
      {state.selected && !names.isOld && routine <= 0 && <Empty>'{state.selected}' is not in this selection.</Empty>}
      {tree.value && !tree.isOld && !names.isOld && (
        <p class="heads-of">
          Who calls <b>{state.selected}</b>: below each box are its callers
        </p>
      )}
      {tree.value && !tree.isOld && !names.isOld && <FlameView tree={tree.value} names={names.value} meta={meta} label={`Callers of ${state.selected}`} />}
    </>
  );
}
