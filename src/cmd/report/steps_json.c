/* SPDX-License-Identifier: MIT */
/* The listing of steps as rows of JSON: kind is step, mark, damage or loop. */
#include <inttypes.h>
#include <stdlib.h>

#include "cmd/report/steps_listing.h"
#include "steps/read/step_mark_words.h"

/* ---- the part that is kept: fields of an open object, each with its comma in front ---- */

static void json_hex(struct json *j, const char *key, const uint8_t *bytes, size_t n)
{
	struct buf hex = {0};

	buf_put_hex(&hex, (struct span){bytes, n});
	json_string(j, key, n ? buf_text(&hex) : NULL);
	buf_release(&hex);
}

static void put_fields(struct buf *to, const struct listed_insn *listed, struct span source)
{
	const struct step_insn *insn = listed->place->insn;
	char *text = NULL, *line;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	struct json j;

	if (!out)
		return;
	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_u64(&j, "address", listed->addr);
	insn_place_json(&j, listed->place);
	json_hex(&j, "bytes", insn ? insn->bytes : NULL, insn ? insn->n_bytes : 0);
	json_string(&j, "text", listed->is_remark ? NULL : listed->text);
	if (source.n) {
		line = mem_strndup((const char *)source.p, source.n);
		json_string(&j, "source", line);
		free(line);
	}
	fclose(out);
	buf_put_cstr(to, ", ");
	buf_put(to, text + 1, n - 1); /* without the bracket */
	free(text);
}

/* ---- rows ---- */

static void begin(struct listing *l, const char *kind, uint64_t number, unsigned depth)
{
	struct rows *r = &l->rows;

	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "kind", kind);
	row_number(r, "pid", l->source->thread->pid);
	row_number(r, "tid", l->source->thread->tid);
	row_count(r, "time", l->has_time, l->time - l->view.start);
	row_number(r, "step", number);
	if (l->report->options->fold)
		row_number(r, "depth", depth);
}

/* What the rows of steps of a thread begin with, behind their kind. */
static void form_thread(struct listing *l)
{
	const struct step_thread *t = l->source->thread;

	buf_reset(&l->head);
	buf_printf(&l->head, ", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32 ", \"time\": ", t->pid,
		t->tid);
}

/* image, symbol, offset; place: as the text has it */
static void json_where(struct listing *l, const struct step_datum *d)
{
	const struct trace_reader *r = l->report->reader;
	struct json *j = &l->rows.json;
	struct step_where where = {0};
	bool is_known = steps_view_where(&l->view, l->source, d, &where);
	bool has_symbol = where.kind == STEP_PLACE_VARIABLE;
	struct buf text = {0};

	if (is_known)
		step_where_put(&text, l->report->steps, &where);
	report_json_text(j, "image",
		where.image ? trace_reader_string(r, trace_reader_image(r, where.image)->path)
			    : NULL);
	report_json_text(j, "symbol", has_symbol ? trace_reader_string(r, where.name) : NULL);
	json_u64_if(j, "offset", has_symbol, where.offset);
	report_json_text(j, "place", is_known ? buf_text(&text) : NULL);
	buf_release(&text);
}

static void json_data(struct listing *l, uint64_t number)
{
	static const char *const hows[] = {NULL, "read", "write", "read-write"};
	struct json *j = &l->rows.json;
	struct step_datum d;

	json_array_begin(j, "data");
	while (steps_view_datum(l->source, number, &d)) {
		json_object_begin(j, NULL);
		json_string(j, "how", hows[d.how & 3]);
		json_u64(j, "address", d.addr);
		json_u64(j, "bytes", d.n);
		json_hex(j, "value", d.value, d.has_value ? d.n : 0);
		json_where(l, &d);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_key(struct buf *b, const char *key, uint64_t number)
{
	buf_put_cstr(b, key);
	listing_put_number(b, number, 0);
}

/* The same as begin() and the fields behind it, the fast way. */
static void form_step(
	struct listing *l, uint64_t number, const struct step *step, const struct step_line *line)
{
	struct buf *b = &l->row;

	buf_reset(b);
	buf_put(b, l->head.p, l->head.n);
	if (l->has_time)
		listing_put_number(b, l->time - l->view.start, 0);
	else
		buf_put_cstr(b, "null");
	put_key(b, ", \"step\": ", number);
	if (l->report->options->fold)
		put_key(b, ", \"depth\": ", l->depth);
	buf_put(b, line->text, line->n);
	put_key(b, ", \"times\": ", step->times);
	json_newline(&l->rows.json);
	json_object_begin(&l->rows.json, NULL);
	json_string(&l->rows.json, "kind", "step");
	fwrite_unlocked(b->p, 1, b->n, l->report->out);
	if (l->view.has_data)
		json_data(l, number);
	json_object_end(&l->rows.json);
}

static void form_mark(struct listing *l, uint64_t at, const struct step_mark *mark)
{
	begin(l, "mark", at, l->depth);
	step_mark_json(&l->rows.json, mark, l->report->reader);
	json_object_end(&l->rows.json);
}

static void form_damage(struct listing *l, uint64_t at, const char *sentence)
{
	begin(l, "damage", at, l->depth);
	json_string(&l->rows.json, "text", sentence);
	json_object_end(&l->rows.json);
}

static void form_loop(struct listing *l, unsigned depth, const struct listing_loop *loop)
{
	begin(l, "loop", loop->first, depth);
	json_u64(&l->rows.json, "times", loop->times);
	json_u64(&l->rows.json, "steps", loop->n_steps);
	json_object_end(&l->rows.json);
}

const struct listing_form listing_json = {
	.thread = form_thread,
	.step = form_step,
	.mark = form_mark,
	.damage = form_damage,
	.loop = form_loop,
	.put = put_fields,
};
