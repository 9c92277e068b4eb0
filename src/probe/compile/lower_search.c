/* SPDX-License-Identifier: MIT */
/*
 * Looking for a text in a text. One loop over the places where it may begin, and in it words of 8 bytes
 * without branches, of which the verifier remembers none:
 *
 *   for (p = text, turns = 0; turns < room; p++, turns++) {
 *       differ = 0
 *       for each word w of what is looked for: differ |= (*(u64 *)(p + 8 * w) ^ word[w]) & mask[w]
 *       if (!differ) goto found
 *       if (!*p) break                            // the text ends here
 *   }
 *
 * The verifier remembers the ways not taken, up to 8192 at a time: longer texts are looked through to the end
 * of their room.
 *
 * A mask is 0xff where the word has a byte. Behind the text are as many zeros as are read. What is looked
 * for has no NUL, so nothing is found across the end of the text.
 */
#include <string.h>

#include "probe/compile/lower.h"

#define LOW_BITS 0x7f7f7f7f7f7f7f7fll
#define ONE_BITS 0x0101010101010101ll

#define NUL_ROOM_MAX 1024

struct search {
	const struct expr *text; /* a literal that is looked for; or NULL: */
	ir_mem words, masks;
	uint32_t n_words;
};

static uint32_t room_of(struct lower *l, const struct expr *e)
{
	return e->kind == EXPR_STRING ? (uint32_t)strlen(e->text) : (uint32_t)type_of(l, e)->n;
}

static ir_mem text_with_zeros(struct lower *l, const struct expr *e, uint32_t room, uint32_t zeros)
{
	ir_mem mem = ir_new_scratch(&l->ir, room + zeros);

	lower_into(l, e, mem, 0, room);
	ir_zero(&l->ir, mem, (int32_t)room, zeros);
	return mem;
}

/* 0xff for each byte of v that is not 0. */
static ir_value mask_of(struct lower *l, ir_value v)
{
	ir_value low = ir_const(&l->ir, LOW_BITS), high;

	high = ir_alu(&l->ir, BPF_ADD, ir_alu(&l->ir, BPF_AND, v, low), low);
	high = ir_alu_imm(&l->ir, BPF_RSH, ir_alu(&l->ir, BPF_OR, high, v), 7);
	high = ir_alu(&l->ir, BPF_AND, high, ir_const(&l->ir, ONE_BITS));
	return ir_alu_imm(&l->ir, BPF_MUL, high, 0xff);
}

static struct search prepare(struct lower *l, const struct expr *e)
{
	uint32_t room = room_of(l, e);
	struct search s = {.n_words = (room + 7) / 8};

	if (e->kind == EXPR_STRING) {
		s.text = e;
		return s;
	}
	s.words = text_with_zeros(l, e, room, 8 * s.n_words - room);
	s.masks = ir_new_scratch(&l->ir, 8 * s.n_words);
	for (uint32_t w = 0; w < s.n_words; w++) {
		ir_value word = ir_new_value(&l->ir);

		ir_copy(&l->ir, word, ir_load(&l->ir, s.words, (int32_t)(8 * w), 8, false));
		ir_store(&l->ir, s.masks, (int32_t)(8 * w), 8, mask_of(l, word));
	}
	return s;
}

/* Word `w` of what is looked for, and its mask (0: of all bits, nothing to be cut). */
static ir_value word_and_mask(struct lower *l, const struct search *s, uint32_t w, ir_value *mask)
{
	uint64_t word = 0, bits = 0;
	size_t n;

	if (!s->text) {
		*mask = ir_load(&l->ir, s->masks, (int32_t)(8 * w), 8, false);
		return ir_load(&l->ir, s->words, (int32_t)(8 * w), 8, false);
	}
	n = strlen(s->text->text);
	for (uint32_t k = 0; k < 8 && 8 * w + k < n; k++) {
		word |= (uint64_t)(uint8_t)s->text->text[8 * w + k] << 8 * k;
		bits |= UINT64_C(0xff) << 8 * k;
	}
	*mask = bits == UINT64_MAX ? 0 : ir_const(&l->ir, (int64_t)bits);
	return ir_const(&l->ir, (int64_t)word);
}

/* What differs at p; 0 when it begins there. */
static void compare_at(struct lower *l, const struct search *s, ir_value p, ir_value differ)
{
	ir_set_const(&l->ir, differ, 0);
	for (uint32_t w = 0; w < s->n_words; w++) {
		ir_value mask, word = word_and_mask(l, s, w, &mask), v;

		v = ir_alu(
			&l->ir, BPF_XOR, ir_load_at(&l->ir, p, (int32_t)(8 * w), 8, false), word);
		if (mask)
			v = ir_alu(&l->ir, BPF_AND, v, mask);
		ir_copy(&l->ir, differ, ir_alu(&l->ir, BPF_OR, differ, v));
	}
}

ir_value lower_text_find(struct lower *l, const struct expr *a, const struct expr *b, bool is_asked)
{
	uint32_t room = room_of(l, a);
	struct search s = prepare(l, b);
	ir_mem text = text_with_zeros(l, a, room, 8 * s.n_words + 8), place;
	ir_value p = ir_new_value(&l->ir), turns = ir_new_value(&l->ir),
		 differ = ir_new_value(&l->ir), result = ir_new_value(&l->ir);
	ir_label top = ir_new_label(&l->ir), found = ir_new_label(&l->ir),
		 done = ir_new_label(&l->ir);

	place = ir_new_scratch(&l->ir, 8);
	ir_set_const(&l->ir, result, is_asked ? 0 : -1);
	ir_copy(&l->ir, p, ir_address(&l->ir, text, 0));
	ir_set_const(&l->ir, turns, 0);
	ir_loop(&l->ir, room + 1);
	ir_place_label(&l->ir, top);
	compare_at(l, &s, p, differ);
	ir_branch_imm(&l->ir, BPF_JEQ, differ, 0, found);
	if (room <= NUL_ROOM_MAX)
		ir_branch_imm(&l->ir, BPF_JEQ, ir_load_at(&l->ir, p, 0, 1, false), 0, done);
	ir_copy(&l->ir, p, ir_alu_imm(&l->ir, BPF_ADD, p, 1));
	ir_copy(&l->ir, turns, ir_alu_imm(&l->ir, BPF_ADD, turns, 1));
	ir_branch_imm(&l->ir, BPF_JLT, turns, room, top);
	ir_loop_end(&l->ir);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, found);
	if (is_asked) {
		ir_set_const(&l->ir, result, 1);
	} else {
		/* Through memory: else the verifier follows what comes behind once for each place. */
		ir_store(&l->ir, place, 0, 8, turns);
		ir_copy(&l->ir, result, ir_load(&l->ir, place, 0, 8, false));
	}
	ir_place_label(&l->ir, done);
	return result;
}
