/* SPDX-License-Identifier: MIT */
/*
 * Instructions are copied as they are, but for distances relative to rip. What is put between them keeps all
 * flags and registers: counters are added to where the flags are dead (flags.c), else by lea; whatever register is
 * needed lies in a slot of the thread's page meanwhile. Nothing is written below the program's stack pointer but
 * what its own calls push.
 *
 *	block:	[event]  [inc counter, add cost]  instructions  [event]  way out
 *	implied	the block in front jumps over its event, which is a word; it is behind a conditional jump that is
 *		turned round: jncc body; jmp link; event; body
 *
 *	way out	direct		jmp link                 (or the next block of the group follows)
 *		conditional	jcc link; as above
 *		call		mov return address, -8(%rsp); lea -8(%rsp), %rsp; jmp link
 *		ret, jmp *	target in rcx, looked up in the thread's table by its low 16 bits: two
 *				loads, lea and jrcxz, which leave the flags alone
 *	stubs	mov number, exit; jmp translator: what links lead to before they are made
 */
#include "block_emit.h"

#define LINE 64u

struct out {
	struct emission *e;
	uint8_t *p, *end;
	const struct planned *b;
	uint32_t block; /* number in the plan */
	struct fixup {
		uint32_t at;	/* offset of the distance */
		uint32_t number; /* of the exit, in the group */
		bool is_far;
	} fixups[GROUP_BLOCKS * 3];
	uint32_t n_fixups;
	uint8_t *skips_head; /* the distance of the short jump to the next block's body; NULL: it has none */
};

static void put(struct out *o, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	if ((size_t)(o->end - o->p) < n) {
		o->e->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		*o->p++ = from[i];
}

#define PUT(o, ...)                                                                                \
	do {                                                                                       \
		const uint8_t bytes_[] = {__VA_ARGS__};                                            \
		put(o, bytes_, sizeof(bytes_));                                                    \
	} while (0)

static void put32(struct out *o, uint64_t v)
{
	uint32_t low = (uint32_t)v;

	put(o, &low, sizeof(low));
}

static uint32_t offset(const struct out *o)
{
	return (uint32_t)(o->p - o->e->to);
}

static uint64_t here(const struct out *o)
{
	return o->e->address + offset(o);
}

static void gs_load(struct out *o, unsigned reg, uint32_t at)
{
	PUT(o, 0x65, 0x48 | (reg >> 3) << 2, 0x8b, 0x04 | (reg & 7) << 3, 0x25);
	put32(o, at);
}

static void gs_store(struct out *o, unsigned reg, uint32_t at)
{
	PUT(o, 0x65, 0x48 | (reg >> 3) << 2, 0x89, 0x04 | (reg & 7) << 3, 0x25);
	put32(o, at);
}

static void gs_store_number(struct out *o, uint32_t at, uint32_t number)
{
	PUT(o, 0x65, 0xc7, 0x04, 0x25);
	put32(o, at);
	put32(o, number);
}

static void gs_jump(struct out *o, uint32_t at)
{
	PUT(o, 0x65, 0xff, 0x24, 0x25);
	put32(o, at);
}

static void point(struct out *o, uint32_t insn, unsigned state, unsigned reg)
{
	struct emission *e = o->e;

	if (e->points && e->n_points < N_POINTS)
		e->points[e->n_points++] = (struct point){
			offset(o), (uint16_t)o->block, (uint16_t)insn, (uint8_t)state, (uint8_t)reg};
}

static void pad(struct out *o, unsigned n)
{
	while (n--)
		PUT(o, 0x90);
}

/* The next n bytes are in one cache line, from `skip` bytes on. */
static void pad_into_line(struct out *o, unsigned skip, unsigned n)
{
	unsigned at = (unsigned)(here(o) + skip) & (LINE - 1);

	if (at + n > LINE)
		pad(o, LINE - at);
}

/* ---- what is counted ---- */

/* By a register that may be changed; flags are left alone. */
static void count_by(struct out *o, unsigned reg)
{
	uint32_t number = o->b->number;
	const struct {
		uint32_t at;
		uint8_t more;
	} sums[] = {{AREA_COUNTERS + 8 * number, 1},
		{T_COST + 8 * (number % TRANSLATE_SUMS), (uint8_t)o->b->n_insns}};

	for (unsigned i = 0; i < 2; i++) {
		gs_load(o, reg, sums[i].at);
		PUT(o, 0x48, 0x8d, (uint8_t)(0x40 | reg << 3 | reg), sums[i].more); /* lea more(reg), reg */
		gs_store(o, reg, sums[i].at);
	}
}

static void count(struct out *o)
{
	const struct planned *b = o->b;

	if (b->flags_dead) {
		PUT(o, 0x65, 0x48, 0xff, 0x04, 0x25); /* inc */
		put32(o, AREA_COUNTERS + 8 * b->number);
		PUT(o, 0x65, 0x48, 0x83, 0x04, 0x25); /* add */
		put32(o, T_COST + 8 * (b->number % TRANSLATE_SUMS));
		PUT(o, (uint8_t)b->n_insns);
		return;
	}
	gs_store(o, RCX, T_SLOT_RCX);
	count_by(o, RCX);
	gs_load(o, RCX, T_SLOT_RCX);
}

/* Where a block with live flags is counted at its end, whose way out has a register in its slot anyway. */
static bool is_counted_at_end(const struct out *o)
{
	return o->b->count_at == PLAN_COUNT_AT_END;
}

/* Leaves rax and rcx in their slots, and something else in them. */
static void event(struct out *o, enum translate_event_kind kind, bool counts)
{
	gs_store(o, RCX, T_SLOT_RCX);
	gs_store(o, RAX, T_SLOT_RAX);
	if (counts)
		count_by(o, RAX);
	gs_load(o, RAX, T_COST);
	for (unsigned i = 1; i < TRANSLATE_SUMS; i++) {
		gs_load(o, RCX, T_COST + 8 * i);
		PUT(o, 0x48, 0x8d, 0x04, 0x08); /* lea (%rax, %rcx), %rax */
	}
	gs_load(o, RCX, T_EVENTS_AT);
	PUT(o, 0x48, 0x89, 0x21); /* mov %rsp, (%rcx): the one that may fault */
	PUT(o, 0x48, 0x89, 0x41, 8);
	PUT(o, 0xc7, 0x41, 16); /* movl */
	put32(o, o->b->number);
	PUT(o, 0xc7, 0x41, 20);
	put32(o, kind);
	PUT(o, 0x48, 0x8d, 0x49, TRANSLATE_EVENT_BYTES); /* lea */
	gs_store(o, RCX, T_EVENTS_AT);
}

/* A word goes into the buffer that rcx points to: the store may fault, as that of an event does. */
static void word_done(struct out *o)
{
	PUT(o, 0x48, 0x8d, 0x49, 4); /* lea 4(%rcx), %rcx */
	gs_store(o, RCX, T_EVENTS_AT);
}

static void word(struct out *o, uint32_t value)
{
	PUT(o, 0xc7, 0x01); /* movl value, (%rcx) */
	put32(o, value);
	word_done(o);
}

static void tell_block(struct out *o)
{
	gs_store(o, RCX, T_SLOT_RCX);
	gs_load(o, RCX, T_EVENTS_AT);
	word(o, o->b->number);
	gs_load(o, RCX, T_SLOT_RCX);
}

/* What rcx is, around a string instruction that it repeats. */
static void tell_repeat(struct out *o, uint32_t which)
{
	gs_store(o, RCX, T_SLOT_RCX);
	gs_store(o, RAX, T_SLOT_RAX);
	gs_load(o, RCX, T_EVENTS_AT);
	word(o, which);
	gs_load(o, RAX, T_SLOT_RCX);
	PUT(o, 0x89, 0x01); /* mov %eax, (%rcx) */
	word_done(o);
	gs_load(o, RAX, T_SLOT_RCX + 4); /* the high half; what is above it is the next slot's */
	PUT(o, 0x89, 0x01);
	word_done(o);
	gs_load(o, RAX, T_SLOT_RAX);
	gs_load(o, RCX, T_SLOT_RCX);
}

static void entry_event(struct out *o)
{
	if (header.options & TRANSLATE_OPTION_STEPS) {
		tell_block(o);
		return;
	}
	if (o->b->variant == VARIANT_PLAIN || !(header.options & TRANSLATE_OPTION_CALLS))
		return;
	event(o, o->b->variant == VARIANT_ENTER ? TRANSLATE_EVENT_ENTER : TRANSLATE_EVENT_LAND, false);
	gs_load(o, RAX, T_SLOT_RAX);
	gs_load(o, RCX, T_SLOT_RCX);
}

/* ---- instructions ---- */

/* A register that the instruction has nothing to do with, and that needs no REX bit. */
static unsigned free_register(const struct insn *insn)
{
	static const uint8_t order[] = {RAX, RCX, RDX, RBX, RSI, RDI};

	for (unsigned i = 0; i < sizeof(order); i++)
		if (!(insn->registers >> order[i] & 1))
			return order[i];
	return 16;
}

static uint64_t operand(const struct insn *insn, const uint8_t *p, uint64_t next)
{
	int32_t disp;

	__builtin_memcpy(&disp, p + insn->disp_at, 4);
	return next + (uint64_t)(int64_t)disp;
}

/* An operand relative to rip that is out of reach from here: by a register. */
static void copy_far(struct out *o, const struct insn *insn, const uint8_t *p, uint64_t target, uint32_t i)
{
	unsigned reg = free_register(insn);

	if (reg > 15) {
		o->e->failed = true;
		return;
	}
	gs_store(o, reg, T_SLOT_ANY);
	PUT(o, 0x48, (uint8_t)(0xb8 + reg)); /* movabs */
	put(o, &target, 8);
	point(o, i, POINT_ANY, reg);
	put(o, p, insn->modrm_at);
	PUT(o, (uint8_t)((p[insn->modrm_at] & 0x38) | reg));
	put(o, p + insn->disp_at + 4, (size_t)insn->length - insn->disp_at - 4);
	gs_load(o, reg, T_SLOT_ANY);
}

static bool reaches(uint64_t from, uint64_t to)
{
	int64_t distance = (int64_t)(to - from);

	return distance >= -0x7fff0000ll && distance <= 0x7fff0000ll;
}

static void copy(struct out *o, const struct insn *insn, const uint8_t *p, uint64_t pc, uint32_t i)
{
	uint64_t next = pc + insn->length;

	bool is_told = insn->is_string_repeated && (header.options & TRANSLATE_OPTION_STEPS);

	if (is_told)
		tell_repeat(o, TRANSLATE_WORD_REPEAT);
	if (!insn->disp_at) {
		point(o, i, 0, 0);
		put(o, p, insn->length);
		if (is_told)
			tell_repeat(o, TRANSLATE_WORD_REPEATED);
	} else if (!reaches(here(o), operand(insn, p, next))) {
		copy_far(o, insn, p, operand(insn, p, next), i);
	} else {
		point(o, i, 0, 0);
		put(o, p, insn->disp_at);
		put32(o, operand(insn, p, next) - (here(o) + (insn->length - insn->disp_at)));
		put(o, p + insn->disp_at + 4, (size_t)insn->length - insn->disp_at - 4);
	}
}

/* ---- ways out ---- */

static uint32_t new_exit(struct out *o, uint64_t target, enum exit_kind kind, enum variant variant)
{
	struct emission *e = o->e;
	uint32_t number = e->first_exit + e->n_exits++;

	if (!e->is_copy && !e->points) /* else it is known already */
		exits[number] = (struct exit){.target = target,
			.block = o->b->number,
			.kind = (uint8_t)kind,
			.variant = (uint8_t)variant,
			.why = o->b->why};
	return number;
}

static void to_translator(struct out *o, uint32_t number)
{
	gs_store_number(o, T_EXIT, number);
	gs_jump(o, T_ENTER);
}

/* Of what a jump leads to. What is emitted again has its exits already. */
static enum variant variant_of(const struct out *o, uint64_t target)
{
	return o->e->is_copy || o->e->points ? VARIANT_PLAIN : region_variant(o->b->pc, target);
}

/* The opcode is one of jmp (0xe9) or of jcc (0x80 ..). */
static void link(struct out *o, uint8_t opcode, uint64_t target, enum variant variant)
{
	bool is_jcc = opcode < 0xe0;
	bool is_far = !reaches(o->e->address, target + 0x20000000) || !reaches(o->e->address, target - 0x20000000);
	struct fixup *f = &o->fixups[o->n_fixups++];

	f->number = new_exit(o, target, is_far ? EXIT_KIND_FAR : EXIT_KIND_DIRECT, variant);
	f->is_far = is_far;
	pad_into_line(o, is_jcc ? 2 : 1, 4);
	if (is_jcc)
		PUT(o, 0x0f, opcode);
	else
		PUT(o, opcode);
	f->at = offset(o);
	put32(o, 0);
}

/* The next block of the group is not in this copy: the translator finds the one that is. */
static void leave_copy(struct out *o, uint64_t pc, enum variant variant, uint32_t left)
{
	gs_store_number(o, T_LEFT, left);
	gs_store_number(o, T_TARGET, (uint32_t)pc);
	gs_store_number(o, T_TARGET + 4, (uint32_t)(pc >> 32));
	to_translator(o, EXIT_TARGET + (uint32_t)variant);
}

/* By a jump over the word that the next block tells when it is come to from elsewhere; the opcode is a short one. */
static void skip_head(struct out *o, uint8_t opcode)
{
	PUT(o, opcode);
	o->skips_head = o->p;
	PUT(o, 0);
}

static void skips_to_here(struct out *o)
{
	if (o->skips_head && !o->e->failed)
		*o->skips_head = (uint8_t)(o->p - o->skips_head - 1);
	o->skips_head = NULL;
}

static bool next_is_implied(const struct out *o)
{
	return o->b->goes_on && o->b[1].is_implied;
}

/* The next block of the group follows; or it is the end of a copy. */
static void next_follows(struct out *o, uint64_t pc)
{
	if (o->block + 1 < o->e->n_blocks)
		return;
	pad_into_line(o, 0, 8); /* as the next block is: a signal may come between these nops */
	skips_to_here(o);
	leave_copy(o, pc, o->b[1].variant, o->b->number);
}

/* On to `target`, which the next block of the group may be. */
static void go_on(struct out *o, uint64_t target, enum variant variant)
{
	if (!o->b->goes_on) {
		link(o, 0xe9, target, variant);
		return;
	}
	if (next_is_implied(o))
		skip_head(o, 0xeb);
	next_follows(o, target);
}

static void end_branch(struct out *o, const struct insn *insn)
{
	const struct planned *b = o->b;
	enum variant variant = variant_of(o, insn->target);

	if (!next_is_implied(o)) {
		link(o, 0x80 | insn->condition, insn->target, variant);
		go_on(o, b->next, variant_of(o, b->next));
		return;
	}
	skip_head(o, 0x70 | (insn->condition ^ 1));
	link(o, 0xe9, insn->target, variant);
	next_follows(o, b->next);
}

static void push_return(struct out *o, uint64_t address, uint32_t insn, unsigned state)
{
	point(o, insn, state, 0);
	if (address < 0x80000000u) {
		PUT(o, 0x68);
		put32(o, address);
		return;
	}
	PUT(o, 0xc7, 0x44, 0x24, 0xf8);
	put32(o, address);
	point(o, insn, state, 0);
	PUT(o, 0xc7, 0x44, 0x24, 0xfc);
	put32(o, address >> 32);
	PUT(o, 0x48, 0x8d, 0x64, 0x24, 0xf8);
}

/* To the address in rcx, whose own value is in its slot. */
static void look_up(struct out *o, uint32_t table, uint32_t miss, bool has_rax)
{
	if (!has_rax)
		gs_store(o, RAX, T_SLOT_RAX);
	gs_store(o, RDX, T_SLOT_RDX);
	gs_store(o, RCX, T_TARGET);
	PUT(o, 0x0f, 0xb7, 0xc1);		/* movzwl %cx, %eax */
	PUT(o, 0x65, 0x48, 0x8b, 0x14, 0xc5);	/* mov gs:table(, %rax, 8), %rdx */
	put32(o, table);
	PUT(o, 0x48, 0x8d, 0x0c, 0x11);		/* lea (%rcx, %rdx), %rcx */
	PUT(o, 0xe3, o->e->is_copy ? 0 : 8);	/* jrcxz, behind the next one */
	gs_jump(o, miss);
	PUT(o, 0x65, 0xff, 0x24, 0xc5);		/* jmp *gs:targets(, %rax, 8) */
	put32(o, table + TABLE_TARGETS);
}

static void end_return(struct out *o, const struct insn *insn, uint32_t i)
{
	bool has_event = header.options & TRANSLATE_OPTION_CALLS;
	uint32_t bytes = 8 + insn->imm;

	if (has_event)
		event(o, TRANSLATE_EVENT_RETURN, is_counted_at_end(o));
	else
		gs_store(o, RCX, T_SLOT_RCX);
	point(o, i, has_event ? POINT_RCX | POINT_RAX : 0, 0);
	PUT(o, 0x48, 0x8b, 0x0c, 0x24);	      /* mov (%rsp), %rcx */
	PUT(o, 0x48, 0x8d, 0xa4, 0x24);	      /* lea n(%rsp), %rsp */
	put32(o, bytes);
	look_up(o, T_RETURNS, T_MISS_RET, has_event);
}

static bool is_kept_prefix(uint8_t c)
{
	return c == 0x64 || c == 0x2e || c == 0x36 || c == 0x3e || c == 0x26 || c == 0x67;
}

/* jmp *operand, call *operand -> mov operand, %rcx */
static void load_target(struct out *o, const struct insn *insn, const uint8_t *p, uint64_t next, uint32_t i)
{
	uint8_t rex = 0x48;

	gs_store(o, RCX, T_SLOT_RCX);
	point(o, i, 0, 0);
	for (unsigned k = 0; k < insn->n_prefixes; k++) {
		if (p[k] >= 0x40 && p[k] <= 0x4f)
			rex |= p[k] & 3;
		else if (is_kept_prefix(p[k]))
			PUT(o, p[k]);
	}
	PUT(o, rex, 0x8b, (uint8_t)((p[insn->modrm_at] & 0xc7) | RCX << 3));
	if (!insn->disp_at) {
		put(o, p + insn->modrm_at + 1, (size_t)insn->length - insn->modrm_at - 1);
	} else if (reaches(here(o), operand(insn, p, next))) {
		put32(o, operand(insn, p, next) - (here(o) + 4));
	} else {
		o->e->failed = true;
	}
}

static void end_indirect(struct out *o, const struct insn *insn, const uint8_t *p, uint32_t i)
{
	load_target(o, insn, p, o->b->next, i);
	if (insn->kind == INSN_CALL_INDIRECT)
		push_return(o, o->b->next, i, POINT_RCX);
	if (is_counted_at_end(o)) {
		gs_store(o, RAX, T_SLOT_RAX);
		count_by(o, RAX);
	}
	look_up(o, T_JUMPS, T_MISS_JUMP, is_counted_at_end(o));
}

/* loop, jrcxz: their distance is too short for anything but the next two jumps. */
static void end_counted(struct out *o, const struct insn *insn, const uint8_t *p)
{
	uint32_t at;
	uint8_t *distance;

	put(o, p, insn->n_prefixes);
	PUT(o, insn->condition);
	at = offset(o);
	distance = o->p;
	PUT(o, 0);
	link(o, 0xe9, o->b->next, variant_of(o, o->b->next));
	if (!o->e->failed)
		*distance = (uint8_t)(offset(o) - at - 1);
	link(o, 0xe9, insn->target, variant_of(o, insn->target));
}

static void end(struct out *o, const struct insn *insn, const uint8_t *p, uint32_t i)
{
	const struct planned *b = o->b;

	switch (insn->kind) {
	case INSN_BRANCH:
		end_branch(o, insn);
		break;
	case INSN_JUMP:
		go_on(o, insn->target, variant_of(o, insn->target));
		break;
	case INSN_CALL:
		push_return(o, b->next, i, 0);
		link(o, 0xe9, insn->target, VARIANT_ENTER);
		break;
	case INSN_COUNTED:
		end_counted(o, insn, p);
		break;
	case INSN_RETURN:
		end_return(o, insn, i);
		break;
	case INSN_JUMP_INDIRECT:
	case INSN_CALL_INDIRECT:
		end_indirect(o, insn, p, i);
		break;
	case INSN_SYSCALL:
		to_translator(o, new_exit(o, b->next, EXIT_KIND_SYSCALL, VARIANT_PLAIN));
		break;
	case INSN_XBEGIN: /* a transaction that aborts at once, for no reason that is known */
		PUT(o, 0xb8, 0, 0, 0, 0);
		link(o, 0xe9, insn->target, VARIANT_PLAIN);
		break;
	case INSN_STOP:
	case INSN_INT: /* int3: is a fault at its place; what would be behind it is found by its address */
		point(o, i, 0, 0);
		put(o, p, insn->length);
		link(o, 0xe9, b->next, VARIANT_PLAIN);
		break;
	default:
		copy(o, insn, p, b->next - insn->length, i);
		if (b->why)
			to_translator(o, new_exit(o, b->next, EXIT_KIND_LEAVE, VARIANT_PLAIN));
		else
			go_on(o, b->next, variant_of(o, b->next));
	}
}

static void emit_block(struct out *o)
{
	const struct planned *b = o->b;
	const struct insn *insn = &o->e->plan->insns[b->first_insn];
	const uint8_t *p = b->code;
	bool has_count = header.options & TRANSLATE_OPTION_COUNT;
	uint64_t pc = b->pc;

	pad_into_line(o, 0, 8);
	o->e->heads[o->block] = o->e->bodies[o->block] = here(o);
	if (!(header.options & TRANSLATE_OPTION_STEPS) &&
		(b->variant == VARIANT_PLAIN || !(header.options & TRANSLATE_OPTION_CALLS))) {
		if (!has_count || b->count_at || !b->n_insns)
			PUT(o, 0x0f, 0x1f, 0x44, 0, 0); /* nop */
	} else {
		entry_event(o);
	}
	if (b->is_implied) {
		pad_into_line(o, 0, 8);
		skips_to_here(o);
		o->e->bodies[o->block] = here(o);
		PUT(o, 0x0f, 0x1f, 0x44, 0, 0); /* nop, for a jump when it is stale */
	}
	if (!b->n_insns) { /* nothing that can be executed */
		to_translator(o, new_exit(o, b->pc, EXIT_KIND_LEAVE, VARIANT_PLAIN));
		return;
	}
	for (uint32_t i = 0; i < b->n_insns; i++, insn++) {
		if (has_count && i == b->count_at)
			count(o);
		if (i + 1 == b->n_insns)
			end(o, insn, p, i);
		else
			copy(o, insn, p, pc, i);
		p += insn->length;
		pc += insn->length;
	}
}

/* ---- stubs ---- */

static void set_distance(struct out *o, uint32_t at, uint64_t target)
{
	uint32_t distance = (uint32_t)(target - (o->e->address + at + 4));

	if (!o->e->failed)
		__builtin_memcpy(o->e->to + at, &distance, 4);
}

static void emit_stub(struct out *o, const struct fixup *f)
{
	struct emission *e = o->e;
	uint32_t number = f->number;
	struct exit *exit = &exits[number];
	uint64_t slow;

	set_distance(o, f->at, here(o));
	if (!f->is_far) {
		if (!e->is_copy && !e->points)
			exit->site = e->address + f->at;
		to_translator(o, number);
		return;
	}
	pad(o, (unsigned)(-(here(o) + 6)) & 7); /* the pointer is on 8 bytes, behind the jump */
	set_distance(o, f->at, here(o));
	PUT(o, 0xff, 0x25, 0, 0, 0, 0); /* jmp *0(%rip) */
	if (!e->is_copy && !e->points)
		exit->site = here(o);
	slow = here(o) + 8;
	put(o, &slow, 8);
	to_translator(o, number);
}

void emit_group(struct emission *e)
{
	struct out o = {.e = e, .p = e->to, .end = e->to + e->room};

	e->n_exits = e->n_points = 0;
	e->failed = false;
	for (o.block = 0; o.block < e->n_blocks; o.block++) {
		o.b = &e->plan->block[o.block];
		emit_block(&o);
	}
	e->stubs_at = offset(&o);
	for (uint32_t i = 0; i < o.n_fixups; i++)
		emit_stub(&o, &o.fixups[i]);
	e->bytes = offset(&o);
}

uint32_t emit_restoring(uint8_t *to, uint64_t address, uint64_t target)
{
	struct emission e = {.to = to, .address = address, .room = RESTORING_BYTES};
	struct out o = {.e = &e, .p = to, .end = to + RESTORING_BYTES};

	gs_load(&o, RDX, T_SLOT_RDX);
	gs_load(&o, RAX, T_SLOT_RAX);
	gs_load(&o, RCX, T_SLOT_RCX);
	PUT(&o, 0xe9);
	put32(&o, target - (here(&o) + 4));
	return offset(&o);
}

uint32_t emit_stale(uint8_t *to, uint64_t pc, enum variant variant, uint32_t left)
{
	struct emission e = {.to = to, .room = STALE_BYTES};
	struct out o = {.e = &e, .p = to, .end = to + STALE_BYTES};

	leave_copy(&o, pc, variant, left);
	return offset(&o);
}
