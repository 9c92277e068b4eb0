// SPDX-License-Identifier: MIT
// Bottom-up: a function and the ways to it, as a flame graph that stands on it.
import type { Meta } from "./answers";
import { FlameView } from "./flame";
import { Empty } from "./parts";
import { selection } from "./state";
import { useAnswer, useAppState } from "./store";

export function CallersPane({ meta }: { meta: Meta }) {
  const state = useAppState();
  const keys = selection(state);
  const key = JSON.stringify(keys);
  const names = useAnswer(key, (a) => a.names(keys));
  const routine = names.value && !names.isOld && state.selected ? names.value.name.indexOf(state.selected) : -1;
  const tree = useAnswer(`${key}${routine}`, async (a) => (routine > 0 ? a.callers({ ...keys, routine }) : undefined));

  if (!state.selected) return <Empty>Select a function: this pane shows the ways on which it is called, and what each costs.</Empty>;
  if (names.error ?? tree.error) return <Empty>{names.error ?? tree.error}</Empty>;
  if (names.value && !names.isOld && routine <= 0) return <Empty>'{state.selected}' is not in this selection.</Empty>;
  if (!names.value || !tree.value || tree.isOld) return <Empty>…</Empty>;
  return <FlameView tree={tree.value} names={names.value} meta={meta} label={`Callers of ${state.selected}`} />;
}
