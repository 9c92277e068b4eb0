/* SPDX-License-Identifier: MIT */
/*
 * The code of a stream file, as far as the loader relies on it: it copies pieces, puts descriptors
 * in the place of map numbers and lets pieces run into each other. So pieces lie in the code and
 * are equal or apart, constants are whole, maps and functions exist, and nothing leaves its piece but
 * by its end. The functions of a piece are a part of their own: they leave by exits.
 * One pass over the code and one over the points, however these overlap.
 */
#include <stdlib.h>

#include "bpf/print.h"
#include "probe/stream/stream_reader.h"

struct code_check {
	const struct stream *s;
	enum mode mode;
	const struct bpf_insn *v;
	size_t n;
	uint32_t *owner; /* of each instruction: 1 + number of the first point with it, 0 = none */
	bool *is_second; /* second half of a constant */
	struct err *err;
};

/* The instructions [from, to) of a piece: all but its functions, or these. */
struct part {
	size_t from, to;
	size_t n_functions; /* behind it */
	bool is_functions;
};

static int refuse(struct code_check *c, size_t insn_i, const char *what)
{
	return err_set(c->err, ERR_FORMAT, "trace stream: section code%d, item %zu: %s",
		c->mode == MODE_32 ? 32 : 64, insn_i, what);
}

static bool is_map(const struct code_check *c, int32_t number)
{
	return (number >= 0 && number <= STREAM_MAP_COPIES) ||
	       (number >= STREAM_MAP_FIRST_OF_SCRIPT &&
		       (size_t)number - STREAM_MAP_FIRST_OF_SCRIPT < c->s->maps.n);
}

static int check_constant(struct code_check *c, size_t i)
{
	const struct bpf_insn *insn = &c->v[i], *next = &c->v[i + 1];

	if (i + 1 >= c->n || next->code || next->dst_reg || next->src_reg || next->off)
		return refuse(c, i, "a constant without its second half");
	if (insn->src_reg == BPF_PSEUDO_MAP_FD && (!is_map(c, insn->imm) || next->imm))
		return refuse(c, i, "there is no such map");
	if (insn->src_reg == BPF_PSEUDO_FUNC && next->imm)
		return refuse(c, i, "there is no such function");
	if (insn->src_reg && insn->src_reg != BPF_PSEUDO_MAP_FD && insn->src_reg != BPF_PSEUDO_FUNC)
		return refuse(c, i, "a constant of a kind that streams do not have");
	c->is_second[i + 1] = true;
	return 0;
}

static int check_constants(struct code_check *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (bpf_insn_is_wide(&c->v[i]) && check_constant(c, i++) < 0)
			return ERR_FORMAT;
	return 0;
}

/* Whether an instruction of a part may go on at `target`. */
static bool is_inside(const struct code_check *c, const struct part *p, int64_t target)
{
	if (target == (int64_t)p->to)
		return !p->is_functions;
	return target >= (int64_t)p->from && target < (int64_t)p->to && !c->is_second[target];
}

static int check_function(struct code_check *c, size_t i, const struct part *p)
{
	const struct bpf_insn *insn = &c->v[i];
	size_t functions = p->is_functions ? p->from : p->to;
	size_t n = p->is_functions ? p->to - p->from : p->n_functions;

	if (insn->imm < 0 || (size_t)insn->imm >= n || c->is_second[functions + (size_t)insn->imm])
		return refuse(c, i, "there is no such function");
	return 0;
}

static int check_loop(struct code_check *c, size_t i, const struct part *p)
{
	const struct bpf_insn *insn = &c->v[i];

	if (insn->dst_reg ||
		(insn->src_reg != STREAM_LOOP_TURN && insn->src_reg != STREAM_LOOP_UNKNOWN) ||
		(insn->src_reg == STREAM_LOOP_UNKNOWN && (insn->off || insn->imm)))
		return refuse(c, i, "a question of a loop that streams do not have");
	if (insn->src_reg == STREAM_LOOP_TURN && !is_inside(c, p, (int64_t)i + 1 + insn->off))
		return refuse(c, i, "a jump out of its piece");
	return 0;
}

static int check_insn(struct code_check *c, size_t i, const struct part *p)
{
	const struct bpf_insn *insn = &c->v[i];
	int op = BPF_OP(insn->code);
	bool is_long = op == BPF_JA && BPF_CLASS(insn->code) == BPF_JMP32;

	if (c->is_second[i])
		return 0;
	if (bpf_insn_is_wide(insn) && insn->src_reg == BPF_PSEUDO_FUNC)
		return check_function(c, i, p);
	if (BPF_CLASS(insn->code) != BPF_JMP && BPF_CLASS(insn->code) != BPF_JMP32)
		return 0;
	if (insn->code == STREAM_LOOP_CODE)
		return check_loop(c, i, p);
	if (op == BPF_EXIT)
		return p->is_functions ? 0 : refuse(c, i, "a piece does not end by an exit");
	if (op == BPF_CALL && insn->src_reg == BPF_PSEUDO_CALL)
		return check_function(c, i, p);
	if (op == BPF_CALL)
		return insn->src_reg ? refuse(c, i, "a call of something that streams do not have")
				     : 0;
	if (!is_inside(c, p, (int64_t)i + 1 + (is_long ? insn->imm : insn->off)))
		return refuse(c, i, "a jump out of its piece");
	return 0;
}

static size_t first_insn(const struct stream_piece *piece)
{
	return piece->predicate_n ? piece->predicate_at : piece->action_at;
}

static size_t end_insn(const struct stream_piece *piece)
{
	return (size_t)piece->action_at + piece->action_n;
}

static int check_piece(struct code_check *c, uint32_t point_i)
{
	const struct stream_piece *piece = &c->s->points.v[point_i].pieces[c->mode], *other;
	size_t from = first_insn(piece), to = end_insn(piece);
	struct part code = {from, to - piece->functions_n, piece->functions_n, false};
	struct part functions = {code.to, to, 0, true};

	if (to > c->n || from > to ||
		(piece->predicate_n &&
			(uint64_t)piece->predicate_at + piece->predicate_n != piece->action_at))
		return refuse(c, from, "a piece is not inside the code");
	if (from == to)
		return 0;
	if (c->is_second[from] || (code.to < c->n && c->is_second[code.to]) ||
		(to < c->n && c->is_second[to]))
		return refuse(c, from, "a piece begins or ends inside a constant");
	if (c->owner[from]) {
		other = &c->s->points.v[c->owner[from] - 1].pieces[c->mode];
		if (first_insn(other) != from || end_insn(other) != to ||
			other->functions_n != piece->functions_n)
			return refuse(c, from, "two pieces overlap");
		return 0;
	}
	for (size_t i = from; i < to; i++) {
		if (c->owner[i])
			return refuse(c, i, "two pieces overlap");
		c->owner[i] = point_i + 1;
		if (check_insn(c, i, i < code.to ? &code : &functions) < 0)
			return ERR_FORMAT;
	}
	return 0;
}

int stream_check_code(const struct stream *s, enum mode mode, struct err *err)
{
	struct code_check c = {s, mode, s->code[mode].v, s->code[mode].n, NULL, NULL, err};
	int rc;

	c.owner = mem_calloc(c.n + 1, sizeof(c.owner[0]));
	c.is_second = mem_calloc(c.n + 1, sizeof(c.is_second[0]));
	rc = check_constants(&c);
	for (uint32_t i = 0; i < s->points.n && rc >= 0; i++)
		if (s->points.v[i].pieces[mode].is_there)
			rc = check_piece(&c, i);
	free(c.owner);
	free(c.is_second);
	return rc;
}
