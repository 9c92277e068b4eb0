// SPDX-License-Identifier: MIT
// hostile.mjs NAME URL: names and source lines that are HTML or script show as text, in every pane.
import { close, hasFailed, label, open, shot, text, texts, verdict } from "./page.mjs";

const [name, url] = process.argv.slice(2);
const { page, errors, requests } = await open(url);
let dialogs = 0;
page.on("dialog", (d) => (dialogs++, d.dismiss()));
const tab = async (pane) => {
  await page.getByRole("tab", { name: pane, exact: true }).click();
  await page.waitForTimeout(200);
};
const image = "<img/src=x/onerror=alert(1)>";
const script = "</script><script>document.title='taken'</script>";

const rows = await texts(page, ".functions .rows .row .name");
for (const hostile of [image, script]) {
  verdict(`${name}: ${hostile} is text in the functions`, rows.includes(hostile), rows.join(" | "));
  await page.locator(".functions .rows .row .name", { hasText: hostile }).first().click();
  await page.waitForSelector("aside .detail h2");
  verdict(`${name}: ${hostile} is text in the detail`, (await text(page, "aside .detail h2")) === hostile, await text(page, "aside"));
  await tab("Call graph");
  await page.waitForSelector(".graph .under b");
  verdict(`${name}: ${hostile} is text below the graph`, (await text(page, ".graph .under b")) === hostile);
  await tab("Bottom-up");
  verdict(`${name}: ${hostile} is text in what a canvas says`, (await label(page, ".pane-body canvas")).includes(hostile), await label(page, ".pane-body canvas"));
}
verdict(`${name}: what turns letters around is shown as what it is`, rows.includes("evil\\u202eniam") && !/\u202e/.test(await text(page, "body")), rows.join(" | "));
verdict(`${name}: such names are callees as text`, (await texts(page, "aside .arcs .name")).length > 0);
await tab("Flame graph");
await page.locator(".pane-body canvas").focus();
for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowDown");
await page.waitForTimeout(150);
verdict(`${name}: and in the strip below`, /<!--|<img|<script/.test(await text(page, ".hover")), await text(page, ".hover"));
await page.getByRole("searchbox").fill("<b>nothing</b>");
await page.waitForTimeout(250);
verdict(`${name}: what is searched is text`, (await text(page, ".functions .empty")).includes("<b>nothing</b>"));
await page.getByRole("searchbox").press("Escape");
for (const pane of ["Threads", "Hooks", "Modules", "Source", "Timeline"]) await tab(pane);
await page.goto(`${url}#selected=${encodeURIComponent(image)}&transforms=${encodeURIComponent(`focus=${image}`)}&pane=%3Cimg%3E`);
await page.waitForTimeout(400);
verdict(`${name}: an address with HTML is text`, (await text(page, ".transforms")).includes(image), await text(page, ".transforms"));
await shot(page, `${name}-hostile`);

const made = await page.evaluate(() => ({
  images: document.querySelectorAll("#page img, #page b:not(.under b), #page script, #page iframe").length,
  scripts: [...document.scripts].filter((s) => !s.type || s.type === "text/javascript").length,
  title: document.title,
}));
verdict(`${name}: no element was made of a name`, made.images === 0 && made.scripts === 1, JSON.stringify(made));
verdict(`${name}: nothing of it ran`, made.title.startsWith("weir: ") && dialogs === 0, made.title);
verdict(`${name}: no error, and nobody else was asked`, errors.length === 0 && requests.every((r) => r.startsWith(new URL(url).origin) || r.startsWith("data:") || r.startsWith("blob:") || r.startsWith("file:")), errors.concat(requests.slice(-3)).join());
await close();
process.exit(hasFailed() ? 1 : 0);
