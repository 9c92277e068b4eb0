// SPDX-License-Identifier: MIT
// The page: what is asked about at the top, what was lost below it, functions at the left, a pane, the
// detail at the right, and what is under the pointer at the bottom.
import { render, type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Answers, type Meta, unitOfPlaces } from "./answers";
import { CallersPane } from "./callers";
import { ComparedStrip, nextShow, ShowSwitch, WhichTrace } from "./compared";
import { DetailPane } from "./detail";
import { isCompared } from "./difference";
import { FlamePane } from "./flame";
import type { Keys } from "./engine";
import { human, percent } from "./format";
import { FunctionsPane } from "./functions";
import { GraphPane } from "./graph";
import { Help } from "./help";
import { ListPane } from "./lists";
import "./page.css";
import { Empty } from "./parts";
import { Divider } from "./divider";
import { copyText, Save, savePng } from "./save";
import { useSearch } from "./search";
import { type paneIds, selection, transformOf, widthsOf } from "./state";
import { change, current, setPair, useAnswer, useAppState, useHover } from "./store";
import { SourcePane } from "./source";
import { Strip } from "./strip";
import { Working } from "./working";
import { TimelinePane } from "./timeline";

const panes: [id: (typeof paneIds)[number], name: string][] = [
  ["flame", "Flame graph"],
  ["graph", "Call graph"],
  ["callers", "Bottom-up"],
  ["timeline", "Timeline"],
  ["source", "Source"],
  ["threads", "Threads"],
  ["modules", "Modules"],
  ["hooks", "Hooks"],
  ["probes", "Output"],
];

function Pane({ meta }: { meta: Meta }) {
  const state = useAppState();
  switch (state.pane) {
    case "graph":
      return <GraphPane meta={meta} />;
    case "callers":
      return <CallersPane meta={meta} />;
    case "timeline":
      return <TimelinePane meta={meta} />;
    case "source":
      return <SourcePane meta={meta} />;
    case "threads":
    case "modules":
    case "hooks":
    case "probes":
      return <ListPane which={state.pane} meta={meta} />;
    default:
      return <FlamePane meta={meta} />;
  }
}

function HoverStrip() {
  const text = useHover();
  return (
    <footer class="hover" aria-live="off" title={text}>
      {text || "Point at something to read it here; ? shows the keys."}
    </footer>
  );
}

function toggleTheme(): void {
  const root = document.documentElement;
  const isDark = getComputedStyle(root).getPropertyValue("--is-dark").trim() === "1";
  root.dataset.theme = isDark ? "light" : "dark";
  dispatchEvent(new Event("weir-theme"));
}

// How many functions the search means, and their part of the whole.
function Found() {
  const search = useSearch();
  if (!current().search) return null;
  const a = search.answer;
  return (
    <span class="found" role="status" title="functions that match; their part of the whole with all that they call">
      {search.error || (a ? `${a.matches} match, ${percent(a.cum, a.total)}` : "…")}
    </span>
  );
}

// The next function that the search means, by what it used itself.
function nextMatch(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".functions .rows .row")];
  const at = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
  rows[at < 0 ? 0 : (at + by + rows.length) % rows.length]?.click();
}

function Transforms() {
  const state = useAppState();
  if (!state.transforms.length) return null;
  return (
    <nav class="transforms" aria-label="Transforms">
      <button onClick={() => change({ transforms: [] })}>All</button>
      {state.transforms.map((t, i) => (
        <span key={i}>
          {" › "}
          <button title="back to here" onClick={() => change({ transforms: state.transforms.slice(0, i + 1) })}>
            {t}
          </button>
          <button aria-label={`take ${t} away`} onClick={() => change({ transforms: state.transforms.filter((_, k) => k !== i) })}>
            ×
          </button>
        </span>
      ))}
    </nav>
  );
}

function Top({ meta, search, showHelp }: { meta: Meta; search: RefObject<HTMLInputElement | null>; showHelp: () => void }) {
  const state = useAppState();
  const command = meta.facts.command ?? meta.facts.pids ?? meta.trace;
  const of = meta.time ? "" : ` ${meta.total === 1 ? meta.metric.replace(/s$/, "") : meta.metric}`;
  const facts = `${human(meta.total, meta.unit)}${of}${meta.facts.wall_ns ? ` in ${human(Number(meta.facts.wall_ns), "ns")}` : ""}`;
  return (
    <header class="top">
      <h1 title={command}>{command}</h1>
      <span class="facts" title={facts}>
        {facts}
      </span>
      <ShowSwitch meta={meta} />
      <label>
        Metric{" "}
        <select value={meta.metric} onChange={(e) => change({ metric: e.currentTarget.value })}>
          {[...new Set([meta.metric, ...meta.metrics.map((m) => m.name)])].map((m) => (
            <option key={m}>{m}</option>
          ))}
        </select>
      </label>
      {state.thread && (
        <span class="chip">
          Thread {state.thread}{" "}
          <button aria-label="all threads" onClick={() => change({ thread: "" })}>
            ×
          </button>
        </span>
      )}
      {(state.from || state.to) && (
        <span class="chip">
          {human(Number(state.from || 0), unitOfPlaces(meta))} to {state.to ? human(Number(state.to), unitOfPlaces(meta)) : "the end"}{" "}
          {meta.has.timeless && <b>sums of the whole run: they have no times</b>}
          <button aria-label="all of the time" onClick={() => change({ from: "", to: "" })}>
            ×
          </button>
        </span>
      )}
      <input
        ref={search}
        type="search"
        placeholder="Search functions  ( / )"
        aria-label="Search functions"
        value={state.search}
        onInput={(e) => change({ search: e.currentTarget.value }, true)}
        onKeyDown={(e) => {
          if (e.key === "Escape") change({ search: "" });
          if (e.key === "Enter") nextMatch(e.shiftKey ? -1 : 1);
          if (e.key === "ArrowDown") document.querySelector<HTMLElement>(".functions .rows")?.focus();
          e.stopPropagation();
        }}
      />
      <Found />
      <button onClick={toggleTheme} aria-label="dark or light">
        ◐
      </button>
      <button onClick={showHelp} aria-label="keys">
        ?
      </button>
    </header>
  );
}

function usePageKeys(meta: Meta | undefined, search: RefObject<HTMLInputElement | null>, showHelp: () => void): void {
  useEffect(() => {
    const onKey = (e: KeyboardEvent): void => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement) return;
      const state = current();
      const add = (kind: string) => () => {
        if (state.selected) change({ transforms: [...state.transforms, transformOf(kind, state.selected)] });
      };
      const keys: Record<string, () => void> = {
        "?": showHelp,
        "/": () => search.current?.focus(),
        f: add("focus"),
        o: add("fold"),
        d: add("drop"),
        r: () => change({ transforms: [...state.transforms, "merge-recursion"] }),
        u: () => change({ transforms: state.transforms.slice(0, -1) }),
        t: toggleTheme,
        b: () => (meta?.traces.length ?? 0) > 1 && nextShow(),
        s: () => void savePng(),
        c: () => void copyText(state.selected),
        m: () => {
          const names = meta?.metrics.map((m) => m.name) ?? [];
          if (names.length) change({ metric: names[(names.indexOf(meta!.metric) + 1) % names.length]! });
        },
      };
      const pane = panes[Number(e.key) - 1];
      if (pane) change({ pane: pane[0] });
      else if (keys[e.key]) keys[e.key]!();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

// A transform may mean a function of the older trace alone: that is to be compared, too.
async function metaOfBoth(a: Answers, keys: Keys, failure: unknown): Promise<Meta> {
  const meta = keys.transform && !keys.trace ? await a.meta({ ...keys, transform: "" }) : undefined;
  if (meta?.traces.length !== 2) throw failure;
  await a.diffFunctions(keys);
  return meta;
}

function Page() {
  const state = useAppState();
  const [isHelp, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const keys = selection(state);
  const answer = useAnswer(JSON.stringify(keys), (a) => a.meta(keys).catch((e: unknown) => metaOfBoth(a, keys, e)));
  const meta = answer.value;
  const last = useRef<Meta | undefined>(undefined);
  if (meta) last.current = meta;
  if (meta) setPair(meta.traces.length > 1);
  usePageKeys(meta, search, () => setHelp(true));

  // Figures of the last selection stay until those of the new one are there, and look like it.
  useEffect(() => void document.getElementById("page")!.classList.toggle("old", answer.isOld), [answer.isOld]);
  useEffect(() => {
    if (meta) document.title = `weir: ${meta.facts.command ?? meta.trace}`;
  }, [meta]);
  if (answer.error)
    return (
      <main class="failed">
        <Empty>{answer.error}</Empty>
        {state.transforms.length > 0 && <button onClick={() => change({ transforms: state.transforms.slice(0, -1) })}>Take the last transform back</button>}
        {location.hash.length > 1 && <button onClick={() => change({ transforms: [], metric: "", thread: "", from: "", to: "" })}>Show all</button>}
      </main>
    );
  if (!meta && !last.current) return <Working isFirst />;
  const shown = meta ?? last.current!;
  const [left, right] = widthsOf(state);
  return (
    <>
      <Top meta={shown} search={search} showHelp={() => setHelp(true)} />
      <ComparedStrip meta={shown} />
      <Strip meta={shown} />
      <Transforms />
      <main style={{ gridTemplateColumns: `${left ? `${left}px` : isCompared(shown, state) ? "minmax(340px, 40%)" : `clamp(300px, ${shown.has.calls ? 37.5 : 35}%, 900px)`} 6px minmax(0, 1fr) 6px ${right ? `${right}px` : isCompared(shown, state) ? "minmax(220px, 23%)" : "clamp(200px, 20%, 560px)"}` }}>
        <FunctionsPane meta={shown} />
        <Divider which={0} label="width of the functions" measured={(d) => (d.previousElementSibling as HTMLElement).offsetWidth} />
        <div class="tabs">
          <div role="tablist" aria-label="Panes">
            {panes.map(([id, name], i) => (
              <button key={id} role="tab" aria-selected={state.pane === id} title={`key ${i + 1}`} onClick={() => change({ pane: id })}>
                {name}
              </button>
            ))}
          </div>
          <Save meta={shown} />
        </div>
        <section class="pane-body" role="tabpanel" aria-label={state.pane}>
          {state.pane !== "flame" && state.pane !== "graph" && <WhichTrace meta={shown} />}
          <Pane meta={shown} />
        </section>
        <Divider which={1} label="width of the detail" isReverse measured={(d) => (d.nextElementSibling as HTMLElement).offsetWidth} />
        <aside>
          <DetailPane meta={shown} />
        </aside>
      </main>
      <HoverStrip />
      <Working />
      {isHelp && <Help close={() => setHelp(false)} />}
    </>
  );
}

render(<Page />, document.getElementById("page")!);
