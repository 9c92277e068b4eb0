/* SPDX-License-Identifier: MIT */
/*
 * --dump: the script line by line, under each line its instructions in two columns, 32-bit code
 * left and 64-bit code right; then maps, formats, points. Instructions are first put into one list
 * with the line that they come from, which is then sorted: a stream with many points and many lines
 * takes no longer than that.
 */
#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "bpf/print.h"
#include "probe/stream/stream_file.h"

#define COLUMN 46 /* characters of the left column */

struct entry {
	uint32_t source_i, line; /* from 0 */
	uint32_t point_i;
	uint32_t insn_i;
	enum mode mode;
};

struct dump {
	const struct stream *s;
	struct buf *out;
	VEC(uint32_t) * line_starts; /* of each source: offsets */
	VEC(struct entry) entries;
	bool *is_shown[N_MODES]; /* instructions that an earlier point has already */
};

/* Bytes of scripts and files can be anything; a terminal gets none that move its cursor. */
static void put_clean(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)text[i];

		buf_put_u8(out, (c < ' ' && c != '\t') || c == 0x7f ? '?' : c);
	}
}

static void put_text(struct buf *out, const char *text)
{
	put_clean(out, text, strlen(text));
}

static void put_quoted(struct buf *out, const char *text)
{
	buf_put_u8(out, '"');
	for (; *text; text++) {
		if (*text == '\n')
			buf_put_cstr(out, "\\n");
		else if (*text == '\t')
			buf_put_cstr(out, "\\t");
		else if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else
			put_clean(out, text, 1);
	}
	buf_put_u8(out, '"');
}

/* ---- which instruction comes from which line ---- */

static void find_lines(struct dump *d)
{
	size_t n = d->s->sources.v.n;

	d->line_starts = mem_calloc(n + 1, sizeof(d->line_starts[0]));
	for (size_t i = 0; i < n; i++) {
		const struct source *source = &d->s->sources.v.v[i];

		vec_push(&d->line_starts[i], 0);
		for (size_t at = 0; at + 1 < source->n; at++)
			if (source->text[at] == '\n')
				vec_push(&d->line_starts[i], (uint32_t)at + 1);
	}
}

static uint32_t line_at(const struct dump *d, struct place place)
{
	const uint32_t *v = d->line_starts[place.source_i].v;
	size_t n = d->line_starts[place.source_i].n;

	return (uint32_t)SEARCH(1, n, middle, v[middle] <= place.from) - 1;
}

/* The last line that begins at or before the instruction; the clause when there is none. */
static struct place place_of(
	const struct stream *s, enum mode mode, uint32_t insn_i, uint32_t clause_i)
{
	const struct stream_line *v = s->lines[mode].v;
	size_t low = SEARCH(0, s->lines[mode].n, middle, v[middle].insn_i <= insn_i);

	return low ? v[low - 1].place : s->clauses.v[clause_i].place;
}

static void add_piece(struct dump *d, uint32_t point_i, enum mode mode)
{
	const struct stream_point *point = &d->s->points.v[point_i];
	const struct stream_piece *piece = &point->pieces[mode];
	uint32_t from = piece->predicate_n ? piece->predicate_at : piece->action_at;
	uint32_t to = piece->action_at + piece->action_n;

	if (!piece->is_there)
		return;
	for (uint32_t i = from; i < to && !d->is_shown[mode][i]; i++) {
		struct place place = place_of(d->s, mode, i, point->clause_i);
		struct entry e = {place.source_i, line_at(d, place), point_i, i, mode};

		d->is_shown[mode][i] = true;
		vec_push(&d->entries, e);
	}
}

ORDER_BY(compare_entries, struct entry, source_i, line, point_i, mode, insn_i)

static void find_entries(struct dump *d)
{
	for (int mode = 0; mode < N_MODES; mode++)
		d->is_shown[mode] = mem_calloc(d->s->code[mode].n + 1, sizeof(bool));
	for (uint32_t i = 0; i < d->s->points.n; i++)
		for (int mode = 0; mode < N_MODES; mode++)
			add_piece(d, i, (enum mode)mode);
	vec_sort(&d->entries, compare_entries);
}

/* ---- code ---- */

static const char *map_name(const struct stream *s, int32_t number)
{
	static const char *const names[] = {[STREAM_MAP_RECORDS] = "records",
		[STREAM_MAP_CONTROL] = "control",
		[STREAM_MAP_LOSS] = "loss",
		[STREAM_MAP_SCRATCH] = "scratch",
		[STREAM_MAP_ZERO] = "zero",
		[STREAM_MAP_SELF] = "self",
		[STREAM_MAP_STACKS] = "stacks",
		[STREAM_MAP_PROCESSES] = "processes",
		[STREAM_MAP_SITES] = "sites",
		[STREAM_MAP_FACTS] = "facts",
		[STREAM_MAP_RULES] = "rules",
		[STREAM_MAP_COPIES] = "copies"};
	size_t i = (size_t)number - STREAM_MAP_FIRST_OF_SCRIPT;

	if (number >= 0 && number < (int32_t)(sizeof(names) / sizeof(names[0])))
		return names[number];
	return number >= STREAM_MAP_FIRST_OF_SCRIPT && i < s->maps.n ? s->maps.v[i].name : "?";
}

static void put_insn(struct dump *d, const struct entry *e, struct buf *out)
{
	size_t n = d->s->code[e->mode].n;
	const struct bpf_insn *insn = &d->s->code[e->mode].v[e->insn_i];
	const struct bpf_insn *next = e->insn_i + 1 < n ? insn + 1 : NULL;

	buf_printf(out, "%6u: ", e->insn_i);
	if (bpf_insn_is_wide(insn) && insn->src_reg == BPF_PSEUDO_MAP_FD) {
		buf_printf(out, "r%d = map ", insn->dst_reg);
		put_text(out, map_name(d->s, insn->imm));
	} else if (bpf_insn_is_wide(insn) && insn->src_reg == BPF_PSEUDO_FUNC) {
		buf_printf(out, "r%d = function %d", insn->dst_reg, insn->imm);
	} else if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL) {
		buf_printf(out, "call function %d", insn->imm);
	} else if (insn->code == STREAM_LOOP_CODE && insn->src_reg == STREAM_LOOP_UNKNOWN) {
		buf_put_cstr(out, "r0 = unknown");
	} else if (insn->code == STREAM_LOOP_CODE) {
		buf_printf(out, "may_turn (%d) else goto %+d", insn->imm, insn->off);
	} else {
		bpf_insn_print(insn, next, out);
	}
}

static bool is_second_half(const struct dump *d, const struct entry *e)
{
	return e->insn_i && bpf_insn_is_wide(&d->s->code[e->mode].v[e->insn_i - 1]);
}

/* Entries [left, right) are of 32-bit code, [right, end) of 64-bit code: one point, one line. */
static void put_columns(struct dump *d, size_t left, size_t right, size_t end)
{
	size_t left_end = right;
	struct buf row = {0};

	while (left < left_end || right < end) {
		buf_reset(&row);
		while (left < left_end && is_second_half(d, &d->entries.v[left]))
			left++;
		while (right < end && is_second_half(d, &d->entries.v[right]))
			right++;
		if (left < left_end)
			put_insn(d, &d->entries.v[left++], &row);
		if (right < end) {
			do
				buf_put_u8(&row, ' ');
			while (row.n < COLUMN);
			put_insn(d, &d->entries.v[right++], &row);
		}
		if (row.n) {
			buf_put(d->out, row.p, row.n);
			buf_put_u8(d->out, '\n');
		}
	}
	buf_release(&row);
}

static bool is_same_line(const struct entry *a, const struct entry *b)
{
	return a->source_i == b->source_i && a->line == b->line;
}

/* The entries of one line from `i` on; gives the first of the next line. */
static size_t put_line_code(struct dump *d, size_t i)
{
	const struct entry *v = d->entries.v, *first = &v[i];
	size_t n = d->entries.n;

	while (i < n && is_same_line(&v[i], first)) {
		size_t right = i, end;
		uint32_t point_i = v[i].point_i;

		while (right < n && is_same_line(&v[right], first) && v[right].point_i == point_i &&
			v[right].mode == MODE_32)
			right++;
		end = right;
		while (end < n && is_same_line(&v[end], first) && v[end].point_i == point_i)
			end++;
		buf_printf(d->out, "      -- point %u: ", point_i);
		put_text(d->out, d->s->points.v[point_i].spec.text);
		buf_put_cstr(d->out, "\n");
		put_columns(d, i, right, end);
		i = end;
	}
	return i;
}

static void put_script(struct dump *d)
{
	size_t entry_i = 0;

	buf_printf(d->out, "%-*s %s\n", COLUMN, "32-bit code", "64-bit code");
	for (uint32_t i = 0; i < d->s->sources.v.n; i++) {
		const struct source *source = &d->s->sources.v.v[i];

		for (uint32_t line = 0; line < d->line_starts[i].n; line++) {
			const char *text = source->text + d->line_starts[i].v[line];
			const char *end = source->text + source->n;
			const char *newline = memchr(text, '\n', (size_t)(end - text));

			put_text(d->out, source->name);
			buf_printf(d->out, ":%u: ", line + 1);
			put_clean(d->out, text, (size_t)((newline ? newline : end) - text));
			buf_put_cstr(d->out, "\n");
			if (entry_i < d->entries.n && d->entries.v[entry_i].source_i == i &&
				d->entries.v[entry_i].line == line)
				entry_i = put_line_code(d, entry_i);
		}
	}
}

/* ---- maps, formats, points ---- */

static void put_maps(const struct stream *s, struct buf *out)
{
	for (size_t i = 0; i < s->maps.n; i++) {
		const struct stream_map_def *map = &s->maps.v[i];

		buf_printf(out, "map %zu: ", i + STREAM_MAP_FIRST_OF_SCRIPT);
		put_text(out, map->name);
		if (map->key && map->key->kind != SHAPE_NONE) {
			buf_put_cstr(out, "[");
			shape_print(map->key, out);
			buf_put_cstr(out, "]");
		}
		buf_put_cstr(out, " = ");
		shape_print(map->value, out);
		buf_printf(out, ", %u bytes", map->value->size);
		if (map->max_entries)
			buf_printf(out, ", at most %u entries", map->max_entries);
		if (map->is_lru)
			buf_put_cstr(out, ", the oldest forgotten");
		buf_put_cstr(out, "\n");
	}
	if (s->self_bytes)
		buf_printf(out, "thread-locals: %u bytes\n", s->self_bytes);
}

static void put_formats(const struct stream *s, struct buf *out)
{
	for (size_t i = 0; i < s->formats.n; i++) {
		const struct stream_format *format = &s->formats.v[i];
		const struct format_traits *traits = &format_traits[format->kind];

		buf_printf(out, "format %zu: %s", i, traits->name);
		if (traits->has_map && format->map_i < s->maps.n) {
			buf_put_cstr(out, " ");
			put_text(out, s->maps.v[format->map_i].name);
		}
		if (format->text) {
			buf_put_cstr(out, " ");
			put_quoted(out, format->text);
		}
		for (uint32_t j = 0; j < format->n_args; j++) {
			buf_put_cstr(out, j ? ", " : " (");
			shape_print(format->args[j], out);
		}
		buf_put_cstr(out, format->n_args ? ")\n" : "\n");
	}
	for (size_t i = 0; i < s->strings.n; i++) {
		buf_printf(out, "string %zu: ", i);
		put_quoted(out, s->strings.v[i]);
		buf_put_cstr(out, "\n");
	}
}

static void put_piece(const struct stream_piece *piece, int bits, struct buf *out)
{
	buf_printf(out, "  %d-bit: ", bits);
	if (!piece->is_there) {
		buf_put_cstr(out, "none");
		if (piece->why_not) {
			buf_put_cstr(out, ": ");
			put_text(out, piece->why_not);
		}
		buf_put_cstr(out, "\n");
		return;
	}
	if (piece->predicate_n)
		buf_printf(out, "predicate %u, %u instructions; ", piece->predicate_at,
			piece->predicate_n);
	buf_printf(out, "action %u, %u instructions", piece->action_at, piece->action_n);
	if (piece->functions_n)
		buf_printf(out, ", the last %u of functions", piece->functions_n);
	if (piece->scratch_bytes)
		buf_printf(out, "; %u bytes of scratch", piece->scratch_bytes);
	if (piece->uses_site)
		buf_put_cstr(out, "; wants the site");
	if (piece->reads_user)
		buf_put_cstr(out, "; reads the program's memory");
	buf_put_cstr(out, "\n");
}

static void put_points(const struct stream *s, struct buf *out)
{
	for (size_t i = 0; i < s->points.n; i++) {
		const struct stream_point *point = &s->points.v[i];

		buf_printf(out, "point %zu of clause %u: ", i, point->clause_i);
		put_text(out, point->spec.text);
		if (point->name) {
			buf_put_cstr(out, ", ");
			put_text(out, point->name);
		}
		if (point->operands) {
			buf_printf(out, ", %d-bit operands ",
				point->operands_mode == MODE_32 ? 32 : 64);
			put_quoted(out, point->operands);
		}
		buf_put_cstr(out, "\n");
		put_piece(&point->pieces[MODE_32], 32, out);
		put_piece(&point->pieces[MODE_64], 64, out);
	}
}

void stream_dump(const struct stream *s, struct buf *out)
{
	struct dump d = {.s = s, .out = out};

	find_lines(&d);
	find_entries(&d);
	put_script(&d);
	buf_put_cstr(out, "\n");
	put_maps(s, out);
	put_formats(s, out);
	put_points(s, out);
	for (size_t i = 0; i < s->sources.v.n; i++)
		vec_release(&d.line_starts[i]);
	free(d.line_starts);
	vec_release(&d.entries);
	for (int mode = 0; mode < N_MODES; mode++)
		free(d.is_shown[mode]);
}
