/* SPDX-License-Identifier: MIT */
#include "calltree/classes.h"

#include <string.h>

#include "base/buf.h"
#include "calltree/frame_names.h"

static struct class_row *ensure_row(struct classes *c, const char *name, size_t n)
{
	uint32_t id = intern_bytes(&c->names, name, n);

	if (id == c->rows.n)
		vec_push(&c->rows, ((struct class_row){.name = intern_get(&c->names, id)}));
	return &c->rows.v[id];
}

static void add_record(
	struct classes *c, const struct trace_reader *r, const struct trace_record *record)
{
	bool is_load = record->minor == RECORD_MODULE_CLASS_LOAD;
	uint64_t numbers[5] = {0}; /* pid, process start, loader, name, at start? */
	const char *name;
	struct class_row *row;

	if (trace_record_numbers(r, record, numbers, is_load ? 5 : 4, NULL) < 0 || !numbers[3] ||
		numbers[3] >= trace_reader_n_strings(r)) {
		c->n_damaged++;
		return;
	}
	name = trace_reader_string(r, (uint32_t)numbers[3]);
	row = ensure_row(c, name, strlen(name));
	row->n_start += is_load && numbers[4];
	row->n_loaded += is_load && !numbers[4];
	row->n_unloaded += !is_load;
}

static int read_stream(
	struct classes *c, const struct trace_reader *r, uint32_t stream, struct err *err)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	int rc = trace_cursor_open(&cursor, r, stream, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(cursor, &record, err)) > 0)
		if (record.major == RECORD_MAJOR_MODULE &&
			(record.minor == RECORD_MODULE_CLASS_LOAD ||
				record.minor == RECORD_MODULE_CLASS_UNLOAD))
			add_record(c, r, &record);
	trace_cursor_close(cursor);
	return rc;
}

/* `com.example.Main` of `J:com.example.Main.run(int)`. */
static void note_used(struct classes *c, const struct calltree_routine *r)
{
	const char *name = frame_name_bare(r->name, r->image);
	const char *end = name + strcspn(name, "(");

	if (name == r->name) /* no method: a stub of the runtime */
		return;
	while (end > name && *end != '.')
		end--;
	if (end > name)
		ensure_row(c, name, (size_t)(end - name))->is_used = true;
}

int classes_init(struct classes *c, const struct profile *p, struct err *err)
{
	const struct trace_reader *r = p->reader;
	int rc = 0;

	*c = (struct classes){0};
	for (uint32_t id = 1; rc >= 0 && id < trace_reader_n_streams(r); id++)
		if (trace_reader_stream(r, id)->kind == STREAM_KIND_LIFE)
			rc = read_stream(c, r, id, err);
	for (uint32_t id = 1; id < calltree_n_routines(p->tree); id++)
		note_used(c, calltree_get_routine(p->tree, id));
	return rc < 0 ? rc : 0;
}

void classes_release(struct classes *c)
{
	intern_release(&c->names);
	vec_release(&c->rows);
}
