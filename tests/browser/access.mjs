// SPDX-License-Identifier: MIT
// access.mjs NAME URL: axe finds nothing serious in any pane, light and dark, and the keyboard alone reaches everything.
import { readFileSync } from "node:fs";
import { close, hasFailed, open, verdict } from "./page.mjs";

const [name, url] = process.argv.slice(2);
const axe = readFileSync(`${process.env.ROOT}/web/node_modules/axe-core/axe.min.js`, "utf8");
const panes = ["flame", "graph", "callers", "timeline", "source", "threads", "modules", "hooks", "probes"];

async function findings(page) {
  const run = () => window.axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations);
  const all = await page.evaluate(run);
  return all.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 120)} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
}

for (const dark of [false, true]) {
  const { page } = await open(url, { dark });
  await page.locator(".functions .rows .row .name").first().click();
  await page.evaluate(axe); // not a script element, which the page's own rules forbid
  for (let i = 0; i < panes.length; i++) {
    await page.locator("body").press(String(i + 1));
    await page.waitForTimeout(250);
    const found = await findings(page);
    verdict(`${name}: axe finds nothing serious in ${panes[i]}, ${dark ? "dark" : "light"}`, found.length === 0, found.join("; "));
  }
  await page.locator("body").press("?");
  const found = await findings(page);
  verdict(`${name}: axe finds nothing serious in the help, ${dark ? "dark" : "light"}`, found.length === 0, found.join("; "));
  await page.context().close();
}

// A pane that is drawn has as many things in it as a moment ago, however busy the machine is.
async function isStill(page) {
  const count = () => page.evaluate(() => document.querySelectorAll("body *").length);
  for (let before = -1, n = 0, i = 0; i < 40 && (before !== n || i < 2); i++) {
    before = n;
    await page.waitForTimeout(250);
    n = await count();
  }
}

// Whatever can be clicked gets the focus by Tab, and shows it.
const { page } = await open(url);
await page.locator(".functions .rows .row .name").first().click();
for (let pane = 0; pane < panes.length; pane++) {
  await page.locator("body").press(String(pane + 1));
  await isStill(page);
  const expected = await page.evaluate(() => {
    document.activeElement?.blur();
    let n = 0;
    for (const e of document.querySelectorAll("button, select, input, summary, canvas, [tabindex='0']")) {
      const isWalked = e.tabIndex < 0 && e.parentElement.closest("[tabindex='0']"); // by arrow keys, from what has the focus
      const isThere = !isWalked && e.getClientRects().length > 0 && e.checkVisibility() && !e.disabled;
      if (isThere) e.dataset.reach = String(n++);
    }
    return n;
  });
  const reached = new Set();
  const dull = [];
  for (let i = 0; i < expected + 5; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      const s = getComputedStyle(e);
      return { reach: e.dataset.reach, ring: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2, html: e.outerHTML.slice(0, 80) };
    });
    if (at.reach === undefined) continue;
    reached.add(at.reach);
    if (!at.ring) dull.push(at.html);
  }
  const missed = await page.evaluate((r) => [...document.querySelectorAll("[data-reach]")].filter((e) => e.getClientRects().length && !r.includes(e.dataset.reach)).map((e) => e.outerHTML.slice(0, 80)), [...reached]);
  verdict(`${name}: Tab reaches everything in ${panes[pane]}`, missed.length === 0 && reached.size > 10, missed.join(" | "));
  verdict(`${name}: and the focus is seen in ${panes[pane]}`, dull.length === 0, dull.join(" | "));
  await page.evaluate(() => document.querySelectorAll("[data-reach]").forEach((e) => delete e.dataset.reach));
}

// A newcomer without a mouse: the hottest path, its callers, its source; then a search, a transform and back.
const { page: walked } = await open(url);
const hash = async () => new URLSearchParams(await walked.evaluate(() => location.hash.slice(1)));
const press = async (...keys) => {
  for (const key of keys) await walked.keyboard.press(key);
  await walked.waitForTimeout(400);
};
const tabTo = async (selector) => {
  for (let i = 0; i < 80; i++) {
    if (await walked.evaluate((s) => document.activeElement?.matches(s), selector)) return true;
    await walked.keyboard.press("Tab");
  }
  return false;
};
await walked.waitForSelector(".pane-body canvas");
verdict(`${name}: Tab goes to the flame graph`, await tabTo(".pane-body canvas"));
await press("h");
const hottest = (await hash()).get("selected");
verdict(`${name}: h selects the end of the hottest path`, hottest, await walked.url());
verdict(`${name}: of which the detail names the callers`, (await walked.locator("aside .detail").innerText()).includes(hottest) && (await walked.locator("aside section[aria-label='Called by']").count()) === 1);
await press("3");
verdict(`${name}: and bottom-up the ways to it`, (await walked.locator(".heads-of").innerText()).includes(hottest));
await press("5");
verdict(`${name}: its source is one key away, or why there is none`, (await walked.locator(".pane-body").innerText()).trim().length > 20);
await press("/", "e");
await press("Enter", "Escape");
verdict(`${name}: a search selects`, ((await hash()).get("selected") ?? "").includes("e"), await walked.url());
verdict(`${name}: Tab goes to the functions`, await tabTo(".functions .rows"));
await press("Home", "Enter");
verdict(`${name}: Enter locates one in the call graph`, (await hash()).get("pane") === "graph");
await press("f");
verdict(`${name}: f focuses it`, ((await hash()).get("transforms") ?? "").startsWith("focus="));
await press("u");
verdict(`${name}: u takes that back`, (await hash()).get("transforms") === null);
await press("?");
verdict(`${name}: ? shows the keys`, await walked.locator("dialog.help").isVisible());
await press("Escape");
verdict(`${name}: Escape closes them`, !(await walked.locator("dialog.help").isVisible()));
await close();
process.exit(hasFailed() ? 1 : 0);
