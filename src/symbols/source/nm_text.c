/* SPDX-License-Identifier: MIT */
/*
 * The output of nm. Which of its formats a text has is decided once, by which of them most of the
 * first lines fit: line by line the formats can be mistaken for one another ("add T 1000 20").
 */
#include <string.h>

#include "base/map.h"
#include "symbols/source/map_piece.h"
#include "symbols/source/text_scan.h"

#define LINES_TO_DECIDE	 256
#define IMAGE_COLONS_MAX 8 /* colons in the path in front of a line, tried one by one */

static bool is_type(struct span word)
{
	/* '?' is a type that nm itself does not know, '-' a stab. */
	return word.n == 1 && strchr("aAbBcCdDgGiInNpPrRsStTuUvVwW?-", word.p[0]) && word.p[0];
}

static bool is_value_width(struct span word)
{
	return word.n == 8 || word.n == 16;
}

static struct span trimmed(struct span s)
{
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	while (s.n && s.p[0] == ' ') {
		s.p++;
		s.n--;
	}
	return s;
}

/* nm -l puts a tab and the place in the source behind the name. */
static struct span without_place(struct span name)
{
	const uint8_t *tab = name.n ? memchr(name.p, '\t', name.n) : NULL;

	if (tab)
		name.n = (size_t)(tab - name.p);
	return name;
}

/* [VALUE [SIZE]] TYPE NAME; without a value as many blanks as it has digits, or more. */
static bool parse_bsd_columns(struct span line, struct nm_line *out)
{
	struct cursor c = cursor_of(line);
	struct span word;

	if (text_skip_blanks(&c) >= 8) {
		word = text_take_word(&c);
	} else {
		if (c.p != line.p)
			return false;
		word = text_take_word(&c);
		if (!is_value_width(word) || !text_word_hex(word, &out->value))
			return false;
		out->is_defined = true;
		text_skip_blanks(&c);
		word = text_take_word(&c);
		if (is_value_width(word)) {
			if (!text_word_hex(word, &out->size))
				return false;
			text_skip_blanks(&c);
			word = text_take_word(&c);
		}
	}
	if (!is_type(word) || !cursor_left(&c))
		return false;
	out->type = (char)word.p[0];
	cursor_skip(&c, 1);
	out->name = without_place((struct span){c.p, cursor_left(&c)});
	return out->name.n > 0;
}

/* With -A the line begins with "IMAGE:". The name of a symbol may have colons too, so the first
 * one that columns follow is it. */
static bool parse_bsd(struct span line, struct nm_line *out)
{
	const uint8_t *p = line.p, *end = line.p + line.n, *colon;

	if (parse_bsd_columns(line, out))
		return true;
	for (unsigned i = 0; i < IMAGE_COLONS_MAX; i++, p = colon + 1) {
		struct span columns;

		colon = p < end ? memchr(p, ':', (size_t)(end - p)) : NULL;
		if (!colon)
			return false;
		columns = (struct span){colon + 1, (size_t)(end - colon - 1)};

		*out = (struct nm_line){.image = {line.p, (size_t)(colon - line.p)}};
		if (parse_bsd_columns(columns, out))
			return out->image.n > 0;
	}
	return false;
}

/* Takes the last word. */
static struct span take_last_word(struct span *rest)
{
	const uint8_t *blank;
	struct span word;

	*rest = trimmed(*rest);
	blank = rest->n ? memrchr(rest->p, ' ', rest->n) : NULL;
	if (!blank)
		return (struct span){NULL, 0};
	word = (struct span){blank + 1, rest->n - (size_t)(blank + 1 - rest->p)};
	rest->n = (size_t)(blank - rest->p);
	return word;
}

/* NAME TYPE VALUE SIZE, NAME TYPE VALUE (and a blank) or NAME TYPE (and blanks). Demangled names
 * have blanks, so columns count from the end. */
static bool parse_posix_columns(struct span line, unsigned n_numbers, struct nm_line *out)
{
	struct span rest = line, word;

	if (n_numbers == 2 && !text_word_hex(take_last_word(&rest), &out->size))
		return false;
	if (n_numbers >= 1 && !text_word_hex(take_last_word(&rest), &out->value))
		return false;
	word = take_last_word(&rest);
	out->name = trimmed(rest);
	if (!is_type(word) || !out->name.n)
		return false;
	out->type = (char)word.p[0];
	out->is_defined = n_numbers > 0;
	return true;
}

static bool parse_posix(struct span line, struct nm_line *out)
{
	bool ends_blank;

	line = without_place(line);
	ends_blank = line.n && line.p[line.n - 1] == ' ';
	if (!ends_blank && parse_posix_columns(line, 2, out))
		return true;
	return parse_posix_columns(line, 1, out) || parse_posix_columns(line, 0, out);
}

static bool parse_sysv(struct span line, struct nm_line *out)
{
	struct span columns[7];
	struct span rest = line;

	/* From the end: a name may have bars (operator|). */
	for (unsigned i = 6; i >= 1; i--) {
		const uint8_t *bar = rest.n ? memrchr(rest.p, '|', rest.n) : NULL;

		if (!bar)
			return false;
		columns[i] = trimmed((struct span){bar + 1, rest.n - (size_t)(bar + 1 - rest.p)});
		rest.n = (size_t)(bar - rest.p);
	}
	out->name = trimmed(rest);
	if (!is_type(columns[2]) || !out->name.n)
		return false;
	out->type = (char)columns[2].p[0];
	out->is_defined = columns[1].n > 0 && !text_is(columns[6], "*UND*");
	if (columns[1].n && !text_word_hex(columns[1], &out->value))
		return false;
	if (columns[4].n && !text_word_hex(columns[4], &out->size))
		return false;
	out->is_label = text_is(columns[3], "NOTYPE");
	out->is_data = text_is(columns[3], "OBJECT") || text_is(columns[3], "TLS") ||
		       map_content_of(columns[6]) == MAP_CONTENT_DATA;
	return true;
}

bool nm_line_parse(enum nm_format format, struct span line, struct nm_line *out)
{
	*out = (struct nm_line){0};
	if (!line.n || line.n > TEXT_LINE_BYTES_MAX)
		return false;
	switch (format) {
	case NM_FORMAT_BSD:
		return parse_bsd(line, out);
	case NM_FORMAT_POSIX:
		return parse_posix(line, out);
	case NM_FORMAT_SYSV:
		return parse_sysv(line, out);
	}
	return false;
}

bool nm_line_is_heading(enum nm_format format, struct span line, struct span *image)
{
	static const char *const sysv[] = {"Symbols from ", "Undefined symbols from "};

	line = trimmed(line);
	if (line.n < 2 || line.p[line.n - 1] != ':')
		return false;
	line.n--;
	if (format != NM_FORMAT_SYSV) {
		*image = line;
		return true;
	}
	for (size_t i = 0; i < 2; i++) {
		if (!text_starts(line, sysv[i]))
			continue;
		*image = (struct span){line.p + strlen(sysv[i]), line.n - strlen(sysv[i])};
		return true;
	}
	return false;
}

/* False when no line fits any format. */
static bool decide_format(struct span text, enum nm_format *format)
{
	size_t scores[NM_N_FORMATS] = {0}, best = 0;
	struct cursor rest = cursor_of(text);
	struct span line;

	for (size_t i = 0; i < LINES_TO_DECIDE && text_next_line(&rest, &line); i++) {
		struct nm_line parsed;

		for (int f = 0; f < NM_N_FORMATS; f++)
			scores[f] += nm_line_parse((enum nm_format)f, line, &parsed);
	}
	for (int f = 0; f < NM_N_FORMATS; f++) {
		if (scores[f] > best) {
			best = scores[f];
			*format = (enum nm_format)f;
		}
	}
	return best > 0;
}

struct nm_reader {
	enum nm_format format;
	struct text_source *out;
	struct text_unsized symbols;
	struct span image;	/* of the lines before; p == NULL: none was named */
	struct map data_starts; /* addresses of data, when weak symbols are seen */
	bool has_symbols;	/* since `image` was named */
};

/* Not functions: marks that linkers put behind the code, and the weak one of SystemTap's notes. */
static bool is_mark(struct span name)
{
	return text_is(name, "_etext") || text_is(name, "etext") || text_is(name, "__etext") ||
	       text_is(name, "_.stapsdt.base");
}

static void add_line(struct nm_reader *r, const struct nm_line *line)
{
	struct span name = text_name_without_version(line->name);
	struct candidate c = {
		.name = (const char *)name.p,
		.name_bytes = (uint32_t)name.n,
		.source = SYMBOL_SOURCE_NM,
		.kind = line->is_label ? CANDIDATE_KIND_LABEL : CANDIDATE_KIND_FUNCTION,
		.bind = CANDIDATE_BIND_WEAK,
		.start = line->value,
		.size = line->size,
	};

	if (!line->is_defined || !strchr("tTwWiIbBdDgGrRsSuvV", line->type))
		return;
	vec_push(&r->symbols.starts, line->value);
	if (strchr("bBdDgGrRsSuvV", line->type) || line->is_data) {
		map_ensure(&r->data_starts, line->value, NULL);
		return;
	}
	if (text_name_is_internal(name) || is_mark(name) || (name.p[0] == '.' && !line->size))
		return;
	if (line->type == 't')
		c.bind = CANDIDATE_BIND_LOCAL;
	else if (line->type == 'T' || (line->type | 0x20) == 'i')
		c.bind = CANDIDATE_BIND_GLOBAL; /* nm does not say which ifuncs are local */
	vec_push(&r->symbols.functions, c);
}

/* The lines that follow are of `image`. */
static int begin_image(struct nm_reader *r, struct span image, struct err *err)
{
	if (r->image.p && span_equal(r->image, image))
		return 0;
	if (r->has_symbols)
		return err_set(err, ERR_FORMAT,
			"has the symbols of several images, but must be of one: '%.*s' after '%.*s'",
			image.n > 100 ? 100 : (int)image.n, (const char *)image.p,
			r->image.n > 100 ? 100 : (int)r->image.n,
			r->image.p ? (const char *)r->image.p : "");
	r->image = image;
	text_source_name_output(r->out, image);
	return 0;
}

static bool is_table_head(struct span line)
{
	return text_starts(line, "Name ") && text_has(line, " Value ") && text_has(line, " Class ");
}

static int read_line(struct nm_reader *r, struct span line, struct err *err)
{
	struct nm_line parsed;
	struct span image;
	int rc = 0;

	if (nm_line_parse(r->format, line, &parsed)) {
		if (parsed.image.n)
			rc = begin_image(r, parsed.image, err);
		r->has_symbols = true;
		if (rc == 0)
			add_line(r, &parsed);
	} else if (nm_line_is_heading(r->format, line, &image)) {
		rc = begin_image(r, image, err);
	} else if (!is_table_head(line)) {
		r->out->n_malformed++;
	}
	return rc;
}

/* nm calls an untyped weak symbol 'W' wherever it is: data_start. */
static void drop_weak_data(struct nm_reader *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->symbols.functions.n; i++) {
		const struct candidate *c = &r->symbols.functions.v[i];

		if (c->bind == CANDIDATE_BIND_WEAK && map_find(&r->data_starts, c->start))
			continue;
		r->symbols.functions.v[kept++] = *c;
	}
	r->symbols.functions.n = kept;
}

int nm_text_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err)
{
	struct nm_reader r = {.out = out};
	struct cursor rest = cursor_of(text);
	struct span line;
	int rc = 0;

	*out = (struct text_source){0};
	if (!decide_format(text, &r.format))
		return err_set(err, ERR_FORMAT, "none of the first %d lines is one of nm",
			LINES_TO_DECIDE);
	while (rc == 0 && text_next_line(&rest, &line)) {
		if (!line.n)
			continue;
		if (r.symbols.starts.n < SYMTAB_SYMBOLS_MAX)
			rc = read_line(&r, line, err);
		else
			out->n_malformed++;
	}
	if (rc < 0)
		r.symbols.functions.n = 0;
	drop_weak_data(&r);
	text_unsized_emit(&r.symbols, out, sink);
	map_release(&r.data_starts);
	if (rc < 0)
		text_source_release(out);
	return rc;
}
