// SPDX-License-Identifier: MIT
// The source of the selected function, line by line: what each line cost, and how it was executed.
import { useState } from "preact/hooks";
import type { Meta } from "./answers";
import { count, human, percent } from "./format";
import { Empty } from "./parts";
import { selection } from "./state";
import { change, useAnswer, useAppState } from "./store";

interface Line {
  function: string;
  file: string | null;
  line: number | null;
  text: string | null;
  mark: string;
  base: number | null;
  percent: number | null;
  count: number | null;
  blocks?: { base?: number | null; count?: number | null; address?: string; instructions?: unknown[] }[];
}
interface SourceFunction {
  name: string;
  file: string | null;
  line: number | null;
  calls: number | null;
  base: number | null;
  callers: { name: string | null; calls: number | null }[];
}
interface Source {
  functions: SourceFunction[];
  rows: Line[];
}

const marks: Record<string, string> = {
  "|": "an executed block",
  "+": "several blocks; the sum of them",
  "#": "not executed",
  " ": "",
};

function Summary({ f, meta }: { f: SourceFunction; meta: Meta }) {
  return (
    <p class="comment">
      * {f.name}: {human(f.base, meta.unit)} itself{f.calls === null ? "" : `, called ${count(f.calls)} times`}
      {f.callers.length ? " by " : ""}
      {f.callers.map((c, i) => (
        <span key={i}>
          {i ? ", " : ""}
          {c.name ? (
            <button class="link" onClick={() => change({ selected: c.name! })}>
              {c.name}
            </button>
          ) : (
            "callers that are not known"
          )}
          {c.calls === null ? "" : ` (${count(c.calls)})`}
        </span>
      ))}
    </p>
  );
}

export function SourcePane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const [hasBlocks, setBlocks] = useState(false);
  const keys = selection(state);
  const name = state.selected;
  const key = `${JSON.stringify(keys)}${name}${hasBlocks}`;
  const answer = useAnswer(key, async (a) => (name ? a.source<Source>({ ...keys, function: name, blocks: hasBlocks ? 1 : undefined }) : undefined));

  if (!name) return <Empty>Select a function to see its source.</Empty>;
  if (answer.error) return <Empty>{answer.error}</Empty>;
  if (answer.isOld || !answer.value) return <Empty>…</Empty>;
  const { functions, rows } = answer.value;
  const hasText = rows.some((r) => r.text !== null);
  return (
    <section class="source" tabIndex={0} aria-label={`Source of ${name}`}>
      {functions.map((f) => (
        <Summary key={`${f.name}${f.file}`} f={f} meta={meta} />
      ))}
      <p class="file">
        {functions[0]?.file ?? "The file is not known: the program has no debug information for it."}
        {meta.has.counts && (
          <label>
            <input type="checkbox" checked={hasBlocks} onChange={(e) => setBlocks(e.currentTarget.checked)} /> each block
          </label>
        )}
      </p>
      {!hasText && rows.length > 0 && functions[0]?.file && <Empty>The text of '{functions[0].file}' is not on this machine; the figures are by line.</Empty>}
      <table>
        <thead>
          <tr>
            <th>Self %</th>
            <th>Self</th>
            {meta.has.counts && <th>Count</th>}
            <th>Line</th>
            <th aria-label="how it was executed" />
            <th>Source</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r, i) => (
            <tr key={i} class={r.mark === "#" ? "unexecuted" : ""}>
              <td class="number">
                {r.percent ? (
                  <span class="heat" style={{ opacity: 0.15 + (0.6 * r.percent) / 100 }} aria-hidden="true" />
                ) : null}
                {r.percent === null || (!r.percent && !r.base) ? "" : percent(r.percent, 100)}
              </td>
              <td class="number">{r.base ? human(r.base, meta.unit) : ""}</td>
              {meta.has.counts && <td class="number">{r.count === null ? "" : count(r.count)}</td>}
              <td class="number">{r.line ?? ""}</td>
              <td class="mark" title={marks[r.mark] ?? ""}>
                {r.mark}
              </td>
              <td>
                <code>{r.text ?? (r.line === null ? r.function : "")}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
