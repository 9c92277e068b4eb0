/* SPDX-License-Identifier: MIT */
/*
 * Two passes: tables, then samples. Addresses stay, so that what has no names can get some; those of a mapping become
 * addresses of its file.
 */
#include "formats/foreign/pprof_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/leb128.h"
#include "elf/elf_file.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/foreign/pprof_tables.h"
#include "formats/foreign/stack_cache.h"
#include "formats/text_lines.h"

#define DEPTH_MAX	 65536 /* a deeper stack loses its outer end */
#define KERNEL_ADDR_LOW	 (UINT64_C(1) << 63)
#define FIXED_ADDR_LIMIT (UINT64_C(1) << 28) /* programs that are not moved lie below */
#define PERIOD_UNIT	 1000000000u

struct metric {
	uint32_t id;
	uint64_t scale; /* units of the metric in one of the file */
};

struct pprof {
	struct foreign_input *in;
	struct foreign_trace *trace;
	const struct foreign_options *options;
	struct pprof_tables tables;
	VEC(struct metric) metrics; /* by type */
	uint32_t *frames;	    /* by location's place */
	int64_t *biases;	    /* by mapping's place: address in the file minus address */
	VEC(uint64_t) ids;	    /* of the sample's locations, leaf first */
	VEC(uint64_t) last;	    /* the same of the sample before, root first */
	VEC(uint32_t) stacks;	    /* of that one, by depth */
	struct stack_cache *known;  /* by the packed ids */
	uint64_t n_negative, n_labels, n_deep;
};

/* ---- how it is told ---- */

/* Wire types of the fields of a profile: 'n' numbers, 'b' bytes, 'x' either (packed numbers). */
static bool is_field_of_profile(const struct protobuf_field *f)
{
	static const char wires[] = "?bbbbbbnnnnbnxnn";
	bool is_number = f->wire == PROTOBUF_READ_VARINT;
	bool is_bytes = f->wire == PROTOBUF_READ_BYTES;

	if (!f->number || f->number >= sizeof(wires) - 1)
		return false;
	switch (wires[f->number]) {
	case 'n':
		return is_number;
	case 'b':
		return is_bytes;
	default:
		return is_number || is_bytes;
	}
}

/* All fields are numbers below `n`, but bytes where `allows_bytes`. */
static bool is_message(struct span bytes, uint32_t n, bool allows_bytes)
{
	struct cursor c = cursor_of(bytes);
	struct protobuf_field f;

	while (protobuf_read_field(&c, &f))
		if (f.number > n || (f.wire != PROTOBUF_READ_VARINT &&
					    !(allows_bytes && f.wire == PROTOBUF_READ_BYTES)))
			return false;
	return !c.failed;
}

bool pprof_is(struct span first)
{
	struct cursor c = cursor_of(first);
	struct protobuf_field f;
	size_t n = 0;

	if (!first.n || first.p[0] >= 0x80)
		return false;
	while (protobuf_read_field(&c, &f)) {
		if (!is_field_of_profile(&f) ||
			((f.number == PPROF_SAMPLE_TYPE || f.number == PPROF_PERIOD_TYPE) &&
				!is_message(f.bytes, 2, false)) ||
			(f.number == PPROF_SAMPLE && !is_message(f.bytes, 3, true)))
			return false;
		n++;
	}
	/* The last field is cut where the bytes are only the beginning, or the file is cut. */
	return n >= (c.failed ? 4 : 2);
}

/* ---- metrics ---- */

static const struct unit {
	const char *name, *of_trace;
	uint64_t scale;
} units[] = {
	{"nanoseconds", "ns", 1},
	{"microseconds", "ns", 1000},
	{"milliseconds", "ns", 1000000},
	{"seconds", "ns", 1000000000},
	{"count", "1", 1},
	{"", "1", 1},
};

static const struct unit *unit_of(struct span name)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text_word_is(name, units[i].name))
			return &units[i];
	return NULL;
}

/* The tools show the default type, or the last one. */
static size_t main_type(const struct pprof_tables *t)
{
	for (size_t i = 0; t->default_type && i < t->types.n; i++)
		if (span_equal(pprof_tables_string(t, t->types.v[i].type),
			    pprof_tables_string(t, t->default_type)))
			return i;
	return t->types.n - 1;
}

static void make_metrics(struct pprof *p)
{
	const struct pprof_tables *t = &p->tables;
	size_t first = t->types.n ? main_type(t) : 0;

	for (size_t i = 0; i < t->types.n; i++) {
		struct span type = pprof_tables_string(t, t->types.v[i].type);
		struct span unit = pprof_tables_string(t, t->types.v[i].unit);
		const struct unit *known = unit_of(unit);
		char *name =
			type.n ? mem_strndup((const char *)type.p, type.n) : mem_strdup("samples");
		char *other = known ? NULL : mem_strndup((const char *)unit.p, unit.n);
		const char *of_trace = known ? known->of_trace : other;
		struct metric m = {.scale = known ? known->scale : 1};

		m.id = i == first ? foreign_trace_main_metric(p->trace, name, of_trace)
				  : foreign_trace_metric(p->trace, name, of_trace);
		vec_push(&p->metrics, m);
		free(name);
		free(other);
	}
}

/* ---- frames ---- */

/* The file's own idea of where its bytes go: its segments. False: it cannot be asked. */
static bool ask_file(const struct pprof *p, struct span file, uint64_t offset, uint64_t *addr)
{
	char *path = mem_printf("%s%.*s", p->options->sysroot ? p->options->sysroot : "",
		(int)file.n, (const char *)file.p);
	struct file_map map = {0};
	struct elf_file elf;
	struct iaddr at;
	bool is_known = false;

	if (file.n && file.p[0] == '/' && file_map_open(&map, path, NULL) == 0 &&
		elf_file_init(&elf, map.bytes, NULL) == 0) {
		is_known = elf_file_offset_to_iaddr(&elf, (struct foff){offset}, &at);
		elf_file_release(&elf);
	}
	file_map_release(&map);
	free(path);
	*addr = is_known ? at.v : 0;
	return is_known;
}

static bool is_kernel(const struct pprof *p, const struct pprof_mapping_read *m, uint64_t addr)
{
	struct span file = m ? pprof_tables_string(&p->tables, m->file) : (struct span){0};

	return (file.n >= 7 && !memcmp(file.p, "[kernel", 7)) || (!m && addr >= KERNEL_ADDR_LOW);
}

/* Of each mapping that has places without names; of others nobody asks. */
static void find_biases(struct pprof *p)
{
	const struct pprof_tables *t = &p->tables;
	bool *is_done = mem_calloc(t->mappings.n + 1, sizeof(*is_done));

	p->biases = mem_calloc(t->mappings.n + 1, sizeof(*p->biases));
	for (size_t i = 0; i < t->mappings.n; i++) {
		const struct pprof_mapping_read *m = &t->mappings.v[i];

		if (m->start >= FIXED_ADDR_LIMIT && !is_kernel(p, m, m->start))
			p->biases[i] = (int64_t)(m->offset - m->start);
	}
	for (size_t i = 0; i < t->locations.n; i++) {
		const struct pprof_location *l = &t->locations.v[i];
		const uint64_t *place = l->n_lines ? NULL : map_find(&t->mapping_of, l->mapping);
		const struct pprof_mapping_read *m = place ? &t->mappings.v[*place] : NULL;
		uint64_t addr;

		if (!m || is_done[*place] || is_kernel(p, m, m->start))
			continue;
		is_done[*place] = true;
		if (ask_file(p, pprof_tables_string(t, m->file), m->offset, &addr))
			p->biases[*place] = (int64_t)(addr - m->start);
	}
	free(is_done);
}

static uint8_t hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return (uint8_t)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (uint8_t)(c - 'a' + 10) : 0xff;
}

/* Bytes of a build-id in hexadecimal; 0: it is none. */
static uint8_t read_build_id(struct span text, uint8_t id[BUILD_ID_MAX])
{
	if (!text.n || text.n % 2 || text.n / 2 > BUILD_ID_MAX)
		return 0;
	for (size_t i = 0; i < text.n / 2; i++) {
		uint8_t high = hex_digit(text.p[2 * i]), low = hex_digit(text.p[2 * i + 1]);

		if (high > 15 || low > 15)
			return 0;
		id[i] = (uint8_t)(high << 4 | low);
	}
	return (uint8_t)(text.n / 2);
}

static struct span name_of(const struct pprof_tables *t, const struct pprof_function *f)
{
	struct span name = pprof_tables_string(t, f->name);

	return name.n ? name : pprof_tables_string(t, f->system_name);
}

/* Levels that have a name; of a location without any only the address is known. */
static size_t make_levels(
	const struct pprof_tables *t, const struct pprof_location *l, struct foreign_level *levels)
{
	size_t n = 0;

	for (uint32_t i = 0; i < l->n_lines && n < SYMBOL_LEVELS_MAX; i++) {
		const struct pprof_line *line = &t->lines.v[l->first_line + i];
		const struct pprof_function *f = pprof_tables_function(t, line->function);
		struct foreign_level level = {.name = name_of(t, f),
			.file = pprof_tables_string(t, f->file),
			.line = line->line};

		if (level.name.n)
			levels[n++] = level;
	}
	return n;
}

static uint32_t make_frame(struct pprof *p, const struct pprof_location *l)
{
	const struct pprof_tables *t = &p->tables;
	const uint64_t *place = map_find(&t->mapping_of, l->mapping);
	const struct pprof_mapping_read *m = place ? &t->mappings.v[*place] : NULL;
	struct foreign_level levels[SYMBOL_LEVELS_MAX];
	uint8_t build_id[BUILD_ID_MAX];
	struct foreign_frame frame = {
		.kind = is_kernel(p, m, l->address) ? FRAME_KIND_KERNEL : FRAME_KIND_NATIVE,
		.addr = l->address,
		.levels = levels,
		.n_levels = make_levels(t, l, levels)};

	if (m) {
		frame.image = pprof_tables_string(t, m->file);
		frame.build_id = build_id;
		frame.build_id_n = read_build_id(pprof_tables_string(t, m->build_id), build_id);
		if (l->address)
			frame.addr = l->address + (uint64_t)p->biases[*place];
	}
	return foreign_trace_frame(p->trace, &frame);
}

static void make_frames(struct pprof *p)
{
	const struct pprof_tables *t = &p->tables;

	find_biases(p);
	p->frames = mem_calloc(t->locations.n + 1, sizeof(*p->frames));
	for (size_t i = 0; i < t->locations.n; i++)
		p->frames[i] = make_frame(p, &t->locations.v[i]);
}

/* ---- samples ---- */

/* What labels say of the thread. */
struct sample_thread {
	struct span name;
	uint64_t pid, tid;
};

static void read_label(struct pprof *p, struct span bytes, struct sample_thread *thread)
{
	struct cursor c = cursor_of(bytes);
	struct protobuf_field f;
	uint64_t key = 0, text = 0, number = 0;
	struct span name;

	while (protobuf_read_field(&c, &f)) {
		key = f.number == 1 ? f.value : key;
		text = f.number == 2 ? f.value : text;
		number = f.number == 3 ? f.value : number;
	}
	name = pprof_tables_string(&p->tables, key);
	if (text_word_is(name, "thread") || text_word_is(name, "thread_name") ||
		text_word_is(name, "thread name")) {
		thread->name = pprof_tables_string(&p->tables, text);
		if (number)
			thread->tid = number;
	} else if (text_word_is(name, "tid") || text_word_is(name, "thread_id") ||
		   text_word_is(name, "thread id")) {
		thread->tid = number;
		if (text)
			text_word_number(
				pprof_tables_string(&p->tables, text), UINT32_MAX, &thread->tid);
	} else if (text_word_is(name, "pid") || text_word_is(name, "process_id")) {
		thread->pid = number;
	} else {
		p->n_labels++;
	}
}

static int stack_of(struct pprof *p, uint32_t *stack, struct err *err)
{
	size_t n = p->ids.n < DEPTH_MAX ? p->ids.n : DEPTH_MAX, same = 0;

	p->n_deep += p->ids.n > DEPTH_MAX;
	while (same < n && same < p->last.n && p->last.v[same] == p->ids.v[n - 1 - same])
		same++;
	p->last.n = p->stacks.n = same;
	for (size_t i = same; i < n; i++) {
		const uint64_t *place = map_find(&p->tables.location_of, p->ids.v[n - 1 - i]);

		if (!place)
			return foreign_input_wrong(p->in, err,
				"refers to a location %" PRIu64 " that is not there",
				p->ids.v[n - 1 - i]);
		vec_push(&p->stacks, foreign_trace_stack(p->trace, i ? p->stacks.v[i - 1] : 0,
					     p->frames[*place]));
		vec_push(&p->last, p->ids.v[n - 1 - i]);
	}
	*stack = n ? p->stacks.v[n - 1] : 0;
	return 0;
}

static void put_values(struct pprof *p, const uint64_t *values, uint32_t thread, uint32_t stack)
{
	for (size_t i = 0; i < p->metrics.n; i++) {
		const struct metric *m = &p->metrics.v[i];
		struct trace_sample sample = {thread, stack, m->id, values[i] * m->scale};

		if ((int64_t)values[i] < 0 || values[i] > UINT64_MAX / m->scale)
			p->n_negative++;
		else
			foreign_trace_sample(p->trace, 0, &sample);
	}
}

/* A sample's fields, of which only the last one of each kind is seen as a whole. */
struct sample_parts {
	struct span ids; /* the only ones, packed; p NULL: they are in p->ids alone */
	size_t n_id_fields;
	struct sample_thread thread;
	uint64_t values[PPROF_TYPES_MAX];
	size_t n_values;
};

static bool read_parts(struct pprof *p, struct span bytes, struct sample_parts *parts)
{
	struct cursor c = cursor_of(bytes), numbers;
	uint8_t one[ULEB_BYTES_MAX];
	struct protobuf_field f;

	while (protobuf_read_field(&c, &f)) {
		if (f.number == 3)
			read_label(p, f.bytes, &parts->thread);
		if (f.number == 1 && f.wire == PROTOBUF_READ_BYTES)
			parts->ids = f.bytes;
		parts->n_id_fields += f.number == 1;
		if (f.number != 2)
			continue;
		numbers = protobuf_read_numbers(&f, one);
		for (; cursor_left(&numbers) && !numbers.failed; parts->n_values++)
			parts->values[parts->n_values % PPROF_TYPES_MAX] = cursor_uleb(&numbers);
		c.failed |= numbers.failed;
	}
	if (parts->n_id_fields != 1)
		parts->ids = (struct span){0};
	return !c.failed;
}

static bool read_ids(struct pprof *p, struct span bytes)
{
	struct cursor c = cursor_of(bytes), numbers;
	uint8_t one[ULEB_BYTES_MAX];
	struct protobuf_field f;

	p->ids.n = 0;
	while (protobuf_read_field(&c, &f)) {
		if (f.number != 1)
			continue;
		numbers = protobuf_read_numbers(&f, one);
		while (cursor_left(&numbers) && !numbers.failed)
			vec_push(&p->ids, cursor_uleb(&numbers));
		c.failed |= numbers.failed;
	}
	return !c.failed;
}

static int read_sample(struct pprof *p, struct span bytes, struct err *err)
{
	struct sample_parts parts = {.n_values = 0};
	uint32_t stack = 0;
	int rc = 0;

	if (!read_parts(p, bytes, &parts))
		return foreign_input_wrong(p->in, err, "has a damaged sample");
	if (parts.n_values != p->metrics.n)
		return foreign_input_wrong(p->in, err,
			"has a sample with %zu values, but %zu types of values", parts.n_values,
			p->metrics.n);
	stack = stack_cache_find(p->known, parts.ids);
	if (!stack) {
		rc = read_ids(p, bytes) ? stack_of(p, &stack, err)
					: foreign_input_wrong(p->in, err, "has a damaged sample");
		if (rc == 0)
			stack_cache_put(p->known, parts.ids, stack);
	}
	if (rc == 0)
		put_values(p, parts.values,
			foreign_trace_thread(p->trace, (uint32_t)parts.thread.pid,
				(uint32_t)parts.thread.tid, parts.thread.name),
			stack);
	return rc;
}

static int read_samples(struct pprof *p, struct err *err)
{
	struct protobuf_field f;
	int rc = 0;

	if (!foreign_input_restart(p->in))
		return foreign_input_wrong(p->in, err, "is a pipe, but must be read twice");
	while (rc == 0 && pprof_next_field(p->in, &f, &rc, err))
		if (f.number == PPROF_SAMPLE && f.wire == PROTOBUF_READ_BYTES)
			rc = read_sample(p, f.bytes, err);
	return rc;
}

/* ---- the whole ---- */

static void tell_fact(struct trace_writer *w, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	if (number)
		trace_writer_meta(w, key, text);
}

static void tell_facts(struct pprof *p, struct trace_writer *w)
{
	const struct pprof_tables *t = &p->tables;
	bool is_cpu = text_word_is(pprof_tables_string(t, t->period_type.type), "cpu") &&
		      text_word_is(pprof_tables_string(t, t->period_type.unit), "nanoseconds");

	tell_fact(w, "start_realtime_ns", t->time_ns);
	tell_fact(w, "wall_ns", t->duration_ns);
	if (is_cpu && t->period && t->period <= PERIOD_UNIT)
		tell_fact(w, "frequency", PERIOD_UNIT / t->period);
}

static void tell_imperfections(struct pprof *p)
{
	if (p->n_negative)
		foreign_trace_lost(p->trace, p->n_negative,
			"values below zero, as differences have them, or too large ones");
	if (p->n_labels)
		foreign_trace_note(p->trace, p->n_labels,
			"labels of samples that name no thread are not kept");
	if (p->n_deep)
		foreign_trace_note(
			p->trace, p->n_deep, "stacks were cut at their outer end: too deep");
	if (p->tables.drop_frames)
		foreign_trace_note(p->trace, 1,
			"the profile asks for some frames not to be shown (drop_frames): they are");
}

int pprof_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct pprof p = {.in = in,
		.options = options,
		.trace = foreign_trace_new(w, "pprof"),
		.known = stack_cache_new()};
	int rc = pprof_tables_read(&p.tables, in, err);

	(void)path;
	if (rc == 0) {
		make_metrics(&p);
		make_frames(&p);
		tell_facts(&p, w);
		rc = read_samples(&p, err);
	}
	if (rc == 0)
		tell_imperfections(&p);
	foreign_trace_free(p.trace);
	pprof_tables_release(&p.tables);
	vec_release(&p.metrics);
	vec_release(&p.ids);
	vec_release(&p.last);
	vec_release(&p.stacks);
	stack_cache_free(p.known);
	free(p.frames);
	free(p.biases);
	return rc;
}
