// SPDX-License-Identifier: MIT
// apart.mjs URL: two traces that have nothing to compare: the page says so, and each can be looked at alone.
import { close, hasFailed, open, text, texts, verdict } from "./page.mjs";
import { findFlaws } from "./looks_checks.mjs";

const { page } = await open(process.argv[2], { ready: ".functions .empty" });
await page.waitForSelector(".compared-strip.otherwise");
const strip = await text(page, ".compared-strip");
verdict("two that cannot be compared: it is said why, and what can be done", /cannot be compared: .*no metric 'time'.*Before and After, above, show each/.test(strip), strip);
await page.waitForTimeout(400);
const flaws = await page.evaluate(findFlaws);
verdict("two that cannot be compared: each pane has its place and words", flaws.length === 0, flaws.join("; "));
await page.getByRole("button", { name: "After", exact: true }).click();
await page.waitForSelector(".functions .rows .row");
verdict("two that cannot be compared: After is as it is alone", (await texts(page, ".functions .rows .row .name")).includes("alpha"));
await page.getByRole("button", { name: "Before", exact: true }).click();
await page.waitForSelector(".functions .empty");
verdict("two that cannot be compared: so is Before", (await text(page, ".functions")).includes("nothing in it"), await text(page, ".functions"));
await close();
process.exit(hasFailed() ? 1 : 0);
