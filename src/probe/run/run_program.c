/* SPDX-License-Identifier: MIT */
/*
 * A program out of the pieces of a trace point:
 *
 *   prologue
 *   for each clause: if (is_32) { 32-bit piece } else { 64-bit piece }
 *       a piece: if (enabled[clause]) { its predicate, its action }
 *   scratch area given back; return 0
 *   the functions of the pieces
 *
 * The mode is asked again for each clause, so that no jump is longer than one clause: jumps have 16
 * bits, also after the verifier has made helper calls inline, and a point may have many clauses. In
 * the pieces numbers of maps become descriptors, and bpf_copy_from_user becomes bpf_probe_read_user
 * where the program cannot sleep; functions cannot, since the kernel calls them with a lock. A loop's
 * question becomes may_goto where the kernel has it, and else a comparison with a limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bpf/program.h"
#include "bpf/sys.h"
#include "probe/run/run.h"
#include "probe/types/btf_types.h"

/* Where a piece's code went, to find the script's line of an instruction. */
struct code_part {
	uint32_t from, n; /* in the program */
	uint32_t at;	  /* in the stream's code */
	enum mode mode;
	uint32_t clause_i;
};

/* The functions of a piece: in the stream's code, and where the piece itself is in the program. */
struct functions {
	struct code_part in_stream; /* `from` is not known before they are there */
	uint32_t caller, caller_n;
};

struct assembly {
	struct probe_session *s;
	struct run_program *p;
	struct bpf_code code;
	VEC(struct code_part) parts;
	VEC(struct functions) functions;
	VEC(uint32_t) starts; /* of functions, in the program; in order, each once */
	struct err *err;
};

static int check_range(const struct assembly *a, enum mode mode, const struct stream_piece *piece)
{
	size_t n = a->s->stream->code[mode].n;

	if (piece->predicate_at > n || piece->predicate_n > n - piece->predicate_at ||
		piece->action_at > n || piece->action_n > n - piece->action_at)
		return err_set(a->err, ERR_FORMAT, "a piece lies outside of the stream's code");
	if (piece->predicate_n && piece->predicate_at + piece->predicate_n != piece->action_at)
		return err_set(
			a->err, ERR_FORMAT, "the action of a piece does not follow its predicate");
	return 0;
}

static void patch_loop(const struct assembly *a, struct bpf_insn *insn)
{
	bool counts = a->s->features.counts_turns;

	if (insn->src_reg == STREAM_LOOP_UNKNOWN) {
		*insn = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K};
		if (counts)
			*insn = (struct bpf_insn){
				.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid};
	} else if (counts) {
		insn->imm = 0;
	} else {
		insn->code = BPF_JMP | BPF_JGE | BPF_K;
	}
}

static int patch_map(const struct assembly *a, struct bpf_insn *insn)
{
	if (insn->src_reg != BPF_PSEUDO_MAP_FD)
		return 0;
	if (insn->imm < 0 || insn->imm >= RUN_MAPS || a->s->maps[insn->imm] < 0)
		return err_set(a->err, ERR_FORMAT,
			"the stream's code uses map %d, which does not exist", insn->imm);
	insn->imm = a->s->maps[insn->imm];
	return 0;
}

/* Map numbers, helpers and loops of the instructions from `from` on. */
static int patch(struct assembly *a, size_t from, bool can_sleep)
{
	for (size_t i = from; i < a->code.insns.n; i++) {
		struct bpf_insn *insn = &a->code.insns.v[i];

		if (insn->code == (BPF_LD | BPF_DW | BPF_IMM)) {
			if (patch_map(a, insn) < 0)
				return ERR_FORMAT;
			i++; /* its second half is no instruction */
			continue;
		}
		if (insn->code == STREAM_LOOP_CODE)
			patch_loop(a, insn);
		if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
			insn->imm == BPF_FUNC_copy_from_user && !can_sleep)
			insn->imm = BPF_FUNC_probe_read_user;
	}
	return 0;
}

/* Instructions of a piece, at the end of the program. */
static int add_part(struct assembly *a, struct code_part part, bool can_sleep)
{
	part.from = (uint32_t)a->code.insns.n;
	bpf_append(&a->code, a->s->stream->code[part.mode].v + part.at, part.n);
	vec_push(&a->parts, part);
	return patch(a, part.from, can_sleep);
}

static int add_piece(struct assembly *a, const struct stream_point *sp, enum mode mode)
{
	const struct stream_piece *piece = &sp->pieces[mode];
	uint32_t at = piece->predicate_n ? piece->predicate_at : piece->action_at;
	uint32_t n = piece->predicate_n + piece->action_n - piece->functions_n;
	struct code_part part = {.at = at, .n = n, .mode = mode, .clause_i = sp->clause_i};
	struct functions f = {.in_stream = part, .caller_n = n};
	int skip = bpf_label(&a->code);
	int rc = check_range(a, mode, piece);

	if (rc < 0)
		return rc;
	bpf_load_map_value(&a->code, BPF_REG_1, a->s->enabled_map, sp->clause_i);
	bpf_load(&a->code, BPF_B, BPF_REG_1, BPF_REG_1, 0);
	bpf_jump_imm(&a->code, BPF_JEQ, BPF_REG_1, 0, skip);
	f.caller = (uint32_t)a->code.insns.n;
	rc = add_part(a, part, a->p->can_sleep);
	bpf_place(&a->code, skip);
	f.in_stream.at += n;
	f.in_stream.n = piece->functions_n;
	if (piece->functions_n)
		vec_push(&a->functions, f);
	return rc;
}

static void add_start(struct assembly *a, uint32_t insn_i)
{
	size_t i = a->starts.n;

	while (i && a->starts.v[i - 1] > insn_i)
		i--;
	if (i && a->starts.v[i - 1] == insn_i)
		return;
	vec_push(&a->starts, insn_i);
	for (size_t k = a->starts.n - 1; k > i; k--)
		a->starts.v[k] = a->starts.v[k - 1];
	a->starts.v[i] = insn_i;
}

/* Calls and addresses in the instructions [from, from + n) of functions that begin at `base`. */
static void patch_addresses(struct assembly *a, uint32_t from, uint32_t n, uint32_t base)
{
	for (uint32_t i = from; i < from + n; i++) {
		struct bpf_insn *insn = &a->code.insns.v[i];
		bool is_constant = insn->code == (BPF_LD | BPF_DW | BPF_IMM);

		if ((is_constant && insn->src_reg == BPF_PSEUDO_FUNC) ||
			(insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL)) {
			uint32_t start = base + (uint32_t)insn->imm;

			add_start(a, start);
			insn->imm = (int32_t)(start - i - 1);
		}
		i += is_constant; /* its second half */
	}
}

static int add_functions(struct assembly *a)
{
	int rc = 0;

	for (size_t i = 0; i < a->functions.n && rc == 0; i++) {
		const struct functions *f = &a->functions.v[i];
		uint32_t base = (uint32_t)a->code.insns.n;

		rc = add_part(a, f->in_stream, false);
		patch_addresses(a, f->caller, f->caller_n, base);
		patch_addresses(a, base, f->in_stream.n, base);
	}
	return rc;
}

/* One clause: its piece, or that of the mode. */
static int add_clause(struct assembly *a, size_t point_i)
{
	const struct stream_point *sp = a->p->points.v[point_i];
	struct bpf_code *c = &a->code;
	bool has_32 = run_piece(a->p, point_i, MODE_32), has_64 = run_piece(a->p, point_i, MODE_64);
	int is_32 = bpf_label(c), done = bpf_label(c), rc = 0;

	if (a->p->has[MODE_32] && a->p->has[MODE_64]) {
		bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, STREAM_WORD_IS_32);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_1, 0, is_32);
		if (!has_64)
			bpf_jump(c, done);
	}
	if (has_64)
		rc = add_piece(a, sp, MODE_64);
	if (has_64 && has_32)
		bpf_jump(c, done);
	bpf_place(c, is_32);
	if (has_32 && rc == 0)
		rc = add_piece(a, sp, MODE_32);
	bpf_place(c, done);
	return rc;
}

static int assemble(struct assembly *a)
{
	struct bpf_code *c = &a->code;
	struct run_program *p = a->p;
	int rc = 0;

	prologue_emit(c, a->s, p);
	for (size_t i = 0; i < p->points.n && rc == 0; i++)
		if (run_piece(p, i, MODE_32) || run_piece(p, i, MODE_64))
			rc = add_clause(a, i);
	if (p->scratch_bytes)
		bpf_store_imm(c, BPF_DW, BPF_REG_7, -8, 0);
	bpf_return_0(c);
	if (rc == 0)
		rc = add_functions(a);
	if (rc == 0 && c->is_too_long)
		rc = err_set(a->err, ERR_LIMIT,
			"%s: one of its clauses is so long that a jump over it is not possible",
			p->points.v[0]->spec.text);
	return rc;
}

/* What is at an instruction; the first clause when that is not known. */
static bool find_refused(const struct assembly *a, int64_t insn_i, struct refused *out)
{
	const struct stream *stream = a->s->stream;

	out->point = a->p->points.v[0]->spec.text;
	for (size_t i = 0; i < a->parts.n; i++) {
		const struct code_part *part = &a->parts.v[i];
		uint32_t at = part->at + (uint32_t)insn_i - part->from;

		if (insn_i < part->from || insn_i >= (int64_t)part->from + part->n)
			continue;
		out->clause_i = part->clause_i;
		out->place = stream->clauses.v[part->clause_i].place;
		for (size_t j = 0; j < stream->lines[part->mode].n; j++) {
			if (stream->lines[part->mode].v[j].insn_i > at)
				break;
			if (stream->lines[part->mode].v[j].insn_i >= part->at)
				out->place = stream->lines[part->mode].v[j].place;
		}
		return true;
	}
	if (!a->parts.n)
		return false;
	out->clause_i = a->parts.v[0].clause_i;
	out->place = stream->clauses.v[out->clause_i].place;
	return true;
}

static int explain(struct assembly *a, const struct verifier_complaint *complaint, int errnum)
{
	const char *message = complaint->message;
	struct refused refused;

	if (!message[0])
		message = errnum == E2BIG ? "the program is too long" : strerror(errnum);
	if (!a->s->features.needs_prealloc && strstr(message, "prealloc")) {
		a->s->features.needs_prealloc = true;
		return err_set(a->err, ERR_CHANGED, "%s", message);
	}
	if (!find_refused(a, complaint->insn_i, &refused))
		return err_set(a->err, ERR_UNSUPPORTED,
			"%s: the kernel's verifier refuses this: %s", a->p->points.v[0]->spec.text,
			message);
	return verifier_refusal(a->s, &refused, message, a->err);
}

int run_btf_open(struct probe_session *s, struct err *err)
{
	int rc;

	if (s->btf)
		return 0;
	rc = file_map_open(&s->btf_file, BTF_VMLINUX, err);
	return rc < 0 ? rc : btf_types_open(NULL, s->btf_file.bytes, &s->btf, err);
}

static int function_id(
	struct probe_session *s, struct run_program *p, uint32_t *id, struct err *err)
{
	const char *text = p->points.v[0]->spec.text;
	const char *name = p->name ? p->name : p->points.v[0]->spec.name;
	int rc;

	if (!s->features.has_btf)
		return err_set(err, ERR_UNSUPPORTED,
			"%s: needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF), which is not there",
			text);
	rc = run_btf_open(s, err);
	if (rc < 0)
		return rc;
	*id = btf_types_function_id(s->btf, name);
	return *id ? 0
		   : err_set(err, ERR_NOT_FOUND, "%s: the kernel's BTF has no function '%s'", text,
			     name);
}

static int fill_spec(struct probe_session *s, struct run_program *p, struct bpf_program_spec *spec,
	struct err *err)
{
	const struct point_kind_def *def = &point_kinds[p->kind];

	spec->name = p->points.v[0]->spec.text;
	spec->type = def->program_type;
	spec->attach_type = def->attach_type;
	if (point_has(p->kind, POINT_IN_FILES) && s->features.has_uprobe_multi && !s->named.is_on)
		spec->attach_type = BPF_ATTACH_UPROBE_MULTI;
	return point_has(p->kind, POINT_BY_BTF) ? function_id(s, p, &spec->attach_btf_id, err) : 0;
}

static void assembly_reset(struct assembly *a)
{
	bpf_code_release(&a->code);
	vec_release(&a->parts);
	vec_release(&a->functions);
	vec_release(&a->starts);
	a->code = (struct bpf_code){0};
}

static int load(struct assembly *a, struct bpf_program_spec *spec)
{
	int fd = assemble(a);

	if (fd < 0)
		return fd;
	spec->insns = a->code.insns.v;
	spec->n_insns = a->code.insns.n;
	spec->functions = a->starts.v;
	spec->n_functions = (uint32_t)a->starts.n;
	spec->can_sleep = a->p->can_sleep;
	fd = bpf_program_open(spec, NULL, 0);
	a->p->fd = fd;
	return 0;
}

static int refuse(struct assembly *a, const struct bpf_program_spec *spec)
{
	struct verifier_complaint complaint;
	int errnum = -a->p->fd;

	if (errnum == EPERM || errnum == ENOSYS)
		return kernel_refusal(a->err, errnum, spec->name);
	a->p->fd = bpf_program_open_logged(spec, &complaint);
	return a->p->fd >= 0 ? 0 : explain(a, &complaint, errnum);
}

int run_program_load(struct probe_session *s, struct run_program *p, struct err *err)
{
	struct assembly a = {.s = s, .p = p, .err = err};
	struct bpf_program_spec spec = {0};
	int rc = fill_spec(s, p, &spec, err);

	if (rc == 0)
		rc = load(&a, &spec);
	if (rc == 0 && p->fd < 0 && p->can_sleep) {
		/* Something in it is not for programs that sleep; then strings of pages that are
		 * not in memory are counted as failed reads. */
		p->can_sleep = false;
		assembly_reset(&a);
		rc = load(&a, &spec);
		if (rc == 0 && p->fd >= 0)
			session_note(s,
				"%s: its program cannot sleep on this kernel: memory that is not resident cannot be read",
				spec.name);
	}
	if (rc == 0 && p->fd < 0)
		rc = refuse(&a, &spec);
	assembly_reset(&a);
	return rc;
}
