// SPDX-License-Identifier: MIT
// Reports that are lists, as they are: threads, modules, hooks, what a script printed.
import type { FlatRow, Meta } from "./answers";
import { count, human } from "./format";
import { Empty } from "./parts";
import { selection } from "./state";
import { change, useAnswer, useAppState } from "./store";

type Row = Record<string, unknown>;

interface List {
  kind: string;
  empty: string;
  needs?: keyof Meta["has"]; // without it there is no such report to ask for
  columns: [head: string, value: (row: Row, meta: Meta) => string][];
  pick?: (row: Row) => void;
}

const text = (value: unknown): string => (value === null || value === undefined || value === "" ? "." : String(value));
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

const stateText = (row: Row): string => {
  const state = (row.state ?? {}) as Record<string, boolean>;
  const words = [state.at_start ? "at start" : "", state.loaded ? "loaded" : "", state.unloaded ? "unloaded" : ""].filter(Boolean);
  return words.length ? words.join(", ") : ".";
};

export const lists: Record<string, List> = {
  threads: {
    kind: "threads",
    empty: "No thread was seen in this selection.",
    columns: [
      ["Thread", (r) => `${text(r.pid)}_${text(r.tid)}`],
      ["Name", (r) => text(r.name)],
      ["Used", (r, meta) => human(number(r.base), meta.unit)],
      ["Samples", (r) => count(number(r.samples))],
      ["Events", (r) => count(number(r.events))],
      ["Switches", (r) => count(number(r.switches))],
    ],
    pick: (row) => change({ thread: `${text(row.pid)}_${text(row.tid)}` }),
  },
  modules: {
    kind: "modules",
    empty: "The trace has no modules.",
    columns: [
      ["Path", (r) => text(r.path)],
      ["Match", (r) => text(r.match)],
      ["Why", (r) => text(r.reason)],
      ["State", stateText],
      ["Symbols", (r) => count(number(r.symbols))],
      ["Build-id", (r) => text(r.build_id)],
    ],
  },
  hooks: {
    kind: "hooks",
    needs: "hooks",
    empty: "No functions were hooked. 'weir record --functions NAMES' follows every call of those that you name.",
    columns: [
      ["Function", (r) => text(r.function)],
      ["Hits", (r) => count(number(r.hits))],
      ["Min", (r, meta) => human(number(r.min), meta.unit)],
      ["Max", (r, meta) => human(number(r.max), meta.unit)],
      ["Method", (r) => text(r.method)],
      ["Reason", (r) => text(r.reason)],
      ["Image", (r) => text(r.image)],
    ],
    pick: (row) => change({ selected: text(row.function) }),
  },
  probes: {
    kind: "probes",
    empty: "No script ran beside the recording. 'weir record --probe SCRIPT' does that.",
    columns: [
      ["Time", (r) => human(number(r.time), "ns")],
      ["Process", (r) => text(r.pid)],
      ["Said", (r) => text(r.text ?? r.name ?? r.value)],
    ],
  },
};

export function ListPane({ which, meta }: { which: string; meta: Meta }) {
  const state = useAppState();
  const list = lists[which]!;
  const keys = selection(state);
  // Whole traces have modules, hooks and probes, whatever was folded.
  const asked = which === "threads" ? { ...keys, thread: "" } : { metric: keys.metric };
  const isThere = !list.needs || meta.has[list.needs];
  const answer = useAnswer(`${which}${isThere}${JSON.stringify(asked)}`, async (a) => {
    if (!isThere) return undefined;
    const report = await a.report<Row>(list.kind, asked);
    if (which !== "hooks") return report;
    const flat = await a.report<FlatRow>("flat", asked);
    const of = new Map(flat.rows.map((f) => [f.name, f]));
    return { ...report, rows: report.rows.map((r) => ({ ...r, min: of.get(text(r.function))?.min, max: of.get(text(r.function))?.max })) };
  });

  if (answer.error) return <Empty>{answer.error}</Empty>;
  if (answer.isOld) return <Empty>…</Empty>;
  if (!answer.value?.rows.length) return <Empty>{list.empty}</Empty>;
  return (
    <div class="list" tabIndex={0} aria-label={which}>
      <table>
        <thead>
          <tr>
            {list.columns.map(([head]) => (
              <th key={head}>{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {answer.value.rows.map((row, i) => (
            <tr key={i}>
              {list.columns.map(([head, value], k) => (
                <td key={head}>
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
    </div>
  );
}
