// SPDX-License-Identifier: MIT
// Why a pane has nothing to show, and what to do: what was chosen leaves nothing, or the trace has nothing.
import type { Meta } from "./answers";
import type { State } from "./state";

export function whyEmpty(meta: Meta, state: State): string {
  const chosen = [state.transforms.length ? "the transforms" : "", state.thread ? "the thread" : "", state.from || state.to ? "the stretch of time" : ""].filter(Boolean);
  if (chosen.length) return `Nothing of ${meta.metric} is in this selection. Take ${chosen.join(" or ")} away.`;
  if (meta.loss.cut) return `Nothing of ${meta.metric} can be read: a part of the trace is missing, which may be where it was.`;
  if (meta.samples || meta.events) return `Nothing of ${meta.metric} was measured. Choose another metric.`;
  if (meta.facts.mode === "import") return "What was imported has nothing in it.";
  return "There are no samples: the command ran for too short a time, or it only waited. 'weir record -F 9999' measures more often, 'weir record -e wall' where it waits.";
}
