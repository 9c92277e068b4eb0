/* SPDX-License-Identifier: MIT */
/*
 * Decodes definitions and answers questions about them. Every reference is checked when it is
 * read, so the getters need no checks but the caller's own id.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader_internal.h"

void reader_tables_init(struct trace_reader *r)
{
	vec_push(&r->strings, "");
	vec_push(&r->metrics, (struct trace_metric){0});
	vec_push(&r->streams, (struct trace_stream){0});
	vec_push(&r->images, (struct trace_image){0});
	vec_push(&r->threads, (struct trace_thread){0});
	vec_push(&r->frames, (struct trace_frame){0});
	vec_push(&r->stacks, (struct trace_stack){0});
	vec_push(&r->kinds, (struct trace_kind){0});
	vec_push(&r->symbols, (struct trace_symbol){0});
	vec_push(&r->facts, (struct trace_image_facts){0});
	vec_push(&r->matches, (struct trace_match){0});
	vec_push(&r->functions, (struct image_functions){0});
	vec_push(&r->function_chunks, (struct function_chunk){0});
}

void reader_tables_release(struct trace_reader *r)
{
	vec_release(&r->strings);
	vec_release(&r->metrics);
	vec_release(&r->streams);
	vec_release(&r->images);
	vec_release(&r->threads);
	vec_release(&r->frames);
	vec_release(&r->stacks);
	vec_release(&r->kinds);
	vec_release(&r->symbols);
	reader_images_release(r);
	intern_release(&r->meta_keys);
	vec_release(&r->meta_values);
	vec_release_all(&r->blocks);
	intern_release(&r->added);
	map_release(&r->string_by_hash);
	free(r->damaged_tables);
}

int decoder_bad(const struct decoder *d, const char *what, uint64_t value)
{
	return chunk_error(d->r, d->view, d->err, "entry %u: %s is %llu, which is not possible",
		d->i, what, (unsigned long long)value);
}

int decoder_cut_off(const struct decoder *d)
{
	return chunk_error(d->r, d->view, d->err, "entry %u: is cut off", d->i);
}

int decoder_take(struct decoder *d, uint32_t *to, uint64_t limit, const char *what)
{
	uint64_t v = cursor_uleb(&d->c);

	if (d->c.failed)
		return decoder_cut_off(d);
	if (v >= limit)
		return decoder_bad(d, what, v);
	*to = (uint32_t)v;
	return 0;
}

int decoder_take_u64(struct decoder *d, uint64_t *to)
{
	*to = cursor_uleb(&d->c);
	return d->c.failed ? decoder_cut_off(d) : 0;
}

/* Texts stay where they are, so the payload must be kept: see keep_payload. */
static int take_text(struct decoder *d, const char **to)
{
	const char *text = cursor_cstr(&d->c);

	if (!text)
		return decoder_cut_off(d);
	if ((const char *)d->c.p - text > (ptrdiff_t)STRING_BYTES_MAX + 1)
		return decoder_bad(
			d, "the length of a text", (uint64_t)((const char *)d->c.p - text - 1));
	*to = text;
	return 0;
}

/* Makes the payload the reader's. */
static void keep_payload(struct decoder *d)
{
	size_t left = cursor_left(&d->c);
	uint8_t *copy = mem_dup(d->c.p, left);

	vec_push(&d->r->blocks, copy);
	d->c = cursor_of((struct span){copy, left});
}

static int add_meta(struct decoder *d)
{
	struct trace_reader *r = d->r;
	const char *key = NULL, *value = NULL;
	uint32_t id;

	if (take_text(d, &key) < 0 || take_text(d, &value) < 0)
		return ERR_FORMAT;
	id = intern_text(&r->meta_keys, key);
	if (id == r->meta_values.n)
		vec_push(&r->meta_values, value);
	else
		r->meta_values.v[id] = value;
	return 0;
}

static int add_string(struct decoder *d)
{
	const char *text = NULL;

	if (take_text(d, &text) < 0)
		return ERR_FORMAT;
	vec_push(&d->r->strings, text);
	return 0;
}

static int add_metric(struct decoder *d)
{
	struct trace_metric m;

	if (decoder_take(d, &m.name, d->r->strings.n, "the name") < 0 ||
		decoder_take(d, &m.unit, d->r->strings.n, "the unit") < 0)
		return ERR_FORMAT;
	vec_push(&d->r->metrics, m);
	return 0;
}

static int add_stream(struct decoder *d)
{
	uint32_t kind, number;

	if (decoder_take(d, &kind, STREAM_KIND_THREAD + 1, "the kind of stream") < 0 ||
		decoder_take(d, &number, ANY_U32, "the number") < 0)
		return ERR_FORMAT;
	if (!kind)
		return decoder_bad(d, "the kind of stream", 0);
	if (kind == STREAM_KIND_THREAD && number >= d->r->threads.n)
		return decoder_bad(d, "the thread", number);
	vec_push(&d->r->streams, ((struct trace_stream){(enum stream_kind)kind, number}));
	return 0;
}

static void append_image(struct trace_reader *r, const struct trace_image *image)
{
	vec_push(&r->images, *image);
	vec_push(&r->facts, (struct trace_image_facts){0});
	vec_push(&r->matches, (struct trace_match){0});
	vec_push(&r->functions, (struct image_functions){0});
}

static int add_image(struct decoder *d)
{
	struct trace_image image = {0};
	uint32_t kind, bits, n;

	if (decoder_take(d, &kind, IMAGE_KIND_OTHER + 1, "the kind of image") < 0 ||
		decoder_take(d, &image.path, d->r->strings.n, "the path") < 0 ||
		decoder_take(d, &bits, 65, "the number of bits") < 0 ||
		decoder_take(d, &n, BUILD_ID_MAX + 1, "the length of the build-id") < 0)
		return ERR_FORMAT;
	if (!kind)
		return decoder_bad(d, "the kind of image", 0);
	if (bits != 0 && bits != 32 && bits != 64)
		return decoder_bad(d, "the number of bits", bits);
	image.kind = (enum image_kind)kind;
	image.bits = (uint8_t)bits;
	image.build_id_n = (uint8_t)n;
	cursor_take(&d->c, image.build_id, n);
	if (decoder_take_u64(d, &image.file_bytes) < 0 ||
		decoder_take_u64(d, &image.file_mtime_ns) < 0 ||
		decoder_take(d, &image.pid, ANY_U32, "the pid") < 0)
		return ERR_FORMAT;
	append_image(d->r, &image);
	return 0;
}

static int add_thread(struct decoder *d)
{
	struct trace_thread t;

	if (decoder_take(d, &t.pid, ANY_U32, "the pid") < 0 ||
		decoder_take(d, &t.tid, ANY_U32, "the tid") < 0 ||
		decoder_take_u64(d, &t.start_ns) < 0)
		return ERR_FORMAT;
	vec_push(&d->r->threads, t);
	return 0;
}

static void append_frame(struct trace_reader *r, const struct trace_frame *frame)
{
	vec_push(&r->frames, *frame);
	vec_push(&r->symbols, (struct trace_symbol){0});
}

static int add_frame(struct decoder *d)
{
	struct trace_reader *r = d->r;
	uint8_t tag = cursor_u8(&d->c);
	struct trace_frame f = {.kind = (enum frame_kind)(tag & FRAME_TAG_KIND),
		.is_caller = (tag & FRAME_TAG_CALLER) != 0};

	if (!d->c.failed && (tag & FRAME_TAG_ZERO || !f.kind || f.kind > FRAME_KIND_MARKER))
		return decoder_bad(d, "the tag", tag);
	if (tag & FRAME_TAG_IMAGE && decoder_take(d, &f.image, r->images.n, "the image") < 0)
		return ERR_FORMAT;
	f.addr = (d->i ? r->frames.v[r->frames.n - 1].addr : 0) + (uint64_t)cursor_sleb(&d->c);
	if (tag & FRAME_TAG_NAME && decoder_take(d, &f.name, r->strings.n, "the name") < 0)
		return ERR_FORMAT;
	if (d->c.failed)
		return decoder_cut_off(d);
	if ((tag & FRAME_TAG_IMAGE && !f.image) || (tag & FRAME_TAG_NAME && !f.name))
		return decoder_bad(d, "the image or name", 0);
	append_frame(r, &f);
	return 0;
}

static int add_stack(struct decoder *d)
{
	uint32_t own = (uint32_t)d->r->stacks.n, up, frame;

	if (decoder_take(d, &up, (uint64_t)own + 1, "the step to the caller") < 0 ||
		decoder_take(d, &frame, d->r->frames.n, "the frame") < 0)
		return ERR_FORMAT;
	if (!up || !frame)
		return decoder_bad(d, up ? "the frame" : "the step to the caller", 0);
	vec_push(&d->r->stacks, ((struct trace_stack){own - up, frame}));
	return 0;
}

static int add_kind(struct decoder *d)
{
	struct trace_kind k;

	if (decoder_take(d, &k.major, ANY_U32, "the major code") < 0 ||
		decoder_take(d, &k.minor, ANY_U32, "the minor code") < 0)
		return ERR_FORMAT;
	vec_push(&d->r->kinds, k);
	return 0;
}

static int take_level(struct decoder *d, struct trace_symbol_level *level)
{
	if (decoder_take(d, &level->name, d->r->strings.n, "the name") < 0 ||
		decoder_take(d, &level->file, d->r->strings.n, "the file") < 0 ||
		decoder_take(d, &level->line, ANY_U32, "the line") < 0 ||
		decoder_take(d, &level->offset, ANY_U32, "the offset") < 0)
		return ERR_FORMAT;
	return 0;
}

static int add_symbol(struct decoder *d)
{
	struct trace_symbol_level levels[SYMBOL_LEVELS_MAX];
	struct trace_symbol s = {.levels = levels};

	if (decoder_take(d, &s.frame, d->r->frames.n, "the frame") < 0 ||
		decoder_take(d, &s.reason, d->r->strings.n, "the reason") < 0 ||
		decoder_take(d, &s.n_levels, SYMBOL_LEVELS_MAX + 1, "the number of levels") < 0)
		return ERR_FORMAT;
	if (!s.frame)
		return decoder_bad(d, "the frame", 0);
	for (uint32_t i = 0; i < s.n_levels; i++)
		if (take_level(d, &levels[i]) < 0)
			return ERR_FORMAT;
	trace_reader_set_symbol(d->r, &s);
	return 0;
}

/* Each table: how an entry is decoded, and how large the table is by now. */
static const struct table {
	int (*add)(struct decoder *d);
	size_t n_offset;  /* of the array's n in struct trace_reader; 0: entries have no ids */
	bool keeps_texts; /* entries point into the payload */
	int (*begin)(struct decoder *d); /* what stands before the first entry; may be NULL */
} tables[CHUNK_N_TYPES] = {
	[CHUNK_TYPE_META] = {add_meta, 0, true, NULL},
	[CHUNK_TYPE_STRINGS] = {add_string, offsetof(struct trace_reader, strings.n), true, NULL},
	[CHUNK_TYPE_METRICS] = {add_metric, offsetof(struct trace_reader, metrics.n), false, NULL},
	[CHUNK_TYPE_STREAMS] = {add_stream, offsetof(struct trace_reader, streams.n), false, NULL},
	[CHUNK_TYPE_IMAGES] = {add_image, offsetof(struct trace_reader, images.n), false, NULL},
	[CHUNK_TYPE_THREADS] = {add_thread, offsetof(struct trace_reader, threads.n), false, NULL},
	[CHUNK_TYPE_FRAMES] = {add_frame, offsetof(struct trace_reader, frames.n), false, NULL},
	[CHUNK_TYPE_STACKS] = {add_stack, offsetof(struct trace_reader, stacks.n), false, NULL},
	[CHUNK_TYPE_KINDS] = {add_kind, offsetof(struct trace_reader, kinds.n), false, NULL},
	[CHUNK_TYPE_SYMBOLS] = {add_symbol, 0, false, NULL},
	[CHUNK_TYPE_IMAGE_FACTS] = {reader_add_image_facts, 0, false, NULL},
	[CHUNK_TYPE_MATCHES] = {reader_add_match, 0, false, NULL},
	[CHUNK_TYPE_ADDRESSES] = {reader_add_span, offsetof(struct trace_reader, spans.n), false,
		reader_begin_spans},
};

/* --- what is damaged --- */

#define STAND_INS_MAX (1u << 22) /* of a file: a few hundred MiB at most */
#define STAND_IN_NAME "[damaged definition]"
#define STAND_IN_MARK "damaged definition" /* reports put markers into brackets */

size_t reader_tables_n(const struct trace_reader *r, uint32_t type)
{
	const struct table *table = type < CHUNK_N_TYPES ? &tables[type] : &tables[0];

	return table->n_offset ? *(const size_t *)((const char *)r + table->n_offset) : 0;
}

/* False: nothing can refer to entries of this table by their number. */
static bool stand_in(struct trace_reader *r, uint32_t type)
{
	switch (type) {
	case CHUNK_TYPE_STRINGS:
		vec_push(&r->strings, STAND_IN_NAME);
		return true;
	case CHUNK_TYPE_METRICS:
		vec_push(&r->metrics, (struct trace_metric){0});
		return true;
	case CHUNK_TYPE_STREAMS: /* of no kind: its records are not handed out */
		vec_push(&r->streams, (struct trace_stream){0});
		return true;
	case CHUNK_TYPE_IMAGES:
		append_image(r, &(struct trace_image){.kind = IMAGE_KIND_OTHER});
		return true;
	case CHUNK_TYPE_THREADS: /* numbers that no two of them have, and no true one */
		vec_push(&r->threads,
			((struct trace_thread){.tid = UINT32_MAX - (uint32_t)r->threads.n}));
		return true;
	case CHUNK_TYPE_FRAMES:
		append_frame(r, &(struct trace_frame){.kind = FRAME_KIND_MARKER});
		return true;
	case CHUNK_TYPE_STACKS:
		vec_push(&r->stacks, (struct trace_stack){0});
		return true;
	case CHUNK_TYPE_KINDS: /* a code that nobody knows */
		vec_push(&r->kinds, (struct trace_kind){0});
		return true;
	}
	return false;
}

int reader_tables_stand_in(
	struct trace_reader *r, const struct chunk_entry *e, size_t n_before, struct err *why)
{
	size_t n = reader_tables_n(r, e->type), end = n_before + e->count;

	if (!r->n_damaged_tables++)
		r->damaged_tables = mem_strdup(why->text);
	if (e->type == CHUNK_TYPE_ADDRESSES)
		r->n_spans_announced = UINT64_MAX; /* it is not whole, so it counts as none */
	if (e->count > CHUNK_RAW_BYTES_MAX || end > TABLE_ENTRIES_MAX ||
		(end > n && r->n_stood_in + (end - n) > STAND_INS_MAX))
		return why->code;
	while (n < end && stand_in(r, e->type)) {
		n++;
		r->n_stood_in++;
	}
	return 0;
}

void reader_tables_finish(struct trace_reader *r)
{
	uint32_t name, mark, frame;

	r->n_file_strings = (uint32_t)r->strings.n;
	if (!r->n_stood_in)
		return;
	name = trace_reader_add_string(r, STAND_IN_NAME);
	mark = trace_reader_add_string(r, STAND_IN_MARK);
	frame = (uint32_t)r->frames.n;
	append_frame(r, &(struct trace_frame){.kind = FRAME_KIND_MARKER});
	for (size_t i = 1; i < r->frames.n; i++)
		if (r->frames.v[i].kind == FRAME_KIND_MARKER && !r->frames.v[i].name)
			r->frames.v[i].name = mark;
	for (size_t i = 1; i < r->stacks.n; i++)
		if (!r->stacks.v[i].frame)
			r->stacks.v[i].frame = frame;
	for (size_t i = 1; i < r->images.n; i++)
		if (r->images.v[i].kind == IMAGE_KIND_OTHER && !r->images.v[i].path)
			r->images.v[i].path = name;
	for (size_t i = 1; i < r->metrics.n; i++)
		if (!r->metrics.v[i].name)
			r->metrics.v[i].name = name;
}

static int check_first_id(struct decoder *d, const struct table *table)
{
	const size_t *n = (const size_t *)((const char *)d->r + table->n_offset);
	uint64_t first = cursor_uleb(&d->c);

	if (d->c.failed || first != *n)
		return chunk_error(d->r, d->view, d->err, "begins with id %llu, but %zu is next",
			(unsigned long long)first, *n);
	if (d->view->header.count > TABLE_ENTRIES_MAX - *n)
		return chunk_error(
			d->r, d->view, d->err, "the table is larger than %u", TABLE_ENTRIES_MAX);
	return 0;
}

int reader_tables_add(struct trace_reader *r, const struct chunk_view *view, struct err *err)
{
	struct decoder d = {r, view, cursor_of(view->raw), 0, err};
	const struct table *table;

	if (view->header.type >= CHUNK_N_TYPES || !tables[view->header.type].add)
		return 0;
	table = &tables[view->header.type];
	if (table->n_offset && check_first_id(&d, table) < 0)
		return ERR_FORMAT;
	if (table->begin && table->begin(&d) < 0)
		return ERR_FORMAT;
	/* Every entry has at least one byte, so arrays grow only with the bytes that are there. */
	if (view->header.count > cursor_left(&d.c))
		return chunk_error(r, view, err, "%u entries do not fit", view->header.count);
	if (table->keeps_texts)
		keep_payload(&d);
	for (; d.i < view->header.count; d.i++)
		if (table->add(&d) < 0)
			return ERR_FORMAT;
	if (d.c.p != d.c.end)
		return chunk_error(r, view, err, "%zu bytes are left over", cursor_left(&d.c));
	return 0;
}

uint32_t trace_reader_n_damaged_tables(const struct trace_reader *r, const char **first)
{
	if (first)
		*first = r->damaged_tables;
	return r->n_damaged_tables;
}

uint64_t trace_reader_n_unplaced(const struct trace_reader *r)
{
	return r->n_unplaced;
}

const char *trace_reader_meta(const struct trace_reader *r, const char *key)
{
	for (uint32_t id = 0; id < r->meta_values.n; id++)
		if (!strcmp(intern_get(&r->meta_keys, id), key))
			return r->meta_values.v[id];
	return NULL;
}

const char *trace_reader_meta_key(const struct trace_reader *r, uint32_t i)
{
	return i < r->meta_values.n ? intern_get(&r->meta_keys, i) : NULL;
}

#define TABLE_GETTERS(type, name, names)                                                           \
	uint32_t trace_reader_n_##names(const struct trace_reader *r)                              \
	{                                                                                          \
		return (uint32_t)r->names.n;                                                       \
	}                                                                                          \
	type trace_reader_##name(const struct trace_reader *r, uint32_t id)                        \
	{                                                                                          \
		assert(id < r->names.n);                                                           \
		return &r->names.v[id];                                                            \
	}

TABLE_GETTERS(const struct trace_metric *, metric, metrics)
TABLE_GETTERS(const struct trace_stream *, stream, streams)
TABLE_GETTERS(const struct trace_image *, image, images)
TABLE_GETTERS(const struct trace_thread *, thread, threads)
TABLE_GETTERS(const struct trace_frame *, frame, frames)
TABLE_GETTERS(const struct trace_stack *, stack, stacks)
TABLE_GETTERS(const struct trace_kind *, kind, kinds)

bool trace_reader_has_kind(const struct trace_reader *r, uint32_t major, uint32_t minor)
{
	for (size_t id = 1; id < r->kinds.n; id++)
		if (r->kinds.v[id].major == major && (!minor || r->kinds.v[id].minor == minor))
			return true;
	return false;
}

uint32_t trace_reader_n_strings(const struct trace_reader *r)
{
	return (uint32_t)r->strings.n;
}

const char *trace_reader_string(const struct trace_reader *r, uint32_t id)
{
	assert(id < r->strings.n);
	return r->strings.v[id];
}

const struct trace_symbol *trace_reader_symbol(const struct trace_reader *r, uint32_t frame)
{
	assert(frame < r->symbols.n);
	return r->symbols.v[frame].frame ? &r->symbols.v[frame] : NULL;
}

/* Two file strings with one hash: only the first is found, and the second is added anew. */
static void hash_strings(struct trace_reader *r)
{
	for (uint32_t id = 0; id < r->n_file_strings; id++) {
		const char *s = r->strings.v[id];
		bool created;
		uint64_t *known =
			map_ensure(&r->string_by_hash, map_hash_bytes(s, strlen(s)), &created);

		if (created)
			*known = id;
	}
	r->has_string_by_hash = true;
}

uint32_t trace_reader_add_string(struct trace_reader *r, const char *s)
{
	size_t n = strlen(s);
	const uint64_t *known;
	uint32_t id;

	if (!r->has_string_by_hash)
		hash_strings(r);
	known = map_find(&r->string_by_hash, map_hash_bytes(s, n));
	if (known && !strcmp(r->strings.v[*known], s))
		return (uint32_t)*known;
	id = r->n_file_strings + intern_bytes(&r->added, s, n);
	if (id == r->strings.n)
		vec_push(&r->strings, intern_get(&r->added, id - r->n_file_strings));
	return id;
}

void trace_reader_set_symbol(struct trace_reader *r, const struct trace_symbol *symbol)
{
	struct trace_symbol copy = *symbol;

	assert(copy.frame > 0 && copy.frame < r->symbols.n);
	assert(copy.n_levels <= SYMBOL_LEVELS_MAX && copy.reason < r->strings.n);
	copy.levels = NULL;
	if (copy.n_levels) {
		struct trace_symbol_level *levels =
			mem_dup(symbol->levels, copy.n_levels * sizeof(*levels));

		vec_push(&r->blocks, levels);
		copy.levels = levels;
	}
	r->symbols.v[copy.frame] = copy;
}
