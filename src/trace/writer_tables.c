/* SPDX-License-Identifier: MIT */
/*
 * What a writer interns, and how it is encoded. Small fixed entries are found by a 64-bit key;
 * larger ones by their bytes, packed without holes. An entry is pending until the next record
 * chunk or flush.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/writer_internal.h"

void writer_tables_init(struct writer_tables *t)
{
	intern_bytes(&t->strings, "", 0);
	intern_bytes(&t->image_keys, "", 0);
	intern_bytes(&t->thread_keys, "", 0);
	intern_bytes(&t->frame_keys, "", 0);
	vec_push(&t->metrics, (struct trace_metric){0});
	vec_push(&t->streams, (struct trace_stream){0});
	vec_push(&t->images, (struct trace_image){0});
	vec_push(&t->threads, (struct trace_thread){0});
	vec_push(&t->frames, (struct trace_frame){0});
	vec_push(&t->stacks, (struct trace_stack){0});
	vec_push(&t->kinds, (struct trace_kind){0});
	for (int type = 0; type < CHUNK_N_TYPES; type++)
		t->n_written[type] = 1;
}

void writer_tables_release(struct writer_tables *t)
{
	intern_release(&t->strings);
	intern_release(&t->image_keys);
	intern_release(&t->thread_keys);
	intern_release(&t->frame_keys);
	vec_release(&t->metrics);
	vec_release(&t->streams);
	vec_release(&t->images);
	vec_release(&t->threads);
	vec_release(&t->frames);
	vec_release(&t->stacks);
	vec_release(&t->kinds);
	map_release(&t->metric_ids);
	map_release(&t->stream_ids);
	map_release(&t->stack_ids);
	map_release(&t->kind_ids);
	buf_release(&t->meta.bytes);
	buf_release(&t->symbols.bytes);
	buf_release(&t->facts.bytes);
	buf_release(&t->matches.bytes);
	map_release(&t->function_starts);
	map_release(&t->function_counts);
}

static uint64_t key_of(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

/* The id of a two-word key; *created says that the caller must push the entry. */
static uint32_t id_of(struct map *ids, uint64_t key, size_t n_entries, bool *created)
{
	uint64_t *id = map_ensure(ids, key, created);

	if (*created) {
		assert(n_entries < TABLE_ENTRIES_MAX);
		*id = n_entries;
	}
	return (uint32_t)*id;
}

uint32_t trace_writer_string_n(struct trace_writer *w, const char *s, size_t n)
{
	n = strnlen(s, n < STRING_BYTES_MAX ? n : STRING_BYTES_MAX);
	return intern_bytes(&w->tables.strings, s, n);
}

uint32_t trace_writer_string(struct trace_writer *w, const char *s)
{
	return trace_writer_string_n(w, s, SIZE_MAX);
}

uint32_t trace_writer_metric(struct trace_writer *w, const char *name, const char *unit)
{
	struct writer_tables *t = &w->tables;
	struct trace_metric m = {trace_writer_string(w, name), trace_writer_string(w, unit)};
	bool created;
	uint32_t id = id_of(&t->metric_ids, key_of(m.name, m.unit), t->metrics.n, &created);

	if (created)
		vec_push(&t->metrics, m);
	return id;
}

uint32_t trace_writer_stream(struct trace_writer *w, enum stream_kind kind, uint32_t number)
{
	struct writer_tables *t = &w->tables;
	bool created;
	uint32_t id = id_of(&t->stream_ids, key_of(kind, number), t->streams.n, &created);

	assert(kind != STREAM_KIND_THREAD || number < t->threads.n);
	if (created) {
		vec_push(&t->streams, ((struct trace_stream){kind, number}));
		vec_push(&w->open, (struct open_chunk){0});
	}
	return id;
}

uint32_t trace_writer_image(struct trace_writer *w, const struct trace_image *image)
{
	struct writer_tables *t = &w->tables;
	struct trace_image clean;
	uint32_t id;

	assert(image->path < t->strings.n_items && image->build_id_n <= BUILD_ID_MAX);
	memset(&clean, 0, sizeof(clean)); /* the holes as well: its bytes are the key */
	clean.kind = image->kind;
	clean.path = image->path;
	clean.bits = image->bits;
	clean.build_id_n = image->build_id_n;
	memcpy(clean.build_id, image->build_id, image->build_id_n);
	clean.file_bytes = image->file_bytes;
	clean.file_mtime_ns = image->file_mtime_ns;
	clean.pid = image->pid;
	id = intern_bytes(&t->image_keys, &clean, sizeof(clean));
	if (id == t->images.n)
		vec_push(&t->images, clean);
	return id;
}

const struct trace_image *trace_writer_get_image(const struct trace_writer *w, uint32_t id)
{
	assert(id < w->tables.images.n);
	return &w->tables.images.v[id];
}

uint32_t trace_writer_thread(struct trace_writer *w, const struct trace_thread *thread)
{
	struct writer_tables *t = &w->tables;
	const uint64_t key[2] = {key_of(thread->pid, thread->tid), thread->start_ns};
	uint32_t id = intern_bytes(&t->thread_keys, key, sizeof(key));

	if (id == t->threads.n)
		vec_push(&t->threads, *thread);
	return id;
}

uint32_t trace_writer_frame(struct trace_writer *w, const struct trace_frame *frame)
{
	struct writer_tables *t = &w->tables;
	const uint64_t key[3] = {frame->addr, key_of(frame->image, frame->name),
		(uint64_t)frame->kind << 1 | frame->is_caller};
	uint32_t id;

	assert(frame->image < t->images.n && frame->name < t->strings.n_items);
	assert(frame->kind >= FRAME_KIND_NATIVE && frame->kind <= FRAME_KIND_MARKER);
	id = intern_bytes(&t->frame_keys, key, sizeof(key));
	if (id == t->frames.n)
		vec_push(&t->frames, *frame);
	return id;
}

uint32_t trace_writer_n_frames(const struct trace_writer *w)
{
	return (uint32_t)w->tables.frames.n - 1;
}

const struct trace_frame *trace_writer_get_frame(const struct trace_writer *w, uint32_t id)
{
	assert(id < w->tables.frames.n);
	return &w->tables.frames.v[id];
}

uint32_t trace_writer_stack(struct trace_writer *w, uint32_t parent, uint32_t frame)
{
	struct writer_tables *t = &w->tables;
	bool created;
	uint32_t id;

	assert(parent < t->stacks.n && frame > 0 && frame < t->frames.n);
	id = id_of(&t->stack_ids, key_of(parent, frame), t->stacks.n, &created);
	if (created)
		vec_push(&t->stacks, ((struct trace_stack){parent, frame}));
	return id;
}

uint32_t writer_tables_kind(struct writer_tables *t, uint32_t major, uint32_t minor)
{
	uint32_t slot_i = (major ^ minor ^ minor >> 28) % KIND_CACHE_SLOTS;
	struct kind_slot *slot = &t->kind_cache[slot_i];
	bool created;

	if (slot->id && slot->major == major && slot->minor == minor)
		return slot->id;
	*slot = (struct kind_slot){
		major, minor, id_of(&t->kind_ids, key_of(major, minor), t->kinds.n, &created)};
	if (created)
		vec_push(&t->kinds, ((struct trace_kind){major, minor}));
	return slot->id;
}

static void put_text(struct buf *b, const char *s)
{
	buf_put(b, s, strnlen(s, STRING_BYTES_MAX));
	buf_put_u8(b, 0);
}

void writer_tables_added(struct trace_writer *w, struct pending *p)
{
	p->n++;
	if (p->bytes.n >= TABLE_CUT_BYTES)
		writer_tables_write(w);
}

void trace_writer_meta(struct trace_writer *w, const char *key, const char *value)
{
	struct writer_tables *t = &w->tables;

	put_text(&t->meta.bytes, key);
	put_text(&t->meta.bytes, value);
	writer_tables_added(w, &t->meta);
}

static void put_level(struct writer_tables *t, const struct trace_symbol_level *level)
{
	assert(level->name < t->strings.n_items && level->file < t->strings.n_items);
	buf_put_ulebs(&t->symbols.bytes, level->name, level->file, level->line, level->offset);
}

void trace_writer_symbol(struct trace_writer *w, const struct trace_symbol *symbol)
{
	struct writer_tables *t = &w->tables;
	uint32_t n = symbol->n_levels < SYMBOL_LEVELS_MAX ? symbol->n_levels : SYMBOL_LEVELS_MAX;

	assert(symbol->frame > 0 && symbol->frame < t->frames.n);
	assert(symbol->reason < t->strings.n_items);
	buf_put_ulebs(&t->symbols.bytes, symbol->frame, symbol->reason, n);
	for (uint32_t i = 0; i < n; i++) /* too many: the middle goes, the function itself stays */
		put_level(t, &symbol->levels[i + 1 < n ? i : symbol->n_levels - 1]);
	writer_tables_added(w, &t->symbols);
}

/* One entry of each table, as in docs/format/trace.md. */

static void put_string(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	const struct intern_item *item = &t->strings.items[id];

	buf_put(b, item->p, (size_t)item->n + 1);
}

static void put_metric(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	buf_put_ulebs(b, t->metrics.v[id].name, t->metrics.v[id].unit);
}

static void put_stream(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	buf_put_ulebs(b, t->streams.v[id].kind, t->streams.v[id].number);
}

static void put_image(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	const struct trace_image *image = &t->images.v[id];

	buf_put_ulebs(b, image->kind, image->path, image->bits, image->build_id_n);
	buf_put(b, image->build_id, image->build_id_n);
	buf_put_ulebs(b, image->file_bytes, image->file_mtime_ns, image->pid);
}

static void put_thread(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	buf_put_ulebs(b, t->threads.v[id].pid, t->threads.v[id].tid, t->threads.v[id].start_ns);
}

static void put_frame(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	const struct trace_frame *f = &t->frames.v[id];
	bool is_first = id == t->n_written[CHUNK_TYPE_FRAMES]; /* of its chunk */
	uint64_t before = is_first ? 0 : f[-1].addr;

	buf_put_u8(b, (uint8_t)(f->kind | (f->is_caller ? FRAME_TAG_CALLER : 0) |
				(f->image ? FRAME_TAG_IMAGE : 0) | (f->name ? FRAME_TAG_NAME : 0)));
	if (f->image)
		buf_put_uleb(b, f->image);
	buf_put_sleb(b, (int64_t)(f->addr - before));
	if (f->name)
		buf_put_uleb(b, f->name);
}

static void put_stack(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	buf_put_ulebs(b, id - t->stacks.v[id].parent, t->stacks.v[id].frame);
}

static void put_kind(struct buf *b, const struct writer_tables *t, uint32_t id)
{
	buf_put_ulebs(b, t->kinds.v[id].major, t->kinds.v[id].minor);
}

/* How an entry is written, and where the number of entries is. */
static const struct table {
	void (*put)(struct buf *b, const struct writer_tables *t, uint32_t id);
	size_t n_offset;
} tables[CHUNK_N_TYPES] = {
	[CHUNK_TYPE_STRINGS] = {put_string, offsetof(struct writer_tables, strings.n_items)},
	[CHUNK_TYPE_METRICS] = {put_metric, offsetof(struct writer_tables, metrics.n)},
	[CHUNK_TYPE_STREAMS] = {put_stream, offsetof(struct writer_tables, streams.n)},
	[CHUNK_TYPE_IMAGES] = {put_image, offsetof(struct writer_tables, images.n)},
	[CHUNK_TYPE_THREADS] = {put_thread, offsetof(struct writer_tables, threads.n)},
	[CHUNK_TYPE_FRAMES] = {put_frame, offsetof(struct writer_tables, frames.n)},
	[CHUNK_TYPE_STACKS] = {put_stack, offsetof(struct writer_tables, stacks.n)},
	[CHUNK_TYPE_KINDS] = {put_kind, offsetof(struct writer_tables, kinds.n)},
};

static void write_table(struct trace_writer *w, int type)
{
	struct writer_tables *t = &w->tables;
	uint32_t n = (uint32_t)*(const size_t *)((const char *)t + tables[type].n_offset);
	struct buf *b = &w->scratch;

	while (t->n_written[type] < n) {
		uint32_t first = t->n_written[type], id = first;

		buf_reset(b);
		buf_put_uleb(b, first);
		while (id < n && b->n < TABLE_CUT_BYTES) {
			tables[type].put(b, t, id);
			id++;
		}
		writer_append_chunk(w,
			(struct chunk_header){.type = (uint16_t)type, .count = id - first},
			buf_span(b));
		t->n_written[type] = id;
	}
}

static void write_encoded(struct trace_writer *w, int type, struct pending *p)
{
	if (!p->n)
		return;
	writer_append_chunk(w, (struct chunk_header){.type = (uint16_t)type, .count = p->n},
		buf_span(&p->bytes));
	buf_reset(&p->bytes);
	p->n = 0;
}

void writer_tables_write(struct trace_writer *w)
{
	static const int order[] = {CHUNK_TYPE_STRINGS, CHUNK_TYPE_METRICS, CHUNK_TYPE_THREADS,
		CHUNK_TYPE_STREAMS, CHUNK_TYPE_IMAGES, CHUNK_TYPE_FRAMES, CHUNK_TYPE_STACKS,
		CHUNK_TYPE_KINDS};

	write_encoded(w, CHUNK_TYPE_META, &w->tables.meta);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		write_table(w, order[i]);
	write_encoded(w, CHUNK_TYPE_SYMBOLS, &w->tables.symbols);
	write_encoded(w, CHUNK_TYPE_IMAGE_FACTS, &w->tables.facts);
	write_encoded(w, CHUNK_TYPE_MATCHES, &w->tables.matches);
}
