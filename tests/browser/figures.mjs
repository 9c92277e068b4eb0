// SPDX-License-Identifier: MIT
// figures.mjs SEED: random traces, and random questions to the page's engine in a file and behind the server; whatever
// they answer is what `weir report --json` says.
import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
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
  return [...Array(40 + random(100))].map(() => `${1 + random(3)}: ${[...Array(1 + random(8))].map(() => pick(names)).join(" ")}`).join("\n");
}

// --- questions: keys of the page, which are options of weir report
function transforms() {
  const name = () => pick(names.filter((n) => !n.includes(";")));
  const kinds = [() => `focus=${name()}`, () => `fold=${name()}`, () => `drop=${name()}`, () => "merge-recursion", () => `fold=/${pick(["^[ab]$", "l", "o{2}", "x;y|b"])}/`, () => `drop=/^${pick(["c", "e", "lo"])}/`];
  return [...Array(random(4))].map(() => pick(kinds)()).join(";");
}
function randomKeys(isEvents) {
  const keys = {};
  if (random(3)) keys.transform = transforms();
  if (!random(3)) keys.metric = pick(isEvents ? ["time", "calls", "samples", "bytes", "none"] : ["samples", "none"]);
  if (!random(3)) keys.thread = String(1 + random(3));
  if (isEvents && !random(3)) {
    keys.from = random(150);
    keys.to = keys.from + 1 + random(400);
  }
  return keys;
}
function report(kind, trace, keys) {
  const options = Object.entries(keys).flatMap(([key, value]) => (value === "" ? [] : [`--${key}`, String(value)]));
  try {
    return { json: JSON.parse(execFileSync(weir, ["report", kind, trace, "--json", ...options], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })) };
  } catch (e) {
    if (e.status === 3 && e.stdout) return { json: JSON.parse(e.stdout) }; // something was lost, and it says so
    return { refused: String(e.stderr).replace(/^weir: /, "").trim() };
  }
}

// --- comparing
let compared = 0;
let refused = 0;
const wrong = [];
function same(what, expected, actual) {
  compared++;
  if (JSON.stringify(expected) !== JSON.stringify(actual)) wrong.push(`${what}: expected ${JSON.stringify(expected).slice(0, 200)}, got ${JSON.stringify(actual).slice(0, 200)}`);
}
const tolerant = (x) => (x === null || Number.isNaN(x) ? null : x);

// Ways to outermost instances of a function, from it to its callers, with what is used on each.
function waysTo(rows, name) {
  const byId = new Map(rows.map((r) => [r.id, r]));
  const mine = rows.filter((r) => r.name === name && r.rl === 1 && r.kind !== "thread");
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
  const name = pick(rows.filter((r) => r.kind !== "thread").map((r) => r.name).concat(""));
  if (!name) return;
  const callers = await answers.callers({ ...keys, routine: functions.name.indexOf(name) });
  same(`${what}: callers of ${name}`, sorted(waysTo(rows, name)), sorted(waysOf(callers)));
}
async function comparePage(what, { engine, answers }, keys, truth) {
  for (const kind of ["flat", "tree", "arcs"]) {
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
    same(`${what}: ${kind}`, expected, actual);
  }
  if (truth.tree.json) await compareTree(what, answers, keys, truth.tree.json.rows);
}

const children = [];
process.on("exit", () => children.forEach((c) => c.kill("SIGINT")));
function startView(trace) {
  const child = spawn(weir, ["view", trace], { stdio: ["ignore", "pipe", "inherit"] });
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

const questions = { asked: 0, answered: 0 };
for (let i = 0; i < 6; i++) {
  const isEvents = i % 3 !== 2;
  const [text, trace] = [`random${i}.txt`, `random${i}.weir`];
  writeFileSync(text, `${isEvents ? eventTrace() : sampleTrace()}\n`);
  execFileSync(weir, ["import", isEvents ? "events" : "samples", text, "-o", trace], { stdio: ["ignore", "ignore", "inherit"] });
  execFileSync(weir, ["report", "--html", `random${i}.html`, trace]);
  const file = await openFile(`random${i}.html`);
  const { child, url } = await startView(trace);
  const server = await openServer(url);
  for (let k = 0; k < 12; k++) {
    const keys = k ? randomKeys(isEvents) : {};
    const truth = Object.fromEntries(["flat", "tree", "arcs"].map((kind) => [kind, report(kind, trace, keys)]));
    questions.asked += 2;
    if (truth.flat.json?.rows.length > 1) questions.answered += 2;
    await comparePage(`file, ${trace} ${JSON.stringify(keys)}`, file, keys, truth);
    await comparePage(`server, ${trace} ${JSON.stringify(keys)}`, server, keys, truth);
  }
  child.removeAllListeners("exit");
  child.kill("SIGINT");
}
console.log(`# seed ${process.argv[2]}: ${questions.asked} selections, ${questions.answered} with functions, ${refused} refused by both, ${compared} answers compared`);
for (const w of wrong.slice(0, 20)) console.log(`not ok ${w}`);
if (!wrong.length) console.log("ok the page's figures are those of weir report --json, in a file and behind the server");
console.log(`${questions.answered >= 60 && compared >= 300 ? "ok" : "not ok"} at least 300 answers with functions were compared: ${compared}`);
process.exit(wrong.length ? 1 : 0);
