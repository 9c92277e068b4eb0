// SPDX-License-Identifier: MIT
// All functions, by what they used themselves at first; any column sorts.
import { useMemo } from "preact/hooks";
import type { FlatRow, Meta } from "./answers";
import { DiffFunctionsPane } from "./diff_functions";
import { isCompared } from "./difference";
import { count, human } from "./format";
import { FunctionTable, NameCell, NoFunctions } from "./function_table";
import { Bar, Empty, Part } from "./parts";
import { useSearch } from "./search";
import { selection, transformOf } from "./state";
import { change, useAnswer, useAppState } from "./store";

interface Column {
  key: "base" | "cum" | "calls" | "min" | "max" | "name";
  head: string;
  spare?: string;
  title: string;
}
const columns: Column[] = [
  { key: "name", head: "Function", title: "" },
  { key: "base", head: "Self", title: "in the function itself" },
  { key: "cum", head: "Self+desc.", spare: "elf", title: "with all that it calls" },
  { key: "calls", head: "Calls", title: "counted by events; samples count no calls" },
  { key: "min", head: "Min", title: "the least that one call used itself" },
  { key: "max", head: "Max", title: "the most that one call used itself" },
];

function compare(key: Column["key"], a: FlatRow, b: FlatRow): number {
  if (key === "name") return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  return (b[key] ?? -1) - (a[key] ?? -1);
}

function OneTrace({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const answer = useAnswer(JSON.stringify(keys), (a) => a.report<FlatRow>("flat", keys));
  const isReverse = state.sort.startsWith("-");
  const sort = state.sort.replace("-", "") as Column["key"];
  const search = useSearch();

  const rows = useMemo(() => {
    const test = search.test;
    return (answer.value?.rows ?? [])
      .filter((r) => r.kind !== "thread" && (!test || test(r.name)))
      .sort((a, b) => (isReverse ? -1 : 1) * compare(sort, a, b));
  }, [answer.value, state.sort, search.test]);

  const shown = columns.filter((c) => meta.has.calls || (c.key !== "calls" && c.key !== "min" && c.key !== "max"));
  const cell = (row: FlatRow, key: Column["key"]) => {
    if (key === "name") return <NameCell row={row} />;
    if (key === "calls") return count(row.calls);
    if (key === "min" || key === "max") return human(row[key], meta.unit);
    return (
      <>
        <Bar part={row[key] ?? 0} whole={meta.total} exact={row.exact} />
        <Part part={row[key]} whole={meta.total} unit={meta.unit} /> <small>{human(row[key], meta.unit)}</small>
      </>
    );
  };

  if (answer.error) return <Empty>{answer.error}</Empty>;
  return (
    <section class="functions" aria-label="Functions">
      <FunctionTable
        kind={meta.has.calls ? "with-calls" : "no-calls"}
        heads={shown.map((c) => ({ ...c, order: sort !== c.key ? "none" : (c.key === "name") === isReverse ? "descending" : "ascending", arrow: sort !== c.key ? "" : isReverse ? "▴" : "▾" }))}
        rows={rows}
        sortBy={(key) => change({ sort: sort === key && !isReverse ? `-${key}` : key })}
        isExact={(row) => row.exact}
        cell={(row, key) => cell(row, key as Column["key"])}
      />
      {!rows.length && !answer.isOld && <NoFunctions meta={meta} />}
    </section>
  );
}

export function FunctionsPane({ meta }: { meta: Meta }) {
  return isCompared(meta, useAppState()) ? <DiffFunctionsPane meta={meta} /> : <OneTrace meta={meta} />;
}

// What can be done with a function, in words; the keys are in the help.
export function Actions({ name }: { name: string }) {
  const state = useAppState();
  const add = (kind: string): void => change({ transforms: [...state.transforms, transformOf(kind, name)] });
  return (
    <div class="actions">
      <button onClick={() => change({ selected: name, pane: "graph" })}>Locate in graph</button>
      <button onClick={() => change({ selected: name, pane: "source" })}>Source</button>
      <button onClick={() => change({ selected: name, pane: "callers" })}>Bottom-up</button>
      <button onClick={() => add("focus")}>Focus</button>
      <button onClick={() => add("fold")}>Fold</button>
      <button onClick={() => add("drop")}>Drop</button>
    </div>
  );
}
