/* SPDX-License-Identifier: MIT */
/*
 * The log walks through the program as the verifier does:
 *
 *   0: R1=ctx() R10=fp0
 *   0: (bf) r6 = r1                       ; R1=ctx() R6_w=ctx()
 *   from 3 to 7: R0=0 ...
 *   7: (79) r0 = *(u64 *)(r1 +0)
 *   R1 invalid mem access 'scalar'
 *   processed 8 insns (limit 1000000) ...
 *
 * The complaint is what stands behind the last instruction; sometimes it has two lines. Complaints
 * about the shape of the program ("unreachable insn 5") come before any instruction is shown.
 */
#include "bpf/verifier_log.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define LINES_MAX 3 /* of a complaint */

struct line {
	const char *p;
	size_t n;
};

/* A number at the start; the place behind it, 0 when there is none. */
static size_t read_number(struct line l, int64_t *value)
{
	size_t i = 0;
	int64_t v = 0;

	for (; i < l.n && isdigit((unsigned char)l.p[i]); i++) {
		if (i > 9)
			return 0;
		v = v * 10 + (l.p[i] - '0');
	}
	if (i)
		*value = v;
	return i;
}

/* "12: (85) call ..."; false also for "12: R0=...", which is a state. */
static bool is_instruction(struct line l, int64_t *insn_i)
{
	int64_t v;
	size_t n = read_number(l, &v);

	if (!n || n + 6 > l.n || memcmp(l.p + n, ": (", 3) || l.p[n + 5] != ')')
		return false;
	*insn_i = v;
	return true;
}

/* Lines that tell what the verifier does or how long it took. */
static bool is_chatter(struct line l)
{
	static const char *const starts[] = {"processed ", "verification time", "stack depth",
		"from ", "mark_precise", "last_idx", "parent didn't", "parent already",
		"regs=", "func#", "Live regs before insn", "propagating ",
		"caller:", "callee:", "returning from callee", "to caller at", ";", "arg#",
		"Validating "};
	int64_t unused;
	size_t n = read_number(l, &unused);

	if (n && n + 1 < l.n && l.p[n] == ':')
		return true;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (l.n >= strlen(starts[i]) && !memcmp(l.p, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/* "R1=ctx() R10=fp0": a state without a number before it. */
static bool is_state(struct line l)
{
	size_t i = 1;

	if (l.n < 3 || l.p[0] != 'R' || !isdigit((unsigned char)l.p[1]))
		return false;
	while (i < l.n && (isalnum((unsigned char)l.p[i]) || l.p[i] == '_'))
		i++;
	return i < l.n && l.p[i] == '=';
}

static void add_line(struct verifier_complaint *c, struct line l)
{
	size_t n = strlen(c->message), room = sizeof(c->message) - 1;

	if (n && n + 2 < room) {
		memcpy(c->message + n, "; ", 2);
		n += 2;
	}
	for (size_t i = 0; i < l.n && n < room; i++)
		if (l.p[i] >= ' ' && l.p[i] != 0x7f)
			c->message[n++] = l.p[i];
	c->message[n] = 0;
}

/* "unreachable insn 5", "jump out of range from insn 3 to 90". */
static int64_t number_in_message(const char *message)
{
	const char *at = strstr(message, "insn ");
	int64_t v = -1;

	if (at)
		read_number((struct line){at + 5, strlen(at + 5)}, &v);
	return v;
}

void verifier_log_read(struct span log, struct verifier_complaint *out)
{
	const char *p = (const char *)log.p, *end = p + log.n;
	int n_lines = 0;

	*out = (struct verifier_complaint){.insn_i = -1};
	while (log.n && p < end && *p) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		struct line l = {p, (size_t)((stop ? stop : end) - p)};

		p = stop ? stop + 1 : end;
		while (l.n && isspace((unsigned char)l.p[l.n - 1]))
			l.n--;
		if (is_instruction(l, &out->insn_i)) {
			n_lines = 0;
			out->message[0] = 0;
		} else if (l.n && !is_chatter(l) && !is_state(l) && n_lines++ < LINES_MAX) {
			add_line(out, l);
		}
	}
	if (out->insn_i < 0)
		out->insn_i = number_in_message(out->message);
}
