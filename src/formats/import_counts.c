/* SPDX-License-Identifier: MIT */
/*
 * The whole of a count file: header, directory of areas, and the order in which things are read and
 * written. The file may be written to while it is read (a program that still runs), so each number
 * is copied before it is checked.
 */
#include "formats/import_counts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/import_counts_internal.h"
#include "insert/insert.h"
#include "symbols/symtab.h"

#define HEADER_BYTES offsetof(struct count_header, areas)

bool import_counts_is(struct span bytes)
{
	return bytes.n >= 8 && !memcmp(bytes.p, COUNT_FILE_MAGIC, 8);
}

void counts_note(struct counts_file *f, uint64_t n, const char *fmt, ...)
{
	char text[COUNT_PATH_BYTES + 300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	trace_writer_loss(f->w, f->life, 0, RECORD_LOSS_NOTE, n, text);
}

void counts_lost(struct counts_file *f, uint64_t n, const char *reason)
{
	trace_writer_loss(f->w, f->life, 0, RECORD_LOSS_RECORDS, n, reason);
}

const char *counts_text(struct counts_file *f, const char *p, size_t n)
{
	char *copy = mem_strndup(p, n);
	const char *kept;

	n = strlen(copy);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)copy[i] < ' ' || copy[i] == 0x7f)
			copy[i] = '?';
	kept = intern_get(&f->texts, intern_bytes(&f->texts, copy, n));
	free(copy);
	return kept;
}

/* ---- the directory ---- */

static struct counts_thread *thread_of_slot(struct counts_file *f, uint32_t slot)
{
	bool created;
	uint64_t *at = map_ensure(&f->thread_of, slot, &created);

	if (created) {
		*at = f->threads.n;
		vec_push(&f->threads, (struct counts_thread){.row.slot = slot});
	}
	return &f->threads.v[*at];
}

static void add_thread(struct counts_file *f, const struct counts_area *area)
{
	struct counts_thread *thread = thread_of_slot(f, area->row.thread);

	if (area->bytes.n < offsetof(struct count_thread, nodes) || thread->has_row) {
		counts_lost(f, 1, "a thread's record does not fit or is there twice");
		return;
	}
	memcpy(&thread->row, area->bytes.p,
		area->bytes.n < sizeof(thread->row) ? area->bytes.n : sizeof(thread->row));
	if (thread->row.nodes && thread->row.current_node >= thread->row.nodes)
		thread->row.current =
			(uint32_t)((thread->row.current_node - thread->row.nodes) / sizeof(struct count_node));
	thread->has_row = true;
}

static void add_area(struct counts_file *f, const struct counts_area *area)
{
	switch (area->row.kind) {
	case COUNT_AREA_UNITS:
		vec_push(&f->units_areas, *area);
		break;
	case COUNT_AREA_COUNTERS:
		vec_push(&thread_of_slot(f, area->row.thread)->counters, *area);
		break;
	case COUNT_AREA_NODES:
		vec_push(&thread_of_slot(f, area->row.thread)->nodes, *area);
		break;
	case COUNT_AREA_THREAD:
		add_thread(f, area);
		break;
	default:
		counts_lost(f, 1, "an area of the count file has a kind that is not known");
	}
}

/* Areas do not share bytes, so that together they are not larger than the file. */
static void read_areas(struct counts_file *f)
{
	uint64_t left = f->bytes.n, n_bad = 0;
	struct cursor c = cursor_of(f->bytes);

	cursor_skip(&c, HEADER_BYTES);
	for (size_t i = 0; i < COUNT_FILE_AREAS; i++) {
		struct counts_area area;

		if (HEADER_BYTES + (i + 1) * sizeof(area.row) > f->header->header_bytes ||
			!cursor_take(&c, &area.row, sizeof(area.row)) ||
			area.row.kind == COUNT_AREA_NONE)
			break;
		area.bytes = span_sub(f->bytes, area.row.offset, area.row.bytes);
		if (area.bytes.n != area.row.bytes || !area.bytes.p || area.bytes.n > left) {
			n_bad++;
			continue;
		}
		left -= area.bytes.n;
		add_area(f, &area);
	}
	if (n_bad)
		counts_lost(f, n_bad, "an area lies outside the count file: it was cut");
}

static int read_header(struct counts_file *f, struct err *err)
{
	struct count_header *h = f->header;

	if (!import_counts_is(f->bytes))
		return err_set(err, ERR_FORMAT, "is not a count file");
	if (f->bytes.n < HEADER_BYTES)
		return err_set(err, ERR_FORMAT, "the header of the count file is cut off");
	memcpy(h, f->bytes.p, HEADER_BYTES);
	if (h->version != COUNT_FILE_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			"the count file is of version %" PRIu32 ", only %d is known", h->version,
			COUNT_FILE_VERSION);
	if (h->header_bytes < HEADER_BYTES)
		return err_set(
			err, ERR_FORMAT, "the count file's header says that it is too small");
	h->exe[sizeof(h->exe) - 1] = h->command[sizeof(h->command) - 1] = 0;
	return 0;
}

/* ---- what is written ---- */

static void write_number_meta(struct trace_writer *w, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	trace_writer_meta(w, key, text);
}

static void write_run(struct counts_file *f)
{
	const struct count_header *h = f->header;
	const char *exe = counts_text(f, h->exe, strlen(h->exe));
	const char *command = counts_text(f, h->command, strlen(h->command));
	uint64_t process[4] = {h->pid, h->parent, 0, 0}, n_threads = f->threads.n;
	struct trace_image image = {.kind = IMAGE_KIND_ELF,
		.bits = 64,
		.file_bytes = h->exe_size,
		.file_mtime_ns = h->exe_mtime_ns};

	for (size_t i = 0; i < f->threads.n; i++)
		n_threads += f->threads.v[i].row.n_shared;
	if (!*command)
		command = exe;
	trace_writer_meta(f->w, "mode", "count");
	if (*command)
		trace_writer_meta(f->w, "command", command);
	if (h->start_ns)
		write_number_meta(f->w, "start_realtime_ns", h->start_ns);
	if (f->end_ns)
		write_number_meta(f->w, "wall_ns", f->end_ns);
	write_number_meta(f->w, "n_processes", 1);
	write_number_meta(f->w, "n_threads", n_threads);
	process[3] = trace_writer_string(f->w, command);
	trace_writer_numbers(
		f->w, f->life, 0, RECORD_MAJOR_PROCESS, RECORD_PROCESS_START, process, 4);
	image.path = trace_writer_string(f->w, *exe ? exe : "[the counted program]");
	image.build_id_n = h->build_id_bytes <= BUILD_ID_MAX ? h->build_id_bytes : 0;
	memcpy(image.build_id, h->build_id, image.build_id_n);
	f->image = trace_writer_image(f->w, &image);
}

static const char *reason_text(uint16_t reason)
{
	if (reason >= INSERT_N_REASONS)
		return "for a reason that this version does not know";
	return insert_reason_text((enum insert_reason)reason);
}

static void write_function(struct counts_file *f, struct counts_function *function)
{
	const struct counts_unit *unit = &f->units.v[function->unit];
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE,
		.image = f->image,
		.name = trace_writer_string(f->w, function->name),
		.addr = function->address - f->header->base};
	char *readable = symbol_demangle(function->name);
	struct trace_symbol_level level = {.name = trace_writer_string(f->w, readable),
		.file = function->file,
		.line = function->line};
	struct trace_symbol symbol = {.n_levels = 1, .levels = &level};
	uint64_t n[6] = {0, function->bytes, 0, function->n_blocks, 0,
		*unit->object ? trace_writer_string(f->w, unit->object) : 0};

	free(readable);
	symbol.frame = function->frame = trace_writer_frame(f->w, &frame);
	trace_writer_symbol(f->w, &symbol);
	n[0] = function->frame;
	if (function->reason)
		n[2] = trace_writer_string(f->w, reason_text(function->reason));
	n[4] = (function->flags & COUNT_FUNCTION_FRAGMENT ? RECORD_COUNT_FRAGMENT : 0) |
	       (function->flags & COUNT_FUNCTION_GLOBAL ? RECORD_COUNT_GLOBAL : 0) |
	       (function->flags & COUNT_FUNCTION_OBJECT ? RECORD_COUNT_OBJECT : 0) |
	       (function->reason && !insert_reason_is_told(function->reason) ? RECORD_COUNT_UNMISSED
									     : 0);
	trace_writer_numbers(f->w, f->life, 0, RECORD_MAJOR_COUNT, RECORD_COUNT_FUNCTION, n, 6);
}

static void write_code(struct counts_file *f)
{
	for (size_t i = 0; i < f->functions.n; i++) {
		struct counts_function *function = &f->functions.v[i];

		write_function(f, function);
		for (uint32_t k = 0; k < function->n_blocks; k++)
			counts_write_block(f, function, &f->blocks.v[function->first_block + k]);
	}
}

/* Once for each reason. */
static void note_left_alone(struct counts_file *f, bool are_objects)
{
	uint64_t n[INSERT_N_REASONS + 1] = {0};
	const struct counts_function *first[INSERT_N_REASONS + 1] = {NULL};

	for (size_t i = 0; i < f->functions.n; i++) {
		const struct counts_function *function = &f->functions.v[i];
		uint16_t reason = function->reason < INSERT_N_REASONS ? function->reason
								       : INSERT_N_REASONS;

		if (are_objects == !!(function->flags & COUNT_FUNCTION_OBJECT) && !n[reason]++)
			first[reason] = function;
	}
	for (enum insert_reason reason = 0; reason <= INSERT_N_REASONS; reason++) {
		const char *object = n[reason] ? f->units.v[first[reason]->unit].object : "";

		if (n[reason] && insert_reason_is_told(reason))
			counts_note(f, n[reason],
				"%s is not counted: %s (the first: '%.200s'%s%.200s%s; 'weir report "
				"coverage' has all)",
				are_objects ? "an object" : "a function",
				reason_text((uint16_t)reason), first[reason]->name,
				*object || !are_objects ? " of '" : "", object,
				*object || !are_objects ? "'" : "");
	}
}

static void write_end(struct counts_file *f)
{
	const struct count_header *h = f->header;

	note_left_alone(f, false);
	note_left_alone(f, true);
	counts_note_left(f);
	if (h->n_threads_lost)
		counts_note(f, h->n_threads_lost,
			"a thread had no memory for counters of its own: it is counted together with "
			"another, and where both counted at once, too little");
	if (h->flags & COUNT_FILE_THREADS)
		counts_note(f, 1,
			"the program had threads, which share their counters with --counts: where two "
			"counted at once, too little");
	if (h->flags & COUNT_FILE_TIMELESS)
		counts_note(f, 1,
			"the program gave up the time-stamp counter: calls of foreign functions are not "
			"timed from then on");
	if (h->flags & COUNT_FILE_CHILD_LOST)
		counts_note(f, 1,
			"the program gave up system calls (seccomp): children that it had from then on are "
			"not counted");
	if (h->flags & COUNT_FILE_CHILD_FAILED)
		counts_note(f, 1,
			"a child could not create its count file (another root directory or user, a full "
			"disk): it is not counted");
	if (h->calls_lost)
		trace_writer_loss(f->w, f->life, 0, RECORD_LOSS_EVENTS, h->calls_lost,
			"a call had no node, for want of memory or of room in the file: its cost is in "
			"its caller's");
	trace_writer_numbers(
		f->w, f->life, f->end_ns, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, NULL, 0);
}

static void counts_release(struct counts_file *f)
{
	for (size_t i = 0; i < f->threads.n; i++) {
		vec_release(&f->threads.v[i].counters);
		vec_release(&f->threads.v[i].nodes);
	}
	free(f->header);
	intern_release(&f->texts);
	vec_release(&f->units_areas);
	vec_release(&f->threads);
	map_release(&f->thread_of);
	vec_release(&f->units);
	vec_release(&f->functions);
	vec_release(&f->blocks);
	vec_release(&f->inserted);
	vec_release(&f->lines);
	vec_release(&f->calls);
	vec_release(&f->left);
	vec_release(&f->foreign);
	vec_release(&f->by_counters);
	map_release(&f->entry_of);
	map_release(&f->left_alone);
}

int import_counts(struct span bytes, const struct import_counts_options *options,
	struct trace_writer *w, struct err *err)
{
	struct counts_file f = {.bytes = bytes, .options = options, .w = w};
	int rc;

	f.header = mem_zalloc(HEADER_BYTES);
	rc = read_header(&f, err);
	if (rc < 0) {
		counts_release(&f);
		return rc;
	}
	if (f.header->end_ns > f.header->start_ns)
		f.end_ns = f.header->end_ns - f.header->start_ns;
	f.life = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	trace_writer_metric(w, "instructions", "1");
	read_areas(&f);
	write_run(&f);
	counts_read_units(&f);
	counts_add_counters(&f);
	counts_read_left(&f);
	counts_read_program(&f);
	if (f.has_model || f.header->flags & COUNT_FILE_CYCLES)
		trace_writer_metric(w, "cycles", "1");
	write_code(&f);
	counts_write_threads(&f);
	counts_compare_parts(&f);
	if (f.header->flags & COUNT_FILE_TREE)
		trace_writer_metric(w, "calls", "1");
	if (f.has_foreign_time)
		trace_writer_metric(w, "foreign", "ns");
	write_end(&f);
	counts_release(&f);
	return 0;
}
