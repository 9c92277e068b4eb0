// SPDX-License-Identifier: MIT
// What speedscope makes of a file: its own importer, out of the npm package, without the page around it.
//   node speedscope.mjs FILE      for each profile: name, unit, sum, and by function self, total and opened calls
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const release = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname),
  "node_modules/speedscope/dist/release");
const bundle = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
let code = fs.readFileSync(path.join(release, bundle), "utf8");

// The function that the page calls with a file's name and its bytes in base64. The page itself is not begun.
const importer = /loadFileFromBase64:\((\w+),(\w+)\)=>\{this\.loadProfile\(\(\)=>([\w$]+)\(\1,\2\)\)\}/.exec(code);
const page = code.lastIndexOf("console.log(`speedscope v");
if (!importer || page < 0) {
  console.error("speedscope: the importer is not where it was in version 1.25.0");
  process.exit(1);
}
code = code.slice(0, page) + `globalThis.importFile=${importer[3]};})();`;
const nothing = new Proxy(function () {}, {
  get: (_, key) => key === Symbol.toPrimitive ? () => "" : nothing,
  apply: () => nothing, construct: () => nothing, set: () => true,
});
const quiet = { log() {}, warn() {}, error: console.error, assert() {}, time() {}, timeEnd() {} };
const world = vm.createContext({ window: nothing, document: nothing, navigator: nothing, localStorage: nothing,
  location: { hash: "", protocol: "file:" }, matchMedia: nothing, console: quiet, TextDecoder, TextEncoder, atob, btoa,
  setTimeout, clearTimeout, requestAnimationFrame: nothing, performance, URL, Blob, addEventListener() {},
  WebAssembly, fetch: nothing, self: nothing });
vm.runInContext(code, world);

const [file] = process.argv.slice(2);
const group = await world.importFile(path.basename(file), fs.readFileSync(file).toString("base64"));
const answer = [];
for (const profile of group?.profiles ?? []) {
  const functions = {};
  profile.forEachFrame((frame) => {
    const row = (functions[frame.name] ??= [0, 0, 0]);
    row[0] += frame.getSelfWeight();
    row[1] += frame.getTotalWeight();
  });
  profile.forEachCall((node) => functions[node.frame.name][2]++, () => {});
  answer.push({ name: profile.getName(), unit: profile.getWeightUnit(), sum: profile.getTotalWeight(), functions });
}
console.log(JSON.stringify({ active: group?.indexToView, profiles: answer }));
