// SPDX-License-Identifier: MIT
// working.mjs URL: what the page shows while weir reads a large trace. The server's answers are held back here, so that
// the time it takes is known.
import { close, equal, hasFailed, open, text, verdict } from "./page.mjs";

const { page, errors } = await open(process.argv[2]);
const working = page.locator(".working");
const opacity = (selector) => page.locator(selector).first().evaluate((e) => Number(getComputedStyle(e).opacity));
equal("nothing is said while nothing is read", 0, await working.count());

let hold = true;
const failed = [];
page.on("requestfailed", (r) => failed.push(r.url()));
await page.route("**/q/progress", (route) => route.fulfill({ json: { done: 300, whole: 1200 } }));
await page.route("**/q/*from=*", async (route) => {
  while (hold) await new Promise((go) => setTimeout(go, 20));
  await route.continue().catch(() => undefined); // it was given up
});
await page.evaluate(() => (location.hash = "#from=1"));
await working.waitFor();
verdict("while weir reads the trace the page says how much is read", (await text(page, ".working")).startsWith("Reading the trace: 25.00 %"), await text(page, ".working"));
verdict("the figures of the last selection look old meanwhile", (await opacity("main")) < 0.6 && (await opacity(".top .facts")) < 0.6);
await page.evaluate(() => (location.hash = "#from=2"));
await page.waitForTimeout(400);
verdict("what nobody waits for any more is given up", failed.length > 0 && failed.every((u) => /from=1\b/.test(u)), failed.join(" "));
await page.evaluate(() => (location.hash = ""));
await page.waitForFunction(() => !document.querySelector(".working"));
verdict("back at what was there, all is new again", (await opacity("main")) === 1);
await page.evaluate(() => (location.hash = "#from=3"));
await working.waitFor();
hold = false;
await page.waitForFunction(() => !document.querySelector(".working") && !document.querySelector("#page.old"));
verdict("and so it is when the answer comes", (await text(page, ".top .chip")).includes("3 ns to the end"), await text(page, ".top .chip"));

// The first answer of all.
hold = true;
await page.route("**/q/meta", async (route) => {
  while (hold) await new Promise((go) => setTimeout(go, 20));
  await route.continue();
});
await page.goto("about:blank");
await page.goto(process.argv[2]);
await page.waitForFunction(() => document.querySelector(".working.first progress")?.value === 300);
verdict("the first time, too, before there is anything else", (await text(page, "#page")).startsWith("Reading the trace: 25.00 %"), await text(page, "#page"));
hold = false;
await page.waitForSelector(".functions .rows .row");
equal("then the page is there, without an error", [[], 0], [errors.filter((e) => !e.includes("ERR_FAILED") && !e.includes("ERR_ABORTED")), await working.count()]);
await close();
process.exit(hasFailed() ? 1 : 0);
