/* SPDX-License-Identifier: MIT */
/* Everything that a reader gets to see in a file, as counts and one hash: for tests that damage it.
 */
#ifndef WEIR_TESTS_TRACE_SEEN_H
#define WEIR_TESTS_TRACE_SEEN_H

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "trace/reader.h"

/* What a reader got to see. */
struct seen {
	bool is_open;
	bool is_recovered;
	unsigned n_damaged; /* negative answers of the cursor */
	uint64_t n_records;
	uint64_t n_entries; /* of all tables */
	uint64_t n_functions, n_spans;
	uint32_t n_damaged_functions;
	uint32_t n_damaged_tables; /* chunks of definitions */
	uint64_t n_unplaced;
	uint64_t content; /* a hash of everything */
	struct err err;	  /* of the open, or the last damaged chunk */
};

static inline void mix(struct seen *s, uint64_t word)
{
	s->content = map_hash_mix(s->content, word);
}

static inline void mix_text(struct seen *s, const char *text)
{
	mix(s, text ? map_hash_bytes(text, strlen(text)) : 1);
}

static inline void see_symbols(struct seen *s, const struct trace_reader *r)
{
	for (uint32_t i = 0; i < trace_reader_n_frames(r); i++) {
		const struct trace_symbol *symbol = trace_reader_symbol(r, i);

		mix(s, symbol ? symbol->n_levels + 1 : 0);
		if (!symbol)
			continue;
		mix_text(s, trace_reader_string(r, symbol->reason));
		for (uint32_t k = 0; k < symbol->n_levels; k++) {
			mix_text(s, trace_reader_string(r, symbol->levels[k].name));
			mix_text(s, trace_reader_string(r, symbol->levels[k].file));
			mix(s, symbol->levels[k].line);
			mix(s, symbol->levels[k].offset);
		}
	}
}

static inline void see_functions(struct seen *s, struct trace_reader *r, uint32_t image)
{
	const struct trace_function *f;
	size_t n = trace_reader_functions(r, image, &f);

	s->n_functions += n;
	mix(s, n);
	for (size_t i = 0; i < n; i++) {
		mix(s, f[i].start);
		mix(s, f[i].size);
		mix_text(s, trace_reader_string(r, f[i].name));
	}
}

static inline void see_images(struct seen *s, struct trace_reader *r)
{
	const struct trace_module_span *spans;

	for (uint32_t i = 0; i < trace_reader_n_images(r); i++) {
		const struct trace_image_facts *f = trace_reader_image_facts(r, i);
		const struct trace_match *m = trace_reader_match(r, i);

		mix(s, f ? f->content_hash ^ f->machine : 1);
		for (uint32_t k = 0; f && k < f->n_segments; k++) {
			mix(s, f->segments[k].addr ^ f->segments[k].flags);
			mix(s, f->segments[k].offset);
			mix(s, f->segments[k].file_bytes);
			mix(s, f->segments[k].mem_bytes);
		}
		mix(s, m ? m->n_symbols ^ (uint64_t)m->rung << 60 : 1);
		mix_text(s, trace_reader_string(r, m ? m->reason : 0));
		mix_text(s, trace_reader_string(r, m ? m->catalog_id : 0));
		mix_text(s, trace_reader_string(r, m ? m->sources : 0));
		see_functions(s, r, i);
	}
	s->n_spans = trace_reader_module_spans(r, &spans);
	for (uint64_t i = 0; i < s->n_spans; i++) {
		mix(s, spans[i].pid ^ (uint64_t)spans[i].image << 32);
		mix(s, spans[i].process_start);
		mix(s, spans[i].start ^ spans[i].end << 7);
		mix(s, spans[i].from ^ spans[i].to << 7);
		mix(s, spans[i].bias);
		mix(s, (uint64_t)spans[i].ended << 2 | spans[i].at_start << 1 | spans[i].is_used);
	}
}

static inline void see_tables(struct seen *s, const struct trace_reader *r)
{
	const char *key;

	for (uint32_t i = 0; (key = trace_reader_meta_key(r, i)); i++) {
		mix_text(s, key);
		mix_text(s, trace_reader_meta(r, key));
	}
	for (uint32_t i = 0; i < trace_reader_n_strings(r); i++)
		mix_text(s, trace_reader_string(r, i));
	for (uint32_t i = 0; i < trace_reader_n_metrics(r); i++)
		mix(s, (uint64_t)trace_reader_metric(r, i)->name << 32 |
				trace_reader_metric(r, i)->unit);
	for (uint32_t i = 0; i < trace_reader_n_streams(r); i++)
		mix(s, (uint64_t)trace_reader_stream(r, i)->kind << 32 |
				trace_reader_stream(r, i)->number);
	for (uint32_t i = 0; i < trace_reader_n_images(r); i++) {
		const struct trace_image *image = trace_reader_image(r, i);

		mix_text(s, trace_reader_string(r, image->path));
		mix(s, image->kind ^ image->bits << 8 ^ (uint64_t)image->pid << 16);
		mix(s, map_hash_bytes(image->build_id, image->build_id_n));
		mix(s, image->file_bytes);
		mix(s, image->file_mtime_ns);
	}
	for (uint32_t i = 0; i < trace_reader_n_threads(r); i++) {
		mix(s, (uint64_t)trace_reader_thread(r, i)->pid << 32 |
				trace_reader_thread(r, i)->tid);
		mix(s, trace_reader_thread(r, i)->start_ns);
	}
	for (uint32_t i = 0; i < trace_reader_n_frames(r); i++) {
		const struct trace_frame *f = trace_reader_frame(r, i);

		mix(s, f->addr);
		mix(s, (uint64_t)f->image << 32 | f->name);
		mix(s, f->kind << 1 | f->is_caller);
	}
	for (uint32_t i = 0; i < trace_reader_n_stacks(r); i++)
		mix(s, (uint64_t)trace_reader_stack(r, i)->parent << 32 |
				trace_reader_stack(r, i)->frame);
	see_symbols(s, r);
	s->n_entries = trace_reader_n_strings(r) + trace_reader_n_metrics(r) +
		       trace_reader_n_streams(r) + trace_reader_n_images(r) +
		       trace_reader_n_threads(r) + trace_reader_n_frames(r) +
		       trace_reader_n_stacks(r) - 7;
}

static inline void see_records(struct seen *s, const struct trace_reader *r)
{
	struct trace_record record;
	struct trace_cursor *c;
	int rc;

	if (trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &s->err) < 0)
		return;
	while ((rc = trace_cursor_next(c, &record, &s->err)) != 0) {
		if (rc < 0) {
			s->n_damaged++;
			continue;
		}
		s->n_records++;
		mix(s, record.time);
		mix(s, record.stream);
		mix(s, (uint64_t)record.major << 32 | record.minor);
		mix(s, map_hash_bytes(record.payload.p, record.payload.n));
	}
	trace_cursor_close(c);
}

/* Opens an exact-size copy, so that a sanitizer sees reads behind the end. */
static inline struct seen look(const uint8_t *p, size_t n)
{
	struct seen s = {0};
	struct trace_reader *r = NULL;
	uint8_t *copy = malloc(n ? n : 1);
	const char *sentence = NULL;

	if (n)
		memcpy(copy, p, n);
	if (trace_reader_open_bytes(&r, (struct span){copy, n}, true, "x.weir", &s.err) == 0) {
		s.is_open = true;
		s.is_recovered = trace_reader_is_recovered(r, NULL);
		see_tables(&s, r);
		see_records(&s, r);
		see_images(&s, r);
		s.n_damaged_functions = trace_reader_n_damaged_functions(r, &sentence);
		if (sentence)
			err_set(&s.err, ERR_FORMAT, "%s", sentence);
		s.n_unplaced = trace_reader_n_unplaced(r);
		s.n_damaged_tables = trace_reader_n_damaged_tables(r, &sentence);
		if (sentence && s.n_damaged_tables)
			err_set(&s.err, ERR_FORMAT, "%s", sentence);
		trace_reader_close(r);
	}
	free(copy);
	return s;
}

#endif
