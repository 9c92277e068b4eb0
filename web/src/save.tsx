// SPDX-License-Identifier: MIT
// What can be taken away from the page: pictures of the pane, the selection as files of other tools, text.
import { useRef, useState } from "preact/hooks";
import type { FlatRow, Meta } from "./answers";
import { canvasOf } from "./canvas";
import { human, percent, percentOf } from "./format";
import { selection } from "./state";
import { answers, current } from "./store";

const mostLines = 10000;

function download(bytes: BlobPart, type: string, name: string): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const paneCanvas = (): HTMLCanvasElement | null => document.querySelector<HTMLCanvasElement>("main canvas:not(.overview)");
const noPicture = "This pane is a list: copy it as text. Flame graph, call graph and timeline are pictures.";

export async function savePng(): Promise<string> {
  const canvas = paneCanvas();
  if (!canvas) return noPicture;
  const bytes = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!bytes) return "The picture could not be made.";
  download(bytes, "image/png", `weir-${current().pane}.png`);
  return "";
}

export async function saveSvg(): Promise<string> {
  const canvas = paneCanvas();
  const text = canvas && canvasOf(canvas)?.svg(document.title);
  if (!text) return noPicture;
  download(text, "image/svg+xml", `weir-${current().pane}.svg`);
  return "";
}

async function saveExport(kind: "folded" | "pprof"): Promise<string> {
  const bytes = await (await answers).exported(kind, selection(current()));
  download(bytes, "application/octet-stream", kind === "folded" ? "weir.folded" : "weir.pb.gz");
  return "";
}

// Where the clipboard is not open to pages, the old way.
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

async function copyFunctions(meta: Meta): Promise<string> {
  const report = await (await answers).report<FlatRow>("flat", { ...selection(current()), sort: "base" });
  const lines = report.rows
    .filter((r) => r.kind !== "thread")
    .map((r) => [percentOf(r.base, meta.total), human(r.base, meta.unit), percentOf(r.cum, meta.total), human(r.cum, meta.unit), r.calls ?? ".", r.name, r.image ?? "."].join("\t"));
  await copyText(["Self %\tSelf\tSelf+desc. %\tSelf+desc.\tCalls\tFunction\tImage", ...lines].join("\n"));
  return `${lines.length} functions are copied.`;
}

async function copyTree(meta: Meta): Promise<string> {
  const a = await answers;
  const keys = selection(current());
  const [tree, names] = await Promise.all([a.tree({ ...keys, order: current().order }), a.names(keys)]);
  const n = Math.min(tree.n, mostLines);
  const lines = [];
  for (let i = 0; i < n; i++) lines.push(`${percent(tree.cum[i]!, meta.total).padStart(9)}  ${human(tree.cum[i]!, meta.unit).padStart(10)}  ${"  ".repeat(tree.depth[i]!)}${names.name[tree.routine[i]!]}`);
  if (n < tree.n) lines.push(`... ${tree.n - n} more`);
  await copyText(lines.join("\n"));
  return `${n} of ${tree.n} nodes of the tree are copied.`;
}

export function Save({ meta }: { meta: Meta }) {
  const [said, say] = useState("");
  const menu = useRef<HTMLDetailsElement>(null);
  const item = (name: string, act: () => Promise<string>) => (
    <button
      onClick={() =>
        void act()
          .catch((e: unknown) => (e instanceof Error ? e.message : String(e)))
          .then((text) => {
            say(text);
            if (!text && menu.current) menu.current.open = false;
          })
      }
    >
      {name}
    </button>
  );
  return (
    <details
      class="menu"
      ref={menu}
      onToggle={() => say("")}
      onKeyDown={(e) => {
        if (e.key !== "Escape" || !menu.current) return;
        menu.current.open = false;
        menu.current.querySelector("summary")?.focus();
      }}
    >
      <summary>Save ▾</summary>
      <div class="items">
        {item("Picture as PNG", savePng)}
        {item("Picture as SVG", saveSvg)}
        {item("Selection as folded stacks", () => saveExport("folded"))}
        {item("Selection as pprof", () => saveExport("pprof"))}
        {item("Copy functions as text", () => copyFunctions(meta))}
        {item("Copy tree as text", () => copyTree(meta))}
        <p role="status">{said}</p>
      </div>
    </details>
  );
}
