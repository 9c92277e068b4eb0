/* SPDX-License-Identifier: MIT */
#include "symbols/source/text_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/sort.h"

#define TEXT_SECTIONS_MAX 4096

bool text_next_line(struct cursor *rest, struct span *line)
{
	const uint8_t *eol;

	if (!cursor_left(rest))
		return false;
	eol = memchr(rest->p, '\n', cursor_left(rest));
	*line = (struct span){rest->p, eol ? (size_t)(eol - rest->p) : cursor_left(rest)};
	rest->p = eol ? eol + 1 : rest->end;
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	return true;
}

size_t text_skip_blanks(struct cursor *c)
{
	const uint8_t *start = c->p;

	while (cursor_left(c) && *c->p == ' ')
		c->p++;
	return (size_t)(c->p - start);
}

struct span text_take_word(struct cursor *c)
{
	const uint8_t *start = c->p;

	while (cursor_left(c) && *c->p != ' ')
		c->p++;
	return (struct span){start, (size_t)(c->p - start)};
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool text_take_hex(struct cursor *c, uint64_t *out)
{
	const uint8_t *start = c->p;
	uint64_t v = 0;
	int digit;

	for (; cursor_left(c) && (digit = hex_digit(*c->p)) >= 0; c->p++)
		v = v << 4 | (uint64_t)digit;
	*out = v;
	return c->p > start && c->p - start <= 16;
}

bool text_word_hex(struct span word, uint64_t *out)
{
	struct cursor c = cursor_of(word);

	return text_take_hex(&c, out) && !cursor_left(&c);
}

bool text_take_0x(struct cursor *c, uint64_t *out)
{
	struct span word = text_take_word(c);

	return text_starts(word, "0x") && text_word_hex(span_sub(word, 2, word.n - 2), out);
}

bool text_is(struct span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool text_starts(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

bool text_has(struct span s, const char *part)
{
	return s.n && memmem(s.p, s.n, part, strlen(part)) != NULL;
}

bool text_name_is_internal(struct span name)
{
	if (text_starts(name, ".L"))
		return true;
	return name.n >= 2 && name.p[0] == '$' && strchr("adtx", name.p[1]) && name.p[1] &&
	       (name.n == 2 || name.p[2] == '.');
}

struct span text_name_without_version(struct span name)
{
	const uint8_t *at = name.n ? memchr(name.p, '@', name.n) : NULL;
	struct span version;

	if (!at || at == name.p)
		return name;
	version = (struct span){at, name.n - (size_t)(at - name.p)};
	if (text_is(version, "@plt") || memchr(version.p, ' ', version.n))
		return name;
	name.n = (size_t)(at - name.p);
	return name;
}

void text_source_release(struct text_source *t)
{
	vec_release(&t->sections);
	vec_release(&t->pieces);
	vec_release_all(&t->owned);
	*t = (struct text_source){0};
}

void text_source_add(
	struct text_source *t, const struct symbol_sink *sink, const struct candidate *c)
{
	if (t->n_symbols >= SYMTAB_SYMBOLS_MAX || c->name_bytes > SYMTAB_NAME_BYTES_MAX) {
		t->n_malformed++;
		return;
	}
	t->n_symbols++;
	symbol_sink_add(sink, c);
}

struct span text_source_own(struct text_source *t, char *name)
{
	vec_push(&t->owned, name);
	return (struct span){(const uint8_t *)name, strlen(name)};
}

void text_source_name_output(struct text_source *t, struct span path)
{
	if (!path.n || path.n >= sizeof(t->output))
		return;
	memcpy(t->output, path.p, path.n);
	t->output[path.n] = 0;
}

void text_source_add_section(struct text_source *t, struct span name, uint64_t addr, uint64_t bytes)
{
	struct image_segment s = {.addr = addr, .mem_bytes = bytes};

	memcpy(s.name, name.p, name.n < sizeof(s.name) ? name.n : sizeof(s.name) - 1);
	if (t->sections.n < TEXT_SECTIONS_MAX)
		vec_push(&t->sections, s);
}

/* The first start behind `at`; UINT64_MAX when there is none. */
static uint64_t start_behind(const uint64_t *v, size_t n, uint64_t at)
{
	size_t low = SEARCH(0, n, middle, v[middle] <= at);

	return low < n ? v[low] : UINT64_MAX;
}

void text_unsized_emit(
	struct text_unsized *u, struct text_source *t, const struct symbol_sink *sink)
{
	sort_u64(u->starts.v, u->starts.n);
	for (size_t i = 0; i < u->functions.n; i++) {
		struct candidate *c = &u->functions.v[i];

		c->room = start_behind(u->starts.v, u->starts.n, c->start) - c->start;
		if (c->room > TEXT_FUNCTION_BYTES_MAX)
			c->room = TEXT_FUNCTION_BYTES_MAX;
		if (!c->room)
			c->room = 1; /* the last address there is */
		text_source_add(t, sink, c);
	}
	vec_release(&u->functions);
	vec_release(&u->starts);
}
