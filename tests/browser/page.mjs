// SPDX-License-Identifier: MIT
// What the browser's tests share: a page in Chromium whose requests and errors are watched, and verdicts.
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";

const root = process.env.ROOT;
const { chromium } = createRequire(`${root}/web/`)("playwright-core");
export const screens = `${process.env.BUILD ?? "build"}/screens`;
mkdirSync(screens, { recursive: true });

let failures = 0;
export function verdict(what, isSo, more = "") {
  if (!isSo) failures++;
  console.log(`${isSo ? "ok" : "not ok"} ${what}${isSo ? "" : `: ${String(more).slice(0, 300)}`}`);
}
export function equal(what, expected, actual) {
  verdict(what, JSON.stringify(expected) === JSON.stringify(actual), `expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
}
export function hasFailed() {
  return failures > 0;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
export async function close() {
  await browser.close();
}

// A page at an address; `errors` and `requests` fill while it lives.
export async function open(url, { width = 1280, height = 800, dark = false, hash = "", ready = ".functions .rows .row" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  const errors = [];
  const requests = [];
  page.on("pageerror", (e) => errors.push(e.message));
  // A function without source is refused with a sentence, which the pane shows; the browser reports that, too.
  page.on("console", (m) => m.type() === "error" && !m.location().url.includes("/q/source?") && errors.push(`${m.text()} ${m.location().url}`));
  page.on("request", (r) => requests.push(r.url()));
  await page.goto(url + hash);
  await page.waitForSelector(`${ready}, main.failed`, { timeout: 30000 });
  return { page, errors, requests, context };
}

export async function shot(page, name) {
  await page.waitForTimeout(150); // canvases draw in the next frame
  await page.screenshot({ path: `${screens}/${name}.png` });
}

export const text = (page, selector) => page.locator(selector).first().innerText();
export const texts = (page, selector) => page.locator(selector).allInnerTexts();
// What a pane says of itself, since a canvas has no text.
export const label = (page, selector) => page.locator(selector).first().getAttribute("aria-label");
