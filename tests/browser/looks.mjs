// SPDX-License-Identifier: MIT
// looks.mjs NAME=URL...: pictures of each pane at two sizes, light and dark, in BUILD/screens, and what a script can
// tell of how they look. Pictures of the large window, and all dark ones, are of NAMEs with a '+'.
import { readFileSync } from "node:fs";
import { close, equal, hasFailed, open, screens, text, texts, verdict } from "./page.mjs";
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

// All is drawn: settle() was called.
const picture = (page, name) => page.screenshot({ path: `${screens}/${name}.png` });

async function faintText(page) {
  const all = await page.evaluate(() => window.axe.run(document, { runOnly: ["color-contrast"], resultTypes: ["violations"] }).then((r) => r.violations));
  return all.flatMap((v) => v.nodes.map((n) => `${n.html.slice(0, 100)} ${n.any[0]?.message ?? ""}`));
}

const numberOf = (text) => Number(/[\d.]+/.exec(text)?.[0] ?? NaN);
const cells = (page, table, column) => page.locator(`${table} tbody tr td:nth-child(${column})`).allInnerTexts();

// What somebody who has never seen the page finds within a minute, by a click each; the program is known.
async function readHottest(name, page) {
  const path = (await texts(page, ".hottest .name")).map((n) => n.trim());
  verdict(`${name}: the page begins with the hottest path`, path.includes("count_word") && path.at(-1) !== "main", path.join(" > "));
  await page.locator(".hottest button", { hasText: "count_word" }).click();
  await page.waitForSelector("aside section[aria-label='Called by']");
  verdict(`${name}: its callers and callees are beside it`, (await text(page, "aside section[aria-label='Calls']")).includes("hash_of"), await text(page, "aside"));
  await page.locator("aside .actions button", { hasText: "Source" }).click();
  await page.waitForSelector(".source tr.hottest");
  const shares = (await cells(page, ".source", 1)).map((t) => numberOf(t) || 0);
  const hottest = numberOf(await page.locator(".source tr.hottest td").first().innerText());
  equal(`${name}: the hottest line is the one with the greatest share`, Math.max(...shares), hottest);
  await page.locator("body").press("7");
  verdict(`${name}: modules have their rung in words`, /\b4 of 4: the very file that ran/.test(await text(page, ".list")), await text(page, ".list"));
}

async function readInstructions(name, page) {
  await page.locator(".functions .rows .row .name", { hasText: "count_word" }).first().click();
  await page.locator("body").press("5");
  await page.getByLabel("instructions", { exact: true }).check();
  await page.waitForSelector(".source h3");
  const places = (await cells(page, "table[aria-label='Instructions of count_word']", 2)).map(Number);
  const marks = (await cells(page, "table[aria-label='Instructions of count_word']", 4)).map((m) => m.trim());
  verdict(`${name}: instructions go up`, places.length > 20 && places.every((a, i) => !i || a > places[i - 1]), places.join());
  verdict(`${name}: what was executed has its mark, and what was not its own`, marks.filter((m) => m === "|").length > 20 && marks.includes("#"), marks.join(""));
  verdict(`${name}: callees in them can be clicked`, (await page.locator("table[aria-label='Instructions of count_word'] button.link", { hasText: "hash_of" }).count()) === 1);
  const line = async (text) => page.locator(".source tr", { hasText: text }).first().locator(".mark").innerText();
  equal(`${name}: a line that was never executed is marked`, "#", (await line("abort()")).trim());
  equal(`${name}: and one of several blocks`, "+", (await line("while (table")).trim());
  await settle(page);
  await picture(page, `look-${name}-instructions-1280`);
}

// 70 of 71 functions have the same share: the filter's rounding up folds them all, which is said.
async function readFolded(name, page) {
  await page.locator("body").press("2");
  await page.waitForSelector(".graph .shown");
  verdict(`${name}: what is folded is said`, (await text(page, ".graph .shown")).startsWith("1 of 71 functions; 70 with less than 8 % each"), await text(page, ".graph .shown"));
  await page.getByRole("button", { name: "Show more" }).click();
  await page.waitForFunction(() => document.querySelector(".graph .shown").innerText.startsWith("71 of 71"), undefined, { timeout: 10000 }).catch(() => undefined);
  equal(`${name}: and a click shows more`, "71 of 71 functions", await text(page, ".graph .shown"));
  await settle(page);
  await picture(page, `look-${name}-unfolded-1280`);
}

// The program was made again elsewhere: its functions are the same.
async function readDifference(name, page) {
  await page.locator(".functions .rows .row .name", { hasText: "hash_of" }).first().click();
  await page.waitForSelector("aside .both");
  await settle(page);
  const detail = await text(page, "aside");
  verdict(`${name}: a function of both has its figures of both and its callers`, /Before[^]*After[^]*Difference[^]*Called by/.test(detail) && detail.includes("count_word"), detail);
  equal(`${name}: and its row is marked`, 1, await page.locator(".functions .row.selected").count());
}
const stories = { diff: readDifference, sampled: readHottest, counted: readInstructions, large: readFolded };

async function look(name, url, hasAll) {
  const { page, errors } = await open(url);
  await page.evaluate(axe);
  await settle(page);
  await picture(page, `look-${name}-first`);
  await stories[name]?.(name, page);
  await page.evaluate(() => {
    location.hash = "#";
  });
  await settle(page);
  await page.locator(".functions .rows .row .name").first().click();
  for (const [width, height] of sizes) {
    await page.setViewportSize({ width, height });
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
      for (let i = 0; i < panes.length; i++) {
        if (dark && width > 2000 && (!hasAll || i > 2)) continue; // colours are judged in the small window
        const what = `${name}: ${panes[i]}, ${width}x${height}, ${dark ? "dark" : "light"}`;
        await page.locator("body").press(String(i + 1));
        await settle(page);
        if (hasAll || (width < 2000 && (!dark || i < 3))) await picture(page, `look-${name}-${panes[i]}-${width}${dark ? "-dark" : ""}`);
        let flaws = await page.evaluate(findFlaws);
        if (flaws.length) {
          await page.waitForTimeout(1000); // a slow machine draws later
          flaws = await page.evaluate(findFlaws);
        }
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
