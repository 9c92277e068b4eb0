/* SPDX-License-Identifier: MIT */
/*
 * Instructions at another place. Most are copied; those that mean their own address become:
 *
 *   op disp(%rip)		op disp(%rip)			with a fixup
 *   jmp L, jcc L		jmp, jcc with a 32-bit offset and a fixup
 *   loop L, jrcxz L		loop 1f; jmp 2f; 1: jmp L; 2:
 *   call L, call *x		call 1f; 1: add $(next - 1b),(%rsp); jmp L, jmp *x
 *   call get_pc_thunk (32 bit)	call 1f; 1: pop %reg; lea next - 1b(%reg),%reg
 *
 * A moved call pushes the return address that the original one would push: whoever looks at the
 * stack (an unwinder, a function that computes from it) finds the original code, and the call
 * returns to there. It is moved only as the last instruction, so that what it returns to is not
 * patched.
 */
#include <string.h>

#include "record/hooks/plan_internal.h"

#define OPCODE_CALL    0xe8
#define OPCODE_JMP     0xe9
#define OPCODE_JMP8    0xeb
#define OPCODE_JCC8    0x70 /* to 0x7f */
#define OPCODE_JCC_0F  0x80 /* to 0x8f, behind 0f */
#define INSN_BYTES_MAX 32   /* what an instruction can become */

static void put(struct moved_code *m, const void *bytes, size_t n)
{
	memcpy(m->bytes + m->n, bytes, n);
	m->n = (uint8_t)(m->n + n);
}

static void put_byte(struct moved_code *m, uint8_t byte)
{
	put(m, &byte, 1);
}

/* The 32-bit field at `at` becomes the distance of `target` from the byte `next`. */
static void add_fixup(struct moved_code *m, size_t at, size_t next, uint64_t target)
{
	m->fixups[m->n_fixups++] =
		(struct hook_fixup){.at = (uint8_t)at, .next = (uint8_t)next, .target = target};
}

/* The distance of `target` from the byte `next`, to be fixed up. */
static void put_distance(struct moved_code *m, size_t next, uint64_t target)
{
	put(m, (uint8_t[4]){0}, 4);
	add_fixup(m, m->n - 4u, next, target);
}

static void put_jump(struct moved_code *m, uint64_t target)
{
	put_byte(m, OPCODE_JMP);
	put_distance(m, m->n + 4u, target);
}

static void put_branch(struct moved_code *m, const uint8_t *code, const struct x86_insn *insn)
{
	static const uint8_t skip[] = {OPCODE_JMP8, 5};

	if (insn->rel_bytes == 4) { /* with its prefixes */
		put(m, code, insn->rel_at);
		put_distance(m, m->n + 4u, insn->target);
	} else if (insn->opcode == OPCODE_JMP8) {
		put_jump(m, insn->target);
	} else if ((insn->opcode & 0xf0) == OPCODE_JCC8) {
		put_byte(m, 0x0f);
		put_byte(m, (uint8_t)(OPCODE_JCC_0F | (insn->opcode & 0x0f)));
		put_distance(m, m->n + 4u, insn->target);
	} else { /* loop, jrcxz: with a prefix that chooses the register */
		put(m, code, insn->rel_at);
		put_byte(m, sizeof(skip));
		put(m, skip, sizeof(skip));
		put_jump(m, insn->target);
	}
}

/* Pushes the address of what follows, which it returns. */
static size_t put_call_next(struct moved_code *m)
{
	put(m, (uint8_t[]){OPCODE_CALL, 0, 0, 0, 0}, 5);
	return m->n;
}

/* Pushes the address of the image. Flags mean nothing at a call. */
static void put_push(struct moved_code *m, bool is_64, uint64_t addr)
{
	static const uint8_t add_32[] = {0x81, 0x04, 0x24}; /* add $x,(%esp) */
	size_t base = put_call_next(m);

	if (is_64)
		put_byte(m, 0x48);
	put(m, add_32, sizeof(add_32));
	put_distance(m, base, addr);
}

/* call *x becomes push; jmp *x. False when x depends on the stack pointer, which push changes. */
static bool put_call_through(struct moved_code *m, bool is_64, uint64_t addr, const uint8_t *code,
	const struct x86_insn *insn)
{
	uint8_t modrm = code[insn->modrm_at];
	uint8_t mod = modrm >> 6, rm = modrm & 7;
	size_t at;

	if (!insn->modrm_at || (modrm >> 3 & 7) != 2) /* a far call */
		return false;
	if ((mod == 3 && rm == 4) || (mod != 3 && rm == 4 && (code[insn->modrm_at + 1] & 7) == 4))
		return false; /* r12 looks the same, and is rare */
	put_push(m, is_64, addr + insn->length);
	at = m->n;
	put(m, code, insn->length);
	m->bytes[at + insn->modrm_at] = (uint8_t)((modrm & ~0x38) | 4 << 3);
	if (insn->disp_at)
		add_fixup(m, at + insn->disp_at, m->n, insn->disp_target);
	return true;
}

/* The register that a 32-bit get_pc_thunk at `target` fills; -1 when it is none. */
static int thunk_register(const struct image_facts *f, uint64_t target)
{
	int reg = image_is_pc_thunk(f, target) ? image_code(f, target).p[1] >> 3 & 7 : -1;

	return reg == 4 ? -1 : reg;
}

static void put_thunk(struct moved_code *m, int reg, uint64_t next)
{
	size_t base = put_call_next(m);

	put_byte(m, (uint8_t)(0x58 | reg)); /* pop %reg */
	put_byte(m, 0x8d);		    /* lea x(%reg),%reg */
	put_byte(m, (uint8_t)(0x80 | reg << 3 | reg));
	put_distance(m, base, next);
}

static bool put_any_call(struct moved_code *m, const struct image_facts *f, uint64_t addr,
	const uint8_t *code, const struct x86_insn *insn, bool is_last, const char **reason)
{
	int reg = insn->flow == X86_FLOW_CALL ? thunk_register(f, insn->target) : -1;

	if (reg >= 0) {
		put_thunk(m, reg, addr + insn->length);
		return true;
	}
	*reason = "a call is among its first instructions";
	if (!is_last)
		return false;
	m->is_ended = true; /* it returns to the original code */
	if (insn->flow == X86_FLOW_CALL) {
		put_push(m, f->is_64, addr + insn->length);
		put_jump(m, insn->target);
		return true;
	}
	return put_call_through(m, f->is_64, addr, code, insn);
}

bool moved_code_add(struct moved_code *m, const struct image_facts *f, uint64_t addr,
	const struct x86_insn *insn, bool is_last, const char **reason)
{
	const uint8_t *code = image_code(f, addr).p;
	size_t at = m->n;

	if (at + INSN_BYTES_MAX + JUMP_BYTES > HOOK_CODE_MAX ||
		m->n_fixups + 3 > MOVED_FIXUPS_MAX) {
		*reason = "too many instructions would have to be moved";
		return false;
	}
	if (insn->is_bound) {
		*reason = "one of its first instructions means its own address";
		return false;
	}
	m->is_ended = false;
	if (insn->flow == X86_FLOW_CALL || insn->flow == X86_FLOW_CALL_FAR)
		return put_any_call(m, f, addr, code, insn, is_last, reason);
	if (insn->is_endbr || insn->is_nop)
		return true;
	if (insn->rel_at) {
		put_branch(m, code, insn);
	} else {
		put(m, code, insn->length);
		if (insn->disp_at)
			add_fixup(m, at + insn->disp_at, m->n, insn->disp_target);
	}
	m->is_ended = insn->flow == X86_FLOW_JUMP || insn->flow == X86_FLOW_JUMP_FAR ||
		      insn->flow == X86_FLOW_RETURN || insn->flow == X86_FLOW_STOP;
	return true;
}

void moved_code_note(struct moved_code *m, uint64_t from)
{
	if (from && m->n_moves < HOOK_ORIGINAL_MAX)
		m->moves[m->n_moves++] = (struct hook_move){(uint8_t)from, m->n};
}

void moved_code_end(struct moved_code *m, uint64_t back)
{
	if (!m->is_ended)
		put_jump(m, back);
	m->is_ended = true;
}
