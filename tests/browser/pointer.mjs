// SPDX-License-Identifier: MIT
// pointer.mjs NAME URL: boxes, arrows and frames are clicked and dragged; an address names functions, whose numbers
// change with the selection.
import { close, equal, hasFailed, open, shot, text, texts, verdict } from "./page.mjs";

const [name, url] = process.argv.slice(2);
const isPair = name === "pair";
const { page, errors } = await open(url);
const hash = async () => new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
const graphKeys = async () => new URLSearchParams((await hash()).get("graph") ?? "");
const wait = (ms = 400) => page.waitForTimeout(ms);
const canvas = page.locator(".graph-canvas");
const row = (f) => page.locator(".functions .rows .row .name", { hasText: f }).first();
const shown = () => text(page, ".graph .shown");

// Where boxes are, by what the strip says of each place: the middle of each, and its right edge.
async function boxes() {
  return canvas.evaluate(async (e) => {
    const area = e.getBoundingClientRect();
    const strip = document.querySelector("footer.hover");
    const found = {};
    for (let y = area.top + 4; y < area.bottom; y += 6) {
      for (let x = area.left + 4; x < area.right; x += 8) {
        e.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
        for (let i = 0; i < 4; i++) await undefined; // the strip is drawn behind this
        const box = /^(?:[-+=] )?(\w+)  ·  .*callees shown$/.exec(strip.textContent)?.[1];
        if (!box) continue;
        const f = (found[box] ??= { left: x, right: x, top: y, bottom: y, said: strip.textContent });
        Object.assign(f, { right: Math.max(f.right, x), bottom: Math.max(f.bottom, y), left: Math.min(f.left, x) });
      }
    }
    for (const f of Object.values(found)) Object.assign(f, { x: (f.left + f.right) / 2, y: (f.top + f.bottom) / 2 });
    return found;
  });
}
async function drag(from, to) {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 5 });
  await page.mouse.up();
  await wait(200);
}
const down = (all, names) => names.filter((n) => all[n]).sort((a, b) => all[a].y - all[b].y);

// --- functions
await row("beta").dblclick();
await wait();
equal(`${name}: a double click on a function shows it in the call graph`, ["graph", "beta"], [(await hash()).get("pane"), (await hash()).get("selected")]);

// --- boxes and their arrows
await page.goto(`${url}#pane=graph&graph=${encodeURIComponent("filter=100")}`);
await wait(700);
const first = await boxes();
const there = ["main", "alpha", "one", "two", "beta", "three", "gamma"];
verdict(`${name}: what has 10 % is there, and nothing else`, there.filter((n) => n !== "two" || !isPair).every((n) => first[n]) && !first.tiny && !first.small, Object.keys(first).join());
await page.mouse.click(first.alpha.x, first.alpha.y);
await wait();
equal(`${name}: a click selects a box`, "alpha", (await hash()).get("selected"));
const arrow = async () => {
  const at = (await boxes()).alpha;
  await page.mouse.click(at.right - 2, at.y);
  await wait(600);
};
await arrow();
const opened = await boxes();
verdict(`${name}: a click on the half arrow shows all callees`, opened.tiny, opened.alpha?.said);
const same = ["one", "beta", "three", "gamma"];
equal(`${name}: and boxes stay in their order`, down(first, same), down(opened, same));
verdict(`${name}: and in their columns`, same.every((n) => Math.abs(first[n].left - opened[n].left) < 20));
await arrow();
const half = await boxes();
verdict(`${name}: a click on the open arrow takes a step back`, half.one && !half.tiny, Object.keys(half).join());
await page.getByRole("button", { name: "Collapse" }).click();
await wait(600);
const folded = await boxes();
verdict(`${name}: collapsed, it shows none`, folded.alpha && !folded.one && !folded.tiny, Object.keys(folded).join());
verdict(`${name}: the address names the function`, (await graphKeys()).get("folded").startsWith("alpha"), (await graphKeys()).toString());
await arrow();
verdict(`${name}: a click on the filled arrow opens it again`, (await boxes()).one);

// --- dragged
const before = await boxes();
await drag(before.gamma, { x: before.gamma.x + 36, y: before.gamma.y + 50 });
const moved = (await boxes()).gamma;
verdict(`${name}: a box is where it was dragged`, Math.abs(moved.x - before.gamma.x - 36) < 14 && Math.abs(moved.y - before.gamma.y - 50) < 14, JSON.stringify([before.gamma, moved]));
await page.getByRole("button", { name: "Redo layout" }).click();
await wait(200);
verdict(`${name}: and can go back`, Math.abs((await boxes()).gamma.y - before.gamma.y) < 14);
const overview = await page.locator("canvas.overview").boundingBox();
await drag({ x: overview.x + overview.width / 2, y: overview.y + overview.height / 2 }, { x: overview.x + overview.width / 2 + 20, y: overview.y + overview.height / 2 });
const looked = await boxes();
verdict(`${name}: dragging the frame moves the picture`, looked.alpha.x < before.alpha.x - 10, JSON.stringify([before.alpha, looked.alpha]));

// --- a virtual root keeps its name when numbers change
await page.goto(`${url}#pane=graph&graph=${encodeURIComponent("filter=0")}`);
await wait(700);
const whole = await boxes();
await page.mouse.dblclick(whole.beta.x, whole.beta.y);
await wait(600);
verdict(`${name}: a double click makes a box the virtual root`, (await graphKeys()).get("root")?.startsWith("beta") && /^Shares are of beta\./.test(await shown()), `${await graphKeys()} ${await shown()}`);
const shareOfThree = /(\d+\.\d+) % with descendants/;
const rooted = (await boxes()).three;
if (!isPair) equal(`${name}: shares are of it`, "93.33", shareOfThree.exec(rooted.said)?.[1]);
await shot(page, `${name}-root`);
await row("alpha").click();
await page.locator("body").press("d");
await wait(700);
equal(`${name}: the other function is gone`, "drop=alpha", (await hash()).get("transforms"));
verdict(`${name}: and beta is the root as before`, /^Shares are of beta\./.test(await shown()), await shown());
const dropped = await boxes();
verdict(`${name}: of which the picture is`, dropped.three && !dropped.one, Object.keys(dropped).join());
if (!isPair) equal(`${name}: with the same shares`, "93.33", shareOfThree.exec(dropped.three.said)?.[1]);
await row("beta").click();
await page.locator("body").press("d");
await wait(700);
verdict(`${name}: a root that is gone is said to be`, /^Not in this selection, so shares are of the whole: beta\./.test(await shown()), await shown());
await page.goBack();
await page.goBack();
await wait(700);
verdict(`${name}: back brings it back`, /^Shares are of beta\./.test(await shown()) && (await hash()).get("transforms") === "drop=alpha", `${await hash()} ${await shown()}`);

// --- timeline, flame graph
await page.goto(`${url}#pane=timeline`);
await wait(600);
const line = await page.locator(".timeline canvas").boundingBox();
await drag({ x: line.x + line.width * 0.5, y: line.y + 40 }, { x: line.x + line.width * 0.8, y: line.y + 40 });
await wait(500);
verdict(`${name}: dragging over a stretch of time selects it`, Number((await hash()).get("from")) > 0 && Number((await hash()).get("to")) <= 100 && (await texts(page, ".top .chip")).join().includes(" to "), await hash());
await page.goto(`${url}#pane=nothing`);
await wait(500);
equal(`${name}: an address with an unknown pane shows the first one`, "Flame graph", (await texts(page, "[role=tab][aria-selected=true]")).join());
const flame = await page.locator(".pane-body canvas").boundingBox();
await page.mouse.dblclick(flame.x + 20, flame.y + 50);
await wait(200);
verdict(`${name}: a double click zooms into a box`, await page.getByRole("button", { name: "Reset zoom" }).isEnabled());
equal(`${name}: no error in the page`, [], errors);
await close();
process.exit(hasFailed() ? 1 : 0);
