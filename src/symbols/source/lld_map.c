/* SPDX-License-Identifier: MIT */
/*
 * Maps of ld.lld. Numbers are hexadecimal but for the alignment; what follows them is indented by
 * its level:
 *
 *	             VMA              LMA     Size Align Out     In      Symbol
 *	            2580             2580      d9f    16 .text
 *	            2669             2669        a     1         a.o:(.text.foo)
 *	            2669             2669        a     1                 foo(int)
 *
 * Assignments of a linker script stand where output or input sections do: "foo = .".
 */
#include <string.h>

#include "symbols/source/map_piece.h"

#define INDENT_LEVEL 8

struct lld_line {
	uint64_t addr, bytes;
	unsigned level; /* 0 output section, 1 input section, 2 symbol */
	struct span text;
};

/* The line of headings, with or without a column of load addresses. */
static bool is_heading(struct span line, bool *has_lma)
{
	static const char *const with[] = {"VMA", "LMA", "Size", "Align", "Out", "In", "Symbol"};
	static const char *const without[] = {"Address", "Size", "Align", "Out", "In", "Symbol"};
	struct cursor c = cursor_of(line);
	struct span word;
	size_t i = 0;

	text_skip_blanks(&c);
	word = text_take_word(&c);
	*has_lma = text_is(word, with[0]);
	if (!*has_lma && !text_is(word, without[0]))
		return false;
	for (;;) {
		i++;
		text_skip_blanks(&c);
		word = text_take_word(&c);
		if (i == (*has_lma ? 7u : 6u))
			return word.n == 0;
		if (!text_is(word, *has_lma ? with[i] : without[i]))
			return false;
	}
}

static bool take_hex(struct cursor *c, uint64_t *out)
{
	text_skip_blanks(c);
	return text_word_hex(text_take_word(c), out);
}

static bool parse_line(struct span line, bool has_lma, struct lld_line *out)
{
	struct cursor c = cursor_of(line);
	uint64_t lma, align;
	size_t indent;

	if (!take_hex(&c, &out->addr) || (has_lma && !take_hex(&c, &lma)) ||
		!take_hex(&c, &out->bytes) || !take_hex(&c, &align))
		return false;
	indent = text_skip_blanks(&c);
	if (!indent || !cursor_left(&c) || (indent - 1) % INDENT_LEVEL != 0 ||
		(indent - 1) / INDENT_LEVEL > 2)
		return false;
	out->level = (unsigned)((indent - 1) / INDENT_LEVEL);
	out->text = (struct span){c.p, cursor_left(&c)};
	return true;
}

/* "a.o:(.text.foo)" -> "a.o", ".text.foo" */
static bool split_piece(struct span text, struct span *file, struct span *section)
{
	const uint8_t *end = text.p + text.n, *at;

	if (text.n < 4 || end[-1] != ')')
		return false;
	for (at = end - 2; at > text.p; at--) {
		if (at[0] == '(' && at[-1] == ':') {
			*file = (struct span){text.p, (size_t)(at - 1 - text.p)};
			*section = (struct span){at + 1, (size_t)(end - 1 - (at + 1))};
			return true;
		}
	}
	return false;
}

static void use_line(struct map_reader *r, const struct lld_line *line)
{
	struct span file, section;

	if (line->level == 2) {
		map_reader_symbol(r, line->text, line->addr, line->bytes);
	} else if (line->level == 1) {
		map_reader_end_piece(r);
		if (split_piece(line->text, &file, &section))
			map_reader_piece(r, section, file, line->addr, line->bytes);
	} else if (!memchr(line->text.p, '=', line->text.n)) {
		map_reader_output(r, line->text, line->addr, line->bytes);
	}
}

int lld_map_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err)
{
	struct map_reader r = {
		.out = out, .sink = sink, .source = SYMBOL_SOURCE_LLD_MAP, .has_locals = true};
	struct cursor rest = cursor_of(text);
	struct lld_line parsed;
	struct span line;
	bool has_lma;

	*out = (struct text_source){0};
	if (!text_next_line(&rest, &line) || !is_heading(line, &has_lma))
		return err_set(err, ERR_FORMAT,
			"does not begin with the headings of a map of lld (VMA LMA Size Align ...)");
	while (text_next_line(&rest, &line)) {
		if (!line.n)
			continue;
		if (line.n <= TEXT_LINE_BYTES_MAX && parse_line(line, has_lma, &parsed))
			use_line(&r, &parsed);
		else
			out->n_malformed++;
	}
	map_reader_finish(&r);
	return 0;
}
