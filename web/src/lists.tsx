// SPDX-License-Identifier: MIT
// Reports that are lists, as they are: threads, modules, hooks, what a script printed.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { FlatRow, Meta } from "./answers";
import { whyEmpty } from "./empty_words";
import { count, human } from "./format";
import { Empty, Sure } from "./parts";
import { selection, type State } from "./state";
import { change, useAnswer, useAppState } from "./store";

type Row = Record<string, unknown>;

const mostRows = 2000; // at once

interface List {
  kind: string;
  empty: string | ((meta: Meta, state: State) => string);
  needs?: keyof Meta["has"]; // without it there is no such report to ask for
  note?: string; // what it tells, above it
  columns: [head: string, value: (row: Row, meta: Meta) => ComponentChildren, kind?: "number" | "words" | "long", key?: string][]; // `key`: without it in any row there is no such column
  pick?: (row: Row) => void;
}

const text = (value: unknown): string => (value === null || value === undefined || value === "" ? "." : String(value));
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

const stateText = (row: Row): string => {
  const state = (row.state ?? {}) as Record<string, boolean>;
  const words = [state.at_start ? "at start" : "", state.loaded ? "loaded" : "", state.unloaded ? "unloaded" : ""].filter(Boolean);
  return words.length ? words.join(", ") : ".";
};

// Imported stacks may have no thread, or a number alone.
const threadText = (row: Row): string => (typeof row.tid !== "number" ? "not said" : typeof row.pid !== "number" ? String(row.tid) : `${row.pid}_${row.tid}`);

// What stands for it in the tree.
const rootName = (row: Row): string => `${number(row.pid) ?? "pid"}_${number(row.tid) ?? "tid"}`;

// The ladder on which the symbols of a module are verified, from the lowest rung up.
const rungs = ["none", "segments", "path", "checksum", "build-id"];
const rungWords: Record<string, string> = {
  none: "no symbols were found, its functions are places in the file",
  segments: "a file elsewhere with equal segments",
  path: "the file at the same path, with segments of equal size",
  checksum: "size, time stamp and segments, or a checksum, are equal",
  "build-id": "the very file that ran",
};

export function Rung({ match, isUsed }: { match: unknown; isUsed: boolean }) {
  const rung = rungs.indexOf(String(match ?? ""));
  if (rung < 0) return <span class="rung">{isUsed ? "not said by the trace" : "not needed: nothing was seen in it"}</span>;
  return (
    <span class={rung >= 3 ? "rung" : "rung weak"}>
      <b>
        <span aria-hidden="true">{"■".repeat(rung) + "□".repeat(4 - rung)}</span> {rungs[rung]}, {rung} of 4:
      </b>{" "}
      {rungWords[rungs[rung]!]}
    </span>
  );
}

// The build-id stands at the module.
const reasonText = (row: Row): string => text(row.reason).replace(`, build-id ${text(row.build_id)}`, "");
const isUsed = (row: Row): boolean => ((row.state ?? {}) as Record<string, boolean>).used !== false;

export const lists: Record<string, List> = {
  threads: {
    kind: "threads",
    empty: whyEmpty,
    note: "A click on a thread shows it alone in all panes.",
    columns: [
      ["Thread", threadText],
      ["Name", (r) => text(r.name)],
      ["Used", (r, meta) => <><Sure exact={r.exact === true} /> {human(number(r.base), meta.unit)}</>, "number"],
      ["Samples", (r) => count(number(r.samples)), "number"],
      ["Events", (r) => count(number(r.events)), "number"],
      ["Switches", (r) => count(number(r.switches)), "number"],
    ],
    pick: (row) => change({ thread: typeof row.tid === "number" ? threadText(row) : "" }),
  },
  modules: {
    kind: "modules",
    empty: (meta) =>
      meta.facts.mode === "import"
        ? "The trace has no modules: what was imported has names without files. 'weir record' keeps the files that a program maps."
        : meta.loss.cut
          ? "The part of the trace that has the modules is missing."
          : "The trace has no modules: it keeps files of a program in which something was seen, and nothing was.",
    note: "How sure it is that names come from the file that ran: its symbols stand on a rung of a ladder, of which a build-id is the highest.",
    columns: [
      ["Module", (r) => <>{text(r.path)}{r.build_id ? <small>build-id {text(r.build_id)}</small> : null}</>, "long"],
      ["Symbols verified by", (r) => <><Rung match={r.match} isUsed={isUsed(r)} />{r.reason ? <small>{reasonText(r)}</small> : null}</>, "long"],
      ["Symbols", (r) => count(number(r.symbols)), "number"],
      ["State", stateText, "words"],
    ],
  },
  hooks: {
    kind: "hooks",
    needs: "hooks",
    empty: (meta) =>
      meta.loss.cut && meta.has.calls
        ? "The part of the trace that says which functions were hooked is missing."
        : "No functions were hooked. 'weir record --functions NAMES' follows every call of those that you name.",
    note: "Functions of which every call was followed, or why one could not be. Min and Max are the cheapest and the dearest call, with all it called.",
    columns: [
      ["Function", (r) => text(r.function)],
      ["Hits", (r) => count(number(r.hits)), "number"],
      ["Min", (r, meta) => human(number(r.min), meta.unit), "number"],
      ["Max", (r, meta) => human(number(r.max), meta.unit), "number"],
      ["Method", (r) => text(r.method)],
      ["Reason", (r) => text(r.reason), "long", "reason"],
      ["Image", (r) => text(r.image), "long"],
    ],
    pick: (row) => change({ selected: text(row.function), image: typeof row.image === "string" ? row.image : "" }),
  },
  probes: {
    kind: "probes",
    empty: "No script ran beside the recording. 'weir record --probe SCRIPT' does that.",
    columns: [
      ["Time", (r) => human(number(r.time), "ns"), "number"],
      ["Process", (r) => text(r.pid)],
      ["Said", (r) => text(r.text ?? r.name ?? r.value), "long"],
    ],
  },
};

export function ListPane({ which, meta }: { which: string; meta: Meta }) {
  const state = useAppState();
  const list = lists[which]!;
  const [shown, setShown] = useState(mostRows);
  const keys = selection(state);
  // Whole traces have modules, hooks and probes, whatever was folded.
  const asked = which === "threads" ? { ...keys, thread: "" } : { metric: keys.metric };
  const isThere = !list.needs || meta.has[list.needs];
  const answer = useAnswer(`${which}${isThere}${JSON.stringify(asked)}`, async (a) => {
    if (!isThere) return undefined;
    const report = await a.report<Row>(list.kind, asked);
    if (which !== "hooks" && which !== "threads") return report;
    const flat = await a.report<FlatRow>("flat", asked);
    if (which === "threads") {
      const exact = new Set(flat.rows.filter((f) => f.kind === "thread" && f.exact).map((f) => f.name));
      return { ...report, rows: report.rows.map((r) => ({ ...r, exact: exact.has(rootName(r)) })) };
    }
    const keyOf = (name: unknown, image: unknown): string => `${text(name)}\n${text(image)}`; // several images may have one of the name
    const of = new Map(flat.rows.map((f) => [keyOf(f.name, f.image), f]));
    return { ...report, rows: report.rows.map((r) => ({ ...r, min: of.get(keyOf(r.function, r.image))?.min, max: of.get(keyOf(r.function, r.image))?.max })) };
  });

  if (answer.error) return <Empty>{answer.error}</Empty>;
  if (answer.isOld) return <Empty>…</Empty>;
  if (!answer.value?.rows.length) return <Empty>{typeof list.empty === "string" ? list.empty : list.empty(meta, state)}</Empty>;
  const { rows } = answer.value;
  const columns = list.columns.filter(([, , , key]) => !key || rows.some((r) => r[key] !== null));
  return (
    <div class="list" tabIndex={0} aria-label={which}>
      {list.note && <p class="said">{list.note}</p>}
      <table>
        <thead>
          <tr>
            {columns.map(([head, , kind]) => (
              <th key={head} class={kind}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row, i) => (
            <tr key={i}>
              {columns.map(([head, value, kind], k) => (
                <td key={head} class={kind}>
                  {k === 0 && list.pick ? (
                    <button class="link" onClick={() => list.pick!(row)}>
                      {value(row, meta)}
                    </button>
                  ) : (
                    value(row, meta)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <p>
          {shown} of {rows.length} are here. <button onClick={() => setShown(shown + mostRows)}>Show more</button>
        </p>
      )}
    </div>
  );
}
