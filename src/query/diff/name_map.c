/* SPDX-License-Identifier: MIT */
#include "query/diff/name_map.h"

#include <stdbool.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

struct name_map {
	struct intern olds; /* id = index */
	struct map by_hash; /* of the old name -> index */
	VEC(char *) news;
};

static int wrong(struct err *err, const char *name, size_t line, const char *what)
{
	return err_set(err, ERR_FORMAT, "'%s': %s in line %zu", name, what, line);
}

/* The place between both names; n: there is none, or more than one. */
static size_t find_gap(struct span line)
{
	const uint8_t *tab = memchr(line.p, '\t', line.n), *blank = memchr(line.p, ' ', line.n);
	const uint8_t *gap = tab ? tab : blank;
	size_t at = gap ? (size_t)(gap - line.p) : line.n;

	if (!gap || !at || at + 1 == line.n || memchr(gap + 1, *gap, line.n - at - 1))
		return line.n;
	return at;
}

static int add_line(
	struct name_map *m, struct span line, const char *name, size_t number, struct err *err)
{
	size_t gap = find_gap(line), known = m->olds.n_items;

	if (memchr(line.p, '\0', line.n))
		return wrong(err, name, number, "there is a zero byte");
	if (gap == line.n)
		return wrong(err, name, number,
			"there are not two names (OLD NEW; names with blanks need a tab between)");
	if (intern_bytes(&m->olds, line.p, gap) < known)
		return wrong(err, name, number, "there is a function that has a new name already");
	*map_ensure(&m->by_hash, map_hash_bytes(line.p, gap), NULL) = known;
	vec_push(&m->news, mem_strndup((const char *)line.p + gap + 1, line.n - gap - 1));
	return 0;
}

static struct span next_line(struct span *text)
{
	const uint8_t *end = memchr(text->p, '\n', text->n);
	struct span line = {text->p, end ? (size_t)(end - text->p) : text->n};
	size_t used = line.n + (end != NULL);

	text->p += used;
	text->n -= used;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

int name_map_parse(struct name_map **out, struct span text, const char *name, struct err *err)
{
	struct name_map *m = mem_zalloc(sizeof(*m));
	size_t number = 0;
	int rc = 0;

	while (rc == 0 && text.n) {
		struct span line = next_line(&text);

		if (++number > NAME_MAP_LINES_MAX)
			rc = err_set(err, ERR_LIMIT, "'%s': has more than %zu lines", name,
				NAME_MAP_LINES_MAX);
		else if (line.n && line.p[0] != '#')
			rc = add_line(m, line, name, number, err);
	}
	if (rc < 0)
		name_map_free(m);
	else
		*out = m;
	return rc;
}

void name_map_free(struct name_map *m)
{
	for (size_t i = 0; m && i < m->news.n; i++)
		free(m->news.v[i]);
	if (m) {
		vec_release(&m->news);
		intern_release(&m->olds);
		map_release(&m->by_hash);
	}
	free(m);
}

const char *name_map_find(const struct name_map *m, const char *old)
{
	const uint64_t *i = map_find(&m->by_hash, map_hash_bytes(old, strlen(old)));

	return i && !strcmp(name_map_old(m, *i), old) ? m->news.v[*i] : NULL;
}

size_t name_map_n(const struct name_map *m)
{
	return m ? m->news.n : 0;
}

const char *name_map_old(const struct name_map *m, size_t i)
{
	return intern_get(&m->olds, (uint32_t)i);
}

const char *name_map_new(const struct name_map *m, size_t i)
{
	return m->news.v[i];
}
