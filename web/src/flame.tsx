// SPDX-License-Identifier: MIT
// The flame graph: the tree from the threads down, each box as wide as what it used.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Meta, Names, Tree } from "./answers";
import { Canvas } from "./canvas";
import { boxAt, deepest, drawFlame, parentOf, rowHeight, scaleOf, type View } from "./flame_draw";
import { describeBox, isCompared } from "./difference";
import { whyEmpty } from "./empty_words";
import { count, human, percent } from "./format";
import { hottestPath } from "./hottest";
import { change, hover, useAnswer, useAppState } from "./store";
import { isSelected, selection } from "./state";
import { Empty, matcher } from "./parts";
import { useSearch } from "./search";

interface Props {
  tree: Tree;
  names: Names;
  meta: Meta;
  label: string;
  hasOrder?: boolean; // there are other orders of it
}

export function describe(tree: Tree, names: Names, meta: Meta, i: number): string {
  const routine = tree.routine[i]!;
  const name = (tree.names ?? names.name)[routine] ?? "";
  const calls = tree.calls[i]!;
  if (tree.diff) return describeBox(tree, tree.diff, meta.unit, i);
  const parts = [
    name,
    `${human(tree.cum[i]!, meta.unit)} (${percent(tree.cum[i]!, meta.total)}) with all it calls`,
    `${human(tree.base[i]!, meta.unit)} itself`,
  ];
  if (!Number.isNaN(calls)) parts.push(`${count(calls)} calls`);
  parts.push(tree.flags[i]! & 2 ? "estimated by samples" : tree.flags[i]! & 1 ? "measured by events" : "");
  if (!tree.names && names.image[routine]) parts.push(names.image[routine]!);
  return parts.filter(Boolean).join("  ·  ");
}

function whole(tree: Tree): number {
  let right = 0;
  for (let i = 0; i < tree.n; i = tree.end[i]!) right = tree.left[i]! + tree.width[i]!;
  return right;
}

export function FlameView({ tree, names, meta, label, hasOrder }: Props) {
  const state = useAppState();
  const isUp = state.up === "1";
  const all = whole(tree);
  const [view, setView] = useState<View>({ from: 0, to: all, top: 0 });
  const [current, setCurrent] = useState(-1);
  const size = useRef({ width: 0, height: 0 });
  const drag = useRef<{ x: number; y: number; view: View; moved: boolean } | undefined>(undefined);
  const nameOf = tree.names ?? names.name;
  const matches = matcher(useSearch().test, nameOf);
  const selected = nameOf.findIndex((name, i) => isSelected(state, name, tree.names ? state.image : names.image[i]));

  useEffect(() => {
    setView({ from: 0, to: all, top: 0 });
    setCurrent(-1);
  }, [tree]);

  const clamp = (v: View): View => {
    const span = Math.min(v.to - v.from, all);
    const from = Math.max(0, Math.min(v.from, all - span));
    const lowest = Math.max(0, (deepest(tree) + 1) * rowHeight - size.current.height);
    return { from, to: from + span, top: Math.max(0, Math.min(v.top, lowest)) };
  };
  const unitAt = (x: number): number => view.from + x / scaleOf(view, size.current.width);
  const at = (x: number, y: number): number => boxAt(tree, unitAt(x), Math.floor(((isUp ? size.current.height - y : y) + view.top) / rowHeight));
  const zoomTo = (i: number): void =>
    i < 0
      ? setView(clamp({ from: 0, to: all, top: 0 }))
      : setView(clamp({ from: tree.left[i]!, to: tree.left[i]! + tree.width[i]!, top: Math.max(0, (tree.depth[i]! - 2) * rowHeight) }));
  const zoomBy = (factor: number, x: number): void => {
    const middle = unitAt(x);
    setView(clamp({ ...view, from: middle - (middle - view.from) * factor, to: middle + (view.to - middle) * factor }));
  };
  // The box that somebody is at, else the widest one of the selected function.
  const toZoom = (): number => {
    if (current >= 0) return current;
    let widest = -1;
    for (let i = 0; selected >= 0 && i < tree.n; i++) if (tree.routine[i] === selected && (widest < 0 || tree.width[i]! > tree.width[widest]!)) widest = i;
    return widest;
  };
  const isWhole = view.from === 0 && view.to === all && view.top === 0;
  const take = (i: number): void => {
    setCurrent(i);
    if (i < 0) return;
    hover(describe(tree, names, meta, i));
    change({ selected: nameOf[tree.routine[i]!]!, ...(tree.names ? {} : { image: names.image[tree.routine[i]!] ?? "" }) });
  };

  const onKeyDown = (e: KeyboardEvent): void => {
    const i = current;
    const siblings = (step: number): number => {
      if (i < 0) return 0;
      if (step > 0) return tree.end[i]! < tree.n && tree.depth[tree.end[i]!] === tree.depth[i] ? tree.end[i]! : i;
      for (let k = i - 1; k >= 0 && tree.depth[k]! >= tree.depth[i]!; k--) if (tree.depth[k] === tree.depth[i]) return k;
      return i;
    };
    const steps: Record<string, () => void> = {
      [isUp ? "ArrowUp" : "ArrowDown"]: () => take(i < 0 ? 0 : i + 1 < tree.end[i]! ? i + 1 : i),
      [isUp ? "ArrowDown" : "ArrowUp"]: () => take(i < 0 ? 0 : Math.max(parentOf(tree, i), 0)),
      ArrowRight: () => take(siblings(1)),
      ArrowLeft: () => take(siblings(-1)),
      Enter: () => zoomTo(i),
      Escape: () => zoomTo(-1),
      z: () => zoomTo(toZoom()),
      h: () => take(hottestPath(tree).at(-1) ?? -1),
      i: () => change({ up: isUp ? "" : "1" }),
      "+": () => zoomBy(0.8, size.current.width / 2),
      "-": () => zoomBy(1.25, size.current.width / 2),
    };
    const step = steps[e.key];
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    step();
  };

  if (!tree.n || !all) return <Empty>{whyEmpty(meta, state)}</Empty>;
  return (
    <>
    <div class="controls">
      <button aria-pressed={isUp} title="key i" onClick={() => change({ up: isUp ? "" : "1" })}>
        {isUp ? "▲ Flame graph" : "▼ Icicle graph"}
      </button>
      {hasOrder && (
          <select class="order" aria-label="Order" title="order of boxes beside one another" value={state.order || "cum"} onChange={(e) => change({ order: e.currentTarget.value === "cum" ? "" : e.currentTarget.value })}>
            <option value="cum">by cost</option>
            <option value="name">by name</option>
            <option value="time">by time</option>
          </select>
      )}
      <button title="key h: selects the function at the end of the hottest path" onClick={() => take(hottestPath(tree).at(-1) ?? -1)}>
        Hottest
      </button>
      <button disabled={toZoom() < 0} title="key z, Enter, or a double click on a box" onClick={() => zoomTo(toZoom())}>
        Zoom to selection
      </button>
      <button disabled={isWhole} title="key Escape" onClick={() => zoomTo(-1)}>
        Reset zoom
      </button>
    </div>
    <Canvas
      label={`${label}: ${tree.n} boxes; arrow keys walk, Enter zooms, Escape shows all`}
      draw={(surface) => drawFlame(surface, tree, names, { ...view, up: isUp }, { selected, matches, current })}
      onSize={(width, height) => {
        size.current = { width, height };
      }}
      onPointerDown={(e, x, y) => {
        drag.current = { x, y, view, moved: false };
        (e.target as Element).setPointerCapture(e.pointerId);
      }}
      onPointerMove={(_, x, y) => {
        const d = drag.current;
        if (d && (d.moved || Math.abs(x - d.x) + Math.abs(y - d.y) > 4)) {
          d.moved = true;
          const shift = (x - d.x) / scaleOf(d.view, size.current.width);
          setView(clamp({ from: d.view.from - shift, to: d.view.to - shift, top: d.view.top - (isUp ? -1 : 1) * (y - d.y) }));
          return;
        }
        const i = at(x, y);
        hover(i < 0 ? "" : describe(tree, names, meta, i));
      }}
      onPointerUp={(_, x, y) => {
        const moved = drag.current?.moved;
        drag.current = undefined;
        if (!moved) take(at(x, y));
      }}
      onPointerLeave={() => hover("")}
      onDoubleClick={(_, x, y) => zoomTo(at(x, y))}
      onWheel={(e, x) => {
        e.preventDefault();
        if (e.ctrlKey || e.metaKey) zoomBy(Math.exp(e.deltaY / 200), x);
        else
          setView(clamp({ from: view.from + e.deltaX / scaleOf(view, size.current.width), to: view.to + e.deltaX / scaleOf(view, size.current.width), top: view.top + (isUp ? -1 : 1) * e.deltaY }));
      }}
      onKeyDown={onKeyDown}
    />
    </>
  );
}

export function FlamePane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const key = JSON.stringify(keys) + state.order;
  const isDiff = isCompared(meta, state);
  const tree = useAnswer(`${key}${isDiff}`, (a) => (isDiff ? a.diff : a.tree).call(a, { ...keys, order: state.order }));
  const names = useAnswer(`${JSON.stringify(keys)}${isDiff}`, async (a) => (isDiff ? undefined : a.names(keys)));

  if (tree.error) return <Empty>{tree.error}</Empty>;
  if (tree.value?.diff) return <FlameView tree={tree.value} names={tree.value.diff.names} meta={meta} label="Flame graph of the difference" />;
  if (!tree.value || !names.value || names.isOld) return <Empty>…</Empty>;
  return <FlameView tree={tree.value} names={names.value} meta={meta} label="Flame graph" hasOrder />;
}
