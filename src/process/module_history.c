/* SPDX-License-Identifier: MIT */
/*
 * A process gets a struct process_modules when a record refers to one of its mappings, or with its
 * start snapshot. Its pieces are the mappings (or what is left of them) that have been referred to
 * or written; they are kept by address and disjoint, as in the address space, and are cut together
 * with it. Pieces that end become closed spans; those of a process go to the index when it is over.
 */
#include "process/module_history.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/search.h"

#define SPANS_MAX ((size_t)2 << 20) /* of the index; 160 MB */

struct module_piece {
	struct trace_module_span span; /* `to` and `ended` not yet */
	bool is_written;	       /* it has a load record */
};

struct process_modules {
	size_t live_i; /* index in the history's live */
	bool has_hit;
	bool in_start_snapshot;
	VEC(struct module_piece) pieces; /* by address */
	VEC(struct trace_module_span) closed;
};

struct module_history *module_history_new(struct trace_writer *w, uint32_t life_stream,
	struct images *images, const struct module_options *options)
{
	struct module_history *h = mem_zalloc(sizeof(*h));

	h->w = w;
	h->stream = life_stream;
	h->images = images;
	h->options = *options;
	return h;
}

static void free_modules(struct process_modules *modules)
{
	vec_release(&modules->pieces);
	vec_release(&modules->closed);
	free(modules);
}

void module_history_free(struct module_history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->live.n; i++)
		free_modules(h->live.v[i]);
	vec_release(&h->live);
	vec_release(&h->spans);
	free(h);
}

bool module_history_wants(const struct module_history *h, const struct process *p)
{
	return h->options.all_modules || p->is_named || (p->modules && p->modules->has_hit);
}

static struct process_modules *ensure_modules(struct module_history *h, struct process *p)
{
	if (!p->modules) {
		p->modules = mem_zalloc(sizeof(*p->modules));
		p->modules->live_i = h->live.n;
		vec_push(&h->live, p->modules);
	}
	return p->modules;
}

/* --- records ---------------------------------------------------------------------------- */

static void write_load(struct module_history *h, struct module_piece *piece,
	const struct mapping *m, uint64_t time)
{
	const struct trace_module_span *s = &piece->span;

	if (piece->is_written || h->options.snapshots_only || h->options.none)
		return;
	piece->is_written = true;
	trace_writer_numbers(h->w, h->stream, time, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD,
		(uint64_t[]){s->pid, s->process_start, s->start, s->end - s->start, PROT_EXEC,
			s->image, m->offset.v, s->at_start, s->bias},
		9);
}

static void write_unload(struct module_history *h, const struct trace_module_span *s)
{
	trace_writer_numbers(h->w, h->stream, s->to, RECORD_MAJOR_MODULE, RECORD_MODULE_UNLOAD,
		(uint64_t[]){s->pid, s->process_start, s->start, s->end - s->start, s->ended}, 5);
}

static void write_snapshot(
	struct module_history *h, const struct process *p, uint64_t time, bool is_end)
{
	if (h->options.none)
		return;
	for (size_t i = 0; i < addrspace_n(p->space); i++) {
		const struct mapping *m = addrspace_get(p->space, i);

		trace_writer_numbers(h->w, h->stream, time, RECORD_MAJOR_MODULE,
			RECORD_MODULE_SNAPSHOT,
			(uint64_t[]){p->pid, p->start_ns, m->start, m->end - m->start,
				images_trace_id(h->images, m->image, h->w), m->bias, is_end},
			7);
	}
}

/* --- pieces ----------------------------------------------------------------------------- */

/* Index of the first piece that ends after `addr`. */
static size_t piece_after(const struct process_modules *modules, uint64_t addr)
{
	return SEARCH(0, modules->pieces.n, i, modules->pieces.v[i].span.end <= addr);
}

static struct module_piece *find_piece(const struct process_modules *modules, uint64_t addr)
{
	size_t i = modules ? piece_after(modules, addr) : 0;

	if (!modules || i == modules->pieces.n || modules->pieces.v[i].span.start > addr)
		return NULL;
	return &modules->pieces.v[i];
}

/* A forked child has had its parent's mappings only since it began. */
static struct trace_module_span span_of(
	struct module_history *h, const struct process *p, const struct mapping *m)
{
	return (struct trace_module_span){
		.pid = p->pid,
		.process_start = p->start_ns,
		.start = m->start,
		.end = m->end,
		.from = m->since > p->start_ns ? m->since : p->start_ns,
		.to = UINT64_MAX,
		.image = images_trace_id(h->images, m->image, h->w),
		.bias = m->bias,
		.at_start = m->at_start && p->was_running,
	};
}

static struct module_piece *ensure_piece(
	struct module_history *h, struct process *p, const struct mapping *m)
{
	struct process_modules *modules = ensure_modules(h, p);
	struct module_piece *found = find_piece(modules, m->start);
	size_t i;

	if (found)
		return found;
	i = piece_after(modules, m->start);
	vec_insert(&modules->pieces, i, ((struct module_piece){.span = span_of(h, p, m)}));
	return &modules->pieces.v[i];
}

static void close_span(
	struct module_history *h, struct process_modules *modules, struct trace_module_span span)
{
	if (h->options.snapshots_only || h->has_too_many)
		return;
	h->has_too_many = ++h->n_spans > SPANS_MAX;
	vec_push(&modules->closed, span);
}

/* [start, end) of a piece, which holds that range. */
static void close_piece(struct module_history *h, struct process *p, uint64_t start, uint64_t end,
	uint64_t time, enum module_end how)
{
	struct process_modules *modules = p->modules;
	size_t i = piece_after(modules, start);
	struct module_piece *piece = &modules->pieces.v[i];
	struct module_piece head = *piece, tail = *piece;
	struct trace_module_span closed = piece->span;

	closed.start = start;
	closed.end = end;
	closed.to = time;
	closed.ended = how;
	close_span(h, modules, closed);
	if (piece->is_written)
		write_unload(h, &closed);
	if (p->is_32_bit && closed.is_used &&
		(how == MODULE_END_OVERLAP || how == MODULE_END_SNAPSHOT))
		h->n_guessed_32_bit++;
	memmove(piece, piece + 1, (--modules->pieces.n - i) * sizeof(*piece));
	head.span.end = start;
	tail.span.start = end;
	if (tail.span.start < tail.span.end)
		vec_insert(&modules->pieces, i, tail);
	if (head.span.start < head.span.end)
		vec_insert(&modules->pieces, i, head);
}

/* --- what happens to mappings ------------------------------------------------------------ */

/* Whether the index needs a mapping that nothing has referred to: it is in a snapshot. */
static bool is_in_snapshot(const struct module_history *h, const struct process *p,
	const struct mapping *m, enum module_end how)
{
	if (h->options.all_modules)
		return true;
	if (!p->modules)
		return false;
	return (m->at_start && p->modules->in_start_snapshot) ||
	       (how != MODULE_END_OVERLAP && how != MODULE_END_MUNMAP && how != MODULE_END_EXEC);
}

static void end_mapping(struct module_history *h, struct process *p, const struct mapping *m,
	uint64_t time, enum module_end how)
{
	struct trace_module_span span;

	if (find_piece(p->modules, m->start)) {
		close_piece(h, p, m->start, m->end, time, how);
	} else if (is_in_snapshot(h, p, m, how)) {
		span = span_of(h, p, m);
		span.to = time;
		span.ended = how;
		close_span(h, ensure_modules(h, p), span);
	}
}

static void end_range(struct module_history *h, struct process *p, uint64_t start, uint64_t end,
	uint64_t time, enum module_end how)
{
	for (size_t i = addrspace_first_after(p->space, start); i < addrspace_n(p->space); i++) {
		struct mapping part = *addrspace_get(p->space, i);

		if (part.start >= end)
			break;
		if (part.start < start)
			part.start = start;
		if (part.end > end)
			part.end = end;
		end_mapping(h, p, &part, time, how);
	}
}

void module_history_map(
	struct module_history *h, struct process *p, const struct image_query *query, uint64_t time)
{
	const struct proc_mapping *q = &query->mapping;
	uint32_t number = images_ensure(h->images, query);
	const struct mapping *old = addrspace_find(p->space, (struct vaddr){q->start});
	struct mapping m = {.start = q->start,
		.end = q->end,
		.offset = {q->offset},
		.image = number,
		.bias = images_bias(h->images, number, q->start, (struct foff){q->offset}),
		.at_start = !h->has_started,
		.since = time};

	/* Runtimes change the protection of their code to and fro; it is the same code. */
	if (old && old->image == number && old->end >= q->end &&
		images_get(h->images, number)->kind == IMAGE_KIND_JIT)
		return;
	end_range(h, p, q->start, q->end, time, MODULE_END_OVERLAP);
	addrspace_map(&p->space, &m);
	if (h->options.all_modules && m.start < m.end)
		write_load(h, ensure_piece(h, p, &m), &m, time);
}

size_t module_history_unmap(struct module_history *h, struct process *p, uint64_t start,
	uint64_t end, uint64_t time, enum module_end how)
{
	end_range(h, p, start, end, time, how);
	return addrspace_unmap(&p->space, start, end);
}

void module_history_use(
	struct module_history *h, struct process *p, const struct mapping *m, uint64_t time)
{
	struct module_piece *piece = find_piece(p->modules, m->start);

	if (piece && piece->span.is_used)
		return;
	piece = ensure_piece(h, p, m);
	piece->span.is_used = true;
	p->modules->has_hit = true;
	images_get(h->images, m->image)->is_hit = true;
	write_load(h, piece, m, time);
}

/* The process is over: what is known of it goes to the index, or away. */
static void retire(struct module_history *h, struct process *p)
{
	struct process_modules *modules = p->modules;

	if (!modules)
		return;
	if (module_history_wants(h, p))
		for (size_t i = 0; i < modules->closed.n; i++)
			vec_push(&h->spans, modules->closed.v[i]);
	else
		h->n_spans -= modules->closed.n;
	h->live.v[modules->live_i] = h->live.v[--h->live.n];
	h->live.v[modules->live_i]->live_i = modules->live_i;
	free_modules(modules);
	p->modules = NULL;
}

void module_history_exec(struct module_history *h, struct process *p, uint64_t time)
{
	end_range(h, p, 0, UINT64_MAX, time, MODULE_END_EXEC);
	process_forget_mappings(p);
}

void module_history_end(
	struct module_history *h, struct process *p, uint64_t time, enum module_end how)
{
	if (module_history_wants(h, p))
		write_snapshot(h, p, time, true);
	end_range(h, p, 0, UINT64_MAX, time, how);
	if (how != MODULE_END_EXIT) /* else processes_exit() sees to it */
		process_forget_mappings(p);
	retire(h, p);
}

void module_history_start_snapshot(struct module_history *h, struct process *p, uint64_t time)
{
	if (!addrspace_n(p->space)) /* a thread of the kernel */
		return;
	ensure_modules(h, p)->in_start_snapshot = true;
	write_snapshot(h, p, time, false);
}

void module_history_end_snapshot(struct module_history *h, struct process *p, uint64_t time)
{
	struct process_modules *modules;

	if (!module_history_wants(h, p))
		return;
	write_snapshot(h, p, time, true);
	modules = ensure_modules(h, p);
	for (size_t i = 0; i < addrspace_n(p->space); i++) {
		const struct mapping *m = addrspace_get(p->space, i);
		const struct module_piece *piece = find_piece(modules, m->start);

		close_span(h, modules, piece ? piece->span : span_of(h, p, m));
	}
	retire(h, p);
}

void module_history_write_index(struct module_history *h, uint64_t time)
{
	if (h->has_too_many)
		trace_writer_loss(h->w, h->stream, time, RECORD_LOSS_NOTE, 1,
			"no address index: too many mappings; the load and unload records have "
			"them");
	else if (!h->options.snapshots_only && !h->options.none)
		trace_writer_module_spans(h->w, h->spans.v, h->spans.n);
}
