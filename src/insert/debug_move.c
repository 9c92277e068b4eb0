/* SPDX-License-Identifier: MIT */
#include "insert/debug_move.h"

#include <stdlib.h>

#include "base/order.h"
#include "elf/elf_file.h"
#include "insert/debug_stage.h"
#include "insert/section_rewrite.h"

#define SECTION_BYTES_MAX ((uint64_t)1 << 32) /* of a section, uncompressed */

struct debug_kind_row {
	const char *name;
	enum debug_kind kind;
	int (*move)(struct debug_mover *d, struct debug_stage *s, struct err *err);
};

/* In the order in which they are done: .debug_info says which lists there are. Sections named
 * .debug_*.dwo are not here: what they hold is relative to addresses in .debug_addr, and the file
 * they would be compared with is another one. */
static const struct debug_kind_row kinds[] = {
	{".debug_abbrev", DEBUG_KIND_ABBREV, NULL},
	{".debug_info", DEBUG_KIND_INFO, debug_info_move},
	{".debug_line", DEBUG_KIND_LINE, debug_line_move},
	{".debug_ranges", DEBUG_KIND_RANGES, debug_pairs_move},
	{".debug_loc", DEBUG_KIND_LOC, debug_pairs_move},
	{".debug_rnglists", DEBUG_KIND_RNGLISTS, debug_lists_move},
	{".debug_loclists", DEBUG_KIND_LOCLISTS, debug_lists_move},
	{".debug_aranges", DEBUG_KIND_ARANGES, debug_aranges_move},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static enum debug_kind kind_of(const struct object_section *s)
{
	if (s->type != SHT_PROGBITS || (s->flags & (SHF_ALLOC | SHF_EXECINSTR)))
		return DEBUG_KIND_NONE;
	for (size_t i = 0; i < N_KINDS; i++)
		if (!strcmp(s->name, kinds[i].name))
			return kinds[i].kind;
	return DEBUG_KIND_NONE;
}

/* Uncompresses a section: to elf_section_inflate it is a file of one section. */
static int inflate(const struct object_section *s, struct debug_stage *stage, struct err *err)
{
	struct elf_file file = {.bytes = s->data, .is_64 = true};
	struct elf_section section = {
		.name = s->name, .type = s->type, .flags = s->flags, .size = s->data.n};
	struct cursor header = cursor_of(s->data);
	size_t n;
	int ret =
		elf_section_inflate(&file, &section, SECTION_BYTES_MAX, &stage->inflated, &n, err);

	if (ret < 0)
		return ret;
	cursor_skip(&header, 16); /* ch_type, ch_reserved, ch_size */
	stage->align = cursor_u64(&header);
	stage->in = (struct span){stage->inflated, n};
	return 0;
}

/* Tables of names hold offsets of entries in their unit. */
static bool is_index(const char *name)
{
	return !strcmp(name, ".debug_pubnames") || !strcmp(name, ".debug_pubtypes") ||
	       !strcmp(name, ".debug_gnu_pubnames") || !strcmp(name, ".debug_gnu_pubtypes") ||
	       !strcmp(name, ".debug_names");
}

static int add_stages(struct debug_mover *d, struct err *err)
{
	for (uint32_t i = 1; i < d->o->sections.n && i < d->code->n_sections; i++) {
		const struct object_section *s = &d->o->sections.v[i];
		struct debug_stage stage = {.section = i, .kind = kind_of(s), .name = s->name};

		if (!strncmp(s->name, ".zdebug_", 8))
			return err_set(err, ERR_UNSUPPORTED,
				"section %s is compressed in a way that is not known", s->name);
		d->has_indexes |= is_index(s->name);
		if (!stage.kind || moved_has(d->code, i))
			continue;
		stage.in = s->data;
		stage.align = s->align;
		if (s->flags & SHF_COMPRESSED) {
			int ret = inflate(s, &stage, err);

			if (ret < 0)
				return ret;
		}
		vec_push(&d->stages, stage);
		d->stage_of[i] = (uint32_t)d->stages.n;
		if (stage.kind == DEBUG_KIND_ABBREV && !d->abbrev_section)
			d->abbrev_section = i;
	}
	return 0;
}

ORDER_BY(order_refs, struct debug_list_ref, section, offset, unit)

static int move_all(struct debug_mover *d, struct err *err)
{
	for (size_t k = 0; k < N_KINDS; k++) {
		for (size_t i = 0; i < d->stages.n; i++) {
			struct debug_stage *s = &d->stages.v[i];
			int ret = 0;

			if (s->kind == kinds[k].kind && kinds[k].move)
				ret = kinds[k].move(d, s, err);
			if (ret < 0)
				return ret;
		}
		if (kinds[k].kind == DEBUG_KIND_INFO && d->refs.n)
			vec_sort(&d->refs, order_refs);
	}
	return 0;
}

/* The new contents become those of the section, and its map one of `m`. */
static void commit(struct debug_mover *d, const struct debug_stage *s, struct moved *m)
{
	const struct moved_section *map = &d->relaid.sections[s->section];
	struct object_section *section = &d->o->sections.v[s->section];

	if (!s->out.n || (s->out.n == s->in.n && !memcmp(s->out.p, s->in.p, s->in.n)))
		return;
	section_replace(d->o, s->section, buf_span(&s->out), map->rows.v, map->rows.n, m);
	section->flags &= ~(uint64_t)SHF_COMPRESSED;
	section->align = s->align;
}

static bool has_moved(const struct moved *m)
{
	for (uint32_t i = 0; i < m->n_sections; i++)
		if (moved_has(m, i))
			return true;
	return false;
}

/* In front of all else, which reads the tables as they were. */
static bool detach_skeletons(struct debug_mover *d)
{
	bool has = false;

	for (size_t i = 0; i < d->stages.n; i++)
		if (d->stages.v[i].kind == DEBUG_KIND_ABBREV)
			has |= debug_skeletons_detach(&d->stages.v[i]);
	return has;
}

int debug_move(struct elf_object *o, struct moved *m, bool *is_split, struct err *err)
{
	struct debug_mover d = {.o = o, .code = m};
	int ret;

	if (!has_moved(m))
		return 0;
	moved_init(&d.relaid, o->sections.n);
	d.stage_of = mem_calloc(o->sections.n + 1, sizeof(*d.stage_of));
	ret = add_stages(&d, err);
	if (ret == 0 && is_split)
		*is_split = detach_skeletons(&d);
	if (ret == 0)
		ret = move_all(&d, err);
	for (size_t i = 0; i < d.stages.n; i++) {
		if (ret == 0)
			commit(&d, &d.stages.v[i], m);
		buf_release(&d.stages.v[i].out);
		free(d.stages.v[i].inflated);
	}
	vec_release(&d.stages);
	vec_release(&d.units);
	vec_release(&d.refs);
	debug_abbrevs_release(&d.abbrevs);
	moved_release(&d.relaid);
	free(d.stage_of);
	return ret;
}
