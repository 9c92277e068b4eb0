/* SPDX-License-Identifier: MIT */
/*
 * Tables of a switch, found by the instruction that has the table's address:
 *
 *   lea table(%rip),%reg		entries of 4 bytes, relative to the table
 *   jmp *table(,%reg,8)		entries are addresses; scale 4 in 32-bit code
 *   mov table@GOTOFF(%reg,%reg,4),%reg	32-bit code: relative to the global offset table; also add
 *   lea table@GOTOFF(%reg),%reg	the same
 *
 * Most such operands are no tables: then the words do not lead into the function. A table ends
 * where they stop doing so, and where the next one begins.
 */

#include "record/hooks/plan_internal.h"

#define TABLE_ENTRIES_MAX 4096
#define TABLE_MISSES_MAX  8 /* entries that lead out of the function: of cases that cannot be */
#define TABLES_BYTES_MAX  ((uint64_t)256 << 20) /* read in all: real images need a few megabytes */

/* The function that has the instruction. A part that was split off may lead anywhere. */
static struct range function_around(const struct image_facts *f, uint64_t addr)
{
	size_t i = image_stretch_from(f, addr);
	const struct image_function *fn;

	if (i == f->stretches.n || addr < f->stretches.v[i].start)
		return (struct range){addr, addr};
	if (f->stretches.v[i].function_i == NO_FUNCTION)
		return (struct range){f->stretches.v[i].start, f->stretches.v[i].end};
	fn = &f->functions.v[f->stretches.v[i].function_i];
	return fn->is_fragment ? (struct range){0, UINT64_MAX} : (struct range){fn->start, fn->end};
}

static uint64_t entry_target(
	const struct image_facts *f, const struct switch_table *t, struct cursor *c)
{
	uint64_t target;

	if (!t->base)
		return elf_file_word(f->elf, c);
	target = t->base + (uint64_t)(int64_t)(int32_t)cursor_u32(c);
	return f->is_64 ? target : (uint32_t)target;
}

/* Entries up to `end`; returns the bytes read. */
static uint64_t read_table(const struct image_facts *f, const struct switch_table *t, uint64_t end,
	void (*each)(void *ctx, const struct switch_table *t, uint64_t target), void *ctx)
{
	struct range own = function_around(f, t->source);
	struct cursor c = cursor_of(elf_file_bytes_at(f->elf, (struct iaddr){t->table}));
	uint64_t step = t->base || !f->is_64 ? 4 : 8, at = 0;
	int n_misses = 0;

	for (; at / step < TABLE_ENTRIES_MAX && end - t->table >= at + step; at += step) {
		uint64_t target = entry_target(f, t, &c);

		if (c.failed || !image_region(f, target))
			break;
		if (target >= own.start && target < own.end)
			each(ctx, t, target);
		else if (++n_misses > TABLE_MISSES_MAX)
			break;
	}
	return at;
}

void image_read_tables(const struct image_facts *f, struct switch_table *tables, size_t n,
	void (*each)(void *ctx, const struct switch_table *t, uint64_t target), void *ctx)
{
	uint64_t bytes_left = TABLES_BYTES_MAX;
	size_t next = 0;

	image_sort(tables, n, sizeof(*tables));
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes;

		while (next < n && tables[next].table <= tables[i].table)
			next++;
		bytes = read_table(
			f, &tables[i], next < n ? tables[next].table : UINT64_MAX, each, ctx);
		if (bytes > bytes_left)
			return;
		bytes_left -= bytes;
	}
}

bool image_means_table(
	const struct image_facts *f, uint64_t addr, const struct x86_insn *insn, uint64_t table)
{
	struct cursor c = cursor_of(image_code(f, addr));
	uint8_t modrm;
	uint64_t disp;

	if (insn->disp_at)
		return insn->disp_target == table;
	if (!insn->modrm_at)
		return false;
	cursor_skip(&c, insn->modrm_at);
	modrm = cursor_u8(&c);
	if ((modrm & 7) == 4)
		cursor_skip(&c, 1);
	disp = (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
	if (c.failed)
		return false;
	if (!f->is_64)
		return (uint32_t)disp == table || (uint32_t)(f->got_base + disp) == table;
	return disp == table;
}
