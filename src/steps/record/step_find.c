/* SPDX-License-Identifier: MIT */
/* Functions by name in a process as it is mapped now, for --from, --to and --around. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "steps/record/step_internal.h"
#include "symbols/symtab.h"

#define NAME_BYTES_MAX 4096

void step_find_release(struct step_session *s)
{
	for (size_t i = 0; i < s->symtabs.n; i++)
		symtab_free(s->symtabs.v[i]);
	vec_release(&s->symtabs);
}

static const struct symtab *symtab_of(struct step_session *s, uint32_t number)
{
	const struct image *image = images_get(s->env.images, number);

	while (s->symtabs.n <= number)
		vec_push(&s->symtabs, (struct symtab *)NULL);
	if (!s->symtabs.v[number] && image->has_elf)
		s->symtabs.v[number] = symtab_new_elf(&image->elf, image->path);
	return s->symtabs.v[number];
}

/* "ns::f(int)" is meant by "ns::f", too. */
static bool is_called(const struct symbol *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strcmp(symbol->linkage_name, name) || !strcmp(symbol->name, name) ||
	       (!strncmp(symbol->name, name, n) && symbol->name[n] == '(');
}

struct found {
	uint64_t *addrs;
	size_t n, max;
};

static void add(struct found *f, uint64_t addr)
{
	for (size_t i = 0; i < f->n && i < f->max; i++)
		if (f->addrs[i] == addr)
			return;
	if (f->n < f->max)
		f->addrs[f->n] = addr;
	f->n++;
}

static void find_in(
	struct step_session *s, const struct mapping *m, const char *name, struct found *found)
{
	const struct symtab *t = symtab_of(s, m->image);

	for (size_t i = 0; t && i < symtab_n(t); i++) {
		const struct symbol *symbol = symtab_get(t, i);
		uint64_t addr = symbol->start + m->bias;

		if (symbol->source != SYMBOL_SOURCE_PLT && addr >= m->start && addr < m->end &&
			is_called(symbol, name))
			add(found, addr);
	}
}

/* The colon that ends the image in IMAGE:NAME; "::" is part of a name. */
static const char *image_end(const char *text)
{
	for (const char *p = strchr(text, ':'); p; p = strchr(p, ':')) {
		if (p[1] != ':')
			return p;
		p += 2;
	}
	return NULL;
}

static bool is_image(const char *path, const char *glob)
{
	const char *base = strrchr(path, '/');

	return !fnmatch(glob, path, 0) || (base && !fnmatch(glob, base + 1, 0));
}

size_t step_session_find(struct step_session *s, const struct step_track *t, const char *name,
	uint64_t *addrs, size_t max, struct err *err)
{
	const struct addrspace *space = t->space->process->space;
	const char *colon = image_end(name);
	struct found found = {.addrs = addrs, .max = max};
	char glob[NAME_BYTES_MAX] = "";
	char *end;

	if (!strncmp(name, "0x", 2)) {
		add(&found, strtoull(name, &end, 16));
		if (!*end)
			return found.n;
		err_set(err, ERR_NOT_FOUND, "'%s' is not an address", name);
		return 0;
	}
	if (colon && (size_t)(colon - name) < sizeof(glob)) {
		memcpy(glob, name, (size_t)(colon - name));
		name = colon + 1;
	}
	for (size_t i = 0; i < addrspace_n(space); i++) {
		const struct mapping *m = addrspace_get(space, i);

		if (glob[0] && !is_image(images_get(s->env.images, m->image)->path, glob))
			continue;
		find_in(s, m, name, &found);
		if (found.n && !glob[0]) /* the program's own comes first, then libraries */
			break;
	}
	if (!found.n)
		err_set(err, ERR_NOT_FOUND, "no function '%s' in process %u", name, t->pid);
	return found.n;
}
