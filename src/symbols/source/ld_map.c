/* SPDX-License-Identifier: MIT */
/*
 * Maps of GNU ld and of gold. The layout is by indentation:
 *
 *	.text           0x0000000000001050      0x156			output section
 *	 *(.text .stub)							pattern of the script
 *	 .text.cube     0x000000000000113f        0xd a.o		input section
 *	                0x000000000000113f                cube		symbol
 *	                0x0000000000002000                . = ALIGN (4)	assignment
 *	 *fill*         0x0000000000001072        0xe
 *
 * A name of 15 bytes or more has a line of its own, and the rest is on the next one. Nothing here
 * depends on the headings, which are translated: the map begins with the first LOAD line (or
 * gold's heading), so that what comes before, discarded sections and memory regions, is not taken
 * for it.
 */
#include <string.h>

#include "symbols/source/map_piece.h"

#define COLUMN_ADDR 16 /* where addresses begin */

enum pending { PENDING_NONE, PENDING_OUTPUT, PENDING_PIECE };

struct ld_map {
	struct map_reader r;
	bool has_begun, has_ended;
	enum pending pending; /* the line before was nothing but this name */
	struct span pending_name;
	size_t n_outputs;
};

/* "0xADDR 0xSIZE" and what is behind it. */
static bool take_range(struct cursor *c, uint64_t *addr, uint64_t *bytes)
{
	text_skip_blanks(c);
	if (!text_take_0x(c, addr))
		return false;
	text_skip_blanks(c);
	if (!text_take_0x(c, bytes))
		return false;
	text_skip_blanks(c);
	return true;
}

static struct span rest_of(const struct cursor *c)
{
	return (struct span){c->p, cursor_left(c)};
}

static void begin_output(struct ld_map *m, struct span name, uint64_t addr, uint64_t bytes)
{
	m->n_outputs++;
	map_reader_output(&m->r, name, addr, bytes);
}

static void begin_piece(
	struct ld_map *m, struct span name, struct span file, uint64_t addr, uint64_t bytes)
{
	/* A fill ends the piece too, and has no file. */
	if (text_is(name, "*fill*") || !m->n_outputs)
		map_reader_end_piece(&m->r);
	else
		map_reader_piece(&m->r, name, file, addr, bytes);
}

/* OUTPUT(a.out elf64-x86-64) */
static void take_output_name(struct ld_map *m, struct span line)
{
	const uint8_t *blank = memrchr(line.p, ' ', line.n);
	size_t n = blank ? (size_t)(blank - line.p) : line.n;

	if (n >= 7 && !m->r.out->output[0])
		text_source_name_output(m->r.out, span_sub(line, 7, n - 7));
}

static bool is_beginning(struct span line)
{
	return text_starts(line, "LOAD ") || text_is(line, "Linker script and memory map") ||
	       text_is(line, "Memory map");
}

/* A line that begins in the first column: an output section, or a heading. */
static void read_outer_line(struct ld_map *m, struct span line)
{
	struct cursor c = cursor_of(line);
	struct span name = text_take_word(&c);
	uint64_t addr, bytes;

	map_reader_end_piece(&m->r);
	if (is_beginning(line)) {
		m->has_begun = true;
	} else if (!m->has_begun) {
		return;
	} else if (text_starts(line, "OUTPUT(")) {
		take_output_name(m, line);
	} else if (text_is(line, "Cross Reference Table")) {
		m->has_ended = true;
	} else if (!cursor_left(&c)) {
		m->pending = PENDING_OUTPUT;
		m->pending_name = name;
	} else if (take_range(&c, &addr, &bytes)) {
		begin_output(m, name, addr, bytes);
	}
}

/* A line that is indented by one blank. */
static void read_inner_line(struct ld_map *m, struct span line)
{
	struct cursor c = cursor_of(line);
	struct span name;
	uint64_t addr, bytes;

	text_skip_blanks(&c);
	name = text_take_word(&c);
	if (text_is(name, "**")) {
		map_reader_end_piece(&m->r); /* made by gold: "** fill", "** PLT" */
	} else if (!cursor_left(&c)) {
		m->pending = PENDING_PIECE;
		m->pending_name = name;
	} else if (take_range(&c, &addr, &bytes)) {
		begin_piece(m, name, rest_of(&c), addr, bytes);
	}
}

/* "foo = ...", "PROVIDE (foo = ...)" */
static bool is_assignment(struct span text)
{
	struct cursor c = cursor_of(text);

	if (text_starts(text, "PROVIDE") || text_starts(text, "HIDDEN (") ||
		text_starts(text, "ASSERT ("))
		return text_has(text, " (");
	text_take_word(&c);
	text_skip_blanks(&c);
	return text_is(text_take_word(&c), "=");
}

/* A line that is indented up to the column of addresses: a symbol, an assignment, or the rest of
 * the line before. */
static void read_addr_line(struct ld_map *m, struct span line, enum pending pending)
{
	struct cursor c = cursor_of(line), at;
	uint64_t addr, bytes;

	text_skip_blanks(&c);
	at = c;
	if (pending != PENDING_NONE && take_range(&at, &addr, &bytes)) {
		if (pending == PENDING_OUTPUT)
			begin_output(m, m->pending_name, addr, bytes);
		else
			begin_piece(m, m->pending_name, rest_of(&at), addr, bytes);
		return;
	}
	if (!text_take_0x(&c, &addr) || !text_skip_blanks(&c))
		return;
	if (text_starts(rest_of(&c), "(local) ")) {
		cursor_skip(&c, 8); /* of ld --print-map-locals */
		text_skip_blanks(&c);
	}
	if (!cursor_left(&c) || text_starts(rest_of(&c), "0x") || is_assignment(rest_of(&c)))
		return;
	map_reader_symbol(&m->r, rest_of(&c), addr, 0);
}

static void read_line(struct ld_map *m, struct span line)
{
	struct cursor c = cursor_of(line);
	size_t indent = text_skip_blanks(&c);
	enum pending pending = m->pending;

	m->pending = PENDING_NONE;
	if (!cursor_left(&c))
		return;
	if (line.n > TEXT_LINE_BYTES_MAX)
		m->r.out->n_malformed++;
	else if (indent == 0)
		read_outer_line(m, line);
	else if (!m->has_begun)
		return;
	else if (indent == 1)
		read_inner_line(m, line);
	else if (indent == COLUMN_ADDR)
		read_addr_line(m, line, pending);
}

int ld_map_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err)
{
	struct ld_map m = {.r = {.out = out, .sink = sink, .source = SYMBOL_SOURCE_LD_MAP}};
	struct cursor rest = cursor_of(text);
	struct span line;

	*out = (struct text_source){0};
	while (!m.has_ended && text_next_line(&rest, &line))
		read_line(&m, line);
	map_reader_finish(&m.r);
	if (m.n_outputs)
		return 0;
	text_source_release(out);
	return err_set(err, ERR_FORMAT, "has no output section as a map of GNU ld has them");
}
