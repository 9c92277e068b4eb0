// SPDX-License-Identifier: MIT
// diff.mjs NAME URL BEFORE-FLAT-JSON AFTER-FLAT-JSON: two traces in the page. What it shows is compared with the two
// reports, which are joined here once more, by name and last part of the image.
import { readFileSync } from "node:fs";
import { close, equal, hasFailed, label, open, shot, text, texts, verdict } from "./page.mjs";

const [name, url, ...paths] = process.argv.slice(2);
const reports = paths.map((path) => JSON.parse(readFileSync(path, "utf8")));
const keyOf = (r) => `${r.name}\n${(r.image ?? "").split("/").pop()}`;
const joined = new Map();
reports.forEach((report, side) => {
  for (const r of report.rows) {
    if (r.kind === "thread") continue;
    if (!joined.has(keyOf(r))) joined.set(keyOf(r), { name: r.name, sides: [null, null] });
    joined.get(keyOf(r)).sides[side] = r;
  }
});
const baseOf = (row, side) => (row.sides[side] ? row.sides[side].base : 0);
const moreOf = (row) => baseOf(row, 1) - baseOf(row, 0);
const all = [...joined.values()];
const signOf = (more) => (more > 0 ? "+" : more < 0 ? "-" : "=");

const { page, errors, requests } = await open(url);
const isMeasured = reports[0].metric.unit === reports[1].metric.unit && reports[0].metric.name === reports[1].metric.name;
const rows = () => texts(page, ".functions .rows .row");
const hash = async () => new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
const press = (button) => page.getByRole("group", { name: "Which trace" }).getByRole("button", { name: button, exact: true }).click();
const pane = async (which) => {
  await page.getByRole("tab", { name: which, exact: true }).click();
  await page.waitForTimeout(300);
};

// --- how they were measured is said
const strip = await text(page, ".compared-strip");
verdict(`${name}: the strip says what is before and after`, strip.includes("Before") && strip.includes("After"), strip);
const hasSamples = reports.map((r) => r.rows.some((row) => row.samples));
if (hasSamples[0] !== hasSamples[1]) verdict(`${name}: the strip says that they were not measured alike`, strip.includes("Not measured alike"), strip);
if (hasSamples[0] || hasSamples[1]) verdict(`${name}: estimates come with numbers of samples`, strip.includes("look at the numbers of samples"), strip);

// --- functions: all of both, the greatest difference first
if (isMeasured) {
  equal(`${name}: the functions of both are there`, String(all.length), await page.locator(".functions [role=grid]").getAttribute("aria-rowcount"));
  const most = Math.max(...all.map((r) => Math.abs(moreOf(r))));
  const first = (await texts(page, ".functions .rows .row .name .name"))[0];
  verdict(`${name}: the greatest difference comes first`, all.some((r) => r.name === first && Math.abs(moreOf(r)) === most), first);
  const shownSigns = await page.locator(".functions .rows .row").evaluateAll((list) => list.map((r) => [r.querySelector(".name .name").textContent, r.querySelector("b").textContent[0]]));
  const wrong = shownSigns.filter(([shown, sign]) => !all.some((r) => r.name === shown && signOf(moreOf(r)) === sign));
  equal(`${name}: each difference has its sign`, [], wrong);
  const sortButton = page.getByRole("columnheader").getByRole("button", { name: /^± Self/ });
  await sortButton.click();
  const up = Math.max(...all.map(moreOf));
  const top = (await texts(page, ".functions .rows .row .name .name"))[0];
  verdict(`${name}: then what is more`, all.some((r) => r.name === top && moreOf(r) === up), top);
  await sortButton.click();
  const down = Math.min(...all.map(moreOf));
  const bottom = (await texts(page, ".functions .rows .row .name .name"))[0];
  verdict(`${name}: then what is less`, all.some((r) => r.name === bottom && moreOf(r) === down), bottom);
}

// --- by hand: the two small traces of viewer.sh
if (name === "diff-events") {
  const lines = (await rows()).map((r) => r.replace(/\s+/g, " ").trim());
  const line = (f) => lines.find((l) => l.startsWith(f)) ?? "";
  const expected = { parse: "parse -20 30 10 +15 35 50 = 1 1", read: "read -5 5 not there -5 5 not there -1 1 not there", write: "write +40 not there 40 +40 not there 40 +1 not there 1", check: "check = 7 7 = 7 7 = 1 1" };
  const isSo = Object.values(expected).every((l) => lines.includes(l));
  verdict(`${name}: by hand: functions before, after, difference`, isSo, Object.keys(expected).map(line).join(" | "));
}

// --- flame graph: signs and both figures in the strip at the bottom
const hot = isMeasured ? [...all].sort((a, b) => Math.abs(moreOf(b)) - Math.abs(moreOf(a)))[0].name : all.find((r) => r.sides[1]).name;
if (isMeasured) {
  verdict(`${name}: the flame graph is of the difference`, (await label(page, ".pane-body canvas")).startsWith("Flame graph of the difference"), await label(page, ".pane-body canvas"));
  await page.locator(".pane-body canvas").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.waitForTimeout(200);
  const hover = await text(page, ".hover");
  verdict(`${name}: a box says its sign, before and after`, /^[-+=] .*before .*, after .*: ([-+]|=)/.test(hover), hover);
  if (hasSamples[0] && hasSamples[1]) verdict(`${name}: with both numbers of samples`, /before ([^,]*\((\d+ samples?|exact)\)|not there), after ([^:]*\((\d+ samples?|exact)\)|not there)/.test(hover), hover);
  await shot(page, `${name}-flame`);
  await pane("Call graph");
  await page.getByRole("searchbox").fill(hot);
  await page.waitForTimeout(300);
  await page.locator(".functions .rows .row .name", { hasText: hot }).first().click();
  await page.getByRole("searchbox").fill("");
  await page.getByRole("searchbox").blur(); // keys are for the page
  await page.waitForTimeout(400);
  const both = await text(page, "aside table.both");
  verdict(`${name}: the detail has both`, both.includes("Before") && /[-+]\d|=/.test(both), both);
  await shot(page, `${name}-graph`);
  await page.locator("body").press("t");
  await shot(page, `${name}-graph-dark`);
  await page.locator("body").press("t");
  await pane("Bottom-up");
  verdict(`${name}: a pane of one trace says which`, (await text(page, ".which")).includes("what is after"), await text(page, ".which"));
  await pane("Flame graph");
}

// --- the switch, which the address keeps
await press("Before");
await page.waitForTimeout(500);
equal(`${name}: before stands in the address`, "before", (await hash()).get("show"));
const count = async () => page.locator(".functions [role=grid]").getAttribute("aria-rowcount");
equal(`${name}: before has the functions of that trace`, String(reports[0].rows.filter((r) => r.kind !== "thread").length), await count());
await page.reload();
await page.waitForSelector(".functions .rows .row");
await page.waitForTimeout(500);
equal(`${name}: also when the page is opened with that address`, String(reports[0].rows.filter((r) => r.kind !== "thread").length), await count());
await press("After");
await page.waitForTimeout(500);
equal(`${name}: after has those of the other`, String(reports[1].rows.filter((r) => r.kind !== "thread").length), await count());
await page.goBack();
await page.waitForTimeout(300);
equal(`${name}: back undoes it`, "before", (await hash()).get("show"));
await page.locator("body").press("b");
equal(`${name}: b shows the difference`, null, (await hash()).get("show"));

// --- a transform of a function that the older trace alone has
const gone = isMeasured && all.find((r) => r.sides[0] && !r.sides[1] && !/[;/=]/.test(r.name));
if (gone) {
  await page.evaluate((t) => (location.hash = new URLSearchParams({ transforms: t }).toString()), `focus=${gone.name}`);
  await page.waitForTimeout(600);
  verdict(`${name}: what only the older trace has can be focused`, (await rows()).some((r) => r.includes(gone.name)) && (await page.locator("main.failed").count()) === 0, (await rows()).join());
}

const own = new URL(url).origin;
const others = requests.filter((r) => (url.startsWith("file:") ? !r.startsWith("data:") && !r.startsWith("blob:") && r.split("#")[0] !== url : !r.startsWith(own) && !r.startsWith("data:")));
equal(`${name}: the page asks nobody else`, [], others);
// A question that is refused is answered with a sentence, which is shown; the browser reports that, too.
equal(`${name}: no error in the page`, [], errors.filter((e) => !e.includes("/q/")));
await close();
process.exit(hasFailed() ? 1 : 0);
