/* SPDX-License-Identifier: MIT */
/* Static probes of an ELF file, by provider and name. */
#include "base/glob.h"
#include "probe/points/find_sites.h"
#include "probe/points/point_kind.h"
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

static int search_notes(struct site_list *l, const char *path, struct err *err)
{
	(void)path;
	return usdt_notes_each(l->elf, take_note, l, err);
}

bool find_usdt(
	struct point *out, const struct find_options *options, struct arena *arena, struct diags *d)
{
	struct site_search s = {.spec = &out->spec,
		.arena = arena,
		.d = d,
		.search = search_notes,
		.what = "static probe"};

	return find_in_files(&s, options, out);
}
