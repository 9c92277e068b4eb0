// SPDX-License-Identifier: MIT
// average.mjs NAME URL TOLERANCE: tests/golden/average.txt in the detail pane: B with all that it calls is 50 of 101.1 and C is
// 40; who divides D's cost evenly among its calls would say 40 and 50. Tolerance in percent of the whole.
import { close, equal, hasFailed, open, shot, text, verdict } from "./page.mjs";

const [name, url, tolerance] = process.argv.slice(2);
const { page, errors } = await open(url);
const near = (expected, actual) => Math.abs(expected - actual) <= Number(tolerance) + 0.005;

async function select(what) {
  await page.evaluate((f) => (location.hash = `#selected=${f}`), what);
  await page.waitForFunction((f) => document.querySelector(".detail h2")?.textContent === f && document.querySelector(".detail dl"), what);
  await page.waitForTimeout(200);
  const figures = await text(page, ".detail dl");
  const percents = [...figures.matchAll(/([\d.]+) %/g)].map((m) => Number(m[1]));
  return { self: percents[0], cum: percents[1] };
}
const expected = { main: [1, 101], A: [10, 100], B: [20, 50], C: [30, 40], D: [40, 40] };
for (const [what, [self, cum]] of Object.entries(expected)) {
  const shown = await select(what);
  verdict(`${name}: ${what} has ${self} of its own and ${cum} with what it calls`, near((100 * self) / 101.1, shown.self) && near((100 * cum) / 101.1, shown.cum), JSON.stringify(shown));
}
// D is selected: B is responsible for three quarters of it.
for (const [caller, share] of [["B", 75], ["C", 25]]) {
  const line = await page.locator(".detail section[aria-label='Called by'] li").filter({ has: page.locator('.name', { hasText: new RegExp(`^${caller}$`) }) }).innerText();
  verdict(`${name}: ${caller} is responsible for ${share} % of D`, near(share, Number(/([\d.]+) %/.exec(line)?.[1])) && line.includes("40 calls"), line);
}
await select("B");
await shot(page, `${name}-detail`);
equal(`${name}: no error in the page`, [], errors);
await close();
process.exit(hasFailed() ? 1 : 0);
