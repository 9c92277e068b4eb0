/* SPDX-License-Identifier: MIT */
#include "cmd/report/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The first of these that is set decides, as in setlocale(3). */
static bool has_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

struct terminal terminal_of(FILE *out)
{
	const char *kind = getenv("TERM"), *no_color = getenv("NO_COLOR");
	struct terminal t = {0};
	struct winsize size;
	int fd = fileno(out);

	if (fd < 0 || !isatty(fd))
		return t;
	t.is_there = true;
	t.has_color = kind && *kind && strcmp(kind, "dumb") != 0 && !(no_color && *no_color);
	t.is_utf8 = has_utf8();
	if (ioctl(fd, TIOCGWINSZ, &size) == 0)
		t.width = size.ws_col;
	return t;
}

size_t text_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

const char *terminal_dots(const struct terminal *t)
{
	return t->is_utf8 ? "\xe2\x80\xa6" : "...";
}

void terminal_cut(const struct terminal *t, struct buf *b, size_t from)
{
	const char *dots = terminal_dots(t);
	size_t keep = text_width(dots), columns = 0, cut_at = from;

	if (!t->width || t->width <= keep)
		return;
	keep = t->width - keep;
	for (size_t i = from; i < b->n; i++) {
		if ((b->p[i] & 0xc0) == 0x80)
			continue;
		if (columns++ == keep)
			cut_at = i;
		if (columns > t->width) {
			b->n = cut_at;
			buf_put_cstr(b, dots);
			return;
		}
	}
}
