// SPDX-License-Identifier: MIT
// The functions of two traces: what each used before and after, and the difference, which is sorted by at first:
// what differs most comes first, whether it is more or less.
import { useMemo, useState } from "preact/hooks";
import type { DiffRow, Meta } from "./answers";
import { changeClass, sampleCount, signed } from "./difference";
import { count, human } from "./format";
import { FunctionTable, type Head, NameCell, NoFunctions } from "./function_table";
import { Empty } from "./parts";
import { useSearch } from "./search";
import { selection } from "./state";
import { useAnswer, useAppState } from "./store";

type Figure = "base" | "cum" | "calls";
type Part = "more" | "before" | "after";

// Of a difference: by its size, the most more first, the most less first.
type Order = "size" | "down" | "up";
const arrows: Record<Order, string> = { size: "◆", down: "▾", up: "▴" };
interface Sort {
  key: string; // "name", or figure and part: "base more"
  order: Order;
}

const figures: [figure: Figure, name: string, title: string][] = [
  ["base", "Self", "in the function itself"],
  ["cum", "S+desc.", "with all that it calls"],
  ["calls", "Calls", "counted by events; samples count no calls"],
];
const parts: [part: Part, name: string, title: string][] = [
  ["more", "± ", "after less before, "],
  ["before", "before", "before, "],
  ["after", "after", "after, "],
];

function valueOf(row: DiffRow, key: string): number | null {
  const [figure, part] = key.split(" ") as [Figure, Part];
  return row[part][figure];
}

function compare(sort: Sort, a: DiffRow, b: DiffRow): number {
  if (sort.key === "name") return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  const [x, y] = [valueOf(a, sort.key), valueOf(b, sort.key)];
  if (x === null || y === null) return (x === null ? 1 : 0) - (y === null ? 1 : 0);
  if (sort.order === "size") return Math.abs(y) - Math.abs(x) || Math.abs(b.more.cum ?? 0) - Math.abs(a.more.cum ?? 0);
  return sort.order === "up" ? x - y : y - x;
}

function nextSort(sort: Sort, key: string): Sort {
  if (!key.endsWith("more")) return { key, order: "down" };
  if (sort.key !== key) return { key, order: "size" };
  return { key, order: sort.order === "size" ? "down" : sort.order === "down" ? "up" : "size" };
}

function Cell({ row, figure, part, unit }: { row: DiffRow; figure: Figure; part: Part; unit: string }) {
  if (part === "more") return <b class={changeClass(row.more[figure])}>{signed(row.more[figure], figure === "calls" ? "1" : unit)}</b>;
  const side = row[part];
  const samples = figure === "base" ? side.samples : figure === "cum" ? side.samples_cum : null;
  if (!side.there) return <small>not there</small>;
  if (figure === "calls") return <>{count(side.calls)}</>;
  return (
    <>
      {human(side[figure], unit)} <small title={sampleCount(samples, side.exact)}>{side.exact || samples === null ? "" : `n ${count(samples)}`}</small>
    </>
  );
}

export function DiffFunctionsPane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const answer = useAnswer(JSON.stringify(keys), (a) => a.diffFunctions(keys));
  const search = useSearch();
  const [sort, setSort] = useState<Sort>({ key: "base more", order: "size" });

  const rows = useMemo(() => {
    const test = search.test;
    return (answer.value?.rows ?? []).filter((r) => !test || test(r.name)).sort((a, b) => compare(sort, a, b));
  }, [answer.value, sort, search.test]);
  const hasCalls = useMemo(() => answer.value?.rows.some((r) => r.before.calls !== null || r.after.calls !== null) ?? false, [answer.value]);

  if (answer.error) return <Empty>{answer.error}</Empty>;
  const heads: Head[] = [{ key: "name", head: "Function", title: "", order: sort.key === "name" ? "ascending" : "none", arrow: sort.key === "name" ? "▾" : "" }];
  for (const [figure, name, title] of figures)
    if (figure !== "calls" || hasCalls)
      for (const [part, word, before] of parts) {
        const key = `${figure} ${part}`;
        heads.push({ key, head: part === "more" ? `${word}${name}` : `${name} ${word}`, title: before + title, order: sort.key !== key ? "none" : sort.order === "up" ? "ascending" : "descending", arrow: sort.key === key ? arrows[sort.order] : "" });
      }
  return (
    <section class="functions" aria-label="Functions before and after">
      <FunctionTable
        kind={hasCalls ? "both with-calls-of-both" : "both"}
        heads={heads}
        rows={rows}
        sortBy={(key) => setSort(nextSort(sort, key))}
        isExact={(row) => (row.after.there ? row.after.exact : row.before.exact)}
        cell={(row, key) => {
          const [figure, part] = key.split(" ") as [Figure, Part];
          return key === "name" ? <NameCell row={row} /> : <Cell row={row} figure={figure} part={part} unit={answer.value?.metric.unit ?? meta.unit} />;
        }}
      />
      {!rows.length && !answer.isOld && <NoFunctions meta={meta} />}
    </section>
  );
}
