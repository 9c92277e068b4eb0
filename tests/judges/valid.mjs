// SPDX-License-Identifier: MIT
// Whether a file is what speedscope's JSON schema says.
//   node valid.mjs FILE
import fs from "node:fs";
import path from "node:path";
import Ajv from "ajv";

const here = path.dirname(new URL(import.meta.url).pathname);
const schema = path.join(here, "node_modules/speedscope/dist/release/file-format-schema.json");
const ajv = new Ajv({ strict: false });
const isValid = ajv.compile(JSON.parse(fs.readFileSync(schema, "utf8")));
if (!isValid(JSON.parse(fs.readFileSync(process.argv[2], "utf8")))) {
  console.error(ajv.errorsText(isValid.errors.slice(0, 3)));
  process.exit(1);
}
