// SPDX-License-Identifier: MIT
// What Firefox Profiler makes of a profile: its own code, out of the npm package of its command line. That keeps a
// profile in a server of its own, which must be up in half a second; here the class behind it is asked directly.
//   node firefox.mjs FILE      for each thread: by function self and total, and markers
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import vm from "node:vm";

const here = path.dirname(new URL(import.meta.url).pathname);
const program = path.join(here, "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js");
let code = fs.readFileSync(program, "utf8").replace(/^#!.*/, "");
const querier = /this\.querier=await ([\w$]+)\.load\(t,\{explicitSymbolServerUrl/.exec(code);
const main = /async function ([\w$]+)\(\)\{let e=process\.argv\.slice\(2\);if\(e\.includes\("--daemon"\)\)/.exec(code);
const begin = main ? code.indexOf(`${main[1]}()`, main.index + main[0].length) : -1;
if (!querier || begin < 0) {
  console.error("firefox: the classes of profiler-cli are not where they were in version 0.10.0");
  process.exit(1);
}
// Code before the call of main sets everything up.
code = `${code.slice(0, begin)}globalThis.Querier=${querier[1]},Promise.resolve()${code.slice(begin + main[1].length + 2)}`;
console.log = console.warn = () => {};
vm.runInThisContext(`(function(require,module,exports,__filename,__dirname){${code}\n})`, { filename: program })(
  createRequire(program), { exports: {} }, {}, program, path.dirname(program));

const profile = await globalThis.Querier.load(path.resolve(process.argv[2]), { skipSymbolication: true });
const answer = [];
for (const thread of (await profile.threadList({ limit: 0 })).threads) {
  const functions = {};
  const all = await profile.threadFunctions(thread.threadHandle, { limit: 1e9 }, true);
  for (const f of all.functions) {
    const row = (functions[f.name] ??= [0, 0]);
    row[0] += f.selfSamples;
    row[1] += f.totalSamples;
  }
  const markers = thread.markerCount
    ? (await profile.threadMarkers(thread.threadHandle, { list: true, limit: 1e9 })).flatMarkers : [];
  answer.push({ name: thread.name, process: thread.processName, pid: thread.pid, tid: thread.tid,
    weight: all.weightType, functions,
    markers: markers.map((m) => ({ name: m.name, type: m.markerType, start: m.start, duration: m.duration })) });
}
fs.writeSync(1, JSON.stringify(answer)); // before it ends: a pipe is written later
process.exit(0);
