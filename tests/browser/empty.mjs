// SPDX-License-Identifier: MIT
// empty.mjs NAME URL WORDS: a trace that has nothing: panes say so, and why, and do not advise what is of no use.
import { close, equal, hasFailed, open, shot, text, verdict } from "./page.mjs";

const [name, url, words] = process.argv.slice(2);
const { page, errors } = await open(url, { ready: ".functions .empty" });
verdict(`${name}: the functions say why they are none`, (await text(page, ".functions .empty")).includes(words), await text(page, ".functions"));
verdict(`${name}: nobody is told to click what is not there`, !(await text(page, "aside")).includes("click"), await text(page, "aside"));
const panes = ["flame", "graph", "callers", "timeline", "source", "threads", "modules", "hooks", "probes"];
for (const [i, pane] of panes.entries()) {
  await page.locator("body").press(String(i + 1));
  await page.waitForTimeout(400);
  const said = await text(page, ".pane-body");
  if (i < 5) verdict(`${name}: ${pane} says why it is empty`, said.includes(words), said);
  verdict(`${name}: ${pane} has words`, said.trim().length > 10, said);
  verdict(`${name}: ${pane} tells nobody to take away what was not chosen`, !/away/.test(said), said);
}
await shot(page, `${name}-empty`);
await page.goto(`${url}#transforms=merge-recursion&from=1`);
await page.waitForTimeout(500);
verdict(`${name}: what was chosen is named`, /Take the transforms or the stretch of time away/.test(await text(page, ".pane-body")), await text(page, ".pane-body"));
equal(`${name}: no error in the page`, [], errors);
await close();
process.exit(hasFailed() ? 1 : 0);
