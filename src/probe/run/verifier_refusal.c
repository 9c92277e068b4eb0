/* SPDX-License-Identifier: MIT */
/*
 * What the kernel's verifier says of a program, as a message about the script: where, in our words as far as
 * it is understood, in the kernel's own, and what helps.
 */
#include <string.h>

#include "probe/run/run.h"

/* In the order in which they are looked for; a word of what the kernel says. */
static const struct {
	const char *says;
	const char *tag, *sentence, *hint;
	bool is_of_clause; /* no line of it is to blame */
} refusals[] = {
	{"too large", "size", "the verifier of the kernel gives up: this clause has too many ways through it",
		"fewer conditions in loops, fewer or shorter loops; all clauses of a point count together",
		true},
	{"too complex", "size", "the verifier of the kernel gives up: this clause has too many conditions",
		"fewer conditions in loops, fewer or shorter loops; all clauses of a point count together",
		true},
	{"program is too long", "size", "the kernel takes no program as long as this clause",
		"fewer statements, or clauses at fewer points", true},
	{"stack", "size", "the kernel has too little stack for this clause",
		"fewer variables, or loops less deep in each other", true},
	{"frames", "nesting", "loops over maps are nested too deeply for the kernel", "at most 7", true},
	{"unknown func", "kernel-lacks", "this kernel does not have what this needs",
		"a newer kernel, or another kind of trace point", false},
	{"cannot use helper", "kernel-lacks", "this kernel does not have what this needs here",
		"a newer kernel, or another kind of trace point", false},
	{"", "verifier", "the kernel's verifier refuses this",
		"that should not happen: please report the script and this message", false},
};

static size_t find_refusal(const char *message)
{
	size_t i = 0;

	while (!strstr(message, refusals[i].says))
		i++;
	return i;
}

/* As one sentence, for who has no place for more. */
static int refuse_shortly(
	struct probe_session *s, struct place place, const char *message, struct err *err)
{
	const struct sources *sources = &s->stream->sources;
	uint32_t line, column;

	place_line(sources, place, &line, &column);
	return err_set(err, ERR_UNSUPPORTED, "%s:%u:%u: the kernel's verifier refuses this: %s",
		sources->v.v[place.source_i].name, line, column, message);
}

int verifier_refusal(
	struct probe_session *s, const struct refused *refused, const char *message, struct err *err)
{
	size_t i = find_refusal(message);
	struct place clause = s->stream->clauses.v[refused->clause_i].place;
	struct place place = refusals[i].is_of_clause ? clause : refused->place;
	struct diags diags;

	if (place.source_i >= s->stream->sources.v.n)
		return err_set(err, ERR_UNSUPPORTED, "%s: the kernel's verifier refuses this: %s",
			refused->point, message);
	if (!s->output.refused)
		return refuse_shortly(s, place, message, err);
	diags_init(&diags, &s->stream->sources);
	diag_error(&diags, place, refusals[i].tag, "%s (%s)", refusals[i].sentence, message);
	diag_hint(&diags, "%s", refusals[i].hint);
	s->output.refused(s->output.ctx, &diags);
	diags_release(&diags);
	return err_set(err, ERR_UNSUPPORTED, "%s: the kernel does not take the program of this point",
		refused->point);
}
