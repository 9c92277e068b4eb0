// SPDX-License-Identifier: MIT
// web/src -> web/dist/page.js and page.css: one file each, without a source map, the same bytes each time.
import { build } from "esbuild";
import { mkdirSync, copyFileSync } from "node:fs";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { page: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  legalComments: "none",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
copyFileSync("src/page.html", `${out}/page.html`);
