// SPDX-License-Identifier: MIT
// What happened when: all threads by how busy they were, and below them the calls and samples of one of
// them together. Dragging selects a stretch of time, for all panes; the wheel moves what is looked at of it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Meta, type Timeline, unitOfPlaces } from "./answers";
import { Canvas } from "./canvas";
import { whyEmpty } from "./empty_words";
import type { Keys } from "./engine";
import { charWidthOf, monospace, type Surface } from "./flame_draw";
import { count, fitted, human, shorten } from "./format";
import { Empty } from "./parts";
import { useSearch } from "./search";
import { selection } from "./state";
import { change, hover, useAnswer, useAppState } from "./store";
import { columns, covers, isAll, type Look, moved, toAsk, zoomed } from "./timeline_look";
import { drawSteps, drawWaits, hasSteps, rowsInWords, stepAt, stepHeight, waitAt, waitHeight } from "./timeline_rows";

const labelWidth = 150;
const laneHeight = 22;
const spanHeight = 17;
const sampleHeight = 34;
const labelChars = 22;
const maxLanes = 12;

interface Place {
  look: Look;
  x: (time: number) => number; // what is not looked at is at the edge
  time: (x: number) => number;
  lanesBottom: number;
  samplesTop: number;
  waitsTop: number;
  stepsTop: number;
  callsTop: number;
}

// Rows are those of all of the time, so that they stay where they are.
function placeOf(t: Timeline, look: Look, width: number): Place {
  const right = labelWidth + Math.max(1, width - labelWidth - 8);
  const scale = (right - labelWidth) / Math.max(look.to - look.from, 1);
  const lanesBottom = 20 + Math.min(t.threads.length, maxLanes) * laneHeight;
  const samplesTop = lanesBottom + 26;
  const waitsTop = samplesTop + (t.sampleTime.length ? sampleHeight + 6 : 0);
  const stepsTop = waitsTop + (t.waitFrom.length ? waitHeight + 6 : 0);
  const callsTop = stepsTop + (hasSteps(t) ? stepHeight + 6 : 0);
  const x = (time: number): number => Math.max(labelWidth, Math.min(right, labelWidth + (time - look.from) * scale));
  return { look, x, time: (at) => look.from + (at - labelWidth) / scale, lanesBottom, samplesTop, waitsTop, stepsTop, callsTop };
}

function drawScale(s: Surface, p: Place, unit: string): void {
  const { from, to } = p.look;
  const span = to - from;
  const rough = span / Math.max(2, (s.width - labelWidth) / 110);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((v) => v >= rough) ?? power * 10;
  s.c.font = "11px system-ui, sans-serif";
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    const x = Math.round(p.x(time)) + 0.5;
    s.c.strokeStyle = s.colours.line;
    s.c.globalAlpha = 0.35;
    s.c.beginPath();
    s.c.moveTo(x, 16);
    s.c.lineTo(x, s.height);
    s.c.stroke();
    s.c.globalAlpha = 1;
    s.c.fillStyle = s.colours.faint;
    const words = human(time, unit);
    if (x + 3 + s.c.measureText(words).width < s.width) s.c.fillText(words, x + 3, 12);
  }
}

// The busiest threads, in order of their ids: as many as have a lane.
function lanesOf(t: Timeline): string[] {
  const sums = t.threads.map((_, i) => t.busy.subarray(i * t.columns, (i + 1) * t.columns).reduce((sum, n) => sum + n, 0));
  const order = [...sums.keys()].sort((a, b) => sums[b]! - sums[a]! || a - b);
  return order
    .slice(0, maxLanes)
    .sort((a, b) => a - b)
    .map((i) => t.threads[i]!.id);
}

function drawLanes(s: Surface, t: Timeline, p: Place, lanes: string[]): void {
  const ns = (t.to - t.from) / t.columns;
  const first = Math.max(0, Math.floor((p.look.from - t.from) / ns));
  const last = Math.min(t.columns, Math.ceil((p.look.to - t.from) / ns));
  const numbers = new Map(t.threads.map((thread, i) => [thread.id, i]));
  for (const [lane, id] of lanes.entries()) {
    const i = numbers.get(id);
    if (i === undefined) continue;
    const y = 20 + lane * laneHeight;
    const busy = t.busy.subarray(i * t.columns, (i + 1) * t.columns);
    let most = 1;
    for (const n of busy) if (n > most) most = n;
    s.c.fillStyle = id === t.thread ? s.colours.accent : s.colours.text;
    s.c.font = "12px system-ui, sans-serif";
    s.c.fillText(shorten(`${id} ${t.threads[i]!.name}`, labelChars), 6, y + 15);
    s.c.fillStyle = s.colours.accent;
    for (let k = first; k < last; k++) {
      const h = (busy[k]! / most) * (laneHeight - 5);
      const x = p.x(t.from + k * ns);
      if (h > 0) s.c.fillRect(x, y + laneHeight - 3 - h, Math.max(p.x(t.from + (k + 1) * ns) - x, 0.8), h);
    }
  }
}

function drawSamples(s: Surface, t: Timeline, p: Place): void {
  let most = 1;
  for (const n of t.sampleN) if (n > most) most = n;
  s.c.fillStyle = s.colours.text;
  s.c.fillText("samples", 6, p.samplesTop + 20);
  for (let i = 0; i < t.sampleTime.length; i++) {
    if (t.sampleTime[i]! < p.look.from || t.sampleTime[i]! > p.look.to) continue;
    const h = 6 + (t.sampleN[i]! / most) * (sampleHeight - 8);
    const x = p.x(t.sampleTime[i]!);
    s.c.fillStyle = s.colours.fill(t.names[t.sampleName[i]!] ?? "", 1);
    s.c.fillRect(x, p.samplesTop + sampleHeight - h, 2, h);
    if (s.colours.hatch) {
      s.c.fillStyle = s.colours.hatch;
      s.c.fillRect(x, p.samplesTop + sampleHeight - h, 2, h);
    }
  }
}

function drawSpans(s: Surface, t: Timeline, p: Place, matches: ((name: string) => boolean) | undefined, selected: string): void {
  const top = p.callsTop;
  s.c.fillStyle = s.colours.text;
  s.c.font = "12px system-ui, sans-serif";
  if (t.spanFrom.length) s.c.fillText("calls", 6, top + 13);
  const charWidth = charWidthOf(s.c);
  s.c.font = `12px ${monospace}`;
  for (let i = 0; i < t.spanFrom.length; i++) {
    if (t.spanTo[i]! < p.look.from || t.spanFrom[i]! > p.look.to) continue;
    const [x, right] = [p.x(t.spanFrom[i]!), p.x(t.spanTo[i]!)];
    const y = top + t.spanRow[i]! * spanHeight;
    const name = t.names[t.spanName[i]!] ?? "";
    if (y > s.height) continue;
    s.c.globalAlpha = matches && !matches(name) ? 0.35 : 1;
    s.c.fillStyle = t.spanN[i]! > 1 ? s.colours.speck : s.colours.fill(name, 1);
    s.c.fillRect(x, y, Math.max(right - x - 0.5, 0.8), spanHeight - 1);
    if (name === selected && right - x < 4) {
      s.c.fillStyle = s.colours.accent;
      s.c.fillRect(x, y + spanHeight - 3, Math.max(right - x - 0.5, 0.8), 2);
    } else if (name === selected) {
      s.c.strokeStyle = s.colours.accent;
      s.c.strokeRect(x + 0.5, y + 0.5, Math.max(right - x - 1, 1), spanHeight - 2);
    }
    s.c.globalAlpha = 1;
    const chars = Math.floor((right - x - 6) / charWidth);
    if (chars < 3 || t.spanN[i]! > 1) continue;
    s.c.fillStyle = s.colours.text;
    s.c.fillText(fitted(s.c, name, chars, chars * charWidth), x + 3, y + spanHeight - 5);
  }
}

// What a script printed, or a map at the end.
interface Said {
  kind: string;
  time: number | null;
  text: string;
}

function drawSaid(s: Surface, p: Place, marks: Said[]): void {
  s.c.fillStyle = s.colours.accent;
  let last = -Infinity; // where one was drawn: of many at one place one is seen
  for (const mark of marks) {
    if (mark.time! < p.look.from || mark.time! > p.look.to) continue;
    const x = p.x(mark.time!);
    if (Math.abs(x - last) < 1) continue;
    last = x;
    s.c.beginPath();
    s.c.moveTo(x - 4, p.lanesBottom + 4);
    s.c.lineTo(x + 4, p.lanesBottom + 4);
    s.c.lineTo(x, p.lanesBottom + 12);
    s.c.closePath();
    s.c.fill();
  }
  s.c.fillStyle = s.colours.text;
  s.c.font = "12px system-ui, sans-serif";
  if (marks.length) s.c.fillText("script's lines", 6, p.lanesBottom + 13);
}

function saidAt(p: Place, marks: Said[], x: number, y: number): Said | undefined {
  if (y < p.lanesBottom || y > p.lanesBottom + 16) return undefined;
  return marks.find((m) => Math.abs(p.x(m.time!) - x) < 5);
}

function spanAt(t: Timeline, p: Place, x: number, y: number): number {
  const top = p.callsTop;
  const row = Math.floor((y - top) / spanHeight);
  if (y < top) return -1;
  for (let i = 0; i < t.spanFrom.length; i++)
    if (t.spanRow[i] === row && p.x(t.spanFrom[i]!) <= x && x <= Math.max(p.x(t.spanTo[i]!), p.x(t.spanFrom[i]!) + 1)) return i;
  return -1;
}

function sampleAt(t: Timeline, p: Place, x: number, y: number): number {
  if (y < p.samplesTop || y > p.samplesTop + sampleHeight) return -1;
  let best = -1;
  for (let i = 0; i < t.sampleTime.length; i++)
    if (Math.abs(p.x(t.sampleTime[i]!) - x) < 4 && (best < 0 || Math.abs(p.x(t.sampleTime[i]!) - x) < Math.abs(p.x(t.sampleTime[best]!) - x))) best = i;
  return best;
}

// A finer picture of what is looked at, once nobody moves it.
function useFine(keys: Keys, all: Timeline | undefined, look: Look | undefined): Timeline | undefined {
  const of = JSON.stringify(keys);
  const [last, ask] = useState<(Look & { columns: number; of: string }) | undefined>(undefined);
  const asked = last?.of === of ? last : undefined;
  const answer = useAnswer(`${of}${JSON.stringify(asked)}`, async (a) => asked && { of, picture: await a.timeline({ ...keys, columns: asked.columns, "look-from": asked.from, "look-to": asked.to }) });
  const fine = answer.value?.of === of ? answer.value.picture : undefined;

  useEffect(() => {
    if (!all || !look || covers(all, look, true) || (asked && (answer.isOld || covers(asked, look, true)))) return;
    const wait = setTimeout(() => ask({ ...toAsk(look, all), of }), 150);
    return () => clearTimeout(wait);
  }, [all, look, asked, answer.isOld]);
  return fine;
}

export function TimelinePane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const unit = unitOfPlaces(meta);
  const keys = selection({ ...state, transforms: [] });
  const key = JSON.stringify(keys);
  const answer = useAnswer(key, (a) => a.timeline({ ...keys, columns }));
  const [looked, setLook] = useState<(Look & { key: string }) | undefined>(undefined);
  const search = useSearch();
  const said = useAnswer(`probes${state.metric}`, (a) => a.report<Said>("probes", { metric: state.metric }));
  const marks = (said.value?.rows ?? []).filter((r) => r.kind === "line" && r.time !== null);
  const width = useRef(800);
  const [drag, setDrag] = useState<{ from: number; to: number } | undefined>(undefined);
  const all = answer.value;
  const look: Look | undefined = looked?.key === key ? looked : all;
  const fine = useFine(keys, answer.isOld ? undefined : all, look);
  const lanes = useMemo(() => (all ? lanesOf(all) : []), [all]);
  const t = fine && look && covers(fine, look, false) ? fine : all;

  if (answer.error) return <Empty>{answer.error}</Empty>;
  if (!t || !all || !look) return <Empty>…</Empty>;
  if (!t.threads.length && (state.from || state.to))
    return (
      <Empty>
        Nothing was seen in this stretch of time. <button onClick={() => change({ from: "", to: "" })}>All of the time</button>
      </Empty>
    );
  if (!t.threads.length && !meta.total && !meta.has.timeless) return <Empty>{whyEmpty(meta, state)}</Empty>;
  if (!t.threads.length) return <Empty>Nothing in this trace has a time: counts, trees that were kept in the program (--tree) and imported stacks are sums. 'weir record' without --tree keeps the time of each sample and call.</Empty>;
  const lookAt = (to: Look): void => setLook(isAll(to, all) ? undefined : { ...to, key });
  const threadAt = (y: number) => {
    const id = lanes[Math.floor((y - 20) / laneHeight)];
    return all.threads.find((thread) => thread.id === id);
  };
  const describe = (x: number, y: number): string => {
    const p = placeOf(all, look, width.current);
    const at = `at ${human(Math.max(0, p.time(x)), unit)}`;
    const span = spanAt(t, p, x, y);
    if (span >= 0) {
      const n = t.spanN[span]!;
      return `${t.names[t.spanName[span]!]}${n > 1 ? ` and ${n - 1} more short calls` : ""}  ·  ${human(t.spanTo[span]! - t.spanFrom[span]!, unit)}  ·  ${at}`;
    }
    const sample = sampleAt(t, p, x, y);
    if (sample >= 0) return `${t.names[t.sampleName[sample]!]}${t.sampleN[sample]! > 1 ? ` and ${t.sampleN[sample]! - 1} more samples` : ""}  ·  ${at}`;
    if (all.waitFrom.length && y >= p.waitsTop && y < p.waitsTop + waitHeight) return `${waitAt(t, p.x, x) || "on the CPU, or not seen"}  ·  ${at}`;
    if (hasSteps(all) && y >= p.stepsTop && y < p.stepsTop + stepHeight) return `${stepAt(t, p.x, x) || "no instruction was traced"}  ·  ${at}`;
    const line = saidAt(p, marks, x, y);
    if (line) return `${line.text.trim()}  ·  printed at ${human(line.time, "ns")}`;
    const thread = threadAt(y);
    return thread ? `${thread.id} ${thread.name}  ·  ${at}` : at;
  };
  const zoom = (factor: number): void => {
    const middle = (look.from + look.to) / 2;
    const half = ((look.to - look.from) / 2) * factor;
    change({ from: String(Math.max(0, Math.round(middle - half))), to: String(Math.round(middle + half)) });
  };
  const showAll = (): void => {
    setLook(undefined);
    change({ from: "", to: "" });
  };
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="controls">
        <button onClick={() => zoom(0.5)}>Zoom in</button>
        <button onClick={() => zoom(2)}>Zoom out</button>
        <button disabled={!state.from && !state.to && isAll(look, all)} onClick={showAll}>
          All of the time
        </button>
        <button disabled={isAll(look, all)} onClick={() => change({ from: String(Math.round(look.from)), to: String(Math.round(look.to)) })}>
          This time in all panes
        </button>
        <label>
          Thread{" "}
          <select value={state.thread || t.thread} onChange={(e) => change({ thread: e.currentTarget.value })}>
            {t.threads.map((thread) => (
              <option key={thread.id} value={thread.id}>
                {thread.id} {thread.name}
              </option>
            ))}
          </select>
        </label>
        <span class="said" role="status">
          {t.threads.length > maxLanes ? `${t.threads.length - maxLanes} threads that are less busy are not drawn: choose one above; ` : ""}
          {rowsInWords(t).map((words) => `${words}; `)}
          {t.tooDeep ? `${count(t.tooDeep)} calls are too deep to be drawn; ` : ""}
          {unit === "ns" ? "" : "imported stacks have no time: they lie in the order of their lines; "}
          drag over a stretch {unit === "ns" ? "of time " : ""}to see it alone in all panes; the wheel moves, with Ctrl it zooms
        </span>
      </div>
      <Canvas
        label={`Timeline of ${t.threads.length} threads; plus and minus zoom, arrow keys move`}
        onSize={(w) => {
          width.current = w;
        }}
        draw={(s) => {
          const p = placeOf(all, look, s.width);
          width.current = s.width;
          s.c.fillStyle = s.colours.background;
          s.c.fillRect(0, 0, s.width, s.height);
          drawScale(s, p, unit);
          drawLanes(s, t, p, lanes);
          if (all.sampleTime.length) drawSamples(s, t, p);
          if (all.waitFrom.length) drawWaits(s, t, p, p.waitsTop);
          if (hasSteps(all)) drawSteps(s, t, p, p.stepsTop);
          drawSaid(s, p, marks);
          drawSpans(s, t, p, search.test, state.selected);
          if (drag) {
            s.c.globalAlpha = 0.25;
            s.c.fillStyle = s.colours.accent;
            s.c.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), s.height);
            s.c.globalAlpha = 1;
          }
        }}
        onPointerDown={(e, x) => {
          (e.target as Element).setPointerCapture(e.pointerId);
          setDrag({ from: x, to: x });
        }}
        onPointerMove={(_, x, y) => {
          if (drag) setDrag({ ...drag, to: x });
          hover(describe(x, y));
        }}
        onPointerUp={(_, x, y) => {
          const d = drag;
          setDrag(undefined);
          if (!d) return;
          const p = placeOf(all, look, width.current);
          if (Math.abs(x - d.from) > 4) {
            const [from, to] = [p.time(Math.min(x, d.from)), p.time(Math.max(x, d.from))];
            change({ from: String(Math.max(0, Math.round(from))), to: String(Math.round(to)) });
            return;
          }
          const span = spanAt(t, p, x, y);
          const sample = sampleAt(t, p, x, y);
          if (span >= 0) change({ selected: t.names[t.spanName[span]!]! });
          else if (sample >= 0) change({ selected: t.names[t.sampleName[sample]!]! });
          else {
            const thread = threadAt(y);
            if (x < labelWidth && thread) change({ thread: thread.id });
          }
        }}
        onPointerLeave={() => hover("")}
        onWheel={(e, x) => {
          e.preventDefault();
          const p = placeOf(all, look, width.current);
          if (e.ctrlKey || e.metaKey) lookAt(zoomed(look, Math.exp(e.deltaY / 200), p.time(x), all));
          else lookAt(moved(look, p.time(e.deltaX || e.deltaY) - p.time(0), all));
        }}
        onKeyDown={(e) => {
          const span = look.to - look.from;
          const move = (by: number): void => change({ from: String(Math.max(0, Math.round(look.from + by))), to: String(Math.round(look.to + by)) });
          const steps: Record<string, () => void> = { "+": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-span / 4), ArrowRight: () => move(span / 4), Escape: showAll };
          if (!steps[e.key]) return;
          e.preventDefault();
          e.stopPropagation();
          steps[e.key]!();
        }}
      />
    </section>
  );
}
