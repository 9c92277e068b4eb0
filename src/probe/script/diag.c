/* SPDX-License-Identifier: MIT */
#include "probe/script/diag.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "probe/script/lex.h"

#define LINE_COLUMNS_MAX    160 /* a longer line is cut around the place */
#define LINE_COLUMNS_BEFORE 60	/* kept before it then */
#define REPLACEMENT	    "\xef\xbf\xbd"

const char *const diag_tags[] = {"aggregation", "arguments", "assert", "assign", "character",
	"config", "constant", "declaration", "division", "duplicate", "escape", "expected", "float",
	"format", "incomplete", "kernel-lacks", "key", "layout", "left-out", "loop", "macro",
	"mode", "nesting", "no-clause", "no-privilege", "no-sites", "no-symbol", "no-tracefs",
	"not-elf", "not-found", "not-here", "number", "operands", "parameter", "point",
	"point-unknown", "range", "size", "slow-site", "type", "unassigned", "unknown-field",
	"unknown-function", "unknown-name", "unknown-type", "unreadable", "unsafe", "unterminated",
	"unused", "verifier", "x32", NULL};

/* --- sources ------------------------------------------------------------------------------ */

void sources_add(struct sources *s, const char *name, struct span text)
{
	struct source source = {mem_strdup(name), mem_alloc(text.n + 1), text.n};

	if (text.n)
		memcpy(source.text, text.p, text.n);
	source.text[text.n] = '\0';
	vec_push(&s->v, source);
}

void sources_release(struct sources *s)
{
	for (size_t i = 0; i < s->v.n; i++) {
		free(s->v.v[i].name);
		free(s->v.v[i].text);
	}
	vec_release(&s->v);
}

/* --- collecting --------------------------------------------------------------------------- */

void diags_init(struct diags *d, const struct sources *sources)
{
	memset(d, 0, sizeof(*d));
	d->sources = sources;
}

void diags_release(struct diags *d)
{
	for (size_t i = 0; i < d->v.n; i++) {
		free(d->v.v[i].text);
		free(d->v.v[i].hint);
	}
	vec_release(&d->v);
	for (size_t i = 0; i < d->uses.n; i++)
		free(d->uses.v[i].name);
	vec_release(&d->uses);
}

uint32_t diags_add_use(struct diags *d, const char *name, struct place place)
{
	vec_push(&d->uses, ((struct macro_use){mem_strdup(name), place}));
	return (uint32_t)d->uses.n;
}

static bool tag_is_known(const char *tag)
{
	for (const char *const *t = diag_tags; *t; t++)
		if (!strcmp(*t, tag))
			return true;
	return false;
}

static bool is_repetition(const struct diags *d, struct place place, const char *tag)
{
	for (size_t i = 0; i < d->v.n; i++)
		if (place_is_same(d->v.v[i].place, place) && !strcmp(d->v.v[i].tag, tag))
			return true;
	return false;
}

/* One character of `p`, as it may be shown: control characters and what is no UTF-8 are replaced.
 * Gives how many bytes of `p` it was. */
static size_t put_shown(struct buf *out, const char *p, size_t n)
{
	size_t used = utf8_bytes(p, n);
	bool is_control = used == 1 ? (*p >= 0 && *p < ' ' && *p != '\t') || *p == 0x7f
				    /* U+0080 to U+009F */
				    : used == 2 && *p == '\xc2' && (unsigned char)p[1] < 0xa0;

	if (used && !is_control)
		buf_put(out, p, used);
	else
		buf_put_cstr(out, REPLACEMENT);
	return used ? used : 1;
}

/* Texts quote the script, so they are cleaned too. */
static char *format_shown(const char *fmt, va_list args)
{
	struct buf shown = {0};
	char *raw = mem_vprintf(fmt, args), *text;
	size_t n = strlen(raw);

	for (size_t i = 0; i < n;)
		i += put_shown(&shown, raw + i, n - i);
	free(raw);
	text = mem_strdup(buf_text(&shown));
	buf_release(&shown);
	return text;
}

static void add(struct diags *d, enum diag_severity severity, struct place place, const char *tag,
	const char *fmt, va_list args)
{
	size_t *count = severity == DIAG_ERROR ? &d->n_errors : &d->n_warnings;

	assert(tag_is_known(tag));
	d->last_is_kept = false;
	if (is_repetition(d, place, tag))
		return;
	if ((*count)++ >= DIAGS_MAX)
		return;
	vec_push(&d->v, ((struct diag){severity, tag, place, format_shown(fmt, args), NULL}));
	d->last_is_kept = true;
}

bool diag_error(struct diags *d, struct place place, const char *tag, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add(d, DIAG_ERROR, place, tag, fmt, args);
	va_end(args);
	return false;
}

void diag_warning(struct diags *d, struct place place, const char *tag, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add(d, DIAG_WARNING, place, tag, fmt, args);
	va_end(args);
}

bool diag_hint(struct diags *d, const char *fmt, ...)
{
	struct diag *last;
	va_list args;

	if (!d->last_is_kept)
		return false;
	last = &d->v.v[d->v.n - 1];
	free(last->hint);
	va_start(args, fmt);
	last->hint = format_shown(fmt, args);
	va_end(args);
	return false;
}

/* --- places ------------------------------------------------------------------------------- */

/* The line of a place and its two ends in characters from the line's start. */
struct line {
	const char *p; /* without its newline */
	size_t n;
	uint32_t number; /* from 1 */
	uint32_t from, to;
};

static size_t character_bytes(const char *p, size_t n)
{
	size_t used = utf8_bytes(p, n);

	return used ? used : 1;
}

static uint32_t count_characters(const char *p, size_t n)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n; count++)
		i += character_bytes(p + i, n - i);
	return count;
}

static struct line find_line(const struct source *s, struct place place)
{
	struct line line = {.p = s->text, .number = 1};
	size_t from = place.from < s->n ? place.from : s->n;
	size_t to = place.to < from ? from : place.to < s->n ? place.to : s->n;
	const char *end;

	for (const char *p; (p = memchr(line.p, '\n', (size_t)(s->text + from - line.p)));) {
		line.p = p + 1;
		line.number++;
	}
	end = memchr(line.p, '\n', (size_t)(s->text + s->n - line.p));
	line.n = end ? (size_t)(end - line.p) : (size_t)(s->text + s->n - line.p);
	if (line.n && line.p[line.n - 1] == '\r' && s->text + from < line.p + line.n)
		line.n--;
	if (s->text + to > line.p + line.n)
		to = (size_t)(line.p + line.n - s->text);
	line.from = count_characters(line.p, (size_t)(s->text + from - line.p));
	line.to = line.from;
	if (to > from)
		line.to += count_characters(s->text + from, to - from);
	return line;
}

void place_line(const struct sources *s, struct place place, uint32_t *line, uint32_t *column)
{
	struct line found;

	*line = *column = 1;
	if (place.source_i >= s->v.n)
		return;
	found = find_line(&s->v.v[place.source_i], place);
	*line = found.number;
	*column = found.from + 1;
}

/* --- showing ------------------------------------------------------------------------------ */

static int compare_places(const void *a, const void *b)
{
	const struct diag *x = *(const struct diag *const *)a, *y = *(const struct diag *const *)b;

	return ORDER(x->place.source_i, y->place.source_i)
		       ?: ORDER(x->place.from, y->place.from) ?: ORDER(x, y); /* in order of finding */
}

/* The messages to show in order of places; free() it. */
static const struct diag **sorted(const struct diags *d, size_t *n)
{
	const struct diag **v = mem_calloc(d->v.n + 1, sizeof(*v));

	*n = 0;
	for (size_t i = 0; i < d->v.n; i++)
		if (!d->hides_warnings || d->v.v[i].severity != DIAG_WARNING)
			v[(*n)++] = &d->v.v[i];
	qsort(v, *n, sizeof(*v), compare_places);
	return v;
}

/* The characters [from, to) of a line; `marks` gets what stands below them: tabs stay tabs, so that
 * both lines are equally wide whatever a tab is. */
static void put_line(
	const struct line *line, uint32_t from, uint32_t to, struct buf *out, struct buf *marks)
{
	uint32_t column = 0;

	for (size_t i = 0; i < line->n && column < to; column++) {
		size_t used = character_bytes(line->p + i, line->n - i);

		if (column >= from) {
			put_shown(out, line->p + i, line->n - i);
			if (column < line->from)
				buf_put_u8(marks, line->p[i] == '\t' ? '\t' : ' ');
			else if (column > line->from && column < line->to)
				buf_put_u8(marks, '~');
			else if (column == line->from)
				buf_put_u8(marks, '^');
		}
		i += used;
	}
	if (line->from >= column) /* behind the last character of the line */
		buf_put_u8(marks, '^');
}

static void put_excerpt(const struct line *line, struct buf *out)
{
	uint32_t n = count_characters(line->p, line->n), from = 0, to = n;
	struct buf marks = {0};

	buf_put_cstr(out, "    ");
	if (n > LINE_COLUMNS_MAX) {
		if (line->from > LINE_COLUMNS_BEFORE)
			from = line->from - LINE_COLUMNS_BEFORE;
		if (from > n - LINE_COLUMNS_MAX)
			from = n - LINE_COLUMNS_MAX;
		to = from + LINE_COLUMNS_MAX;
	}
	if (from) {
		buf_put_cstr(out, "...");
		buf_put_cstr(&marks, "   ");
	}
	put_line(line, from, to, out, &marks);
	buf_printf(out, "%s\n    %s\n", to < n ? "..." : "", buf_text(&marks));
	buf_release(&marks);
}

/* The use that a place in a macro belongs to; NULL when it is in none. */
static const struct macro_use *find_use(const struct diags *d, struct place place)
{
	return place.use && place.use <= d->uses.n ? &d->uses.v[place.use - 1] : NULL;
}

static void put_uses(const struct diags *d, struct place place, struct buf *out)
{
	const struct macro_use *u;

	while ((u = find_use(d, place))) {
		uint32_t line, column;

		place = u->place;
		place_line(d->sources, place, &line, &column);
		buf_printf(out, "  in %s(), used at %s:%u:%u\n", u->name,
			d->sources->v.v[place.source_i].name, line, column);
	}
}

static void put_message(const struct diags *d, const struct diag *diag, struct buf *out)
{
	const struct sources *sources = d->sources;
	const char *severity = diag->severity == DIAG_ERROR ? "error" : "warning";

	if (diag->place.source_i < sources->v.n) {
		const struct source *source = &sources->v.v[diag->place.source_i];
		struct line line = find_line(source, diag->place);

		buf_printf(out, "%s:%u:%u: %s: %s [%s]\n", source->name, line.number, line.from + 1,
			severity, diag->text, diag->tag);
		put_excerpt(&line, out);
	} else {
		buf_printf(out, "%s: %s [%s]\n", severity, diag->text, diag->tag);
	}
	if (diag->hint)
		buf_printf(out, "  hint: %s\n", diag->hint);
	put_uses(d, diag->place, out);
}

static void put_rest(struct buf *out, size_t n, const char *what)
{
	if (n > DIAGS_MAX)
		buf_printf(out, "%zu more %s%s not shown\n", n - DIAGS_MAX, what,
			n - DIAGS_MAX == 1 ? " is" : "s are");
}

void diags_text(const struct diags *d, struct buf *out)
{
	size_t n;
	const struct diag **v = sorted(d, &n);

	for (size_t i = 0; i < n; i++)
		put_message(d, v[i], out);
	put_rest(out, d->n_errors, "error");
	if (!d->hides_warnings)
		put_rest(out, d->n_warnings, "warning");
	free(v);
}

/* With its quotes; the text is shown as put_shown does, so it is UTF-8. */
static void put_json_text(struct buf *out, const char *text)
{
	size_t n = strlen(text);

	buf_put_u8(out, '"');
	for (size_t i = 0; i < n;) {
		if (text[i] == '"' || text[i] == '\\')
			buf_put_u8(out, '\\');
		if (text[i] == '\t') {
			buf_put_cstr(out, "\\t");
			i++;
		} else {
			i += put_shown(out, text + i, n - i);
		}
	}
	buf_put_u8(out, '"');
}

static void put_json_uses(const struct diags *d, struct place place, struct buf *out)
{
	const struct macro_use *u = find_use(d, place);

	if (!u)
		return;
	buf_put_cstr(out, ", \"uses\": [");
	for (const char *comma = ""; u; u = find_use(d, place), comma = ", ") {
		uint32_t line, column;

		place = u->place;
		place_line(d->sources, place, &line, &column);
		buf_printf(out, "%s{\"macro\": ", comma);
		put_json_text(out, u->name);
		buf_put_cstr(out, ", \"file\": ");
		put_json_text(out, d->sources->v.v[place.source_i].name);
		buf_printf(out, ", \"line\": %u, \"column\": %u}", line, column);
	}
	buf_put_u8(out, ']');
}

static void put_json_message(const struct diags *d, const struct diag *diag, struct buf *out)
{
	const struct sources *sources = d->sources;

	buf_put_cstr(out, "{\"file\": ");
	if (diag->place.source_i < sources->v.n) {
		const struct source *source = &sources->v.v[diag->place.source_i];
		struct line line = find_line(source, diag->place);

		put_json_text(out, source->name);
		buf_printf(out, ", \"line\": %u, \"column\": %u, \"end_column\": %u", line.number,
			line.from + 1, line.to + 1);
	} else {
		buf_put_cstr(out, "null, \"line\": null, \"column\": null, \"end_column\": null");
	}
	buf_printf(out, ", \"severity\": \"%s\", \"tag\": \"%s\", \"message\": ",
		diag->severity == DIAG_ERROR ? "error" : "warning", diag->tag);
	put_json_text(out, diag->text);
	buf_put_cstr(out, ", \"hint\": ");
	if (diag->hint)
		put_json_text(out, diag->hint);
	else
		buf_put_cstr(out, "null");
	put_json_uses(d, diag->place, out);
	buf_put_u8(out, '}');
}

void diags_json(const struct diags *d, struct buf *out)
{
	size_t n;
	const struct diag **v = sorted(d, &n);

	buf_put_u8(out, '[');
	for (size_t i = 0; i < n; i++) {
		buf_put_cstr(out, i ? ",\n " : "");
		put_json_message(d, v[i], out);
	}
	buf_put_cstr(out, "]\n");
	free(v);
}
