// SPDX-License-Identifier: MIT
// looks.mjs NAME=URL...: pictures of each pane at two sizes, light and dark, in BUILD/screens, and what a script can
// tell of how they look. All is judged; pictures of the large window are of NAMEs with a '+', and dark ones mostly, too.
import { readFileSync } from "node:fs";
import { close, equal, hasFailed, open, shot, verdict } from "./page.mjs";
import { findFlaws } from "./looks_checks.mjs";

const panes = ["flame", "graph", "callers", "timeline", "source", "threads", "modules", "hooks", "probes"];
const sizes = [
  [1280, 800],
  [3840, 2160],
];
const axe = readFileSync(`${process.env.ROOT}/web/node_modules/axe-core/axe.min.js`, "utf8");

// Answers are there when no pane says that it waits.
async function settle(page) {
  await page.waitForFunction(() => ![...document.querySelectorAll(".empty, .found")].some((e) => e.textContent.trim() === "…"), undefined, { timeout: 20000, polling: 30 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function faintText(page) {
  const all = await page.evaluate(() => window.axe.run(document, { runOnly: ["color-contrast"], resultTypes: ["violations"] }).then((r) => r.violations));
  return all.flatMap((v) => v.nodes.map((n) => `${n.html.slice(0, 100)} ${n.any[0]?.message ?? ""}`));
}

async function look(name, url, hasAll) {
  const { page, errors } = await open(url);
  await page.evaluate(axe);
  await settle(page);
  if (hasAll) await shot(page, `look-${name}-first`);
  await page.locator(".functions .rows .row .name").first().click();
  for (const [width, height] of sizes) {
    await page.setViewportSize({ width, height });
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
      for (let i = 0; i < panes.length; i++) {
        const what = `${name}: ${panes[i]}, ${width}x${height}, ${dark ? "dark" : "light"}`;
        await page.locator("body").press(String(i + 1));
        await settle(page);
        if (!dark || i < 3 ? hasAll || width < 2000 : hasAll && width < 2000) await shot(page, `look-${name}-${panes[i]}-${width}${dark ? "-dark" : ""}`);
        const flaws = await page.evaluate(findFlaws);
        if (width < 2000) flaws.push(...(await faintText(page)));
        verdict(what, flaws.length === 0, `${flaws.length} flaws: ${flaws.join("; ")}`);
      }
    }
  }
  equal(`${name}: no error in the page`, [], errors);
  await page.context().close();
}

for (const argument of process.argv.slice(2)) {
  const [name, ...url] = argument.split("=");
  const started = performance.now();
  await look(name.replace("+", ""), url.join("="), name.endsWith("+"));
  console.log(`${name}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}
await close();
process.exit(hasFailed() ? 1 : 0);
