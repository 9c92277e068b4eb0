/* SPDX-License-Identifier: MIT */
/*
 * How one function is patched. From the best to the last way:
 *
 *   nops at the entry	jmp trampoline			nothing is moved
 *   a call of mcount	jmp trampoline			the instructions before it are moved
 *   else		jmp trampoline			the first instructions are moved
 *   too short for that	jmp pad ... pad: jmp trampoline	the first instruction is moved
 *   no padding		int3				the first instruction is moved
 *
 * The site is behind an endbr, so that indirect calls still find it, or at it when only that works.
 */
#include <string.h>

#include "record/hooks/plan_internal.h"

#define PADDING_BYTES_MAX 4096 /* looked at behind one function */
#define PADS_TRIED_MAX	  32   /* on each side of a function */
#define TRAP_BYTES	  1    /* int3 */
#define REACH_DOWN	  128  /* of a short jump, from its end */
#define REACH_UP	  127

static const char reason_loop[] = "a loop leads back to its first instruction";
static const char reason_branch[] = "a branch leads into its first instructions";
static const char reason_short[] = "it is too short for a jump";
static const char reason_neighbour[] = "another function begins in its first instructions";
static const char reason_unknown[] = "its code is not understood";

/* --- padding ----------------------------------------------------------------------------- */

/* The end of the bytes behind `start` that are only there to align what follows. When something
 * else comes before the next function that is known, it may be one that begins with nops: only up
 * to the next multiple of 16, where it would begin. */
static uint64_t padding_end(const struct image_facts *f, uint64_t start)
{
	const struct code_region *r = image_region(f, start);
	size_t i = image_stretch_from(f, start);
	uint64_t end, at = start, aligned = (start + 15) & ~15ull;
	struct x86_insn insn;

	if (!r)
		return start;
	end = i < f->stretches.n && f->stretches.v[i].start < r->end ? f->stretches.v[i].start
								     : r->end;
	if (end <= start)
		return start;
	while (at < end && at - start < PADDING_BYTES_MAX && image_decode(f, at, &insn) &&
		insn.is_padding && insn.length <= end - at)
		at += insn.length;
	if (at == end)
		return end;
	return at < aligned ? at : aligned;
}

static uint64_t padding_used(const struct image_facts *f, uint64_t start)
{
	const uint64_t *used = map_find(&f->pads_used, start);

	return used ? *used : 0;
}

/* Whether control cannot run on behind the stretch. */
static bool stretch_is_closed(const struct image_facts *f, const struct code_stretch *stretch)
{
	struct span code = image_code(f, stretch->start);
	size_t at = 0, n = (size_t)(stretch->end - stretch->start);
	struct x86_insn insn = {.flow = X86_FLOW_NEXT};

	while (at < n) {
		if (!x86_decode(
			    &insn, span_sub(code, at, code.n - at), stretch->start + at, f->is_64))
			return false;
		at += insn.length;
	}
	/* A call at the end is of a function that does not return. */
	return at == n && insn.flow != X86_FLOW_NEXT && insn.flow != X86_FLOW_BRANCH &&
	       insn.flow != X86_FLOW_SYSCALL;
}

static bool is_in_reach(uint64_t site, uint64_t pad)
{
	int64_t distance = (int64_t)(pad - (site + SHORT_JUMP_BYTES));

	return distance >= -REACH_DOWN && distance <= REACH_UP;
}

/* A place for a jump in the padding [start, end); 0 when there is none. */
static uint64_t place_in_padding(
	const struct image_facts *f, uint64_t site, uint64_t start, uint64_t end)
{
	uint64_t low = site + SHORT_JUMP_BYTES - REACH_DOWN, target;
	uint64_t pad = start + padding_used(f, start);

	if (site + SHORT_JUMP_BYTES > REACH_DOWN && pad < low)
		pad = low;
	while (pad + JUMP_BYTES <= end && is_in_reach(site, pad)) {
		if (!image_has_target(f, pad, pad + JUMP_BYTES, &target))
			return pad;
		pad = target + 1;
	}
	return 0;
}

/* The gap behind stretch `i`, when a jump at `site` could go there. */
static bool gap_behind(const struct image_facts *f, size_t i, uint64_t site, struct range *gap)
{
	gap->start = f->stretches.v[i].end;
	gap->end = padding_end(f, gap->start);
	return gap->end - gap->start >= JUMP_BYTES &&
	       place_in_padding(f, site, gap->start, gap->end);
}

/* Stretches whose gaps may be in reach: indexes [*low, *high). */
static void gaps_near(const struct image_facts *f, uint64_t site, size_t *low, size_t *high)
{
	size_t at = image_stretch_from(f, site);

	*low = at;
	*high = at;
	while (*low && at - *low < PADS_TRIED_MAX &&
		f->stretches.v[*low - 1].end + 2 * REACH_DOWN > site)
		--*low;
	while (*high < f->stretches.n && *high - at < PADS_TRIED_MAX &&
		f->stretches.v[*high].end < site + 2 * REACH_UP)
		++*high;
}

void function_pads(struct image_facts *f, const struct image_function *fn,
	void (*each)(void *ctx, struct range pad), void *ctx)
{
	size_t low, high;
	struct range gap;

	gaps_near(f, fn->start, &low, &high);
	for (size_t i = low; i < high; i++)
		if (gap_behind(f, i, fn->start, &gap))
			each(ctx, gap);
}

static uint64_t take_pad(struct image_facts *f, uint64_t site)
{
	size_t low, high;
	struct range gap;

	gaps_near(f, site, &low, &high);
	for (size_t i = low; i < high; i++) {
		uint64_t pad;

		if (!gap_behind(f, i, site, &gap) || !stretch_is_closed(f, &f->stretches.v[i]))
			continue;
		pad = place_in_padding(f, site, gap.start, gap.end);
		*map_ensure(&f->pads_used, gap.start, NULL) = pad + JUMP_BYTES - gap.start;
		return pad;
	}
	return 0;
}

/* --- the entry --------------------------------------------------------------------------- */

/* Where the function after `fn` begins, or its section ends. */
static uint64_t room_end(const struct image_facts *f, const struct image_function *fn)
{
	const struct code_region *r = image_region(f, fn->start);
	const struct image_function *next = fn + 1;

	if (next < f->functions.v + f->functions.n && next->start < r->end)
		return next->start;
	return r->end;
}

static uint64_t behind_endbr(const struct image_facts *f, const struct image_function *fn)
{
	struct x86_insn insn;

	if (image_decode(f, fn->start, &insn) && insn.is_endbr &&
		insn.length < fn->end - fn->start && insn.length < room_end(f, fn) - fn->start)
		return fn->start + insn.length;
	return fn->start;
}

struct range function_wanted(const struct image_facts *f, const struct image_function *fn)
{
	uint64_t site = behind_endbr(f, fn);
	uint64_t end = site;
	struct x86_insn insn;

	while (end - site < JUMP_BYTES)
		end += image_decode(f, end, &insn) ? insn.length : JUMP_BYTES;
	return (struct range){fn->start, end};
}

/* Whether the n bytes at `site` are the function's alone, and entered only at the first. */
static bool is_free(const struct image_facts *f, const struct image_function *fn, uint64_t site,
	uint64_t n, const char **reason)
{
	uint64_t target;

	if (n > room_end(f, fn) - site) {
		*reason = reason_neighbour;
		return false;
	}
	if (image_has_target(f, site, site + n, &target)) {
		*reason = target == site ? reason_loop : reason_branch;
		return false;
	}
	return true;
}

/* Nops up to `end` that have `need` bytes at least, together with what is covered already. */
static bool cover_nops(
	struct site_plan *p, const struct image_facts *f, uint64_t end, unsigned need)
{
	while (p->n_original < need) {
		uint64_t addr = p->site + p->n_original;
		struct x86_insn insn;

		if (!image_decode(f, addr, &insn) || !insn.is_nop || insn.length > end - addr)
			return false;
		moved_code_note(&p->code, p->n_original);
		p->n_original = (uint8_t)(p->n_original + insn.length);
	}
	return true;
}

/* Covers the rest with the padding behind the function. */
static bool cover_padding(struct site_plan *p, const struct image_facts *f,
	const struct image_function *fn, unsigned need)
{
	uint64_t end = padding_end(f, fn->end);

	p->reason = reason_short;
	if (padding_used(f, fn->end) || end - p->site < need)
		return false;
	if (p->code.is_ended) {
		p->n_original = (uint8_t)need;
		return true;
	}
	return cover_nops(p, f, end, need);
}

/* Moves whole instructions at `site` that have `need` bytes at least. */
static bool cover(struct site_plan *p, const struct image_facts *f, const struct image_function *fn,
	uint64_t site, unsigned need)
{
	*p = (struct site_plan){.site = site};
	while (p->n_original < need) {
		uint64_t addr = site + p->n_original;
		struct x86_insn insn;

		if (addr >= fn->end) {
			if (!cover_padding(p, f, fn, need))
				return false;
			break;
		}
		p->reason = reason_unknown;
		if (!image_decode(f, addr, &insn) || insn.length > fn->end - addr)
			return false;
		moved_code_note(&p->code, p->n_original);
		if (!moved_code_add(&p->code, f, addr, &insn, p->n_original + insn.length >= need,
			    &p->reason))
			return false;
		p->n_original = (uint8_t)(p->n_original + insn.length);
	}
	moved_code_end(&p->code, site + p->n_original);
	return true;
}

/* Threads that stand where nothing changes need not be moved. */
static void finish(struct site_plan *p, struct image_facts *f, const struct image_function *fn,
	enum hook_method method, unsigned n_patched)
{
	uint64_t end = p->site + n_patched;

	p->method = (uint8_t)method;
	p->n_patched = (uint8_t)n_patched;
	p->reason = NULL;
	while (p->code.n_moves && p->code.moves[p->code.n_moves - 1].from >= n_patched)
		p->code.n_moves--;
	if (end > fn->end)
		*map_ensure(&f->pads_used, fn->end, NULL) = end - fn->end;
}

static bool try_nops(
	struct site_plan *p, struct image_facts *f, const struct image_function *fn, uint64_t site)
{
	*p = (struct site_plan){.site = site};
	if (!cover_nops(p, f, fn->end, JUMP_BYTES) ||
		!is_free(f, fn, site, p->n_original, &p->reason))
		return false;
	moved_code_end(&p->code, site + p->n_original);
	finish(p, f, fn, HOOK_METHOD_NOP, p->n_original);
	return true;
}

/* Instructions that run straight on to a call of mcount, which is left out. */
static bool try_mcount(
	struct site_plan *p, struct image_facts *f, const struct image_function *fn, uint64_t site)
{
	unsigned n_patched = 0;
	struct x86_insn insn;
	bool is_call = false;

	*p = (struct site_plan){.site = site};
	while (!is_call) {
		uint64_t addr = site + p->n_original;

		if (addr >= fn->end || !image_decode(f, addr, &insn) ||
			p->n_original + insn.length > HOOK_ORIGINAL_MAX)
			return false;
		moved_code_note(&p->code, p->n_original);
		is_call = image_callee(f, addr, &insn) == CALLEE_MCOUNT;
		if (!is_call && insn.flow != X86_FLOW_NEXT && insn.flow != X86_FLOW_CALL)
			return false;
		if (!is_call && !moved_code_add(&p->code, f, addr, &insn, false, &p->reason))
			return false;
		p->n_original = (uint8_t)(p->n_original + insn.length);
		if (!n_patched && p->n_original >= JUMP_BYTES)
			n_patched = p->n_original;
	}
	if (!is_free(f, fn, site, n_patched, &p->reason))
		return false;
	moved_code_end(&p->code, site + p->n_original);
	finish(p, f, fn, HOOK_METHOD_MCOUNT, n_patched);
	return true;
}

/* A patch of `need` bytes, in place of instructions that are moved. A short jump leads to padding. */
static bool try_at(struct site_plan *p, struct image_facts *f, const struct image_function *fn,
	uint64_t site, unsigned need)
{
	unsigned n_patched;

	if (!cover(p, f, fn, site, need))
		return false;
	n_patched = need == JUMP_BYTES ? p->n_original : need;
	if (!is_free(f, fn, site, n_patched, &p->reason))
		return false;
	if (need == SHORT_JUMP_BYTES) {
		p->pad_site = take_pad(f, site);
		if (!p->pad_site)
			return false;
	}
	finish(p, f, fn, need == TRAP_BYTES ? HOOK_METHOD_INT3 : HOOK_METHOD_JUMP, n_patched);
	return true;
}

bool site_plan_jump(struct site_plan *p, struct image_facts *f, const struct image_function *fn)
{
	uint64_t site = behind_endbr(f, fn);
	const char *reason;

	if (try_nops(p, f, fn, site))
		return true;
	if ((f->callee_of.n || f->callee_slot.n) && try_mcount(p, f, fn, site))
		return true;
	if (try_at(p, f, fn, site, JUMP_BYTES))
		return true;
	reason = p->reason;
	if (site != fn->start && try_at(p, f, fn, fn->start, JUMP_BYTES))
		return true;
	p->reason = reason;
	p->method = 0;
	return false;
}

bool site_plan_replace(struct site_plan *p, struct image_facts *f, const struct image_function *fn)
{
	uint64_t end = fn->end;

	*p = (struct site_plan){.site = fn->start, .reason = reason_short};
	if (end - fn->start < JUMP_BYTES && !padding_used(f, end))
		end = padding_end(f, end);
	if (end - fn->start < JUMP_BYTES || room_end(f, fn) - fn->start < JUMP_BYTES)
		return false;
	p->n_original = JUMP_BYTES;
	finish(p, f, fn, HOOK_METHOD_JUMP, JUMP_BYTES);
	return true;
}

void site_plan_last(struct site_plan *p, struct image_facts *f, const struct image_function *fn)
{
	uint64_t site = behind_endbr(f, fn);
	const char *reason = p->reason, *refusal;
	bool is_trap;

	if (try_at(p, f, fn, site, SHORT_JUMP_BYTES) ||
		(site != fn->start && try_at(p, f, fn, fn->start, SHORT_JUMP_BYTES)))
		return;
	is_trap = try_at(p, f, fn, site, TRAP_BYTES);
	refusal = p->reason;
	if (!is_trap && site != fn->start)
		is_trap = try_at(p, f, fn, fn->start, TRAP_BYTES);
	if (is_trap)
		p->reason = reason;
	else
		*p = (struct site_plan){.site = fn->start, .reason = refusal};
}

/* --- wire form --------------------------------------------------------------------------- */

void site_plan_put(const struct site_plan *p, const struct image_facts *f,
	const struct plan_header *header, struct buf *to)
{
	static const uint8_t zeros[8];
	struct hook_plan plan = {
		.id = header->id,
		.method = p->method,
		.action = header->action,
		.detail = header->detail,
		.n_patched = p->n_patched,
		.n_original = p->n_original,
		.n_code = p->code.n,
		.n_fixups = p->code.n_fixups,
		.site = p->site,
		.function = header->function,
		.pad_site = p->pad_site,
	};
	size_t n_padding = (8 - p->code.n % 8) % 8;

	plan.bytes = (uint32_t)(sizeof(plan) + p->code.n + n_padding +
				p->code.n_fixups * sizeof(p->code.fixups[0]));
	memcpy(plan.original, image_code(f, p->site).p, p->n_original);
	if (p->pad_site)
		memcpy(plan.pad_original, image_code(f, p->pad_site).p, JUMP_BYTES);
	buf_put(to, &plan, sizeof(plan));
	buf_put(to, p->code.bytes, p->code.n);
	buf_put(to, zeros, n_padding);
	buf_put(to, p->code.fixups, p->code.n_fixups * sizeof(p->code.fixups[0]));
}
