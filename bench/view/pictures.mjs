// SPDX-License-Identifier: MIT
// pictures.mjs JOB: opens one page in a browser of its own and prints what that took, as JSON.
//
// JOB is JSON: `url`; `viewer`, one of those below; `acts`, what is done with each pane; `n`, frames of each; `tries`, how
// often at most, until there are `enough` frames a second: the best one is given.
// The same code measures every viewer:
// - The first picture is there in the first frame after the one in which a name of a function of the profile was
//   written on a canvas, in ms since the navigation began; with `list`, when that also shows rows.
// - An act is one wheel event in each frame (requestAnimationFrame), as a touchpad sends them; what is counted is
//   the time from frame to frame. A frame in which no canvas was drawn is counted apart: there is no figure
//   without a picture.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const job = JSON.parse(process.argv[2]);
const { chromium } = createRequire(`${process.env.ROOT}/web/`)("playwright-core");
const patience = 120000; // ms

// pane: the part of the address that shows it, and where its canvas is.
const viewers = {
  weir: {
    list: ".functions .rows .row .name",
    pane: (name) => (name === "graph" ? { hash: "#pane=graph&graph=filter%3D0", canvas: ".graph-canvas" } : { hash: `#pane=${name}`, canvas: "canvas.canvas" }),
    zoom: 8, // of the wheel, for 4 % a frame
  },
  speedscope: { pane: () => ({ canvas: "canvas" }), zoom: 4 },
};
const viewer = viewers[job.viewer];

// Runs in the page before its own code does: notes when a name is on a canvas, and which frames draw.
function watch([isName, list]) {
  const test = new RegExp(isName);
  const seen = (window.benchSeen = { drawn: 0 });
  const context = CanvasRenderingContext2D.prototype;
  const fillText = context.fillText;
  context.fillText = function (text, ...rest) {
    if (test.test(text)) {
      context.fillText = fillText; // what comes later costs nothing more
      seen.named = performance.now();
    }
    return fillText.call(this, text, ...rest);
  };
  // Each viewer calls one of these once for a picture.
  const count = (type, method) => {
    const real = type?.prototype[method];
    if (!real) return;
    type.prototype[method] = function (...args) {
      seen.drawn++;
      return real.apply(this, args);
    };
  };
  count(CanvasRenderingContext2D, "setTransform");
  count(CanvasRenderingContext2D, "clearRect");
  count(window.WebGLRenderingContext, "clear");
  count(window.WebGL2RenderingContext, "clear");
  let before = performance.now();
  seen.longest = 0;
  const look = (now) => {
    seen.longest = Math.max(seen.longest, now - before);
    before = now;
    if (seen.named !== undefined && (!list || document.querySelector(list))) seen.picture = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

// Runs in the page: one wheel event in each of n frames; gives the times between frames.
async function frames([selector, act, n, zoom]) {
  const all = [...document.querySelectorAll(selector)].filter((e) => e.clientWidth && e.clientHeight);
  const canvas = all.reduce((a, b) => (a.clientWidth * a.clientHeight >= b.clientWidth * b.clientHeight ? a : b));
  const box = canvas.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + Math.min(60, box.height / 2)];
  const target = document.elementFromPoint(x, y) ?? canvas;
  const wheel = (deltaX, deltaY, metaKey) =>
    target.dispatchEvent(new WheelEvent("wheel", { deltaX, deltaY, metaKey, clientX: x, clientY: y, bubbles: true, cancelable: true }));
  const acts = {
    zoom: (i) => wheel(0, i % 80 < 40 ? -zoom : zoom, true), // in and out again
    pan: (i) => wheel(i % 60 < 30 ? 24 : -24, i % 30 < 15 ? 6 : -6, false),
  };
  const nextFrame = () => new Promise((done) => requestAnimationFrame(done));
  if (act === "pan") {
    for (let i = 0; i < 30; i++, await nextFrame()) wheel(0, -zoom, true); // all of it at once cannot be moved
  }
  const times = [];
  let empty = 0;
  await nextFrame();
  let before = await nextFrame();
  for (let i = 0; i < n; i++) {
    const drawn = window.benchSeen.drawn;
    acts[act](i);
    const now = await nextFrame();
    times.push(now - before);
    before = now;
    if (window.benchSeen.drawn === drawn) empty++;
  }
  for (let i = 0; act === "pan" && i < 30; i++, await nextFrame()) wheel(0, zoom, true);
  return { times, empty };
}

// The page's own rules forbid code in texts, which waiting inside of it would be.
async function untilPicture(page) {
  for (const end = Date.now() + patience; Date.now() < end; await page.waitForTimeout(100)) {
    const seen = await page.evaluate(() => window.benchSeen);
    if (seen.picture !== undefined) return seen;
  }
  throw new Error(`no picture within ${patience / 1000} s: ${await page.evaluate(() => document.body.innerText.slice(0, 300))}`);
}

// Of several tries, since whatever else runs makes frames late.
async function best(page, what) {
  const time = (tried) => tried.times.reduce((sum, ms) => sum + ms, 0);
  let found;
  for (let i = 0; i < job.tries; i++) {
    const tried = await page.evaluate(frames, what);
    if (!found || time(tried) < time(found)) found = tried;
    if ((1000 * job.n) / time(found) >= job.enough) break;
  }
  return found;
}

function kB(pid, file, key) {
  const found = new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "utf8"));
  return found ? Number(found[1]) : NaN;
}

// The process that has the page: the largest of those that render. kB, and ms of CPU time so far.
async function tab(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const all = processInfo.filter((p) => p.type === "renderer").map(({ id, cpuTime }) => ({ kB: kB(id, "smaps_rollup", "Pss"), cpu: cpuTime * 1000 }));
  return all.sort((a, b) => b.kB - a.kB)[0];
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader"],
});
const result = { version: browser.version(), acts: {} };
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(patience);
  await page.addInitScript(watch, [job.name, viewer.list]);
  await page.goto(job.url, { timeout: patience });
  const seen = await untilPicture(page);
  Object.assign(result, { picture: seen.picture, longest: seen.longest });
  result.tab = await tab(browser);
  for (const [pane, acts] of Object.entries(job.acts ?? {})) {
    const { hash, canvas } = viewer.pane(pane);
    if (hash) await page.evaluate((h) => void (location.hash = h), hash);
    await page.waitForSelector(canvas);
    await page.waitForTimeout(700); // the last answer is drawn
    for (const act of acts) result.acts[`${pane} ${act}`] = await best(page, [canvas, act, job.n, viewer.zoom]);
    if (job.screen) await page.screenshot({ path: `${job.screen}-${pane}.png` });
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(result));
