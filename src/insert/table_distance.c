/* SPDX-License-Identifier: MIT */
/*
 * Distances from a place in the code to the global offset table. Code for any size of programs adds one to the
 * address of that place:
 *
 *	1:	lea 1b(%rip),%rbx
 *		movabs $_GLOBAL_OFFSET_TABLE_ - 1b,%r11
 *		add %r11,%rbx
 *
 * A relocation counts from where it is itself, so its addend is how far that is from the place. When both move,
 * the addend is what lies between them then; and lea, which means the same place, says where it went. Nothing is
 * executed there because of it: it is no label.
 */
#include "insert/object_code.h"

static bool is_distance(uint32_t type)
{
	return type == R_X86_64_GOTPC32 || type == R_X86_64_GOTPC64 || type == R_X86_64_GOTPCREL64;
}

static bool has_distances(const struct object_section *os)
{
	for (size_t k = 0; k < os->relocs.n; k++)
		if (is_distance(os->relocs.v[k].type))
			return true;
	return false;
}

/* A displacement counts from the end of its own instruction, and moves with it. */
static bool is_displacement(const struct code_insn *insn, const struct object_reloc *r)
{
	return insn->disp_at && r->offset == insn->offset + insn->disp_at;
}

/* False when it counts from a place that is no instruction. */
static bool read_distance(struct code *c, const struct code_section *s, struct code_insn *insn,
	const struct object_reloc *r)
{
	int64_t place;
	struct code_insn *from;

	if (is_displacement(insn, r))
		return true;
	if (__builtin_sub_overflow((int64_t)r->offset, r->addend, &place) || place < 0)
		return false;
	from = code_insn_at(c, s->number, (uint64_t)place);
	if (!from || insn->to_section || insn->rel_bytes)
		return false;
	from->bits |= CODE_INSN_PLACE;
	insn->to_section = s->number;
	insn->to = (uint32_t)place;
	return true;
}

static void read_distances(struct code *c, struct code_section *s, struct code_function *f)
{
	const struct object_section *os = &c->object->sections.v[s->number];

	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];

		for (size_t k = insn->reloc; code_insn_has_reloc(insn, os, k); k++)
			if (is_distance(os->relocs.v[k].type) &&
				!read_distance(c, s, insn, &os->relocs.v[k]))
				code_section_refuse(s, INSERT_REASON_BOUND);
	}
}

void code_find_distances(struct code *c)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		const struct object_section *os = &c->object->sections.v[s->number];

		if (!has_distances(os))
			continue;
		for (size_t i = 0; i < s->functions.n; i++)
			read_distances(c, s, &s->functions.v[i]);
		for (size_t k = 0; k < os->relocs.n; k++) {
			const struct code_function *f =
				code_function_at(c, s->number, os->relocs.v[k].offset);

			if (is_distance(os->relocs.v[k].type) && (!f || !f->is_decoded))
				code_section_refuse(s, INSERT_REASON_BOUND);
		}
	}
}

bool code_move_distance(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, struct object_reloc *r)
{
	if (!insn || !is_distance(r->type))
		return false;
	if (code_section_is_inserted(s) && !is_displacement(insn, r))
		r->addend = (int64_t)insn->place + (int64_t)(r->offset - insn->offset) -
			    (int64_t)code_branch_target(c, s, insn);
	return true;
}
