// SPDX-License-Identifier: MIT
// look.mjs NAME URL: the wheel moves what is looked at of the timeline; the selection of all panes stays as it is until
// it is taken.
import { close, equal, hasFailed, open, shot, text, texts, verdict } from "./page.mjs";

const [name, url] = process.argv.slice(2);
const isFile = url.startsWith("file:");
const { page, errors, requests } = await open(url, { hash: "#pane=timeline" });
const hash = async () => new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
const asked = () => requests.filter((r) => r.includes("look-from"));
await page.waitForSelector(".timeline canvas");
await page.waitForTimeout(500);
const place = await page.locator(".timeline canvas").boundingBox();
const [left, middle] = [place.x + 151, place.x + 150 + (place.width - 158) / 2];
const lane = place.y + 30;
const wheel = async (x, y, times) => {
  for (let i = 0; i < times; i++) await page.mouse.wheel(x, y);
  await page.waitForTimeout(900);
};
// The time under the pointer at the left edge, as the strip says it, in ns.
const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
const timeAt = async (x) => {
  await page.mouse.move(x - 1, lane);
  await page.mouse.move(x, lane);
  await page.waitForTimeout(100);
  const [, n, unit] = / at ([\d.]+) ?(\w+)$/.exec(await text(page, "footer.hover")) ?? [];
  return Number(n) * (units[unit] ?? 1);
};

const take = page.getByRole("button", { name: "This time in all panes" });
const [first, centre] = [await timeAt(left), await timeAt(middle)];
verdict(`${name}: all of the time is looked at, at first`, await take.isDisabled());
await page.mouse.move(middle, lane);
await page.keyboard.down("Control");
await wheel(0, -100, 3); // a fifth: in less, a program that waits for its turn may not be seen at all
await page.keyboard.up("Control");
const near = await timeAt(left);
verdict(`${name}: with Ctrl the wheel zooms`, near > first, `${first} ${near}`);
verdict(`${name}: to where the pointer is`, Math.abs((await timeAt(middle)) - centre) <= centre / 50, `${centre} ${await timeAt(middle)}`);
equal(`${name}: the selection is as it was`, ["pane=timeline"], [(await hash()).toString()]);
if (!isFile) verdict(`${name}: weir is asked for a finer picture, once`, asked().length === 1, asked().join(" "));
await shot(page, `${name}-look`);
await page.mouse.move(middle, lane);
await wheel(100, 0, 1);
const later = await timeAt(left);
verdict(`${name}: without it, it moves on`, later > near, `${near} ${later}`);
await page.mouse.move(middle, lane);
await wheel(-100000, 0, 1);
verdict(`${name}: and no further than the beginning`, (await timeAt(left)) <= first, `${first} ${await timeAt(left)}`);
await wheel(100, 0, 1);

// --- taken
const seen = await timeAt(left);
await take.click();
await page.waitForTimeout(900);
const from = Number((await hash()).get("from"));
verdict(`${name}: what is looked at can be taken for all panes`, Math.abs(from - seen) <= Math.max(seen / 50, 10), `${from} ${seen}`);
verdict(`${name}: and begins there, or with the first record behind it`, (await timeAt(left)) >= seen, `${seen} ${await timeAt(left)}`);
verdict(`${name}: which the page says`, (await texts(page, ".top .chip")).join().includes(" to "), (await texts(page, ".top .chip")).join());
await page.locator(".timeline canvas").focus();
await page.keyboard.press("Escape");
await page.waitForTimeout(700);
equal(`${name}: Escape shows all again`, [first, null], [await timeAt(left), (await hash()).get("from")]);
equal(`${name}: no error in the page`, [], errors);
await close();
process.exit(hasFailed() ? 1 : 0);
