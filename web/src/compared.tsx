// SPDX-License-Identifier: MIT
// What the page has more when there are two traces: which of them is shown, how they were measured, and the
// figures of one function in both.
import { type DiffRow, type Meta, type Side } from "./answers";
import { changeClass, isCompared, measuredOtherwise, sampleCount, signed } from "./difference";
import { count, human } from "./format";
import { Sure } from "./parts";
import { lastPart, selection } from "./state";
import { change, current, useAnswer, useAppState } from "./store";

const shows: [value: string, name: string][] = [
  ["before", "Before"],
  ["", "Difference"],
  ["after", "After"],
];

// What stands beside the boxes of the call graph is another then.
function show(value: string): void {
  change({ show: value, graph: "" });
}

export function nextShow(): void {
  const at = shows.findIndex(([value]) => value === current().show);
  show(shows[(at + 1) % shows.length]![0]);
}

export function ShowSwitch({ meta }: { meta: Meta }) {
  const state = useAppState();
  if (meta.traces.length < 2) return null;
  return (
    <span class="shows" role="group" aria-label="Which trace">
      {shows.map(([value, name]) => (
        <button key={value} aria-pressed={state.show === value} title={value === "" ? meta.traces.join(" → ") : meta.traces[value === "before" ? 0 : 1]} onClick={() => show(value)}>
          {name}
        </button>
      ))}
    </span>
  );
}

function Measured({ name, meta }: { name: string; meta: Meta }) {
  const by = [meta.has.samples ? `${count(meta.samples)} ${meta.samples === 1 ? "sample" : "samples"}${meta.facts.frequency ? ` at ${meta.facts.frequency} a second` : ""}` : "", meta.has.events ? `${count(meta.events)} events` : ""];
  return (
    <span>
      <b>{name}</b> {meta.traces[meta.number - 1]}: {human(meta.total, meta.unit)} {meta.metric}, {by.filter(Boolean).join(", ") || (meta.has.counts ? "counts" : "nothing was seen")}
    </span>
  );
}

// Always there with two traces, as the loss strip is: a difference says nothing before this is known.
export function ComparedStrip({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = { ...selection(state), metric: meta.metric, transform: "" };
  const both = useAnswer(JSON.stringify(keys), (a) => (meta.traces.length < 2 ? Promise.resolve(undefined) : Promise.all([a.meta({ ...keys, trace: 1 }), a.meta({ ...keys, trace: 2 })])));
  if (meta.traces.length < 2) return null;
  if (both.error) return <p class="compared-strip otherwise">These traces cannot be compared: {both.error}. Before and After, above, show each of them alone.</p>;
  if (!both.value) return <p class="compared-strip">…</p>;
  const [before, after] = both.value;
  const otherwise = measuredOtherwise(before, after);
  const isEstimated = !before.exact || !after.exact || before.estimates || after.estimates;
  return (
    <div class={otherwise.length ? "compared-strip otherwise" : "compared-strip"} role="status">
      <Measured name="Before" meta={before} />
      <Measured name="After" meta={after} />
      {otherwise.length > 0 && <span class="said">⚠ Not measured alike: {otherwise.join("; ")}</span>}
      {isEstimated && <span>Estimates differ from run to run: look at the numbers of samples beside them.</span>}
      {isCompared(meta, state) && (
        <span class="legend">
          <span class="swatch more">+</span> more <span class="swatch less">-</span> less <span class="swatch same">=</span> same
        </span>
      )}
    </div>
  );
}

// Panes that show one trace say which one that is.
export function WhichTrace({ meta }: { meta: Meta }) {
  const state = useAppState();
  if (!isCompared(meta, state)) return null;
  return (
    <p class="which" role="note">
      This pane shows what is after; <button onClick={() => show("before")}>Before</button> shows the older trace.
    </p>
  );
}

function Cell({ side, figure, unit }: { side: Side; figure: "base" | "cum" | "calls"; unit: string }) {
  const samples = figure === "base" ? side.samples : figure === "cum" ? side.samples_cum : null;
  if (!side.there) return <td>not there</td>;
  return (
    <td>
      {figure !== "calls" && <Sure exact={side.exact} />} {figure === "calls" ? count(side.calls) : human(side[figure], unit)} {!side.exact && samples !== null && <small title={sampleCount(samples, false)}>n {count(samples)}</small>}
    </td>
  );
}

// Of functions with this name the one in this image, if that is known.
export function DetailDifference({ name, image, meta }: { name: string; image?: string | null | undefined; meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const isDiff = isCompared(meta, state);
  const answer = useAnswer(`${JSON.stringify(keys)}${isDiff}`, async (a) => (isDiff ? a.diffFunctions(keys) : undefined));
  const row: DiffRow | undefined = answer.value?.rows.find((r) => r.name === name && (image === undefined || lastPart(r.image) === lastPart(image)));
  if (!isDiff || !row) return null;
  const unit = answer.value!.metric.unit;
  const figures: [figure: "base" | "cum" | "calls", what: string][] = [
    ["base", "Self"],
    ["cum", "Self+desc."],
    ["calls", "Calls"],
  ];
  const shown = figures.filter(([figure]) => row.before[figure] !== null || row.after[figure] !== null);
  return (
    <table class="both" aria-label={`${name} before and after`}>
      <thead>
        <tr>
          <th />
          {shown.map(([figure, what]) => (
            <th key={figure} scope="col">
              {what}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {(["before", "after"] as const).map((side) => (
          <tr key={side}>
            <th scope="row">{side === "before" ? "Before" : "After"}</th>
            {shown.map(([figure]) => (
              <Cell key={figure} side={row[side]} figure={figure} unit={unit} />
            ))}
          </tr>
        ))}
        <tr>
          <th scope="row">Difference</th>
          {shown.map(([figure]) => (
            <td key={figure} class={changeClass(row.more[figure])}>
              {signed(row.more[figure], figure === "calls" ? "1" : unit)}
            </td>
          ))}
        </tr>
      </tbody>
    </table>
  );
}
