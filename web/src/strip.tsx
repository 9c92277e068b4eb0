// SPDX-License-Identifier: MIT
// What is missing, and how sure the rest is: always there, in every pane.
import type { Meta } from "./answers";
import { count } from "./format";
import { Sure } from "./parts";

export function lossSentences(meta: Meta): string[] {
  const l = meta.loss;
  const said: string[] = [];
  if (l.samples_lost) said.push(`${count(l.samples_lost)} samples were lost`);
  if (l.events_lost) said.push(`${count(l.events_lost)} events were lost`);
  if (l.records_lost) said.push(`${count(l.records_lost)} records were lost`);
  if (l.records_unknown) said.push(`${count(l.records_unknown)} records are of kinds that this version does not know`);
  if (l.cut) said.push("a part of the trace is missing");
  if (l.stacks > l.stacks_complete) said.push(`${count(l.stacks - l.stacks_complete)} of ${count(l.stacks)} stacks do not reach the thread's start`);
  if (l.frames_unresolved) said.push(`${count(l.frames_unresolved)} of ${count(l.frames)} frames have no true name`);
  return said;
}

export function Strip({ meta }: { meta: Meta }) {
  const l = meta.loss;
  const said = lossSentences(meta);
  const isReal = l.samples_lost > 0 || l.events_lost > 0 || l.records_lost > 0 || l.cut;
  const complete = l.stacks ? `${((100 * l.stacks_complete) / l.stacks).toFixed(2)} % of the stacks are complete` : "";
  const covered = l.cpu_ns && l.sampled_ns ? `samples stand for ${((100 * l.sampled_ns) / l.cpu_ns).toFixed(1)} % of the CPU time` : "";
  const kind = meta.has.steps ? "instructions, counted step by step" : meta.has.counts ? "counted in the program itself" : "";
  const reasons = Object.entries(l.reasons).sort((a, b) => b[1] - a[1]);
  return (
    <details class={isReal ? "strip lost" : "strip"}>
      <summary>
        <span class="verdict">{isReal ? "⚠ Data was lost" : "Nothing was lost"}</span>
        <span>{[kind, covered, complete, ...said].filter(Boolean).join("  ·  ")}</span>
        <span class="legend">
          {meta.exact && (
            <>
              <Sure exact={true} /> by events, exact{" "}
            </>
          )}
          {(meta.estimates || !meta.exact) && (
            <>
              <Sure exact={false} /> by samples, estimated
            </>
          )}
        </span>
      </summary>
      {reasons.length ? (
        <ul>
          {reasons.map(([phrase, n]) => (
            <li key={phrase}>
              {count(n)} × {phrase}
            </li>
          ))}
        </ul>
      ) : (
        <p>There is no reason to name.</p>
      )}
    </details>
  );
}
