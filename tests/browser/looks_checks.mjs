// SPDX-License-Identifier: MIT
// What is wrong with how a page looks, as far as a script can tell: gives sentences, none when all is well.
// It runs within the page, so it uses nothing from outside of itself.

export function findFlaws() {
  const flaws = [];
  const name = (e) => `${e.tagName.toLowerCase()}${e.className && typeof e.className === "string" ? `.${e.className.split(" ")[0]}` : ""} '${(e.innerText ?? e.value ?? "").trim().slice(0, 40)}'`;
  const isShown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && e.getClientRects().length > 0;
  const scrolls = (overflow) => overflow === "auto" || overflow === "scroll";
  const parentsOf = (e) => {
    const all = [];
    for (let p = e; p && p !== document.documentElement; p = p.parentElement) all.push(p);
    return all;
  };
  const edge = 1.5; // pixels that rounding may take

  // --- Text that is cut off ends with an ellipsis, and what it is from has all of it as its title.
  const isTold = (element) => element.closest("[title]:not([title=''])") ?? element.querySelector("[title]:not([title=''])");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || !isShown(element) || element.closest("script, style, option")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    if (!text.width) continue;
    for (const box of parentsOf(element)) {
      const style = getComputedStyle(box);
      const rect = box.getBoundingClientRect();
      const isWide = text.right > rect.right + edge || text.left < rect.left - edge;
      const isHigh = text.bottom > rect.bottom + edge || text.top < rect.top - edge;
      if (isWide && style.overflowX === "hidden" && !(style.textOverflow === "ellipsis" && isTold(element))) flaws.push(`cut off at its side: ${name(element)} in ${name(box)}`);
      if (isWide && style.overflowX === "hidden" && box !== element && getComputedStyle(element).display.startsWith("inline-")) flaws.push(`nothing but an ellipsis is left: ${name(element)} in ${name(box)}`);
      if (isHigh && style.overflowY === "hidden") flaws.push(`cut off below or above: ${name(element)} in ${name(box)}`);
      if (isWide && !scrolls(style.overflowX) && style.overflowX === "visible" && box === element && style.display !== "inline" && box.tagName === "BUTTON") flaws.push(`wider than its button: ${name(element)}`);
      if ((isWide && style.overflowX !== "visible") || (isHigh && style.overflowY !== "visible")) break;
    }
  }

  // --- What can be used, and what is always there, stands in the window, and beside one another.
  const parts = [...document.querySelectorAll("button, select, input, summary, canvas, th, .strip > summary > *, .compared-strip > *, .top > *, .found, .said, h2, h3, dd, .empty")].filter(isShown);
  const seen = (e) => {
    let { left, top, right, bottom } = e.getBoundingClientRect();
    for (const p of parentsOf(e.parentElement)) {
      const style = getComputedStyle(p);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const r = p.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, r.left), Math.max(top, r.top), Math.min(right, r.right), Math.min(bottom, r.bottom)];
    }
    return { left, top, right, bottom };
  };
  const rects = parts.map(seen);
  const isModal = (e) => e.closest("dialog, .menu .items, .help");
  for (let i = 0; i < parts.length; i++) {
    const a = rects[i];
    if (a.right - a.left < 1 || a.bottom - a.top < 1) continue;
    if (a.left < -edge || a.top < -edge || a.right > innerWidth + edge || a.bottom > innerHeight + edge) flaws.push(`outside of the window: ${name(parts[i])}`);
    for (let k = i + 1; k < parts.length; k++) {
      const b = rects[k];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) <= edge || Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) <= edge) continue;
      if (parts[i].contains(parts[k]) || parts[k].contains(parts[i]) || isModal(parts[i]) || isModal(parts[k])) continue;
      flaws.push(`one over the other: ${name(parts[i])} and ${name(parts[k])}`);
    }
  }
  const root = document.scrollingElement;
  if (root.scrollWidth > innerWidth + edge || root.scrollHeight > innerHeight + edge) flaws.push(`the page itself scrolls: ${root.scrollWidth}x${root.scrollHeight}`);

  // --- The tabs are one row.
  const tabs = new Set([...document.querySelectorAll("[role=tab]")].map((e) => Math.round(e.getBoundingClientRect().bottom)));
  if (tabs.size > 1) flaws.push(`the tabs are ${tabs.size} rows`);

  // --- A pane has a picture with something in it, or words.
  for (const [what, selector] of [["functions", ".functions"], ["pane", ".pane-body"], ["detail", "aside"]]) {
    const pane = document.querySelector(selector);
    if (!pane) flaws.push(`there is no ${what}`);
    else if (!pane.querySelector("canvas") && pane.innerText.trim().length < 12) flaws.push(`the ${what} is empty without a word: '${pane.innerText.trim()}'`);
  }
  for (const canvas of document.querySelectorAll("canvas")) {
    if (!isShown(canvas)) continue;
    if (!canvas.width || !canvas.height) flaws.push("a canvas has no size");
    else {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const words = new Uint32Array(data.buffer);
      const counts = new Map();
      for (let i = 0; i < words.length; i += 7) counts.set(words[i], (counts.get(words[i]) ?? 0) + 1);
      const most = Math.max(...counts.values());
      const drawn = 1 - most / Math.ceil(words.length / 7);
      if (counts.size < 3 || drawn < 0.0005) flaws.push(`blank: '${canvas.getAttribute("aria-label")}': ${counts.size} colours, ${(100 * drawn).toFixed(3)} % drawn`);
    }
  }
  return [...new Set(flaws)];
}
