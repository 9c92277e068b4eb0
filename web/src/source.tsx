// SPDX-License-Identifier: MIT
// The source of the selected function, line by line: what each line cost, and how it was executed.
import { Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { kindKernel, kindNative, type Meta, type Names } from "./answers";
import { whyEmpty } from "./empty_words";
import { count, human, percent } from "./format";
import { Empty, Sure } from "./parts";
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
  blocks?: { address: number; end: number; mark: string; base: number | null; percent: number | null; count: number | null }[];
}
interface SourceFunction {
  name: string;
  file: string | null;
  line: number | null;
  calls: number | null;
  base: number | null;
  callers: { name: string | null; calls: number | null }[];
  assembly?: { address: number; end: number; count: number; instructions: { address: number; line: number | null; text: string }[] }[] | null;
}
interface Source {
  functions: SourceFunction[];
  rows: Line[];
}

const hex = (n: number): string => `0x${n.toString(16)}`;
const word = /[A-Za-z_][A-Za-z0-9_]*/g;

// Text in which names of functions can be clicked.
function Code({ text, known, own }: { text: string; known: Set<string>; own: string }) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(word)) {
    const name = match[0];
    if (name === own || !known.has(name)) continue;
    parts.push(
      text.slice(at, match.index),
      <button class="link" onClick={() => change({ selected: name })}>
        {name}
      </button>,
    );
    at = match.index + name.length;
  }
  return (
    <code>
      {parts}
      {text.slice(at)}
    </code>
  );
}

function Assembly({ f, known }: { f: SourceFunction; known: Set<string> }) {
  if (f.assembly === undefined) return null;
  if (f.assembly === null) return <Empty>There are no instructions of '{f.name}': the trace has no counts of its blocks, or its file has changed or is gone.</Empty>;
  return (
    <>
    <h3>Instructions of {f.name}, block by block</h3>
    <table aria-label={`Instructions of ${f.name}`}>
      <thead>
        <tr>
          <th class="number">Count</th>
          <th class="number">Address</th>
          <th class="number">Line</th>
          <th aria-label="executed" />
          <th>Instruction</th>
        </tr>
      </thead>
      {f.assembly.map((b) => (
        <tbody key={b.address} class={b.count ? "" : "unexecuted"}>
          {b.instructions.map((line, i) => (
            <tr key={line.address}>
              <td class="number">{i ? "" : count(b.count)}</td>
              <td class="number">{hex(line.address)}</td>
              <td class="number">{line.line ?? "."}</td>
              <td class="mark">{b.count ? "|" : "#"}</td>
              <td>
                <Code text={line.text} known={known} own="" />
              </td>
            </tr>
          ))}
        </tbody>
      ))}
    </table>
    </>
  );
}

const marks: Record<string, string> = {
  "|": "an executed block",
  "+": "several blocks: a click shows each",
  "#": "not executed",
};

function Marks() {
  return (
    <p class="marks">
      {Object.entries(marks).map(([mark, words]) => (
        <span key={mark}>
          <b>{mark}</b> {words}
        </span>
      ))}
    </p>
  );
}

// The line that cost most, or -1.
function hottestOf(rows: Line[]): number {
  let at = -1;
  rows.forEach((r, i) => {
    if ((r.base ?? 0) > (at < 0 ? 0 : rows[at]!.base!)) at = i;
  });
  return at;
}

function whyNoFile(names: Names | undefined, name: string): string {
  const at = names?.name.indexOf(name) ?? -1;
  if (at < 0) return "The file is not known.";
  if (names!.kind[at] === kindKernel) return "The file is not known: debug information of the kernel is not read.";
  if (names!.kind[at] !== kindNative) return "The file is not known: the trace has no lines of this function.";
  if (!names!.image[at]) return "The file is not known: the trace has the function's name alone.";
  return "The file is not known: the program has no debug information for it. Compile it with -g.";
}

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
  const [hasCode, setCode] = useState(false);
  const [opened, setOpened] = useState<number>(-1);
  const keys = selection(state);
  const name = state.selected;
  const key = `${JSON.stringify(keys)}${name}${hasBlocks || opened >= 0}${hasCode}`;
  const names = useAnswer(JSON.stringify(keys), (a) => a.names(keys));
  const known = useMemo(() => new Set(names.value?.name ?? []), [names.value]);
  useEffect(() => setOpened(-1), [name]);
  const answer = useAnswer(key, async (a) => (name ? a.source<Source>({ ...keys, function: name, blocks: hasBlocks || opened >= 0 ? 1 : undefined, asm: hasCode ? 1 : undefined }) : undefined));

  const pane = useRef<HTMLElement>(null);
  const hottest = useMemo(() => hottestOf(answer.value?.rows ?? []), [answer.value]);
  const showHottest = (): void => {
    const row = pane.current?.querySelector<HTMLElement>("tr.hottest");
    if (row) pane.current!.scrollTop = row.offsetTop - pane.current!.clientHeight / 2;
  };
  useEffect(showHottest, [name, hottest]);

  if (!name && !meta.functions) return <Empty>{whyEmpty(meta, state)}</Empty>;
  if (!name) return <Empty>Select a function to see its source: a click in the list at the left, or / and a part of its name.</Empty>;
  if (answer.error)
    return (
      <Empty>
        {answer.error}
        {!meta.samples && !meta.has.counts && ". 'weir record' takes samples, which have lines; 'weir count' counts each line."}
      </Empty>
    );
  if (answer.isOld || !answer.value) return <Empty>…</Empty>;
  const { functions, rows } = answer.value;
  const hasText = rows.some((r) => r.text !== null);
  return (
    <section class="source" ref={pane} tabIndex={0} aria-label={`Source of ${name}`}>
      {functions.map((f) => (
        <Summary key={`${f.name}${f.file}`} f={f} meta={meta} />
      ))}
      <p class="file">
        <span>{functions[0]?.file ?? whyNoFile(names.value, functions[0]?.name ?? name)}</span>
        {hottest >= 0 && rows[hottest]!.line !== null && (
          <button title="the line that cost most itself" onClick={showHottest}>
            Hottest line: {rows[hottest]!.line}
          </button>
        )}
        <span class="by">
          <Sure exact={meta.has.counts} /> {meta.has.counts ? "lines are counted, exact" : "lines are by samples, estimated"}
        </span>
        {meta.has.counts && (
          <label>
            <input type="checkbox" checked={hasBlocks} onChange={(e) => setBlocks(e.currentTarget.checked)} /> each block
          </label>
        )}
        {meta.has.counts && (
          <label>
            <input type="checkbox" checked={hasCode} onChange={(e) => setCode(e.currentTarget.checked)} /> instructions
          </label>
        )}
      </p>
      {rows.some((r) => r.mark.trim()) && <Marks />}
      {!hasText && rows.length > 0 && functions[0]?.file && <Empty>The text of '{functions[0].file}' is not on this machine; the figures are by line.</Empty>}
      <table>
        <thead>
          <tr>
            <th class="number">Self %</th>
            <th class="number">Self</th>
            {meta.has.counts && <th class="number">Count</th>}
            <th class="number">Line</th>
            <th aria-label="how it was executed" />
            <th>Source</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r, i) => (
            <Fragment key={i}>
            <tr class={i === hottest ? "hottest" : r.mark === "#" ? "unexecuted" : ""}>
              <td class="number">
                {r.percent ? (
                  <span class={meta.has.counts ? "heat" : "heat estimate"} style={{ opacity: 0.15 + (0.6 * r.percent) / 100 }} aria-hidden="true" />
                ) : null}
                {r.percent === null || (!r.percent && !r.base) ? "" : percent(r.percent, 100)}
              </td>
              <td class="number">{r.base ? human(r.base, meta.unit) : ""}</td>
              {meta.has.counts && <td class="number">{r.count === null ? "" : count(r.count)}</td>}
              <td class="number">{r.line ?? ""}</td>
              <td class="mark" title={marks[r.mark] ?? ""}>
                {r.mark === "+" ? (
                  <button class="link" aria-label="each block of this line" aria-expanded={opened === i} onClick={() => setOpened(opened === i ? -1 : i)}>
                    +
                  </button>
                ) : (
                  r.mark
                )}
              </td>
              <td>
                <Code text={r.text ?? (r.line === null ? r.function : "")} known={known} own={r.function} />
              </td>
            </tr>
            {(hasBlocks || opened === i) &&
              r.blocks?.map((b) => (
                <tr key={b.address} class={b.mark === "#" ? "block unexecuted" : "block"}>
                  <td class="number">{b.percent ? percent(b.percent, 100) : ""}</td>
                  <td class="number">{b.base ? human(b.base, meta.unit) : ""}</td>
                  {meta.has.counts && <td class="number">{b.count === null ? "" : count(b.count)}</td>}
                  <td />
                  <td class="mark">{b.mark}</td>
                  <td>
                    block {hex(b.address)} to {hex(b.end)}
                  </td>
                </tr>
              ))}
            </Fragment>
          ))}
        </tbody>
      </table>
      {hasCode && functions.map((f) => <Assembly key={f.name} f={f} known={known} />)}
    </section>
  );
}
