// SPDX-License-Identifier: MIT
// A table with a row for each function: rows that are not seen are not there, arrow keys walk, a click selects.
import type { ComponentChildren } from "preact";
import type { Meta } from "./answers";
import { Divider } from "./divider";
import { whyEmpty } from "./empty_words";
import { Empty, Sure } from "./parts";
import { shown } from "./format";
import { useRows } from "./rows";
import { useSearch } from "./search";
import { isSelected, widthsOf } from "./state";
import { change, useAppState } from "./store";

const rowPixels = 24;

export interface Head {
  key: string;
  head: string;
  spare?: string; // the part of it that is not shown where there is little room
  title: string;
  order: "none" | "ascending" | "descending";
  arrow: string; // "": it is not sorted by this
}

interface Named {
  name: string;
  image: string | null;
}
interface Props<Row extends Named> {
  kind: string; // class, which has the widths of the columns
  heads: Head[];
  rows: Row[];
  sortBy: (key: string) => void;
  isExact: (row: Row) => boolean;
  cell: (row: Row, key: string) => ComponentChildren;
}

function headText({ head, spare }: Head): ComponentChildren {
  if (!spare) return head;
  const at = head.indexOf(spare);
  return (
    <>
      {head.slice(0, at)}
      <span class="spare">{spare}</span>
      {head.slice(at + spare.length)}
    </>
  );
}

export function FunctionTable<Row extends Named>({ kind, heads, rows, sortBy, isExact, cell }: Props<Row>) {
  const state = useAppState();
  const nameWidth = widthsOf(state)[2];
  const { list, first, last, onScroll, show } = useRows(rows.length, rowPixels);
  const at = rows.findIndex((r) => isSelected(state, r.name, r.image));

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
    change({ selected: rows[to]!.name, image: rows[to]!.image ?? "" });
    show(to);
  };
  return (
    <div class={`grid ${kind}`} role="grid" aria-rowcount={rows.length} style={nameWidth ? { "--name": `${nameWidth}px` } : undefined}>
      <div class="row head" role="row">
        <span role="columnheader" aria-label="exact or estimated" />
        {heads.map((h) => (
          <span key={h.key} role="columnheader" aria-sort={h.order}>
            <button class={h.arrow ? "sorted" : ""} title={h.title} onClick={() => sortBy(h.key)}>
              {headText(h)}
              {h.arrow && ` ${h.arrow}`}
            </button>
            {h.key === "name" && <Divider which={2} label="width of names" measured={(d) => d.parentElement!.clientWidth} />}
          </span>
        ))}
      </div>
      <div class="rows" role="rowgroup" ref={list} tabIndex={0} aria-label="rows of functions; arrow keys walk" onScroll={onScroll} onKeyDown={onKeyDown}>
        <div style={{ height: `${rows.length * rowPixels}px`, position: "relative" }} role="presentation">
          {rows.slice(first, last).map((row, i) => (
            <div
              key={`${row.name}\n${row.image}`}
              role="row"
              aria-selected={isSelected(state, row.name, row.image)}
              class={isSelected(state, row.name, row.image) ? "row selected" : "row"}
              style={{ top: `${(first + i) * rowPixels}px` }}
              onClick={() => change({ selected: row.name, image: row.image ?? "" })}
              onDblClick={() => change({ selected: row.name, image: row.image ?? "", pane: "graph" })}
            >
              <span role="gridcell">
                <Sure exact={isExact(row)} />
              </span>
              {heads.map((h) => (
                <span key={h.key} role="gridcell" class={h.key}>
                  {cell(row, h.key)}
                </span>
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

export function NameCell({ row }: { row: Named }) {
  return (
    <span class="name" title={`${row.name}\n${row.image ?? ""}`}>
      {shown(row.name)}
    </span>
  );
}

export function NoFunctions({ meta }: { meta: Meta }) {
  const state = useAppState();
  const { search } = state;
  const { error } = useSearch();
  return <Empty>{search ? error || `No function matches '${search}'. /…/ is a regular expression; Escape in the search shows all.` : whyEmpty(meta, state)}</Empty>;
}
