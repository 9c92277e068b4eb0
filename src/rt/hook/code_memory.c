/* SPDX-License-Identifier: MIT */
/*
 * Memory that holds code which is patched.
 *
 * The kernel sets no breakpoints of its own (uprobes) in memory that is writable. That is what
 * keeps a second observer from putting one on a jump of ours, at which the kernel would then
 * execute the original instruction and go on in the middle of the jump. So pages become writable
 * before the first patch is written and stay so until the last one is out.
 *
 * The program may change the protection of its code itself meanwhile, for good, to write there. As
 * that cannot be seen in a page that is writable anyway, its calls of mprotect are noted.
 */
#include "hook.h"

#include <linux/membarrier.h>
#include <sys/mman.h>

#define CACHE_LINE  64u
#define N_STRETCHES 65536
#define GAP_BYTES   0x10000u /* less than this between two stretches is opened, too */

/* Pages that we need writable, and what they are without us. Stretches do not overlap. */
struct stretch {
	uintptr_t low, high;
	int prot;
};
static struct stretch stretches[N_STRETCHES]; /* by whoever patches or unpatches: one at a time */
static uint32_t n_stretches;

static const struct stretch *stretch_at(uintptr_t address)
{
	for (uint32_t i = n_stretches; i--;)
		if (address - stretches[i].low < stretches[i].high - stretches[i].low)
			return &stretches[i];
	return NULL;
}

/* Where the next stretch begins, or `high`. */
static uintptr_t next_stretch(uintptr_t address, uintptr_t high)
{
	for (uint32_t i = 0; i < n_stretches; i++)
		if (stretches[i].low > address && stretches[i].low < high)
			high = stretches[i].low;
	return high;
}

/* Every change of protection cuts a mapping in pieces, of which a process may not have too many:
 * small gaps are closed. */
static uintptr_t without_gap(uintptr_t low, const struct maps_line *m)
{
	for (uint32_t i = 0; i < n_stretches; i++)
		if (stretches[i].high > m->start && stretches[i].high <= low &&
			low - stretches[i].high < GAP_BYTES)
			return stretches[i].high;
	return low;
}

/* What lies in one mapping. Shared mappings are the file itself. One that the program has made
 * writable is a stretch, too: it may become something else meanwhile. */
static enum hook_refusal open_piece(uintptr_t low, uintptr_t high, const struct maps_line *m)
{
	const int all = PROT_READ | PROT_WRITE | PROT_EXEC;

	if (m->is_shared || !(m->prot & PROT_EXEC))
		return HOOK_REFUSAL_PROTECTED;
	if (n_stretches == N_STRETCHES)
		return HOOK_REFUSAL_NO_ROOM;
	if (m->prot != all && raw_call(SYS_mprotect, low, high - low, all) < 0)
		return HOOK_REFUSAL_PROTECTED;
	stretches[n_stretches++] = (struct stretch){low, high, m->prot};
	return HOOK_REFUSAL_NONE;
}

/* As it was before any of it was made writable. */
static struct maps_line mapping;

void code_look_again(void)
{
	mapping = (struct maps_line){0};
}

enum hook_refusal code_open(uintptr_t low, uintptr_t high)
{
	enum hook_refusal refusal = HOOK_REFUSAL_NONE;

	while (low < high && !refusal) {
		const struct stretch *s = stretch_at(low);
		uintptr_t end;

		if (s) {
			low = s->high;
			continue;
		}
		if (low - mapping.start >= mapping.end - mapping.start &&
			!maps_find(low, &mapping)) {
			code_look_again();
			return HOOK_REFUSAL_PROTECTED;
		}
		end = next_stretch(low, mapping.end < high ? mapping.end : high);
		refusal = open_piece(without_gap(low, &mapping), end, &mapping);
		low = end;
	}
	return refusal;
}

bool code_reopen(uintptr_t low, uintptr_t high)
{
	return raw_call(SYS_mprotect, low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) >= 0;
}

void code_give_back(bool (*is_in_use)(uintptr_t low, uintptr_t high))
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_stretches; i++) {
		const struct stretch *s = &stretches[i];

		if (is_in_use(s->low, s->high))
			stretches[n++] = *s;
		else
			raw_call(SYS_mprotect, s->low, s->high - s->low, s->prot);
	}
	n_stretches = n;
	code_look_again();
}

void code_forget(uintptr_t start, uintptr_t end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_stretches; i++)
		if (stretches[i].low >= end || stretches[i].high <= start)
			stretches[n++] = stretches[i];
	n_stretches = n;
}

bool code_is_open(uintptr_t low, uintptr_t high)
{
	/* A stretch that is just being added or removed is seen or not: so it is with the call. */
	for (uint32_t i = 0; i < n_stretches; i++)
		if (stretches[i].low < high && stretches[i].high > low)
			return true;
	return false;
}

/* Where only a part of a stretch is meant, the rest becomes a stretch of its own. */
static void cut_stretch(struct stretch *s, uintptr_t at)
{
	if (at <= s->low || at >= s->high || n_stretches == N_STRETCHES)
		return;
	stretches[n_stretches++] = (struct stretch){at, s->high, s->prot};
	s->high = at;
}

void code_note_protection(uintptr_t low, uintptr_t high, int prot)
{
	low = PAGE_DOWN(low);
	high = PAGE_UP(high);
	/* What is cut off comes at the end of the array, and has its turn. */
	for (uint32_t i = 0; i < n_stretches; i++) {
		struct stretch *s = &stretches[i];

		cut_stretch(s, high);
		cut_stretch(s, low);
		if (s->low >= low && s->high <= high)
			s->prot = prot;
	}
}

/* --- writing ------------------------------------------------------------------------------ */

void code_serialise(void)
{
	raw_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

void code_write(uintptr_t at, const uint8_t *bytes, unsigned n)
{
	uintptr_t line = at & ~(uintptr_t)(CACHE_LINE - 1);
	uintptr_t start = at + 8 > line + CACHE_LINE ? line + CACHE_LINE - 8 : at;
	uint64_t *word = (uint64_t *)start;
	uint64_t old = *(volatile uint64_t *)word, wanted;

	do {
		wanted = old;
		bytes_copy((uint8_t *)&wanted + (at - start), bytes, n);
	} while (!exchange_word(word, &old, wanted));
}

bool code_crosses_line(uintptr_t at, unsigned n)
{
	return at / CACHE_LINE != (at + n - 1) / CACHE_LINE;
}
