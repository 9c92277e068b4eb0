// SPDX-License-Identifier: MIT
// The page's own code for questions and answers, without a browser: its engine in a file that `weir report --html`
// has written, or its engine behind a server.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const web = `${process.env.ROOT}/web/`;
const { build } = createRequire(web)("esbuild");

await build({
  stdin: { contents: 'export { Answers } from "./answers"; export { openEngine, question } from "./engine";', resolveDir: `${web}src` },
  bundle: true,
  format: "esm",
  outfile: "page_module.mjs",
});
const { Answers, openEngine, question } = await import(`${process.cwd()}/page_module.mjs`);
export { question };
const realFetch = globalThis.fetch;

export async function openFile(path) {
  const html = readFileSync(path, "utf8");
  const elements = new Map();
  for (const [, id, text] of html.matchAll(/<script type="application\/[a-z]+" id="([a-z-]+)">([^<]*)<\/script>/g)) elements.set(id, { textContent: text });
  globalThis.document = { getElementById: (id) => elements.get(id) ?? null };
  const engine = await openEngine();
  return { engine, answers: new Answers(engine) };
}

export async function openServer(url) {
  globalThis.fetch = (path, options) => realFetch(url + path, options);
  globalThis.document = { getElementById: () => null };
  const engine = await openEngine();
  return { engine, answers: new Answers(engine) };
}
