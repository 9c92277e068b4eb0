/* SPDX-License-Identifier: MIT */
/*
 * Where an address of a trace is, by its module history, and what the trace itself says of it.
 *
 * A frame of the trace that is a return address was named by the address before it. So a query for
 * A is answered by a frame at A, by a return address A + 1, and last by a return address A, when
 * the function table does not say that another function begins at A.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "cmd/open_trace.h"
#include "cmd/symbols/symbols_resolve.h"

#define KERNEL_HALF (UINT64_C(1) << 63)
#define NESTED_MAX  16 /* functions inside one function that are looked behind */

/* --- places --- */

/* Processes are known by their threads and, where nothing of them ran, by their modules. */
static bool has_process(const struct resolve *r, uint32_t pid)
{
	for (uint32_t id = 1; id < trace_reader_n_threads(r->reader); id++)
		if (trace_reader_thread(r->reader, id)->pid == pid)
			return true;
	for (size_t i = 0; i < module_map_n(r->modules); i++)
		if (module_map_get(r->modules, i)->pid == pid)
			return true;
	return false;
}

/* The pid when the trace has one process only. */
static bool only_process(const struct resolve *r, uint32_t *pid)
{
	uint32_t n = trace_reader_n_threads(r->reader);

	for (uint32_t id = 2; id < n; id++)
		if (trace_reader_thread(r->reader, id)->pid !=
			trace_reader_thread(r->reader, 1)->pid)
			return false;
	if (n < 2)
		return false;
	*pid = trace_reader_thread(r->reader, 1)->pid;
	return true;
}

static size_t ensure_target(struct resolve *r, uint32_t image)
{
	struct resolve_target *t;
	size_t target;

	for (size_t i = 0; i < r->targets.n; i++)
		if (r->targets.v[i].trace_image == image)
			return i;
	target = resolve_add_target(
		r, trace_reader_string(r->reader, trace_reader_image(r->reader, image)->path));
	t = &r->targets.v[target];
	t->trace_image = image;
	trace_image_identity(&t->identity, r->reader, image);
	t->has_identity = true;
	return target;
}

static uint32_t kernel_image(const struct resolve *r)
{
	for (uint32_t id = 1; id < trace_reader_n_images(r->reader); id++)
		if (trace_reader_image(r->reader, id)->kind == IMAGE_KIND_KERNEL)
			return id;
	return 0;
}

static void place_query(struct resolve *r, struct resolve_query *q)
{
	struct module_query query = {.pid = q->pid,
		.process_start = UINT64_MAX,
		.addr = {q->addr},
		.time = q->has_time ? r->trace_start + q->time : UINT64_MAX};
	const struct trace_module_span *span;

	if (q->addr >= KERNEL_HALF && kernel_image(r)) {
		resolve_query_place(r, q, ensure_target(r, kernel_image(r)), q->addr);
		return;
	}
	span = module_map_find(r->modules, &query);
	if (span && span->image)
		resolve_query_place(r, q, ensure_target(r, span->image), q->addr - span->bias);
	else if (!has_process(r, q->pid))
		resolve_query_refuse(q, "the trace has no process %" PRIu32, q->pid);
	else
		resolve_query_refuse(q, "no module was mapped there in process %" PRIu32 "%s",
			q->pid, q->has_time ? " at that time" : "");
}

int resolve_open_trace(struct resolve *r, const char *path, struct err *err)
{
	int rc = open_trace_plain(&r->reader, path, err);

	if (rc == 0)
		rc = module_map_new(&r->modules, r->reader, err);
	if (rc == 0 && module_map_n_lost(r->modules))
		fprintf(stderr, "weir: '%s': %" PRIu64 " module records could not be used\n", path,
			module_map_n_lost(r->modules));
	if (rc == 0)
		r->trace_start = trace_reader_start(r->reader);
	return rc;
}

int resolve_place_in_trace(struct resolve *r, const char *path, struct err *err)
{
	for (size_t i = 0; i < r->queries.n; i++) {
		struct resolve_query *q = &r->queries.v[i];

		if (!q->is_valid)
			continue;
		if (!q->has_pid && !only_process(r, &q->pid))
			return err_set(err, ERR_FAILED,
				"'%s': '%s': the trace does not have exactly one process; say PID:ADDR",
				path, q->text);
		q->has_pid = true;
		place_query(r, q);
	}
	return 0;
}

void resolve_trace_release(struct resolve *r)
{
	const char *damaged = NULL;

	vec_release(&r->frames);
	vec_release_all(&r->names);
	if (r->reader && trace_reader_n_damaged_functions(r->reader, &damaged))
		fprintf(stderr, "weir: %s\n", damaged);
	module_map_free(r->modules);
	trace_reader_close(r->reader);
}

/* --- what the trace says --- */

ORDER_BY(compare_keys, struct frame_key, image, is_caller, addr)

/* Frames with a true name, of every image. */
static void index_frames(struct resolve *r)
{
	for (uint32_t id = 1; id < trace_reader_n_frames(r->reader); id++) {
		const struct trace_frame *f = trace_reader_frame(r->reader, id);
		const struct trace_symbol *s = trace_reader_symbol(r->reader, id);

		if (f->image && f->kind != FRAME_KIND_MARKER && s && s->n_levels && !s->reason)
			vec_push(&r->frames,
				((struct frame_key){f->image, f->is_caller, f->addr, id}));
	}
	vec_sort(&r->frames, compare_keys);
	r->has_frames = true;
}

static uint32_t find_frame(struct resolve *r, uint32_t image, bool is_caller, uint64_t addr)
{
	struct frame_key key = {.image = image, .is_caller = is_caller, .addr = addr};
	const struct frame_key *found;

	if (!r->has_frames)
		index_frames(r);
	if (!r->frames.n)
		return 0;
	found = bsearch(&key, r->frames.v, r->frames.n, sizeof(key), compare_keys);
	return found ? found->frame : 0;
}

static const struct trace_function *find_function(struct resolve *r, uint32_t image, uint64_t addr)
{
	const struct trace_function *functions;
	size_t low = 0, high = trace_reader_functions(r->reader, image, &functions), tries = 0;

	low = SEARCH(low, high, middle, functions[middle].start <= addr);
	/* The one that starts last before it, or one that has that one inside. */
	while (low-- > 0 && tries++ < NESTED_MAX)
		if (addr - functions[low].start < functions[low].size)
			return &functions[low];
	return NULL;
}

static void answer_by_frame(struct resolve *r, const struct resolve_query *q, uint32_t frame,
	struct resolve_answer *answer)
{
	const struct trace_frame *f = trace_reader_frame(r->reader, frame);
	const struct trace_symbol *s = trace_reader_symbol(r->reader, frame);
	const struct trace_symbol_level *outer = &s->levels[s->n_levels - 1];
	uint64_t start = f->addr - outer->offset;

	for (uint32_t i = 0; i < s->n_levels && i < SYMBOL_LEVELS_MAX; i++)
		answer->levels[answer->n_levels++] = (struct catalog_level){
			.name = trace_reader_string(r->reader, s->levels[i].name),
			.file = s->levels[i].file
					? trace_reader_string(r->reader, s->levels[i].file)
					: NULL,
			.line = s->levels[i].line,
			.is_inline = i + 1 < s->n_levels};
	answer->symbol = trace_reader_string(r->reader, outer->name);
	answer->has_offset = q->place.v >= start;
	answer->offset = q->place.v - start;
	answer->from = "a frame of the trace";
}

static void answer_by_function(struct resolve *r, const struct resolve_query *q,
	const struct trace_function *f, struct resolve_answer *answer)
{
	const char *linkage_name = trace_reader_string(r->reader, f->name);
	char *name = symbol_demangle(linkage_name);

	vec_push(&r->names, name);
	answer->levels[answer->n_levels++] =
		(struct catalog_level){.name = name, .linkage_name = linkage_name};
	answer->symbol = name;
	answer->has_offset = true;
	answer->offset = q->place.v - f->start;
	answer->from = "the function table of the trace";
}

/* A return address that may also stand for itself: not when another function begins there. */
static bool is_one_function(struct resolve *r, uint32_t image, uint64_t addr)
{
	return find_function(r, image, addr) == find_function(r, image, addr - 1);
}

static void say_recorded_match(struct resolve *r, uint32_t image, struct resolve_answer *answer)
{
	const struct trace_match *m = trace_reader_match(r->reader, image);

	if (!m)
		return;
	answer->match = m->rung < MATCH_N_RUNGS ? match_rung_name((enum match_rung)m->rung) : NULL;
	snprintf(answer->reason, sizeof(answer->reason), "%s",
		trace_reader_string(r->reader, m->reason));
}

bool resolve_answer_from_trace(
	struct resolve *r, const struct resolve_query *q, struct resolve_answer *answer)
{
	uint32_t image = r->targets.v[q->target].trace_image, frame;
	const struct trace_function *function;
	uint64_t addr = q->place.v;

	frame = find_frame(r, image, false, addr);
	if (!frame)
		frame = find_frame(r, image, true, addr + 1);
	if (!frame && addr && is_one_function(r, image, addr))
		frame = find_frame(r, image, true, addr);
	function = frame ? NULL : find_function(r, image, addr);
	if (!frame && !function)
		return false;
	memset(answer, 0, sizeof(*answer));
	if (frame)
		answer_by_frame(r, q, frame, answer);
	else
		answer_by_function(r, q, function, answer);
	say_recorded_match(r, image, answer);
	return true;
}
