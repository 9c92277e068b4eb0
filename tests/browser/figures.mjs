// SPDX-License-Identifier: MIT
// figures.mjs SEED TRACE...: random questions to the page's engine in a file and behind the server, about random traces
// and those that are given; whatever they answer is what `weir report --json` says.
import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { openFile, openServer, question } from "./page_engine.mjs";

const weir = process.env.WEIR;
let seed = Number(process.argv[2]);
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) % n;
};
const pick = (list) => list[random(list.length)];
const names = ["main", "a", "b", "c<d>", "e::f(int)", "loop", "x;y", "größe"];

// --- traces
function callsOf(thread, lines) {
  let time = random(20);
  const open = [];
  for (let i = 60 + random(100); i > 0; i--) {
    time += random(9);
    const roll = random(10);
    if (roll < 4 && open.length < 9) {
      open.push(pick(names));
      lines.push([time, `enter ${open.at(-1)} ${thread}`]);
    } else if (roll < 7 && open.length) lines.push([time, `leave ${open.pop()} ${thread}`]);
    else if (roll === 7) lines.push([time, `sample=${1 + random(50)} ${thread}: main ${[...Array(random(5))].map(() => pick(names)).join(" ")}`]);
    else if (roll === 8) lines.push([time, `add bytes ${random(1000)} ${thread}`]);
  }
  while (open.length) lines.push([(time += random(5)), `leave ${open.pop()} ${thread}`]);
}
function eventTrace() {
  const lines = [];
  for (let thread = 1 + random(3); thread > 0; thread--) callsOf(thread, lines);
  lines.sort((x, y) => x[0] - y[0]);
  return lines.map(([time, what]) => `${time} ${what}`).join("\n");
}
function sampleTrace() {
  const name = () => (random(2) ? pick(names) : `f${random(50)}`); // more than the filter of the call graph shows at first
  return [...Array(40 + random(100))].map(() => `${1 + random(3)}: ${[...Array(1 + random(8))].map(name).join(" ")}`).join("\n");
}

// --- questions: keys of the page, which are options of weir report
function transforms(about) {
  const name = () => pick(about.names.filter((n) => !n.includes(";")));
  const kinds = [() => `focus=${name()}`, () => `fold=${name()}`, () => `drop=${name()}`, () => "merge-recursion", () => `fold=/${pick(about.regexes)}/`, () => `drop=/^${pick(["c", "e", "lo"])}/`];
  if (about.images.length) kinds.push(() => `fold-image=${pick(about.images)}`);
  return [...Array(random(4))].map(() => pick(kinds)()).join(";");
}
function randomKeys(about) {
  const keys = {};
  if (random(3)) keys.transform = transforms(about);
  if (!random(3)) keys.metric = pick(about.metrics);
  if (!random(3)) keys.thread = pick(about.threads);
  if (about.span && !random(3)) {
    keys.from = random(about.span / 4);
    keys.to = keys.from + 1 + random(about.span);
  }
  return keys;
}
function report(kind, trace, keys) {
  const options = Object.entries(keys).flatMap(([key, value]) => (value === "" ? [] : [`--${key}`, String(value)]));
  try {
    return { json: JSON.parse(execFileSync(weir, ["report", kind, trace, "--json", ...options], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] })) };
  } catch (e) {
    if (e.status === 3 && e.stdout) return { json: JSON.parse(e.stdout) }; // something was lost, and it says so
    return { refused: String(e.stderr).replace(/^weir: /, "").trim() };
  }
}

// --- comparing
let compared = 0;
let filtered = 0; // call graphs with a filter, of exact figures or of estimates alone
let differences = 0; // selections of two traces
let refused = 0;
const wrong = [];
function same(what, expected, actual) {
  compared++;
  if (JSON.stringify(expected) !== JSON.stringify(actual)) wrong.push(`${what}: expected ${JSON.stringify(expected).slice(0, 200)}, got ${JSON.stringify(actual).slice(0, 200)}`);
}
const tolerant = (x) => (x === null || Number.isNaN(x) ? null : x);

// Ways to outermost instances of a function, from it to its callers, with what is used on each.
function waysTo(rows, { name, image }) {
  const byId = new Map(rows.map((r) => [r.id, r]));
  const mine = rows.filter((r) => r.name === name && r.image === image && r.rl === 1 && r.kind !== "thread");
  const isExact = mine.some((r) => r.exact);
  const ways = new Map();
  for (const r of mine) {
    if (r.exact !== isExact) continue;
    let way = "";
    for (let at = r; at; at = byId.get(at.parent)) {
      way += `${at.name}\n`;
      ways.set(way, r.cum === null ? null : (ways.get(way) ?? 0) + r.cum);
    }
  }
  return ways;
}
function waysOf(tree) {
  const ways = new Map();
  const path = [];
  for (let i = 0; i < tree.n; i++) {
    path.length = tree.depth[i];
    path.push(tree.names[tree.routine[i]]);
    ways.set(`${path.join("\n")}\n`, tolerant(tree.cum[i]));
  }
  return ways;
}
const sorted = (ways) => [...ways].sort((a, b) => (a[0] < b[0] ? -1 : 1));

async function compareTree(what, answers, keys, rows) {
  const [tree, functions] = [await answers.tree(keys), await answers.names(keys)];
  const figures = (r) => [r.id, r.name, r.level, r.cum, r.base, r.exact];
  const ofPage = [...Array(tree.n).keys()].map((i) => [tree.node[i], functions.name[tree.routine[i]], tree.depth[i], tolerant(tree.cum[i]), tolerant(tree.base[i]), (tree.flags[i] & 1) !== 0]);
  const byNode = (a, b) => a[0] - b[0];
  same(`${what}: boxes of the flame graph`, rows.map(figures).sort(byNode), ofPage.sort(byNode));
  const calls = new Map(rows.map((r) => [r.id, r.calls]));
  same(`${what}: calls of its boxes`, [...tree.node].map((id) => calls.get(id)), [...tree.calls].map(tolerant));
  const ofFunctions = rows.filter((r) => r.kind !== "thread");
  if (!ofFunctions.length) return;
  const one = pick(ofFunctions);
  const routine = functions.name.findIndex((name, i) => name === one.name && (functions.image[i] || null) === one.image);
  const callers = await answers.callers({ ...keys, routine });
  same(`${what}: callers of ${one.name}`, sorted(waysTo(rows, one)), sorted(waysOf(callers)));
}
// Boxes of the call graph are functions; what a search for one finds of itself is what that one used.
async function compareGraph(what, answers, keys, rows, refusal) {
  const functions = rows.filter((r) => r.kind !== "thread");
  const ask = async () => answers.graph({ ...keys, filter: 0 });
  const byFunction = /by function, not by call/;
  const isByCall = !byFunction.test(refusal ?? "");
  const graph = isByCall && functions.length < 3000 ? await ask() : undefined;
  if (!isByCall) same(`${what}: what has no callers has no call graph`, true, await ask().then(() => false, (e) => byFunction.test(e.message)));
  const figures = (r) => [r.name, r.image ?? "", r.calls, r.base, r.cum, r.exact];
  const byName = (a, b) => (a.join() < b.join() ? -1 : 1);
  if (graph) same(`${what}: boxes of the call graph`, functions.map(figures).sort(byName), graph.boxes.filter((b) => b.routine).map(figures).sort(byName));
  const meta = await answers.meta(keys);
  same(`${what}: how many functions there are`, functions.length, meta.functions);
  if (!functions.length) return;
  const one = pick(functions);
  const meant = functions.filter((r) => r.name === one.name);
  const found = await answers.matches({ ...keys, search: `/^${one.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$/` });
  same(`${what}: how many a search for ${one.name} means`, meant.length, found.matches);
  // With both kinds of figure it is as wide as its boxes: samples share what the event around them has.
  const isPlain = functions.every((r) => r.exact === one.exact && r.base !== null && !r.sampled_cum);
  if (isPlain) same(`${what}: what ${one.name} used itself`, meant.reduce((sum, r) => sum + r.base, 0), found.base);
}
// What the call graph shows with a filter and a virtual root, by the formulas of docs/format/view-answers.md.
const keyOf = (r) => `${r.name}\n${r.image ?? ""}`;
function filterStep(part, whole) {
  const tenths = Math.ceil((1000 * part) / whole - 1e-9);
  return tenths <= 20 ? tenths : Math.min(200, Math.ceil(tenths / 10) * 10);
}
function reachable(tree, passes) {
  const keyOfId = new Map(tree.map((r) => [r.id, r.kind === "thread" ? "" : keyOf(r)]));
  const callees = new Map();
  for (const r of tree) {
    if (r.kind === "thread") continue;
    const caller = keyOfId.get(r.parent) ?? "";
    if (!callees.has(caller)) callees.set(caller, new Set());
    callees.get(caller).add(keyOf(r));
  }
  const there = new Set();
  const open = [""];
  while (open.length)
    for (const callee of callees.get(open.pop()) ?? [])
      if (passes.has(callee) && !there.has(callee)) {
        there.add(callee);
        open.push(callee);
      }
  return [...there].sort();
}
function widthsOf(share, smallest) {
  const slope = smallest < 1 ? 8 / Math.log(1 / smallest) : 0;
  return {
    none: 1,
    linear: Math.min(10, Math.max(1, Math.ceil(share * 10 - 1e-9))),
    log: Math.min(9, Math.max(1, Math.log2(1000 * share + 0.0001))),
    adaptive: smallest < 1 && smallest > 0 ? 1 + slope * Math.log(share / smallest) : undefined,
  };
}
async function compareFilter(what, answers, keys, truth) {
  const functions = truth.flat.json.rows.filter((r) => r.kind !== "thread");
  const { total } = truth.flat.json;
  if (!functions.length || functions.length > 1000 || !total || functions.some((r) => r.cum === null)) return;
  const byCum = functions.map((r) => r.cum).sort((a, b) => b - a);
  const auto = byCum.length < 30 ? 0 : filterStep(byCum[29], total);
  const filter = random(3) ? filterStep(random(total), 4 * total) : "auto";
  const rootRow = random(2) ? pick(functions) : undefined;
  const names = await answers.names(keys);
  const root = rootRow ? names.name.findIndex((name, i) => name === rootRow.name && (names.image[i] || null) === rootRow.image) : 0;
  const graph = await answers.graph({ ...keys, filter, root });
  const used = filter === "auto" ? auto : filter;
  what = `${what}: filter ${filter}, root ${rootRow?.name ?? "program"}`;
  same(`${what}: what is used`, [used, rootRow?.cum ?? total], [graph.filter, graph.whole]);
  const passes = new Set(functions.filter((r) => r.cum * 1000 >= used * total).map(keyOf));
  same(`${what}: what is shown`, reachable(truth.tree.json.rows, passes), graph.boxes.filter((b) => b.routine).map(keyOf).sort());
  const stanzas = new Map(truth.arcs.json.rows.map((s) => [keyOf(s), s]));
  const smallest = Math.min(1, ...graph.arcs.map((a) => a.share));
  for (const arc of graph.arcs) {
    const [from, to] = [graph.boxes[arc.from], graph.boxes[arc.to]];
    if (!from.routine) continue; // threads are one box
    const row = stanzas.get(keyOf(to)).parents.find((p) => keyOf(p) === keyOf(from) && !p.recursive);
    const share = row?.cum && graph.whole ? Math.min(1, row.cum / graph.whole) : 0;
    if (row) same(`${what}: ${from.name} calls ${to.name}`, row.cum, arc.cum);
    same(`${what}: ${from.name} calls ${to.name}, share ${share} or ${arc.share}`, true, Math.abs(share - arc.share) < 1e-5);
    for (const [rule, expected] of Object.entries(widthsOf(share, smallest)))
      if (expected !== undefined) same(`${what}: ${from.name} to ${to.name}, width by ${rule}, ${expected} or ${arc.width[rule]}`, true, Math.abs(expected - arc.width[rule]) < 2e-3);
  }
  filtered++;
}
// An unfinished trace has the kernel's symbols from the running one, in which BPF programs of others come and go.
const steady = (json) => ({ ...json, rows: json.rows?.map((r) => (r.kind === "kernel" && r.symbols ? { ...r, symbols: "some" } : r)) });
async function comparePage(what, { engine, answers }, keys, truth) {
  for (const kind of Object.keys(truth)) {
    let json, sentence;
    try {
      json = JSON.parse(new TextDecoder().decode(await engine.ask(question(`report/${kind}`, keys))));
    } catch (e) {
      sentence = e.message;
    }
    if (truth[kind].refused !== undefined) {
      refused++;
      const expected = truth[kind].refused.replace(/^'[^']*\.weir'/, "'the trace in this page'");
      if (![expected, truth[kind].refused].some((t) => sentence !== undefined && t.includes(sentence))) wrong.push(`${what}: weir report says '${truth[kind].refused}', the page '${sentence}'`);
      continue;
    }
    const { trace: _, ...expected } = truth[kind].json;
    const { trace: __, ...actual } = json ?? { refused: sentence };
    same(`${what}: ${kind}`, kind === "modules" ? steady(expected) : expected, kind === "modules" ? steady(actual) : actual);
  }
  if (truth.tree.json) await compareTree(what, answers, keys, truth.tree.json.rows);
  if (truth.flat.json) await compareGraph(what, answers, keys, truth.flat.json.rows, truth.arcs.refused);
  if (truth.flat.json && truth.tree.json && truth.arcs.json) await compareFilter(what, answers, keys, truth);
}

const children = [];
process.on("exit", () => children.forEach((c) => c.kill("SIGINT")));
function startView(traces) {
  const child = spawn(weir, ["view", ...traces], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (d) => {
      said += d;
      const url = /http:\/\/127[^ ]*\//.exec(said)?.[0];
      if (url) resolve({ child, url });
    });
    child.on("exit", () => reject(new Error("weir view has ended")));
  });
}

// --- files for other tools: sums of what the page's server gives for the same selection
function pprofSums(bytes) {
  const sums = [];
  const types = [];
  const strings = [];
  const fields = (b, take) => {
    const uleb = () => {
      let [n, shift] = [0n, 0n];
      for (;;) {
        const byte = b[at++];
        n |= BigInt(byte & 127) << shift;
        shift += 7n;
        if (byte < 128) return Number(n);
      }
    };
    let at = 0;
    while (at < b.length) {
      const key = uleb();
      if ((key & 7) === 0) take(key >> 3, uleb());
      else {
        const n = uleb();
        take(key >> 3, b.subarray(at, at + n));
        at += n;
      }
    }
  };
  const packed = (b) => {
    const numbers = [];
    for (let at = 0, n = 0n, shift = 0n; at < b.length; at++) {
      n |= BigInt(b[at] & 127) << shift;
      shift += 7n;
      if (b[at] >= 128) continue;
      numbers.push(Number(n));
      [n, shift] = [0n, 0n];
    }
    return numbers;
  };
  fields(gunzipSync(bytes), (field, value) => {
    if (field === 1) fields(value, (f, n) => f === 1 && types.push(n));
    if (field === 2) fields(value, (f, v) => f === 2 && packed(v).forEach((n, i) => (sums[i] = (sums[i] ?? 0) + n)));
    if (field === 6) strings.push(new TextDecoder().decode(value));
  });
  return Object.fromEntries(types.map((t, i) => [strings[t], sums[i] ?? 0]));
}
const seen = new Set(); // metrics of pprof's sums
async function compareExports(what, { answers }, keys, { json }) {
  if (!json) return;
  const { metric, total } = json;
  const text = new TextDecoder().decode(await answers.exported("folded", keys));
  same(`${what}: folded stacks add up to the total`, total, text.split("\n").reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0));
  if (keys.transform) return;
  const sums = pprofSums(new Uint8Array(await answers.exported("pprof", keys)));
  if (metric.name in sums) seen.add(metric.name);
  if (metric.name in sums) same(`${what}: pprof adds up to the total`, total, sums[metric.name]);
}

const questions = { asked: 0, answered: 0 };
async function compareTrace(trace, about, n) {
  const page = `${trace}.html`;
  try {
    execFileSync(weir, ["report", "--html", page, trace], { stdio: "ignore" });
  } catch (e) {
    if (e.status !== 3) throw e; // something was lost, and the page says it
  }
  const file = await openFile(page);
  const { child, url } = await startView([trace]);
  const server = await openServer(url);
  for (let k = 0; k < n; k++) {
    const keys = k > 1 ? randomKeys(about) : k ? { metric: "samples" } : {};
    const kinds = k ? ["flat", "tree", "arcs"] : ["flat", "tree", "arcs", "threads", "modules", "hooks", "probes", "loss"];
    const truth = Object.fromEntries(kinds.map((kind) => [kind, report(kind, trace, keys)]));
    questions.asked += 2;
    if (truth.flat.json?.rows.length > 1) questions.answered += 2;
    await comparePage(`file, ${trace} ${JSON.stringify(keys)}`, file, keys, truth);
    await comparePage(`server, ${trace} ${JSON.stringify(keys)}`, server, keys, truth);
    await compareExports(`export, ${trace} ${JSON.stringify(keys)}`, server, keys, truth.flat);
  }
  child.removeAllListeners("exit");
  child.kill("SIGINT");
}

// Two traces: their reports, joined by name and last part of the image.
function joinOf(reports) {
  const joined = new Map();
  // What is not there was called 0 times, where calls are counted.
  const absent = reports.map((report) => ({ there: false, base: 0, cum: 0, calls: report.rows.some((r) => r.calls !== null) ? 0 : null }));
  reports.forEach((report, side) => {
    for (const r of report.rows) {
      if (r.kind === "thread") continue;
      const key = `${r.name}\n${(r.image ?? "").split("/").pop()}`;
      if (!joined.has(key)) joined.set(key, { name: r.name, sides: [...absent] });
      joined.get(key).sides[side] = { there: true, base: r.base, cum: r.cum, calls: r.calls };
    }
  });
  const less = (a, b) => (a === null || b === null ? null : a - b);
  const figures = ({ there, base, cum, calls }) => [there, base, cum, calls];
  return [...joined.values()].map(({ name, sides: [b, a] }) => [name, figures(b), figures(a), [less(a.base, b.base), less(a.cum, b.cum), less(a.calls, b.calls)]]).sort((x, y) => (x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : 0));
}
async function compareTwo(before, after, about, n) {
  const page = `${before}-${after}.html`;
  execFileSync(weir, ["report", "--html", page, before, after], { stdio: "ignore" });
  const file = await openFile(page);
  const { child, url } = await startView([before, after]);
  const server = await openServer(url);
  for (let k = 0; k < n; k++) {
    const keys = k ? randomKeys(about) : {};
    const newer = report("flat", after, keys);
    const older = report("flat", before, { ...keys, metric: newer.json?.metric.name ?? "" });
    if (!newer.json || !older.json || newer.json.metric.unit !== older.json.metric.unit) continue;
    for (const [where, { answers }] of [["file", file], ["server", server]]) {
      const what = `${where}, ${before} and ${after} ${JSON.stringify(keys)}`;
      const diff = await answers.diffFunctions(keys);
      same(`${what}: totals`, [older.json.total, newer.json.total, newer.json.total - older.json.total], [diff.total.before, diff.total.after, diff.total.more]);
      const side = ({ there, base, cum, calls }) => [there, base, cum, calls];
      const rows = diff.rows.map((r) => [r.name, side(r.before), side(r.after), [r.more.base, r.more.cum, r.more.calls]]).sort((x, y) => (x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : 0));
      same(`${what}: differences`, joinOf([older.json, newer.json]), rows);
      const graph = await answers.diffGraph({ ...keys, filter: 0 });
      const boxes = new Map(rows.map((r) => [r[0], r]));
      for (const b of graph.boxes.filter((b) => b.routine)) same(`${what}: box of ${b.name}`, boxes.get(b.name), [b.name, side(b.before), side(b.after), [b.more.base, b.more.cum, b.more.calls]]);
      differences++;
    }
  }
  child.removeAllListeners("exit");
  child.kill("SIGINT");
}

for (let i = 0; i < 6; i++) {
  const isEvents = i % 3 !== 2;
  const [text, trace] = [`random${i}.txt`, `random${i}.weir`];
  writeFileSync(text, `${isEvents ? eventTrace() : sampleTrace()}\n`);
  execFileSync(weir, ["import", isEvents ? "events" : "samples", text, "-o", trace], { stdio: ["ignore", "ignore", "inherit"] });
  const metrics = isEvents ? ["time", "calls", "samples", "bytes", "none"] : ["samples", "none"];
  await compareTrace(trace, { names, metrics, threads: ["1", "2", "3"], regexes: ["^[ab]$", "l", "o{2}", "x;y|b"], images: [], span: isEvents ? 400 : 0 }, 12);
}
for (const [before, after, isEvents] of [[0, 1, true], [3, 4, true], [2, 5, false]]) {
  const metrics = isEvents ? ["time", "calls", "samples", "bytes"] : ["samples"];
  await compareTwo(`random${before}.weir`, `random${after}.weir`, { names, metrics, threads: ["1", "2"], regexes: ["^[ab]$", "l", "o{2}"], images: [], span: isEvents ? 400 : 0 }, 10);
}
// Recorded ones: what may be asked is what they say of themselves. Damage in a stretch of time is a loss of the whole
// file, but not of every window.
for (const trace of process.argv.slice(3)) {
  const flat = report("flat", trace, {}).json;
  const threads = report("threads", trace, {}).json;
  const rows = flat.rows.filter((r) => r.kind !== "thread");
  const images = [...new Set(rows.map((r) => r.image).filter((i) => i && !i.includes(";")))];
  const metrics = [flat.metric.name, "cpu", "wall", "samples", "calls", "instructions", "page-faults", "none"];
  const about = { names: rows.map((r) => r.name), metrics, threads: threads.rows.map((t) => String(t.tid)).concat("0"), regexes: ["^_", "l", "main|start"], images, span: trace.includes("hurt") ? 0 : 300e6 };
  await compareTrace(trace, about, 7);
}
console.log(`# seed ${process.argv[2]}: ${questions.asked} selections, ${questions.answered} with functions, ${refused} refused by both, ${compared} answers compared, of them ${filtered} call graphs with a filter, ${differences} differences`);
console.log(`# pprof was compared in ${[...seen].join(", ")}`);
for (const w of wrong.slice(0, 20)) console.log(`not ok ${w}`);
if (!wrong.length) console.log("ok the page's figures are those of weir report --json, in a file and behind the server");
console.log(`${questions.answered >= 60 && compared >= 300 ? "ok" : "not ok"} at least 300 answers with functions were compared: ${compared}`);
console.log(`${filtered >= 30 && differences >= 12 ? "ok" : "not ok"} and at least 30 call graphs with filter, root and widths, and 12 differences: ${filtered}, ${differences}`);
process.exit(wrong.length ? 1 : 0);
