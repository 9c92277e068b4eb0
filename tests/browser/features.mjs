// SPDX-License-Identifier: MIT
// features.mjs NAME URL KIND: what the page can do besides its panes: search with its share, sorting both ways,
// dividers, both directions of the flame graph, files, bottom-up of all functions, the graph's first view.
import { readFileSync } from "node:fs";
import { close, equal, hasFailed, label, open, shot, text, texts, verdict } from "./page.mjs";

const [name, url, kind] = process.argv.slice(2);
const isFile = url.startsWith("file:");
const { page, errors } = await open(url);
const hash = async () => new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
const names = () => texts(page, ".functions .rows .row .name");
const wait = (ms = 300) => page.waitForTimeout(ms);
const head = (title) => page.locator(".functions .head button", { hasText: title }).first();

// --- functions
const all = await names();
await head("Function").click();
await wait();
const up = await names();
equal(`${name}: names go from A on`, [...up].sort((a, b) => (a < b ? -1 : 1)), up);
await head("Function").click();
await wait();
equal(`${name}: and a second click turns them around`, "-name", (await hash()).get("sort"));
verdict(`${name}: so that the last comes first`, (await names())[0] >= up.at(-1), `${(await names())[0]} ${up.at(-1)}`);
await head("Self").click();
await wait();
equal(`${name}: by self it is as at first`, all[0], (await names())[0]);

// --- dividers
const divider = page.getByRole("separator", { name: "width of the functions" });
const width = () => page.locator(".functions").evaluate((e) => e.offsetWidth);
const narrow = await width();
await divider.focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("ArrowRight");
await wait(100);
equal(`${name}: arrow keys move a divider`, narrow + 32, await width());
const box = await divider.boundingBox();
await page.mouse.move(box.x + 3, box.y + 100);
await page.mouse.down();
await page.mouse.move(box.x + 63, box.y + 100, { steps: 4 });
await page.mouse.up();
await wait(100);
equal(`${name}: so does the pointer`, narrow + 92, await width());
equal(`${name}: and the address keeps it`, String(narrow + 92), (await hash()).get("widths").split(",")[0]);
await divider.dblclick();
await wait(100);
equal(`${name}: a double click takes it back`, narrow, await width());

// --- search
await page.getByRole("searchbox").fill(all[0]);
await wait(600);
verdict(`${name}: the search says how many match, and their share`, /^[1-9]\d* match, \d+\.\d\d %$/.test(await text(page, ".found")), await text(page, ".found"));
await page.getByRole("searchbox").press("Enter");
await wait();
equal(`${name}: Enter goes to a match`, (await names())[0], (await hash()).get("selected"));
await page.getByRole("searchbox").fill(`/^${all[0].slice(0, 2)}/`);
await wait(600);
verdict(`${name}: an expression is one`, (await names()).every((n) => n.startsWith(all[0].slice(0, 2))), (await names()).join());
await page.getByRole("searchbox").fill("/(/");
await wait(600);
verdict(`${name}: a wrong one is named`, (await text(page, ".found")).includes("not a regular expression"), await text(page, ".found"));
await page.getByRole("searchbox").press("Escape");

// --- flame graph
await page.locator(".pane-body canvas").focus();
await page.keyboard.press("i");
await wait();
equal(`${name}: i turns the flame graph`, "1", (await hash()).get("up"));
await page.locator("select", { has: page.locator("option[value=time]") }).selectOption("name");
await wait();
equal(`${name}: its order is in the address`, "name", (await hash()).get("order"));
await page.getByRole("button", { name: "Zoom to selection" }).click();
await wait(100);
verdict(`${name}: a zoom can be reset`, await page.getByRole("button", { name: "Reset zoom" }).isEnabled());
await page.getByRole("button", { name: "Reset zoom" }).click();
await shot(page, `${name}-flame-up`);

// --- files
const take = async (item) => {
  if (!(await page.locator(".menu[open]").count())) await page.locator(".menu summary").click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: item }).click()]);
  return readFileSync(await download.path());
};
const svg = (await take("Picture as SVG")).toString();
verdict(`${name}: the SVG is one, with boxes and names`, svg.startsWith("<svg ") && svg.includes("<rect ") && svg.includes("</text>"), svg.slice(0, 200));
equal(`${name}: and well formed`, 0, await page.evaluate((s) => new DOMParser().parseFromString(s, "image/svg+xml").querySelectorAll("parsererror").length, svg));
equal(`${name}: the PNG is one`, "89504e47", (await take("Picture as PNG")).subarray(0, 4).toString("hex"));
if (isFile) {
  await page.locator(".menu summary").click();
  await page.getByRole("button", { name: "Selection as folded" }).click();
  await wait();
  verdict(`${name}: a file says who makes folded stacks`, (await text(page, ".menu p")).includes("weir export"), await text(page, ".menu p"));
  await page.locator(".menu summary").click();
} else {
  verdict(`${name}: folded stacks end with their weights`, /^[^\n]+ \d+\n/.test((await take("Selection as folded")).toString()));
  equal(`${name}: pprof is packed`, "1f8b", (await take("Selection as pprof")).subarray(0, 2).toString("hex"));
}

// --- bottom-up, graph
await page.getByRole("tab", { name: "Bottom-up" }).click();
await page.waitForSelector(".bottom-up .line");
await page.locator(".bottom-up").focus();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("ArrowRight");
await wait(600);
verdict(`${name}: a function opens to its callers`, (await page.locator(".bottom-up .line[aria-level='2']").count()) > 0);
await page.keyboard.press("End");
await wait();
const functionsThere = (await page.locator(".functions .grid").getAttribute("aria-rowcount")) ?? "";
verdict(`${name}: bottom-up goes on to the last function`, (await page.locator(".bottom-up .line.at").count()) === 1 && Number.parseInt(await label(page, ".bottom-up")) > Number(functionsThere), await label(page, ".bottom-up"));
await page.getByRole("tab", { name: "Call graph" }).click();
await wait(600);
verdict(`${name}: the graph says how much of it is shown`, /of \d+ functions/.test(await text(page, ".graph .shown")));
await page.getByRole("button", { name: "Fit to view" }).click();
await page.getByRole("tab", { name: "Source" }).click();
await wait(600);
if (kind === "counts") {
  await page.getByLabel("instructions", { exact: true }).check();
  await wait(900);
  verdict(`${name}: instructions are there on request, or why not`, /Instruction|There are no instructions/.test(await text(page, ".source")), await text(page, ".source"));
}
// The wrong expression above was refused, which the browser reports, too.
equal(`${name}: no error in the page`, [], errors.filter((e) => !e.includes("/q/matches?search=%2F(%2F")));
await shot(page, `${name}-end`);
await close();
process.exit(hasFailed() ? 1 : 0);
