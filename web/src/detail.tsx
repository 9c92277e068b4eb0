// SPDX-License-Identifier: MIT
// One function: its figures, who calls it and whom it calls, with the share that each is responsible for.
import type { FlatRow, Meta } from "./answers";
import { DetailDifference } from "./compared";
import { count, human, percent, percentOf, shown } from "./format";
import { isCompared } from "./difference";
import { Actions, oneCall } from "./functions";
import { HottestPath } from "./hottest";
import { Rung } from "./lists";
import { Bar, Empty, LongName, Sure } from "./parts";
import { isSelected, selection } from "./state";
import { change, useAnswer, useAppState } from "./store";
import { lossSentences } from "./strip";

interface ArcRow {
  name: string;
  image: string | null;
  recursive: boolean;
  calls: number | null;
  base: number | null;
  cum: number | null;
  sampled_cum: number | null;
}
interface Stanza {
  name: string;
  image: string | null;
  self: { exact: boolean };
  parents: ArcRow[];
  children: ArcRow[];
}

const special = /[.*+?^${}()|[\]\\]/g;

interface ArcsProps {
  title: string;
  rows: ArcRow[];
  whole: number;
  sampledWhole: number; // of what samples alone say of an exact function
  exact: boolean;
  meta: Meta;
}

// What is below a function that events measured may be known by samples alone: an estimate, of what they say of it.
function ofArc(r: ArcRow, whole: number, sampledWhole: number, exact: boolean) {
  const isSampled = exact && r.cum === null && r.sampled_cum !== null;
  return { r, cum: isSampled ? r.sampled_cum : r.cum, of: isSampled ? sampledWhole : whole, isExact: exact && !isSampled };
}

// How often, and of several the share that this one is responsible for.
function besides(r: ArcRow, several: boolean, cum: number | null, of: number): string {
  const parts = [r.calls === null ? "" : `${count(r.calls)} call${r.calls === 1 ? "" : "s"}`, several && cum !== null && !r.recursive ? percent(cum, of) : ""];
  return parts.filter(Boolean).join(" · ");
}

function Arcs({ title, rows, whole, sampledWhole, exact, meta }: ArcsProps) {
  const several = rows.length > 1;
  return (
    <section aria-label={title}>
      <h3>
        {title} <small>{rows.length}</small>
      </h3>
      {!rows.length && <p class="empty">{title === "Called by" ? "nobody: it begins a thread" : "no function that was seen"}</p>}
      <ul class="arcs">
        {rows.map((r) => ofArc(r, whole, sampledWhole, exact)).map(({ r, cum, of, isExact }) => (
          <li key={`${r.name}${r.recursive}`}>
            <button onClick={() => change({ selected: r.name, image: r.image ?? "" })} title={r.image ?? ""}>
              <Sure exact={isExact} />
              <span class="name">
                {shown(r.name)}
                {r.recursive ? " (recursive)" : ""}
              </span>
              <span class="time">{human(cum, meta.unit)}</span>
              {besides(r, several, cum, of) && <span class="besides">{besides(r, several, cum, of)}</span>}
              <Bar part={cum ?? 0} whole={of} exact={isExact} />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface HookRow {
  function: string;
  image: string | null;
  method: string;
  reason: string | null;
  off: number | null;
}
interface ModuleRow {
  path: string;
  match: string | null;
  state: { used?: boolean };
}

function hookWords(hook: HookRow, self: FlatRow): string {
  if (!hook.reason) return `each call of it was followed, by a ${hook.method}${hook.off === null ? "" : `, until it was taken off at ${human(hook.off, "ns")}`}`;
  return self.calls === null ? `its calls were not followed: ${hook.reason}` : `hooked by a ${hook.method}: ${hook.reason}`;
}

// How sure the figures are, in words: what they stand on, what was lost, what the name is not.
function Notes({ meta, self }: { meta: Meta; self: FlatRow }) {
  const about = useAnswer(`notes${meta.number}`, async (a) => {
    const keys = { trace: meta.traces.length > 1 ? meta.number : undefined };
    return { modules: (await a.report<ModuleRow>("modules", keys)).rows, hooks: meta.has.hooks ? (await a.report<HookRow>("hooks", keys)).rows : [] };
  });
  const module = about.value?.modules.find((m) => m.path === self.image);
  const hook = about.value?.hooks.find((h) => h.function === self.name && h.image === self.image);
  const said: string[] = [];
  if (!self.exact) said.push(`estimated by ${count(self.samples)} of its own samples`);
  if (hook) said.push(hookWords(hook, self));
  if (lossSentences(meta).length) said.push(`of all: ${lossSentences(meta).join(", ")}`);
  if (/\+0x[0-9a-f]+$/.test(self.name)) said.push("no symbol covers it: its name is a place in its file");
  return (
    <ul class="notes" aria-label="How sure this is">
      {said.map((s) => (
        <li key={s}>{s}</li>
      ))}
      {module?.match && (
        <li>
          symbols: <Rung match={module.match} isUsed={module.state.used !== false} />
        </li>
      )}
    </ul>
  );
}

// Functions of the same name in other images: these figures are not theirs.
function Others({ selves, self }: { selves: FlatRow[]; self: FlatRow }) {
  const others = selves.filter((r) => r !== self);
  if (!others.length) return null;
  return (
    <p class="image">
      {count(others.length)} more of this name:{" "}
      {others.map((r) => (
        <button class="link" key={r.image} onClick={() => change({ selected: r.name, image: r.image ?? "" })}>
          {r.image ?? "no image"}
        </button>
      ))}
    </p>
  );
}

export function DetailPane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const name = state.selected;
  const filter = `^${name.replace(special, "\\$&")}$`;
  const answer = useAnswer(`${JSON.stringify(keys)}${name}`, async (a) => {
    if (!name) return undefined;
    const [arcs, flat] = await Promise.all([
      meta.has.tree ? a.report<Stanza>("arcs", { ...keys, filter }) : undefined,
      a.report<FlatRow>("flat", { ...keys, filter }),
    ]);
    return { stanzas: arcs?.rows ?? [], selves: flat.rows };
  });
  if (!name)
    return (
      <>
        {(meta.functions > 0 || isCompared(meta, state)) && <Empty>Select a function to see who calls it and whom it calls: click one, or use the arrow keys.</Empty>}
        {meta.functions === 0 && !isCompared(meta, state) && <Empty>There is no function to tell of.</Empty>}
        {meta.has.tree && state.pane === "flame" && !isCompared(meta, state) && <HottestPath meta={meta} />}
      </>
    );
  if (answer.error) return <Empty>{answer.error}</Empty>;
  const selves = (answer.value?.selves ?? []).filter((r) => r.name === name);
  const self = selves.find((r) => isSelected(state, r.name, r.image));
  const stanza = answer.value?.stanzas.find((r) => r.name === name && r.image === self?.image);
  if (!self)
    return (
      <section class="detail" aria-label={`Detail of ${name}`}>
        <h2>{name}</h2>
        <DetailDifference name={name} image={state.image || undefined} meta={meta} />
        <Empty>{answer.isOld ? "…" : `'${name}' is not in ${meta.traces.length > 1 ? `${meta.traces[meta.number - 1]}, for this selection` : "this selection"}.`}</Empty>
      </section>
    );
  return (
    <section class="detail" aria-label={`Detail of ${name}`}>
      <h2>
        <LongName name={name} />
      </h2>
      <p class="image">{self.image}</p>
      <Others selves={selves} self={self} />
      <Actions name={name} />
      <DetailDifference name={name} image={self.image} meta={meta} />
      <Notes meta={meta} self={self} />
      <dl>
        <dt>Self</dt>
        <dd>
          <Sure exact={self.exact} /> {percentOf(self.base, meta.total)} · {human(self.base, meta.unit)}
        </dd>
        <dt title="self+descendants: with all that it calls">Self+desc.</dt>
        <dd>
          {percentOf(self.cum, meta.total)} · {human(self.cum, meta.unit)}
          {self.cum2 !== null && self.cum2 !== self.cum ? ` (${human(self.cum2, meta.unit)} with recursion)` : ""}
        </dd>
        {self.elapsed !== null && self.elapsed !== self.cum && (
          <>
            <dt>Elapsed</dt>
            <dd>{human(self.elapsed, meta.unit)} with the time that it was off the CPU</dd>
          </>
        )}
        <dt>Calls</dt>
        <dd>{self.calls === null ? "not counted: it is known by samples" : count(self.calls)}</dd>
        {self.min !== null && (
          <>
            <dt title={oneCall(meta)}>{meta.has.counts ? "Self of a call" : "One call"}</dt>
            <dd>
              {human(self.min, meta.unit)} to {human(self.max, meta.unit)}
            </dd>
          </>
        )}
        {meta.has.samples && (
          <>
            <dt>Samples</dt>
            <dd>
              {self.exact ? `${count(self.samples)} of its own` : count(self.samples)}
              {self.exact && self.sampled_cum !== null ? `; by samples ${human(self.sampled_cum, meta.unit)} with all that it calls` : ""}
            </dd>
          </>
        )}
      </dl>
      {stanza ? (
        <>
          <Arcs title="Called by" rows={stanza.parents} whole={self.cum ?? 0} sampledWhole={self.sampled_cum ?? 0} exact={self.exact} meta={meta} />
          <Arcs title="Calls" rows={stanza.children} whole={self.cum ?? 0} sampledWhole={self.sampled_cum ?? 0} exact={self.exact} meta={meta} />
        </>
      ) : (
        <p class="empty">Callers are not known: this metric is counted by function, not by call.</p>
      )}
    </section>
  );
}
