/* SPDX-License-Identifier: MIT */
/* How messages about scripts are kept and shown. */
#include <stdlib.h>

#include "check.h"
#include "probe/script/diag.h"

struct world {
	struct sources sources;
	struct diags diags;
	struct buf out;
};

static void world_init(struct world *w, const char *text)
{
	*w = (struct world){0};
	sources_add(&w->sources, "a.wr", (struct span){(const uint8_t *)text, strlen(text)});
	diags_init(&w->diags, &w->sources);
}

static void world_release(struct world *w)
{
	diags_release(&w->diags);
	sources_release(&w->sources);
	buf_release(&w->out);
}

static const char *shown(struct world *w)
{
	buf_reset(&w->out);
	diags_text(&w->diags, &w->out);
	return buf_text(&w->out);
}

static struct place at(uint32_t from, uint32_t to)
{
	return (struct place){0, from, to, 0};
}

static void one_message(void)
{
	struct world w;

	world_init(&w, "begin { }\nend { $xy = 1; }\n");
	diag_error(&w.diags, at(16, 19), "unknown-name", "'%s' is not known", "$xy");
	diag_hint(&w.diags, "give it a value");
	CHECK_STR(shown(&w), "a.wr:2:7: error: '$xy' is not known [unknown-name]\n"
			     "    end { $xy = 1; }\n"
			     "          ^~~\n"
			     "  hint: give it a value\n");
	CHECK_EQ(w.diags.n_errors, 1);
	CHECK_EQ(w.diags.n_warnings, 0);
	world_release(&w);
}

static void order_and_severity(void)
{
	struct world w;

	world_init(&w, "ab\ncd");
	sources_add(&w.sources, "b.wr", (struct span){(const uint8_t *)"ef", 2});
	diag_warning(&w.diags, (struct place){1, 0, 2, 0}, "unused", "third");
	diag_error(&w.diags, at(4, 5), "type", "second");
	diag_error(&w.diags, at(0, 1), "type", "first");
	diag_error(&w.diags, at(0, 2), "key", "first of the same start, found later");
	CHECK_STR(shown(&w), "a.wr:1:1: error: first [type]\n    ab\n    ^\n"
			     "a.wr:1:1: error: first of the same start, found later [key]\n"
			     "    ab\n    ^~\n"
			     "a.wr:2:2: error: second [type]\n    cd\n     ^\n"
			     "b.wr:1:1: warning: third [unused]\n    ef\n    ^~\n");
	CHECK_EQ(w.diags.n_errors, 3);
	CHECK_EQ(w.diags.n_warnings, 1);
	world_release(&w);
}

static void repetitions(void)
{
	struct world w;

	world_init(&w, "abc");
	diag_error(&w.diags, at(0, 1), "type", "in 32-bit programs");
	diag_hint(&w.diags, "of the first");
	diag_error(&w.diags, at(0, 1), "type", "in 64-bit programs");
	diag_hint(&w.diags, "of the second");
	diag_error(&w.diags, at(0, 1), "key", "another tag");
	diag_error(&w.diags, at(0, 2), "type", "another place");
	CHECK_EQ(w.diags.n_errors, 3);
	CHECK_EQ(w.diags.v.n, 3);
	CHECK_STR(w.diags.v.v[0].text, "in 32-bit programs");
	CHECK_STR(w.diags.v.v[0].hint, "of the first");
	CHECK(w.diags.v.v[1].hint == NULL);
	world_release(&w);
}

static void tabs_and_wide_bytes(void)
{
	struct world w;
	uint32_t line, column;

	/* The tab stays below the tab, and a character of two bytes is one column. */
	world_init(&w, "\t$\xc3\xa9\xc3\xa9 \t= x;\r\n");
	diag_error(&w.diags, at(10, 11), "type", "x");
	CHECK_STR(shown(&w), "a.wr:1:9: error: x [type]\n"
			     "    \t$\xc3\xa9\xc3\xa9 \t= x;\n"
			     "    \t    \t  ^\n");
	place_line(&w.sources, at(2, 6), &line, &column);
	CHECK_EQ(line, 1);
	CHECK_EQ(column, 3);
	world_release(&w);
	world_init(&w, "ab \xe2\x82\xac\xe2\x82\xac cd");
	diag_error(&w.diags, at(3, 9), "type", "two");
	CHECK_STR(shown(&w), "a.wr:1:4: error: two [type]\n"
			     "    ab \xe2\x82\xac\xe2\x82\xac cd\n"
			     "       ^~\n");
	world_release(&w);
}

static void hostile_bytes(void)
{
	struct world w;

	world_init(&w, "a\x1b[31m \xff\xc3 b");
	diag_error(&w.diags, at(9, 10), "type", "'%s' and\n'%s'", "\x1b[1m", "\xc2\x9b\x80");
	CHECK_STR(shown(&w), "a.wr:1:10: error: '\xef\xbf\xbd[1m' and\xef\xbf\xbd'"
			     "\xef\xbf\xbd\xef\xbf\xbd' [type]\n"
			     "    a\xef\xbf\xbd[31m \xef\xbf\xbd\xef\xbf\xbd b\n"
			     "             ^\n");
	world_release(&w);
}

static void odd_places(void)
{
	struct world w;

	world_init(&w, "ab\n\ncd");
	diag_error(&w.diags, at(6, 6), "type", "at the end");
	diag_error(&w.diags, at(3, 3), "type", "in an empty line");
	diag_error(&w.diags, at(1, 6), "type", "over three lines");
	diag_error(&w.diags, at(900, 800), "key", "behind everything");
	diag_error(&w.diags, (struct place){7, 0, 0, 0}, "no-privilege", "nowhere");
	CHECK_STR(shown(&w), "a.wr:1:2: error: over three lines [type]\n    ab\n     ^\n"
			     "a.wr:2:1: error: in an empty line [type]\n    \n    ^\n"
			     "a.wr:3:3: error: at the end [type]\n    cd\n      ^\n"
			     "a.wr:3:3: error: behind everything [key]\n    cd\n      ^\n"
			     "error: nowhere [no-privilege]\n");
	world_release(&w);
	world_init(&w, "ab\n");
	diag_error(&w.diags, at(3, 3), "type", "behind the last newline");
	CHECK_STR(shown(&w), "a.wr:2:1: error: behind the last newline [type]\n    \n    ^\n");
	world_release(&w);
	world_init(&w, "");
	diag_error(&w.diags, at(0, 0), "no-clause", "empty");
	CHECK_STR(shown(&w), "a.wr:1:1: error: empty [no-clause]\n    \n    ^\n");
	world_release(&w);
}

/* A line of n times 'x' with "HERE" at a column. */
static char *long_line(size_t n, size_t here)
{
	char *text = mem_zalloc(n + 1);

	memset(text, 'x', n);
	memcpy(text + here, "HERE", 4);
	return text;
}

static void check_cut(size_t n, uint32_t here, const char *before, const char *after)
{
	char *text = long_line(n, here);
	struct world w;
	const char *line, *marks;

	world_init(&w, text);
	diag_error(&w.diags, at(here, here + 4), "type", "long");
	line = strchr(shown(&w), '\n') + 5;
	marks = strchr(line, '\n') + 5;
	CHECK(!strncmp(line, before, strlen(before)));
	CHECK_EQ(strcspn(line, "\n"), 160 + strlen(before) + strlen(after));
	CHECK(!strncmp(marks - 5 - strlen(after), after, strlen(after)));
	/* The marks are below the word. */
	CHECK_EQ(strstr(line, "HERE") - line, strchr(marks, '^') - marks);
	CHECK_STR(strchr(marks, '^'), "^~~~\n");
	world_release(&w);
	free(text);
}

static void long_lines(void)
{
	check_cut(160, 100, "", "");
	check_cut(161, 0, "", "...");
	check_cut(1000, 20, "", "...");
	check_cut(1000, 500, "...", "...");
	check_cut(1000, 996, "...", "");
}

static void many_messages(void)
{
	struct world w;
	char *text = long_line(200, 0);

	world_init(&w, text);
	for (uint32_t i = 0; i < DIAGS_MAX + 7; i++)
		diag_error(&w.diags, at(i, i + 1), "type", "error %u", i);
	diag_hint(&w.diags, "not kept");
	diag_warning(&w.diags, at(60, 61), "unused", "a warning is kept all the same");
	CHECK_EQ(w.diags.n_errors, DIAGS_MAX + 7);
	CHECK_EQ(w.diags.v.n, DIAGS_MAX + 1);
	CHECK(w.diags.v.v[DIAGS_MAX - 1].hint == NULL);
	CHECK(strstr(shown(&w), "\n7 more errors are not shown\n") != NULL);
	CHECK(strstr(shown(&w), "more warning") == NULL);
	world_release(&w);
	free(text);
}

static void as_json(void)
{
	struct world w;

	world_init(&w, "ab\n\xc3\xa9 cd\n");
	diags_json(&w.diags, &w.out);
	CHECK_STR(buf_text(&w.out), "[]\n");
	diag_error(&w.diags, at(6, 8), "type", "a \"text\" with \\ and \t");
	diag_warning(&w.diags, at(0, 5), "unused", "over two lines");
	diag_hint(&w.diags, "none");
	diag_error(&w.diags, (struct place){9, 0, 0, 0}, "no-privilege", "nowhere");
	buf_reset(&w.out);
	diags_json(&w.diags, &w.out);
	CHECK_STR(buf_text(&w.out),
		"[{\"file\": \"a.wr\", \"line\": 1, \"column\": 1, \"end_column\": 3, "
		"\"severity\": \"warning\", \"tag\": \"unused\", \"message\": \"over two lines\", "
		"\"hint\": \"none\"},\n"
		" {\"file\": \"a.wr\", \"line\": 2, \"column\": 3, \"end_column\": 5, "
		"\"severity\": \"error\", \"tag\": \"type\", "
		"\"message\": \"a \\\"text\\\" with \\\\ and \\t\", \"hint\": null},\n"
		" {\"file\": null, \"line\": null, \"column\": null, \"end_column\": null, "
		"\"severity\": \"error\", \"tag\": \"no-privilege\", \"message\": \"nowhere\", "
		"\"hint\": null}]\n");
	world_release(&w);
}

static void tags_in_order(void)
{
	for (size_t i = 1; diag_tags[i]; i++)
		CHECK(strcmp(diag_tags[i - 1], diag_tags[i]) < 0);
}

static const struct test tests[] = {
	{"a message has its place, tag, line, marks and hint", one_message},
	{"messages are shown in the order of their places", order_and_severity},
	{"the same place and tag are kept once", repetitions},
	{"marks stand below tabs and UTF-8", tabs_and_wide_bytes},
	{"no script can talk to the terminal", hostile_bytes},
	{"places at ends, over lines and outside are shown", odd_places},
	{"a long line is cut around the place", long_lines},
	{"what is too much is counted", many_messages},
	{"messages as JSON", as_json},
	{"tags are sorted", tags_in_order},
};

int main(void)
{
	return RUN_TESTS(tests);
}
