/* SPDX-License-Identifier: MIT */
/*
 * Writes a frame section anew: the size of each range, each advance that has changed, the padding
 * behind a program that has changed its length, entry lengths, and the distances to CIEs; and rules
 * for the registers whose slots a call in front of a return overwrites (frame_state.c), and for the CFA
 * where inserted code keeps what it is counted from elsewhere (frame_elsewhere.c).
 *
 * Linkers take the alignment of entries as it comes, but zeros between the .eh_frame of two files
 * would end the table: the section keeps ending where alignment adds none.
 */
#include <stdlib.h>

#include "insert/eh_frame.h"
#include "insert/eh_pointer.h"

#define FRAME_ALIGN_MAX 8

struct frame_move {
	const struct frame_section *f;
	const struct moved *m;
	struct section_rewrite *w;
	struct span old;
	uint64_t align;	    /* of the size of entries; the last one may end at FRAME_ALIGN_MAX */
	size_t last;	    /* the last entry that is no terminator; entries.n = none */
	uint64_t *new_cies; /* new offsets of CIEs */
	VEC(struct frame_fixup {
		uint64_t at; /* new offset of an FDE's id */
		uint64_t entry;
	})
	fixups;
	struct err *err;
};

static int refuse(const struct frame_move *x, int code, uint64_t offset, const char *what)
{
	return err_set(x->err, code, "%s+0x%llx: %s", x->w->object->sections.v[x->f->section].name,
		(unsigned long long)offset, what);
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

static void alignment_find(struct frame_move *x)
{
	/* Assemblers align the entries of .eh_frame to 4 bytes and its end to 8. */
	uint64_t sizes = x->f->is_eh ? 4 : FRAME_ALIGN_MAX;

	x->last = x->f->entries.n;
	for (size_t i = 0; i < x->f->entries.n; i++)
		if (x->f->entries.v[i].kind != FRAME_KIND_END)
			x->last = i;
	for (size_t i = 0; i < x->f->entries.n; i++)
		if (i != x->last || x->f->entries.v[i].end % FRAME_ALIGN_MAX)
			sizes |= x->f->entries.v[i].end - x->f->entries.v[i].offset;
	x->align = sizes & -sizes; /* the lowest bit set in any */
}

/* How long an entry has to be that has `n` bytes up to its padding and begins at `start`. */
static uint64_t padded_size(const struct frame_move *x, size_t entry_i, uint64_t start, uint64_t n)
{
	const struct frame_entry *e = &x->f->entries.v[entry_i];

	if (entry_i == x->last && e->end % FRAME_ALIGN_MAX == 0)
		return align_up(start + n, FRAME_ALIGN_MAX) - start;
	return align_up(n, x->align);
}

/* A relocated DW_CFA_set_loc has been looked at when the section was read. */
static uint64_t set_loc_target(const struct frame_move *x, const struct frame_fde *fde, uint64_t at)
{
	struct code_place place = {0};

	eh_field_target(x->w->object, x->f->section, at + 1,
		x->f->cies.v[fde->cie].pointer_encoding, &place);
	return place.offset;
}

/* A frame program on its way. */
struct program_walk {
	const struct frame_fde *fde;
	const struct frame_cie *cie;
	struct frame_state state;
	uint64_t location; /* old */
	uint64_t reached;  /* new: as far as what was written has advanced */
};

static int advance_add(
	struct frame_move *x, struct program_walk *p, uint64_t at, uint64_t to, struct buf *bytes)
{
	uint64_t units = (to - p->reached) / p->cie->code_align;
	uint32_t number = (uint32_t)units;

	if ((to - p->reached) % p->cie->code_align)
		return refuse(x, ERR_UNSUPPORTED, at,
			"a frame rule begins at a place that its alignment cannot say");
	if (units > UINT32_MAX)
		return refuse(
			x, ERR_LIMIT, at, "a frame rule begins more than 4 GiB behind another");
	p->reached = to;
	if (units < 0x40) {
		if (units)
			buf_put_u8(bytes, (uint8_t)(FRAME_CFA_ADVANCE_LOC | units));
		return 0;
	}
	buf_put_u8(bytes, units <= UINT8_MAX	? FRAME_CFA_ADVANCE1
			  : units <= UINT16_MAX ? FRAME_CFA_ADVANCE2
						: FRAME_CFA_ADVANCE4);
	buf_put(bytes, &number, units <= UINT8_MAX ? 1 : units <= UINT16_MAX ? 2 : 4);
	return 0;
}

/* Where values are elsewhere in what is inserted in front of the instructions of [from, until). */
static int values_add(struct frame_move *x, struct program_walk *p, uint64_t at, uint64_t from,
	uint64_t until, struct buf *bytes)
{
	size_t n = 0;
	const struct moved_value *v = moved_values(x->m, p->fde->range.section, from, until, &n);
	struct frame_elsewhere f = {0};
	int rc = 0;

	for (; n && p->state.is_known && !rc; n--, v++) {
		if (!frame_elsewhere_find(&f, &p->state.now, v))
			rc = refuse(x, ERR_UNSUPPORTED, at,
				"how the frame is found there is not understood");
		if (rc || !f.away.n)
			continue;
		rc = advance_add(x, p, at, v->start, bytes);
		buf_put(bytes, f.away.p, f.away.n);
		if (!rc)
			rc = advance_add(x, p, at, v->end, bytes);
		buf_put(bytes, f.back.p, f.back.n);
	}
	frame_elsewhere_release(&f);
	return rc;
}

/* From the call in front of a return up to behind it, the registers are where they belong. */
static int leave_add(struct frame_move *x, struct program_walk *p, uint64_t at,
	const struct moved_leave *leave, uint64_t end, bool is_replaced, struct buf *bytes)
{
	uint32_t lost = frame_state_lost(&p->state), section = p->fde->range.section;
	int rc = advance_add(x, p, at, moved_label(x->m, section, leave->start), bytes);

	if (rc)
		return rc;
	if (!is_replaced)
		buf_put_u8(bytes, FRAME_CFA_REMEMBER_STATE);
	for (int i = 0; i < FRAME_KEPT_REGS; i++)
		if (lost >> i & 1) {
			buf_put_u8(bytes, FRAME_CFA_SAME_VALUE);
			buf_put_u8(bytes, frame_kept_registers[i]);
		}
	rc = values_add(x, p, at, leave->start, end, bytes);
	if (is_replaced || rc)
		return rc;
	rc = advance_add(x, p, at, moved_label(x->m, section, end), bytes);
	buf_put_u8(bytes, FRAME_CFA_RESTORE_STATE);
	return rc;
}

/* What is inserted between the place that the program is at and `until`: where functions are left, and where
 * values are elsewhere. What is added goes in front of `at`. is_replaced: at `until` all rules become others. */
static int inserted_put(
	struct frame_move *x, struct program_walk *p, uint64_t at, uint64_t until, bool is_replaced)
{
	const struct moved_leave *leave = NULL;
	uint32_t section = p->fde->range.section;
	uint64_t from = p->location;
	struct buf bytes = {0};
	int rc = 0;

	if (frame_state_lost(&p->state))
		leave = moved_leave_from(x->m, section, from);
	while (leave && leave->start < until && !rc) {
		uint64_t end = leave->end < until ? leave->end : until;

		rc = values_add(x, p, at, from, leave->start, &bytes);
		if (!rc)
			rc = leave_add(x, p, at, leave, end, end == until && is_replaced, &bytes);
		from = end;
		leave = moved_leave_from(x->m, section, end);
	}
	if (!rc)
		rc = values_add(x, p, at, from, until, &bytes);
	if (!rc && bytes.n) {
		section_rewrite_keep(x->w, at);
		rc = section_rewrite_replace(x->w, at, buf_span(&bytes), x->err);
	}
	buf_release(&bytes);
	return rc;
}

static bool is_restore_state(const struct frame_move *x, const struct frame_entry *e,
	const struct frame_cie *cie, uint64_t at)
{
	struct frame_step step;

	return at < e->end && frame_step_read(&step, x->old, cie, at, e->end) &&
	       step.opcode == FRAME_CFA_RESTORE_STATE;
}

static int advance_move(struct frame_move *x, struct program_walk *p, const struct frame_entry *e,
	const struct frame_step *step)
{
	uint32_t section = p->fde->range.section;
	uint64_t next = p->location + step->advance * p->cie->code_align;
	uint64_t to = moved_label(x->m, section, next), before = p->reached;
	struct buf bytes = {0};
	int rc = inserted_put(x, p, step->at, next, is_restore_state(x, e, p->cie, step->end));

	p->location = next;
	if (!rc && p->reached == before && to - before == step->advance * p->cie->code_align) {
		p->reached = to;
		return 0;
	}
	if (!rc)
		rc = advance_add(x, p, step->at, to, &bytes);
	if (!rc) {
		section_rewrite_keep(x->w, step->at);
		rc = section_rewrite_replace(x->w, step->end, buf_span(&bytes), x->err);
	}
	buf_release(&bytes);
	return rc;
}

static int program_walk(struct frame_move *x, struct program_walk *p, const struct frame_entry *e,
	uint64_t *padding_at)
{
	struct frame_step step;
	uint64_t target;
	int rc = 0;

	for (uint64_t at = p->fde->program_at; at < e->end && !rc; at = step.end) {
		frame_step_read(&step, x->old, p->cie, at, e->end);
		if (step.opcode != FRAME_CFA_NOP)
			*padding_at = step.end;
		if (step.opcode == FRAME_CFA_SET_LOC) {
			target = set_loc_target(x, p->fde, at);
			rc = inserted_put(x, p, at, target, false);
			p->location = target;
			p->reached = moved_label(x->m, p->fde->range.section, target);
		} else if (frame_step_is_advance(&step)) {
			rc = advance_move(x, p, e, &step);
		} else {
			frame_state_apply(&p->state, x->old, p->cie, &step);
		}
	}
	return rc;
}

/* Writes the program up to its padding; *padding_at is where that was. */
static int program_move(struct frame_move *x, const struct frame_entry *e,
	const struct frame_fde *fde, uint64_t *padding_at)
{
	const struct code_range *r = &fde->range;
	struct program_walk p = {.fde = fde,
		.cie = &x->f->cies.v[fde->cie],
		.location = r->start,
		.reached = moved_label(x->m, r->section, r->start)};
	int rc;

	*padding_at = fde->program_at;
	frame_state_init(&p.state, x->old, p.cie);
	rc = program_walk(x, &p, e, padding_at);
	if (!rc)
		rc = inserted_put(x, &p, *padding_at, r->start + r->size, true);
	if (!rc)
		section_rewrite_keep(x->w, *padding_at);
	frame_state_release(&p.state);
	return rc;
}

static int range_move(struct frame_move *x, const struct frame_fde *fde)
{
	const struct code_range *r = &fde->range;
	uint8_t encoding = x->f->cies.v[fde->cie].pointer_encoding;
	uint64_t size = moved_label(x->m, r->section, r->start + r->size) -
			moved_label(x->m, r->section, r->start);
	struct buf number = {0};
	int rc;

	if (size == r->size)
		return 0;
	section_rewrite_keep(x->w, fde->range_at);
	if (!eh_number_put(&number, encoding, size))
		rc = refuse(x, ERR_LIMIT, fde->range_at,
			"a function has become too long for its frame information");
	else
		rc = section_rewrite_replace(
			x->w, fde->range_at + number.n, buf_span(&number), x->err);
	buf_release(&number);
	return rc;
}

static int entry_pad(struct frame_move *x, size_t entry_i, uint64_t start, uint64_t padding_at)
{
	const struct frame_entry *e = &x->f->entries.v[entry_i];
	uint64_t so_far = x->w->bytes.n - start, size = e->end - e->offset;
	static const uint8_t nops[FRAME_ALIGN_MAX];

	if (so_far == padding_at - e->offset && padded_size(x, entry_i, start, size) == size) {
		section_rewrite_keep(x->w, e->end);
		return 0;
	}
	return section_rewrite_replace(x->w, e->end,
		(struct span){nops, padded_size(x, entry_i, start, so_far) - so_far}, x->err);
}

static int length_put(struct frame_move *x, const struct frame_entry *e, uint64_t start)
{
	uint64_t length = x->w->bytes.n - start - (e->id_at - e->offset);

	if (length == e->end - e->id_at)
		return 0;
	if (e->is_wide) {
		memcpy(x->w->bytes.p + start + 4, &length, 8);
		return 0;
	}
	if (length >= 0xfffffff0u)
		return refuse(x, ERR_LIMIT, e->offset, "frame information of more than 4 GiB");
	memcpy(x->w->bytes.p + start, &(uint32_t){(uint32_t)length}, 4);
	return 0;
}

static int entry_move(struct frame_move *x, size_t entry_i)
{
	const struct frame_entry *e = &x->f->entries.v[entry_i];
	uint64_t start = x->w->bytes.n, padding_at = e->end;
	const struct frame_fde *fde;
	int rc = 0;

	if (e->kind == FRAME_KIND_CIE)
		x->new_cies[e->index] = start;
	if (e->kind == FRAME_KIND_FDE) {
		fde = &x->f->fdes.v[e->index];
		vec_push(&x->fixups,
			((struct frame_fixup){start + (e->id_at - e->offset), entry_i}));
		if (fde->is_here) {
			rc = range_move(x, fde);
			if (!rc)
				rc = program_move(x, e, fde, &padding_at);
		}
	}
	if (rc || e->kind == FRAME_KIND_END) {
		section_rewrite_keep(x->w, e->end);
		return rc;
	}
	section_rewrite_keep(x->w, padding_at);
	rc = entry_pad(x, entry_i, start, padding_at);
	return rc ? rc : length_put(x, e, start);
}

/* CIEs may lie behind the FDEs that name them, so the distances come last. */
static int fixups_apply(struct frame_move *x)
{
	for (size_t i = 0; i < x->fixups.n; i++) {
		const struct frame_fixup *fixup = &x->fixups.v[i];
		const struct frame_entry *e = &x->f->entries.v[fixup->entry];
		uint64_t cie = x->new_cies[x->f->fdes.v[e->index].cie];
		uint64_t id = x->f->is_eh ? fixup->at - cie : cie;
		struct code_place place;

		if (!x->f->is_eh &&
			eh_field_target(x->w->object, x->f->section, e->id_at,
				e->is_wide ? EH_UDATA8 : EH_UDATA4, &place) == EH_TARGET_SECTION)
			continue; /* its relocation follows the map */
		if (e->is_wide && !x->f->is_eh)
			memcpy(x->w->bytes.p + fixup->at, &id, 8);
		else
			memcpy(x->w->bytes.p + fixup->at, &(uint32_t){(uint32_t)id}, 4);
	}
	return x->w->bytes.n > INT32_MAX
		       ? refuse(x, ERR_LIMIT, 0, "frame information of more than 2 GiB")
		       : 0;
}

int frame_section_move(const struct frame_section *f, const struct moved *m,
	struct section_rewrite *w, struct err *err)
{
	struct frame_move x = {.f = f, .m = m, .w = w, .err = err};
	int rc = 0;

	x.old = w->object->sections.v[f->section].data;
	x.new_cies = mem_calloc(f->cies.n + 1, sizeof(*x.new_cies));
	alignment_find(&x);
	for (size_t i = 0; i < f->entries.n && !rc; i++)
		rc = entry_move(&x, i);
	if (!rc)
		rc = fixups_apply(&x);
	free(x.new_cies);
	vec_release(&x.fixups);
	return rc;
}
