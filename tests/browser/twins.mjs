// SPDX-License-Identifier: MIT
// twins.mjs NAME URL FLAT: two images have a function of one name; what is said of each is its own, and keys reach both.
import { readFileSync } from "node:fs";
import { close, equal, hasFailed, open, text, verdict } from "./page.mjs";

const [name, url, flatFile] = process.argv.slice(2);
const flat = JSON.parse(readFileSync(flatFile, "utf8"));
const twins = flat.rows.filter((r) => r.name === "hot");
const { page, errors } = await open(url);
const percent = (row) => `${((100 * row.base) / flat.total).toFixed(2)} %`;
const said = async () => `${await text(page, ".detail .image")} ${/Self[^\d]*([\d.]+ %)/.exec(await text(page, ".detail dl"))?.[1]}`;
const expected = (row) => `${row.image} ${percent(row)}`;

equal(`${name}: there are two functions of one name`, 2, twins.length);
verdict(`${name}: which are not the same`, twins[0].base !== twins[1].base && twins[0].image !== twins[1].image);
for (const row of twins) {
  await page.locator(`.functions .rows .row .name[title^="hot"][title$="${row.image}"]`).click();
  await page.waitForTimeout(500);
  equal(`${name}: the detail of ${row.image.replace(/.*\//, "")} is its own`, expected(row), await said());
  equal(`${name}: it alone is selected`, 1, await page.locator('.functions .rows .row[aria-selected="true"]').count());
  verdict(`${name}: it says that there is another one`, (await text(page, ".detail")).includes("1 more of this name"));
}
await page.getByRole("button", { name: twins[0].image, exact: true }).click();
await page.waitForTimeout(500);
equal(`${name}: and leads there`, expected(twins[0]), await said());

// Arrow keys come to the end of the list, whatever names repeat.
await page.locator(".functions .rows").focus();
await page.keyboard.press("Home");
const n = Number(await page.locator(".functions [role=grid]").first().getAttribute("aria-rowcount"));
const seen = new Set();
for (let i = 0; i < Math.min(n, 60); i++) {
  seen.add(await page.evaluate(() => document.querySelector('.functions .rows .row[aria-selected="true"] .name[title]')?.title));
  await page.keyboard.press("ArrowDown");
}
equal(`${name}: arrow keys reach each function once`, Math.min(n, 60), seen.size);
// A call takes 10 ms or so.
await page.getByRole("tab", { name: "Hooks", exact: true }).click();
await page.waitForSelector(".list tbody tr");
const ms = (ns) => `${(ns / 1e6).toFixed(2)} ms`;
for (const row of twins) {
  const cells = await page.locator(".list tbody tr", { hasText: row.image }).locator("td").allInnerTexts();
  equal(`${name}: the hook in ${row.image.replace(/.*\//, "")} has the least and the most of its own calls`, [String(row.calls), ms(row.min), ms(row.max)], cells.slice(1, 4));
}
await page.locator(".list tbody tr", { hasText: twins[1].image }).locator("button").click();
await page.waitForTimeout(500);
equal(`${name}: and leads to its own function`, expected(twins[1]), await said());
// In the call graph they are two boxes, of which one is selected.
await page.getByRole("tab", { name: "Call graph", exact: true }).click();
await page.waitForSelector(".graph .under b");
equal(`${name}: the call graph selects it`, "hot", await text(page, ".graph .under b"));
equal(`${name}: no error in the page`, [], errors);
await close();
process.exit(hasFailed() ? 1 : 0);
