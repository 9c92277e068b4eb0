// SPDX-License-Identifier: MIT
// panes.mjs NAME URL TRACE-FLAT-JSON KIND: everything that a person does with a trace of this kind, in the page at
// this address; what is shown is compared with `weir report --json`.
import { readFileSync } from "node:fs";
import { close, equal, hasFailed, label, open, shot, text, texts, verdict } from "./page.mjs";

const [name, url, flatPath, kind] = process.argv.slice(2);
const flat = JSON.parse(readFileSync(flatPath, "utf8"));
const functions = flat.rows.filter((r) => r.kind !== "thread");
const isFile = url.startsWith("file:");
const { page, errors, requests } = await open(url);

const tab = async (pane) => {
  await page.getByRole("tab", { name: pane, exact: true }).click();
  await page.waitForTimeout(200);
};
const rows = () => texts(page, ".functions .rows .row .name");
const hash = async () => new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
const key = async (k) => {
  await page.locator("body").press(k);
  await page.waitForTimeout(150);
};

// --- functions
const byBase = [...functions].sort((a, b) => (b.base ?? -1) - (a.base ?? -1));
equal(`${name}: the first function is that with most of its own`, byBase[0].name, (await rows())[0]);
await page.getByRole("button", { name: /^Self\+desc/ }).click();
const most = Math.max(...functions.map((r) => r.cum ?? -1));
const firstByCum = (await rows())[0];
verdict(`${name}: by self+descendants the dearest comes first`, functions.some((r) => r.name === firstByCum && (r.cum ?? -1) === most), firstByCum);
await page.getByRole("button", { name: /^Self/ }).first().click();

const hot = byBase[0].name;
await page.getByRole("searchbox").fill(hot);
await page.waitForTimeout(250);
verdict(`${name}: the search restricts the functions`, (await rows()).every((n) => n.toLowerCase().includes(hot.toLowerCase())) && (await rows()).length > 0, (await rows()).join());
await page.getByRole("searchbox").fill("no function is called like this");
await page.waitForTimeout(250);
verdict(`${name}: a search without a match says so`, (await text(page, ".functions .empty")).includes("No function matches"));
await page.getByRole("searchbox").press("Escape");

// --- detail
await page.locator(".functions .rows .row .name", { hasText: hot }).first().click();
await page.waitForSelector("aside .detail h2");
equal(`${name}: a click selects`, hot, await text(page, "aside .detail h2"));
const self = byBase[0];
const share = flat.total ? `${((100 * self.base) / flat.total).toFixed(2)} %` : ".";
verdict(`${name}: the detail has the figures of weir report`, (await text(page, "aside dl")).includes(share), `${share} in ${await text(page, "aside dl")}`);
await shot(page, `${name}-flame`);

// --- flame graph
await tab("Flame graph");
const flame = page.locator(".pane-body canvas");
verdict(`${name}: the flame graph has boxes`, /: [1-9]\d* boxes/.test(await label(page, ".pane-body canvas")), await label(page, ".pane-body canvas"));
await flame.focus();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("ArrowDown");
await page.waitForTimeout(150);
verdict(`${name}: arrow keys walk in it, and the strip says where`, (await text(page, ".hover")).includes("with all it calls"), await text(page, ".hover"));
await page.keyboard.press("Enter");
await page.keyboard.press("Escape");

// --- bottom-up
await page.locator(".functions .rows .row .name", { hasText: hot }).first().click();
await tab("Bottom-up");
if (kind !== "flat") verdict(`${name}: bottom-up stands on the function`, (await label(page, ".pane-body canvas")).includes(`Callers of ${hot}`), await label(page, ".pane-body canvas"));

// --- call graph
await tab("Call graph");
await page.waitForSelector(".graph-canvas");
const said = async () => text(page, ".graph .shown");
const shown = async () => Number(/^(\d+) of/.exec(await said())?.[1]);
verdict(`${name}: the filter sets itself`, (await shown()) >= Math.min(1, functions.length) && (await shown()) <= Math.max(30, functions.length), await said());
if (functions.length >= 30) verdict(`${name}: so that about 30 functions are there`, (await shown()) <= 45, await said());
const before = await shown();
await page.getByLabel("filter in percent").fill("0");
await page.getByLabel("filter in percent").press("Enter");
await page.waitForTimeout(400);
verdict(`${name}: without a filter all functions are there`, (await shown()) >= before, await said());
await page.getByLabel("filter in percent").fill("20");
await page.getByLabel("filter in percent").press("Enter");
await page.waitForTimeout(400);
verdict(`${name}: with 20 % few are`, (await shown()) <= before, await said());
await page.getByRole("button", { name: "30 functions" }).click();
await page.waitForTimeout(400);
equal(`${name}: and then as many as at first`, before, await shown());
await page.locator(".graph-canvas").focus();
await page.keyboard.press("ArrowLeft");
await page.waitForTimeout(300);
const under = () => text(page, ".graph .under b");
const walked = await under();
verdict(`${name}: an arrow key walks to the caller`, walked !== "" && walked !== hot, walked);
const collapse = page.getByRole("button", { name: "Collapse" });
if (await collapse.isEnabled()) {
  await collapse.click();
  await page.waitForTimeout(400);
  verdict(`${name}: a box is collapsed, and the address says so`, (await hash()).get("graph")?.includes("folded"));
  await page.getByRole("button", { name: "Show callees" }).click();
  await page.waitForTimeout(300);
}
for (const rule of ["none", "linear", "log", "adaptive"]) await page.getByLabel("Arcs").selectOption(rule);
await page.getByLabel("Left").selectOption("self %");
await shot(page, `${name}-graph`);
const root = page.getByRole("button", { name: "Virtual root", exact: true });
if (await root.isVisible()) {
  await root.click();
  await page.waitForTimeout(300);
  verdict(`${name}: a virtual root can be taken back`, await page.getByRole("button", { name: "Whole program as root" }).isVisible());
  await page.getByRole("button", { name: "Whole program as root" }).click();
}

// --- transforms
await tab("Flame graph");
await page.locator(".functions .rows .row .name", { hasText: hot }).first().click();
await page.waitForTimeout(200);
await page.getByRole("button", { name: "Focus" }).first().click();
await page.waitForTimeout(400);
equal(`${name}: a transform stands in the address`, `focus=${hot}`, (await hash()).get("transforms"));
verdict(`${name}: and on the page`, (await text(page, ".transforms")).includes(`focus=${hot}`));
await page.goBack();
await page.waitForTimeout(300);
equal(`${name}: back undoes it`, null, (await hash()).get("transforms"));
await key("r");
equal(`${name}: r merges recursion`, "merge-recursion", (await hash()).get("transforms"));
await key("u");
equal(`${name}: u takes it back`, null, (await hash()).get("transforms"));

// --- timeline, source, lists
await tab("Timeline");
await page.waitForTimeout(300);
if (kind === "time") {
  verdict(`${name}: the timeline has threads`, /Timeline of [1-9]/.test(await label(page, ".pane-body canvas")), await label(page, ".pane-body canvas"));
  await shot(page, `${name}-timeline`);
  if (name === "steps") verdict(`${name}: it says how many instructions lie in it, and what happened between them`, /^20000 instructions; .*1 exec; /.test(await text(page, ".timeline .said")), await text(page, ".timeline .said"));
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.waitForTimeout(500);
  verdict(`${name}: a stretch of time is for all panes`, (await texts(page, ".top .chip")).join().includes(" to "), (await texts(page, ".top .chip")).join());
  await page.getByRole("button", { name: "All of the time", exact: true }).first().click();
} else {
  verdict(`${name}: a timeline without times says why`, (await text(page, ".pane-body")).includes("Nothing in this trace has a time"), await text(page, ".pane-body"));
}
await page.waitForTimeout(300);
await page.locator(".functions .rows .row .name", { hasText: hot }).first().click();
await tab("Source");
await page.waitForTimeout(600);
const source = await text(page, ".pane-body");
verdict(`${name}: the source pane shows lines or says why not`, /Self %|no source lines|not known|debug information|no function|no sample of/i.test(source), source);
if (kind === "counts") await shot(page, `${name}-source`);
for (const list of ["Threads", "Modules", "Hooks"]) {
  await tab(list);
  await page.waitForFunction(() => document.querySelector(".pane-body")?.innerText.trim().length > 10, null, { timeout: 20000 }).catch(() => {});
  verdict(`${name}: ${list} has rows or says why not`, (await text(page, ".pane-body")).trim().length > 10, await text(page, ".pane-body"));
}

// --- keys, theme
await key("?");
verdict(`${name}: ? shows the keys`, await page.locator("dialog.help").isVisible());
await page.keyboard.press("Escape");
verdict(`${name}: Escape closes them`, !(await page.locator("dialog.help").isVisible()));
await key("2");
equal(`${name}: digits choose the panes`, "graph", (await hash()).get("pane"));
await key("t");
equal(`${name}: t changes dark and light`, "dark", await page.evaluate(() => document.documentElement.dataset.theme));
await shot(page, `${name}-graph-dark`);
verdict(`${name}: the strip says what was lost`, (await text(page, ".strip")).length > 10, await text(page, ".strip"));

// --- who was asked
const own = new URL(url).origin;
const others = requests.filter((r) => (isFile ? r !== url && !r.startsWith("data:") && !r.startsWith("blob:") : !r.startsWith(own) && !r.startsWith("data:")));
equal(`${name}: the page asks nobody else`, [], others);
if (isFile) verdict(`${name}: the file asks nobody at all`, requests.filter((r) => !r.startsWith("data:") && !r.startsWith("blob:")).length === 1, requests.join());
equal(`${name}: no error in the page`, [], errors);
await close();
process.exit(hasFailed() ? 1 : 0);
