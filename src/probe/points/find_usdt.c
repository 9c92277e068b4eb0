/* SPDX-License-Identifier: MIT */
/* Static probes of an ELF file, by provider and name. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/glob.h"
#include "probe/points/find_sites.h"
#include "probe/points/usdt_notes.h"

static void take_note(void *ctx, const struct usdt_note *note)
{
	struct site_list *l = ctx;
	struct site_search *s = l->search;
	const struct point_spec *spec = s->spec;
	struct foff semaphore = {0};
	struct site site;

	if (!glob_match(spec->name, note->probe) ||
		(spec->provider && !glob_match(spec->provider, note->provider))) {
		nearest_names_add(&s->near, note->probe);
		return;
	}
	s->has_match = true;
	site = (struct site){.addr = note->addr,
		.operands = arena_strdup(s->arena, note->operands),
		.provider = arena_strdup(s->arena, note->provider),
		.probe = arena_strdup(s->arena, note->probe)};
	if (note->semaphore.v && !elf_iaddr_to_offset(l->elf, note->semaphore, &semaphore)) {
		site_list_leave_out(
			l, site.probe, (struct foff){0}, "its semaphore is not in the file");
		return;
	}
	site.semaphore = semaphore.v;
	site_list_add(l, &site, 0);
}

/* Code that was laid out twice (inlined) may have two notes of one address: the same probe. */
static void drop_doubles(struct target *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n_sites; i++) {
		const struct site *last = kept ? &t->sites[kept - 1] : NULL;

		if (!last || last->offset.v != t->sites[i].offset.v ||
			strcmp(last->probe, t->sites[i].probe) != 0 ||
			strcmp(last->provider, t->sites[i].provider) != 0)
			t->sites[kept++] = t->sites[i];
	}
	t->n_sites = kept;
}

bool find_usdt_sites(struct site_search *s, const struct probe_file *file, struct target *out)
{
	struct site_list l = {.search = s, .mode = file->mode};
	struct file_map map;
	struct elf_file elf;
	struct err err;
	int rc;

	if (file_map_open(&map, file->path, &err) < 0) {
		diag_error(s->d, s->spec->place, "not-found", "%s", err.text);
		return false;
	}
	rc = elf_file_init(&elf, map.bytes, &err);
	if (rc == 0) {
		l.elf = &elf;
		s->near.wanted = s->spec->name;
		rc = usdt_notes_each(&elf, take_note, &l, &err);
		elf_file_release(&elf);
	}
	if (rc < 0)
		diag_error(s->d, s->spec->place, "not-elf", "'%s': %s", file->path, err.text);
	site_list_finish(&l, file, out);
	drop_doubles(out);
	file_map_release(&map);
	return rc >= 0;
}
