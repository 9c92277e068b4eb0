// SPDX-License-Identifier: MIT
// The call graph: an overview with a box that is dragged, the part in it with names, and what chooses how
// much of it is there. Layout and figures come from weir; places of boxes that stay are sent along.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answers, Graph, GraphBox, Meta, WidthRule } from "./answers";
import { Canvas } from "./canvas";
import type { Keys } from "./engine";
import { describeSides, isCompared, signOf } from "./difference";
import { whyEmpty } from "./empty_words";
import { count, human, percentOf } from "./format";
import { boxAt, data, type Datum, diffData, drawGraph, drawOverview, type GraphLook, type GraphView } from "./graph_draw";
import { Empty, LongName } from "./parts";
import { useSearch } from "./search";
import { functionName, isSelected, keyOfNumber, lastPart, numbersOf, selection } from "./state";
import { change, hover, useAnswer, useAppState } from "./store";

interface Asked {
  filter: string; // "auto" or tenths of a percent
  open: string[]; // keys of functions
  folded: string[];
  root: string; // "": the whole program
  rule: WidthRule;
  names: number;
  left: Datum;
  right: Datum;
}

const legibleZoom = 0.8;
const largestZoom = 1.6;
const labelRoom = 60; // of a figure beside a box
const margin = 20;
const hotShare = 0.25; // an arc with less is no part of the hottest path
const partingShare = 0.75;

const rules: WidthRule[] = ["none", "linear", "log", "adaptive"];

function readAsked(text: string, right: Datum): Asked {
  const keys = new URLSearchParams(text);
  const list = (key: string): string[] => (keys.get(key) ?? "").split(",").filter(Boolean);
  return {
    filter: keys.get("filter") ?? "auto",
    open: list("open"),
    folded: list("folded"),
    root: keys.get("root") ?? "",
    rule: (keys.get("rule") as WidthRule | null) ?? "log",
    names: Number(keys.get("names") ?? 32),
    left: (keys.get("left") as Datum | null) ?? "none",
    right: (keys.get("right") as Datum | null) ?? right,
  };
}

function writeAsked(a: Asked, right: Datum): string {
  const keys = new URLSearchParams();
  if (a.filter !== "auto") keys.set("filter", a.filter);
  if (a.open.length) keys.set("open", a.open.join());
  if (a.folded.length) keys.set("folded", a.folded.join());
  if (a.root) keys.set("root", a.root);
  if (a.rule !== "log") keys.set("rule", a.rule);
  if (a.names !== 32) keys.set("names", String(a.names));
  if (a.left !== "none") keys.set("left", a.left);
  if (a.right !== right) keys.set("right", a.right);
  return keys.toString();
}

// The slider has fine steps below 2 %: 0 to 20 are tenths, 21 to 38 are 3 % to 20 %.
export function sliderToTenths(position: number): number {
  return position <= 20 ? position : (position - 18) * 10;
}
export function tenthsToSlider(tenths: number): number {
  return tenths <= 20 ? tenths : Math.round(tenths / 10) + 18;
}

// One step more or less of what a box shows.
function step(a: Asked, box: GraphBox, key: string, by: 1 | -1): Asked {
  const states = ["folded", "filtered", "open"];
  const next = states[states.indexOf(box.state) + by];
  if (!next) return a;
  const without = (list: string[]): string[] => list.filter((k) => k !== key);
  return {
    ...a,
    folded: next === "folded" ? [...without(a.folded), key] : without(a.folded),
    open: next === "open" ? [...without(a.open), key] : without(a.open),
  };
}

type Places = Map<number, { x: number; y: number }>;

function withPlaces(g: Graph, moved: Places): Graph {
  if (!moved.size) return g;
  const boxes = g.boxes.map((b) => ({ ...b, ...(moved.get(b.routine) ?? {}) }));
  const arcs = g.arcs.map((a) => {
    const [from, to] = [boxes[a.from]!, boxes[a.to]!];
    if (!moved.has(from.routine) && !moved.has(to.routine)) return a;
    const points = a.points.slice();
    points[0] = from.x + (a.back ? 0 : from.w);
    points[1] = from.y + from.h / 2;
    points[points.length - 2] = to.x + (a.back ? to.w : 0);
    points[points.length - 1] = to.y + to.h / 2;
    return { ...a, points };
  });
  return { ...g, boxes, arcs };
}

function describe(g: Graph, box: GraphBox, meta: Meta): string {
  const { before, after, more } = box;
  if (before && after && more) return `${signOf(more.cum)} ${box.name}  ·  ${describeSides({ before, after, more }, meta.unit)}  ·  ${box.shown} of ${box.callees} callees shown`;
  const shares = `${percentOf(box.base, g.whole)} self, ${percentOf(box.cum, g.whole)} with descendants`;
  const calls = box.calls === null ? "" : `  ·  ${count(box.calls)} calls`;
  return `${box.name}  ·  ${shares}  ·  ${human(box.cum, meta.unit)}${calls}  ·  ${box.shown} of ${box.callees} callees shown`;
}

interface ControlsProps {
  asked: Asked;
  graph: Graph | undefined;
  set: (a: Asked, silently?: boolean) => void;
  isMoved: boolean;
  isDiff: boolean;
  redo: () => void;
  fit: () => void;
}

// How much of the program is there, what became of the rest, and how to have it.
function Shown({ graph, asked, set }: Pick<ControlsProps, "asked" | "set"> & { graph: Graph }) {
  const shown = graph.boxes.length - 1;
  const rest = graph.functions - shown - graph.hidden;
  const position = tenthsToSlider(graph.filter);
  return (
    <p class="shown" role="status">
      {asked.root && (
        <>
          {graph.root ? "Shares are of " : "Not in this selection, so shares are of the whole: "}
          <b>{functionName(asked.root)}</b>.{" "}
        </>
      )}
      {shown} of {graph.functions} functions
      {graph.hidden > 0 && `; ${graph.hidden} more do not fit`}
      {rest > 0 && (
        <>
          ; {rest} {graph.filter ? `with less than ${graph.filter / 10} % each, or below a collapsed box, are` : "are"} folded into their callers{" "}
          {position > 0 && (
            <button title={`all with at least ${sliderToTenths(position - 1) / 10} %`} onClick={() => set({ ...asked, filter: String(sliderToTenths(position - 1)) })}>
              Show more
            </button>
          )}{" "}
          <button title="a filter of 0 %, and no box collapsed" onClick={() => set({ ...asked, filter: "0", folded: [] })}>
            Show all
          </button>
        </>
      )}
    </p>
  );
}

function Controls({ asked, graph, set, isMoved, isDiff, redo, fit }: ControlsProps) {
  const used = graph?.filter ?? 0;
  const select = (label: string, value: string, values: string[], then: (v: string) => void) => (
    <label>
      {label}{" "}
      <select value={value} onChange={(e) => then(e.currentTarget.value)}>
        {values.map((v) => (
          <option key={v}>{v}</option>
        ))}
      </select>
    </label>
  );
  return (
    <div class="controls">
      <label title="functions with less self+descendants are folded into their callers">
        Filter{" "}
        <input type="range" min={0} max={38} value={tenthsToSlider(used)} aria-valuetext={`${used / 10} %`} onInput={(e) => set({ ...asked, filter: String(sliderToTenths(Number(e.currentTarget.value))) }, true)} />
      </label>
      <label>
        <input
          class="number"
          type="number"
          min={0}
          max={20}
          step={0.1}
          value={used / 10}
          aria-label="filter in percent"
          onChange={(e) => set({ ...asked, filter: String(Math.min(200, Math.max(0, Math.round(Number(e.currentTarget.value) * 10)))) })}
        />{" "}
        %
      </label>
      <button disabled={asked.filter === "auto"} onClick={() => set({ ...asked, filter: "auto" })}>
        30 functions
      </button>
      {select("Arcs", asked.rule, rules, (v) => set({ ...asked, rule: v as WidthRule }))}
      {select("Left", asked.left, isDiff ? diffData : data, (v) => set({ ...asked, left: v as Datum }))}
      {select("Right", asked.right, isDiff ? diffData : data, (v) => set({ ...asked, right: v as Datum }))}
      <label>
        Names{" "}
        <input class="number" type="number" min={4} max={200} value={asked.names} onChange={(e) => set({ ...asked, names: Number(e.currentTarget.value) })} />
      </label>
      <button title="key a" onClick={fit}>
        Fit to view
      </button>
      {isMoved && <button onClick={redo}>Redo layout</button>}
      {asked.root && <button onClick={() => set({ ...asked, root: "" })}>Whole program as root</button>}
      {graph && <Shown graph={graph} asked={asked} set={set} />}
    </div>
  );
}

// What gives the numbers that functions have in this selection.
async function numbersIn(a: Answers, keys: Keys, isDiff: boolean, asked: Asked): Promise<(list: string[]) => number[]> {
  if (!asked.root && !asked.open.length && !asked.folded.length) return () => [];
  const names = isDiff ? (await a.diff(keys)).diff!.names : await a.names(keys);
  return (list) => numbersOf(list, names);
}

export function GraphPane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const isDiff = isCompared(meta, state);
  const usualRight: Datum = isDiff ? "difference" : "cum %";
  const asked = readAsked(state.graph, usualRight);
  const search = useSearch();
  const [moved, setMoved] = useState<Places>(new Map());
  const [view, setView] = useState<GraphView>({ x: 0, y: 0, zoom: 1 });
  const last = useRef<Graph | undefined>(undefined);
  const size = useRef({ width: 0, height: 0 });
  const drag = useRef<{ x: number; y: number; view: GraphView; box: number; isMoved: boolean } | undefined>(undefined);
  const centred = useRef("");
  const [isSized, setSized] = useState(false);
  const overview = useRef<GraphView | undefined>(undefined);
  const frame = useRef({ x: 0, y: 0 }); // from the pointer to the middle of the frame that it drags
  const selectionKey = JSON.stringify(keys) + isDiff;
  const key = `${selectionKey}|${asked.filter}|${asked.open}|${asked.folded}|${asked.root}|${asked.names}`;
  const answer = useAnswer(key, async (a) => {
    const numbers = await numbersIn(a, keys, isDiff, asked);
    return (isDiff ? a.diffGraph : a.graph).call(a, {
      ...keys,
      filter: asked.filter,
      open: numbers(asked.open).join(),
      folded: numbers(asked.folded).join(),
      root: numbers([asked.root])[0] || undefined,
      names: asked.names,
      places: asked.open.length || asked.folded.length ? last.current?.boxes.map((b) => `${b.routine}:${b.y.toFixed(1)}`).join() : undefined,
    });
  });
  const keyOf = (b: GraphBox): string => keyOfNumber(b.routine, b.name, meta.traces.length > 1 ? lastPart(b.image) : b.image);
  const set = (a: Asked, silently = false): void => change({ graph: writeAsked(a, usualRight) }, silently);

  useEffect(() => {
    last.current = undefined;
    setMoved(new Map());
  }, [selectionKey, asked.filter]);
  if (answer.value && !answer.isOld) last.current = answer.value;
  const shown = answer.value && withPlaces(answer.value, moved);
  const isOne = (b: GraphBox): boolean => isSelected(state, b.name, b.image);
  const box = shown?.boxes.find(isOne);

  useEffect(() => {
    const places = `${selectionKey}${asked.root}|${asked.filter}`; // those of another filter are others
    if (!answer.value || answer.isOld || !isSized || centred.current === places) return;
    centred.current = places;
    lookAtHottest(answer.value, box);
  }, [answer.value, answer.isOld, isSized]);
  useEffect(() => {
    if (!box) return;
    const { width, height } = size.current;
    const [x, y] = [(box.x + box.w / 2 - view.x) * view.zoom, (box.y + box.h / 2 - view.y) * view.zoom];
    if (x < 0 || y < 0 || x > width || y > height) setView({ ...view, x: box.x + box.w / 2 - width / 2 / view.zoom, y: box.y + box.h / 2 - height / 2 / view.zoom });
  }, [state.selected, state.image, answer.value]);

  if (!meta.has.tree) return <Empty>{meta.metric} is counted by function, not by call, so there is no call graph. Choose another metric.</Empty>;
  if (answer.error) return <Empty>{answer.error}</Empty>;
  if (!shown) return <Empty>…</Empty>;
  if (!shown.functions) return <Empty>{whyEmpty(meta, state)}</Empty>;
  const isFoldedAway = state.selected !== "" && !box && !answer.isOld;
  const look: GraphLook = { rule: asked.rule, nameChars: asked.names, left: asked.left, right: asked.right, unit: meta.unit, isSelected: isOne, matches: search.test };

  const neighbour = (direction: "in" | "out" | "up" | "down"): GraphBox | undefined => {
    if (!box) return shown.boxes[0];
    const i = shown.boxes.indexOf(box);
    if (direction === "up" || direction === "down") {
      const column = shown.boxes.filter((b) => b.layer === box.layer).sort((a, b) => a.y - b.y);
      return column[column.indexOf(box) + (direction === "up" ? -1 : 1)];
    }
    const arcs = shown.arcs.filter((a) => (direction === "out" ? a.from === i : a.to === i)).sort((a, b) => b.share - a.share);
    return arcs[0] && shown.boxes[direction === "out" ? arcs[0].to : arcs[0].from];
  };
  const onKeyDown = (e: KeyboardEvent): void => {
    const go = (b: GraphBox | undefined): void => void (b && change({ selected: b.name, image: b.image ?? "" }));
    const steps: Record<string, () => void> = {
      ArrowRight: () => go(neighbour("out")),
      ArrowLeft: () => go(neighbour("in")),
      ArrowUp: () => go(neighbour("up")),
      ArrowDown: () => go(neighbour("down")),
      Enter: () => box && set(step(asked, box, keyOf(box), 1)),
      Backspace: () => box && set(step(asked, box, keyOf(box), -1)),
      v: () => box?.routine && set({ ...asked, root: keyOf(box) }),
      a: fit,
      "+": () => setView({ ...view, zoom: Math.min(3, view.zoom * 1.25) }),
      "-": () => setView({ ...view, zoom: Math.max(0.1, view.zoom / 1.25) }),
    };
    const now = steps[e.key];
    if (!now) return;
    e.preventDefault();
    e.stopPropagation();
    now();
  };
  return (
    <section class="graph" aria-label="Call graph">
      <Controls asked={asked} graph={shown} set={set} isMoved={moved.size > 0} isDiff={isDiff} redo={() => setMoved(new Map())} fit={fit} />
      <div class="graph-panes">
        <Canvas
          class={shown.w / Math.max(shown.h, 1) > 12 || shown.boxes.length < 8 ? "overview low" : "overview"}
          label="Overview; drag the frame"
          draw={(s) => {
            overview.current = drawOverview(s, shown, view, size.current.width, size.current.height, isOne);
          }}
          onPointerDown={(e, x, y) => {
            (e.target as Element).setPointerCapture(e.pointerId);
            grabFrame(x, y);
            moveFrame(x, y);
          }}
          onPointerMove={(e, x, y) => void (e.buttons && moveFrame(x, y))}
        />
        <Canvas
          class="graph-canvas"
          label={`Call graph of ${shown.boxes.length - 1} functions; arrow keys walk, Enter shows more callees, Backspace fewer`}
          draw={(s) => drawGraph(s, shown, view, look)}
          onSize={(width, height) => {
            size.current = { width, height };
            setSized(width > 0 && height > 0);
          }}
          onPointerDown={(e, x, y) => {
            (e.target as Element).setPointerCapture(e.pointerId);
            drag.current = { x, y, view, box: boxAt(shown, view, x, y), isMoved: false };
          }}
          onPointerMove={(_, x, y) => onMove(x, y)}
          onPointerUp={(_, x, y) => onUp(x, y)}
          onPointerLeave={() => hover("")}
          onDoubleClick={(_, x, y) => {
            const i = boxAt(shown, view, x, y);
            if (i > 0) set({ ...asked, root: keyOf(shown.boxes[i]!) });
          }}
          onWheel={(e, x, y) => {
            e.preventDefault();
            if (e.ctrlKey || e.metaKey) {
              const zoom = Math.min(3, Math.max(0.1, view.zoom * Math.exp(-e.deltaY / 300)));
              setView({ zoom, x: view.x + x / view.zoom - x / zoom, y: view.y + y / view.zoom - y / zoom });
            } else setView({ ...view, x: view.x + e.deltaX / view.zoom, y: view.y + e.deltaY / view.zoom });
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {isFoldedAway && (
        <div class="under" role="status">
          <p>
            <b>{state.selected}</b> is folded into its callers: it has less than {shown.filter / 10} %, or a caller of it is collapsed.{" "}
            <button onClick={() => set({ ...asked, filter: "0", folded: [] })}>Show all functions</button>
          </p>
        </div>
      )}
      {box && (
        <div class="under">
          <b>
            <LongName name={box.name} />
          </b>
          <button disabled={box.state === "folded" || box.state === "leaf"} onClick={() => set(step(asked, box, keyOf(box), -1))}>
            Collapse
          </button>
          <button disabled={box.state === "open" || box.state === "leaf"} onClick={() => set(step(asked, box, keyOf(box), 1))}>
            Show callees
          </button>
          {box.routine !== 0 && <button onClick={() => set({ ...asked, root: keyOf(box) })}>Virtual root</button>}
        </div>
      )}
    </section>
  );

  // What it takes to see all of it; labels beside the outermost boxes need room, too.
  function wholeZoom(g: Graph): number {
    const { width, height } = size.current;
    const besides = (asked.left === "none" ? 0 : labelRoom) + (asked.right === "none" ? 0 : labelRoom);
    return Math.min((width - 30) / Math.max(g.w + besides, 1), (height - 40) / Math.max(g.h, 1));
  }
  function fit(): void {
    const { width, height } = size.current;
    if (!shown || !width || !height) return;
    const zoom = Math.max(0.1, Math.min(largestZoom, wholeZoom(shown)));
    const [left, right] = [asked.left === "none" ? 0 : labelRoom, asked.right === "none" ? 0 : labelRoom];
    setView({ zoom, x: (shown.w + right - left - width / zoom) / 2, y: (shown.h - height / zoom) / 2 });
  }
  // All of it when names stay legible, else what is selected, else the place where the hottest path parts.
  function lookAtHottest(g: Graph, selected: GraphBox | undefined): void {
    const { width, height } = size.current;
    if (!width || !height) return;
    if (wholeZoom(g) >= legibleZoom) {
      fit();
      return;
    }
    const seen = new Set<number>();
    let at = 0;
    for (;;) {
      seen.add(at);
      const out = g.arcs.filter((a) => a.from === at && !a.back && !seen.has(a.to)).sort((a, b) => b.share - a.share);
      if (!out[0] || out[0].share < hotShare) break;
      at = out[0].to;
      if (out.length > 1 && out[0].share < partingShare) break;
    }
    const b = selected ?? g.boxes[at];
    if (!b) return;
    // Not more of what is beside the graph than its margins.
    const within = (at: number, from: number, to: number): number => (to < from ? (from + to) / 2 : Math.max(from, Math.min(at, to)));
    const x = within(b.x + b.w / 2 - width / 2, -margin - (asked.left === "none" ? 0 : labelRoom), g.w + labelRoom + margin - width);
    setView({ zoom: 1, x, y: within(b.y + b.h / 2 - height / 2, -margin, g.h + margin - height) });
  }
  // The frame is held where it was taken; a click beside it brings its middle there.
  function grabFrame(x: number, y: number): void {
    const o = overview.current;
    if (!o) return;
    const { width, height } = size.current;
    const [halfWidth, halfHeight] = [width / 2 / view.zoom, height / 2 / view.zoom];
    const held = { x: (view.x + halfWidth - o.x) * o.zoom - x, y: (view.y + halfHeight - o.y) * o.zoom - y };
    const isWithin = Math.abs(held.x) <= halfWidth * o.zoom && Math.abs(held.y) <= halfHeight * o.zoom;
    frame.current = isWithin ? held : { x: 0, y: 0 };
  }
  function moveFrame(x: number, y: number): void {
    const o = overview.current;
    if (!o) return;
    const [toX, toY] = [x + frame.current.x, y + frame.current.y];
    setView({ ...view, x: o.x + toX / o.zoom - size.current.width / 2 / view.zoom, y: o.y + toY / o.zoom - size.current.height / 2 / view.zoom });
  }
  function onMove(x: number, y: number): void {
    const d = drag.current;
    if (!shown) return;
    if (!d) {
      const i = boxAt(shown, view, x, y);
      hover(i < 0 ? "" : describe(shown, shown.boxes[i]!, meta));
      return;
    }
    if (!d.isMoved && Math.abs(x - d.x) + Math.abs(y - d.y) < 4) return;
    d.isMoved = true;
    const [dx, dy] = [(x - d.x) / view.zoom, (y - d.y) / view.zoom];
    const b = answer.value?.boxes[d.box];
    if (b) setMoved(new Map(moved).set(b.routine, { x: (moved.get(b.routine)?.x ?? b.x) + dx, y: (moved.get(b.routine)?.y ?? b.y) + dy }));
    else setView({ ...d.view, x: d.view.x - dx, y: d.view.y - dy });
    if (b) Object.assign(d, { x, y });
  }
  function onUp(x: number, y: number): void {
    const d = drag.current;
    drag.current = undefined;
    if (!d || d.isMoved || !shown) return;
    const b = shown.boxes[boxAt(shown, view, x, y)];
    if (!b) return;
    const onArrow = b.state !== "leaf" && x > (b.x + b.w - 18 - view.x) * view.zoom;
    if (onArrow) set(step(asked, b, keyOf(b), b.state === "open" ? -1 : 1));
    change({ selected: b.name, image: b.image ?? "" });
  }
}
