// SPDX-License-Identifier: MIT
// All functions, by what they used themselves at first; any column sorts.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FlatRow, Meta } from "./answers";
import { count, human, percent } from "./format";
import { Divider } from "./divider";
import { Bar, Empty, Sure } from "./parts";
import { useSearch } from "./search";
import { selection, transformOf, widthsOf } from "./state";
import { change, useAnswer, useAppState } from "./store";

const rowPixels = 24;
const extraRows = 10;

interface Column {
  key: "base" | "cum" | "calls" | "min" | "max" | "name";
  head: string;
  title: string;
}
const columns: Column[] = [
  { key: "name", head: "Function", title: "" },
  { key: "base", head: "Self", title: "in the function itself" },
  { key: "cum", head: "Self+desc.", title: "with all that it calls" },
  { key: "calls", head: "Calls", title: "counted by events; samples count no calls" },
  { key: "min", head: "Min", title: "the cheapest call, with all that it calls" },
  { key: "max", head: "Max", title: "the dearest call, with all that it calls" },
];

function compare(key: Column["key"], a: FlatRow, b: FlatRow): number {
  if (key === "name") return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  return (b[key] ?? -1) - (a[key] ?? -1);
}

export function FunctionsPane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const answer = useAnswer(JSON.stringify(keys), (a) => a.report<FlatRow>("flat", keys));
  const isReverse = state.sort.startsWith("-");
  const sort = state.sort.replace("-", "") as Column["key"];
  const search = useSearch();
  const nameWidth = widthsOf(state)[2];
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const list = useRef<HTMLDivElement>(null);

  const rows = useMemo(() => {
    const test = search.test;
    return (answer.value?.rows ?? [])
      .filter((r) => r.kind !== "thread" && (!test || test(r.name)))
      .sort((a, b) => (isReverse ? -1 : 1) * compare(sort, a, b));
  }, [answer.value, state.sort, search.test]);
  useEffect(() => {
    const element = list.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const shown = columns.filter((c) => meta.has.calls || (c.key !== "calls" && c.key !== "min" && c.key !== "max"));
  const first = Math.max(0, Math.floor(top / rowPixels) - extraRows);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowPixels) + extraRows);
  const at = rows.findIndex((r) => r.name === state.selected);

  const onKeyDown = (e: KeyboardEvent): void => {
    if (e.key === "Enter" && state.selected) {
      e.preventDefault();
      change({ pane: "graph" });
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -rows.length, End: rows.length }[e.key];
    if (!step || !rows.length) return;
    e.preventDefault();
    const to = Math.max(0, Math.min(rows.length - 1, at + step));
    change({ selected: rows[to]!.name });
    const y = to * rowPixels;
    if (y < top || y > top + height - 2 * rowPixels) list.current!.scrollTop = y - height / 2;
  };
  const cell = (row: FlatRow, key: Column["key"]) => {
    if (key === "name")
      return (
        <span class="name" title={`${row.name}\n${row.image ?? ""}`}>
          {row.name}
        </span>
      );
    if (key === "calls") return count(row.calls);
    if (key === "min" || key === "max") return human(row[key], meta.unit);
    return (
      <>
        <Bar part={row[key] ?? 0} whole={meta.total} exact={row.exact} />
        {row[key] === null ? "." : percent(row[key], meta.total)} <small>{human(row[key], meta.unit)}</small>
      </>
    );
  };

  if (answer.error) return <Empty>{answer.error}</Empty>;
  return (
    <section class="functions" aria-label="Functions">
      <div class={`grid ${meta.has.calls ? "with-calls" : ""}`} role="table" aria-rowcount={rows.length} style={nameWidth ? { "--name": `${nameWidth}px` } : undefined}>
        <div class="row head" role="row">
          <span role="columnheader" aria-label="exact or estimated" />
          {shown.map((c) => (
            <span key={c.key} role="columnheader" aria-sort={sort !== c.key ? "none" : (c.key === "name") === isReverse ? "descending" : "ascending"}>
              <button class={sort === c.key ? "sorted" : ""} title={c.title} onClick={() => change({ sort: sort === c.key && !isReverse ? `-${c.key}` : c.key })}>
                {c.head}
                {sort === c.key ? (isReverse ? " ▴" : " ▾") : ""}
              </button>
              {c.key === "name" && <Divider which={2} label="width of names" measured={(d) => d.parentElement!.clientWidth} />}
            </span>
          ))}
        </div>
        <div class="rows" ref={list} tabIndex={0} aria-label="rows of functions; arrow keys walk" onScroll={() => setTop(list.current!.scrollTop)} onKeyDown={onKeyDown}>
          <div style={{ height: `${rows.length * rowPixels}px`, position: "relative" }}>
            {rows.slice(first, last).map((row, i) => (
              <div
                key={`${row.name}\n${row.image}`}
                role="row"
                aria-selected={row.name === state.selected}
                class={row.name === state.selected ? "row selected" : "row"}
                style={{ top: `${(first + i) * rowPixels}px` }}
                onClick={() => change({ selected: row.name })}
                onDblClick={() => change({ selected: row.name, pane: "graph" })}
              >
                <Sure exact={row.exact} />
                {shown.map((c) => (
                  <span key={c.key} role="cell" class={c.key}>
                    {cell(row, c.key)}
                  </span>
                ))}
              </div>
            ))}
          </div>
        </div>
      </div>
      {!rows.length && !answer.isOld && (
        <Empty>{state.search ? search.error || `No function matches '${state.search}'. /…/ is a regular expression; Escape in the search shows all.` : "There are no functions in this selection."}</Empty>
      )}
    </section>
  );
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
