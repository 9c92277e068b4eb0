/* SPDX-License-Identifier: MIT */
/* How Java ran: what its methods used themselves, interpreted and jitted, and the threads of the JVM. */
#include <string.h>

#include "calltree/frame_names.h"
#include "cmd/report/summary.h"
#include "cmd/report/table.h"

struct java_parts {
	bool is_there; /* a method of Java is in the profile, or a thread of its runtime */
	uint64_t interpreted, jitted;
	uint64_t hooked; /* with events, which do not say which of the two */
	uint64_t by_role[RECORD_THREAD_IS_COLLECTOR + 1];
};

static void count_parts(
	struct java_parts *parts, const struct report *report, const struct flat *flat)
{
	const struct profile *p = report->profile;

	*parts = (struct java_parts){0};
	for (size_t i = 0; i < flat->n_rows; i++) {
		const struct flat_row *row = &flat->rows[i];
		const struct calltree_routine *r = calltree_get_routine(p->tree, row->routine);

		if (strcmp(r->image, JAVA_IMAGE_PATH) != 0)
			continue;
		parts->is_there = true;
		if (r->kind == FRAME_KIND_JITTED && frame_name_bare(r->name, r->image) == r->name) {
			parts->hooked += row->base;
			continue;
		}
		parts->interpreted += r->kind == FRAME_KIND_INTERPRETED ? row->base : 0;
		parts->jitted += r->kind == FRAME_KIND_JITTED ? row->base : 0;
	}
	for (uint32_t id = 1; id < p->n_threads; id++) {
		parts->is_there |= p->threads[id].role != RECORD_THREAD_IS_PROGRAM;
		parts->by_role[p->threads[id].role] += query_thread_cum(p, &p->threads[id]);
	}
}

void summary_java(const struct report *report, const struct flat *flat)
{
	uint64_t total = report->profile->total;
	struct java_parts parts;

	count_parts(&parts, report, flat);
	if (!parts.is_there || !total)
		return;
	fprintf(report->out,
		"  Java: %s %% in jitted methods themselves, %s %% in interpreted ones",
		value_percent(parts.jitted, total).s, value_percent(parts.interpreted, total).s);
	if (parts.hooked)
		fprintf(report->out, ", %s %% in hooked ones",
			value_percent(parts.hooked, total).s);
	fputs("; threads of the JVM: ", report->out);
	fprintf(report->out, "compilers %s %%, collectors %s %%, others %s %%\n",
		value_percent(parts.by_role[RECORD_THREAD_IS_COMPILER], total).s,
		value_percent(parts.by_role[RECORD_THREAD_IS_COLLECTOR], total).s,
		value_percent(parts.by_role[RECORD_THREAD_IS_RUNTIME], total).s);
}

void summary_json_java(struct json *j, const struct report *report, const struct flat *flat)
{
	struct java_parts parts;

	count_parts(&parts, report, flat);
	if (!parts.is_there) {
		json_null(j, "java");
		return;
	}
	json_object_begin(j, "java");
	json_u64(j, "jitted", parts.jitted);
	json_u64(j, "interpreted", parts.interpreted);
	json_u64(j, "hooked", parts.hooked);
	json_u64(j, "compilers", parts.by_role[RECORD_THREAD_IS_COMPILER]);
	json_u64(j, "collectors", parts.by_role[RECORD_THREAD_IS_COLLECTOR]);
	json_u64(j, "runtime", parts.by_role[RECORD_THREAD_IS_RUNTIME]);
	json_object_end(j);
}
