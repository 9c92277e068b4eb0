/* SPDX-License-Identifier: MIT */
#include "cmd/report/tree_lines.h"

#include <stdlib.h>

/* Lines take at most this part of the width: names need the rest. */
#define LINES_PARTS 3

struct signs {
	const char *branch, *last, *down, *none;
};

static const struct signs ascii = {"|- ", "`- ", "|  ", "   "};
static const struct signs utf8 = {
	"\xe2\x94\x9c\xe2\x94\x80 ", "\xe2\x94\x94\xe2\x94\x80 ", "\xe2\x94\x82  ", "   "};

void tree_lines_init(struct tree_lines *lines, const struct terminal *terminal,
	const struct calltree *tree, const uint32_t *nodes, size_t n)
{
	VEC(uint32_t) below = {0}; /* by level: functions behind the row with the same caller */

	*lines = (struct tree_lines){
		.terminal = terminal, .rows = mem_calloc(n, sizeof(*lines->rows))};
	vec_push(&below, 0);
	for (size_t i = n; i-- > 0;) {
		uint32_t level = calltree_get(tree, nodes[i])->level;

		while (below.n <= level + (size_t)1)
			vec_push(&below, 0);
		lines->rows[i] = (struct tree_line){.level = level, .is_last = !below.v[level]};
		below.v[level]++;
		below.v[level + 1] = 0; /* those before it are of another caller */
		below.n = level + (size_t)2;
	}
	vec_release(&below);
	/* The first below a caller has a line when it is not the last; the others always. */
	for (size_t i = 0; i < n; i++) {
		bool is_first = i && lines->rows[i - 1].level + 1 == lines->rows[i].level;

		lines->rows[i].has_line =
			lines->rows[i].level && (!is_first || !lines->rows[i].is_last);
	}
}

void tree_lines_release(struct tree_lines *lines)
{
	free(lines->rows);
	buf_release(&lines->before);
	vec_release(&lines->before_bytes);
}

/* The end of what stands before a row, when all of it would take too much room. */
static void put_before(const struct tree_lines *lines, struct buf *to)
{
	size_t room = lines->terminal->width / LINES_PARTS, n = 0, from = lines->before.n;
	const char *dots = terminal_dots(lines->terminal);

	for (; from > 0 && (!room || n < room); from--)
		n += (lines->before.p[from - 1] & 0xc0) != 0x80;
	if (from)
		buf_put_cstr(to, dots);
	if (from < lines->before.n)
		buf_put(to, lines->before.p + from, lines->before.n - from);
}

void tree_lines_put(struct tree_lines *lines, size_t i, struct buf *to)
{
	const struct signs *signs = lines->terminal->is_utf8 ? &utf8 : &ascii;
	const struct tree_line *row = &lines->rows[i];

	while (lines->before_bytes.n <= row->level + (size_t)1)
		vec_push(&lines->before_bytes, lines->before.n);
	lines->before.n = row->level ? lines->before_bytes.v[row->level] : 0;
	put_before(lines, to);
	if (row->has_line) {
		buf_put_cstr(to, row->is_last ? signs->last : signs->branch);
		buf_put_cstr(&lines->before, row->is_last ? signs->none : signs->down);
	}
	lines->before_bytes.v[row->level + 1] = lines->before.n;
}
