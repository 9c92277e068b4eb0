/* SPDX-License-Identifier: MIT */
#include "calltree/sample_weight.h"

bool sample_is_selected(const struct sample_weighing *w, uint32_t metric)
{
	if (!metric) /* an occurrence without a weight */
		return true;
	switch (w->kind) {
	case METRIC_KIND_CALLS:
		return true;
	case METRIC_KIND_SAMPLES:
		return metric == (w->metric_id ? w->metric_id : 1);
	case METRIC_KIND_WALL:
		if (!w->metric_id) /* they show where, not how long */
			return metric == 1;
		/* fallthrough */
	default:
		return metric == w->metric_id || (w->wait_id && metric == w->wait_id);
	}
}

uint64_t sample_weight(const struct sample_weighing *w, uint32_t metric, uint64_t weight)
{
	if (w->kind == METRIC_KIND_SAMPLES)
		return metric && metric == w->metric_id ? weight : 1;
	if (w->kind == METRIC_KIND_CALLS || (w->kind == METRIC_KIND_WALL && !w->metric_id))
		return 0;
	return metric ? weight : 0;
}

bool sample_is_of_hook(
	const struct sample_weighing *w, const struct trace_reader *r, uint32_t stack)
{
	if (!w->hook_frame)
		return false;
	while (stack) { /* what the kernel does for a hook is the hook's */
		const struct trace_stack *s = trace_reader_stack(r, stack);

		if (s->frame == w->hook_frame)
			return true;
		if (trace_reader_frame(r, s->frame)->kind != FRAME_KIND_KERNEL)
			return false;
		stack = s->parent;
	}
	return false;
}
