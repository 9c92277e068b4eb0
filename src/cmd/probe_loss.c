/* SPDX-License-Identifier: MIT */
/* What a run of `weir probe` lost, clause by clause and by reason. */
#include <inttypes.h>
#include <stddef.h>

#include "base/json.h"
#include "cmd/probe.h"

/* In the order of struct clause_loss. */
static const struct {
	const char *name;	/* of JSON */
	const char *one, *more; /* of sentences */
} reasons[] = {
	{"failed_reads", "failed read", "failed reads"},
	{"map_full", "value that found no room in its map",
		"values that found no room in their map"},
	{"lost_records", "lost record (the ring was full)", "lost records (the ring was full)"},
	{"busy", "hit while no scratch area was free", "hits while no scratch area was free"},
	{"stack_failed", "stack that could not be stored", "stacks that could not be stored"},
	{"loop_limit", "loop cut short", "loops cut short"},
	{"other", "division by zero, index behind an array or value that cannot be read",
		"divisions by zero, indexes behind an array or values that cannot be read"},
	{"unseen", "program begun with other rights (setuid), in which it does not count",
		"programs begun with other rights (setuid), in which it does not count"},
	{"left_out", "process that is not traced, since there were too many at a time",
		"processes that are not traced, since there were too many at a time"},
	{"stack_unwalked",
		"stack that was not walked yet when its length, or a map by it, was asked",
		"stacks that were not walked yet when their length, or a map by them, was asked"},
	{"texts_cut", "text cut at the limit of str() (--strlen) or join()",
		"texts cut at the limit of str() (--strlen) or join()"},
	{"missed", "hit that was not seen, in whichever process: other BPF was at work on its CPU",
		"hits that were not seen, in whichever process: other BPF was at work on their CPUs"},
	{"late_ticks", "tick that was not run, since it was too late",
		"ticks that were not run, since they were too late"},
};
#define N_REASONS (sizeof(reasons) / sizeof(reasons[0]))
_Static_assert(sizeof(struct clause_loss) == N_REASONS * sizeof(uint64_t), "one count for each");

/* Told, but the status stays. */
#define TEXTS_CUT (offsetof(struct clause_loss, texts_cut) / sizeof(uint64_t))

static uint64_t count_of(const struct clause_loss *loss, size_t reason)
{
	return ((const uint64_t *)loss)[reason];
}

/* Whether there is something to tell; whether that is a loss. */
static bool has_any(const struct clause_loss *loss)
{
	for (size_t i = 0; i < N_REASONS; i++)
		if (count_of(loss, i))
			return true;
	return false;
}

static bool has_lost(const struct clause_loss *loss)
{
	for (size_t i = 0; i < N_REASONS; i++)
		if (count_of(loss, i) && i != TEXTS_CUT)
			return true;
	return false;
}

/* The trace point by which a clause is known. */
static const char *clause_name(const struct stream *s, uint32_t clause_i)
{
	for (size_t i = 0; i < s->points.n; i++)
		if (s->points.v[i].clause_i == clause_i)
			return s->points.v[i].spec.text;
	return "?";
}

static void print_text(const struct stream *s, uint32_t clause_i, const struct clause_loss *loss)
{
	struct place place = s->clauses.v[clause_i].place;
	uint32_t line, column;
	bool is_first = true;

	place_line(&s->sources, place, &line, &column);
	fprintf(stderr, "weir: %s:%u: clause '%s': ", s->sources.v.v[place.source_i].name, line,
		clause_name(s, clause_i));
	for (size_t i = 0; i < N_REASONS; i++) {
		uint64_t n = count_of(loss, i);

		if (!n)
			continue;
		fprintf(stderr, "%s%" PRIu64 " %s", is_first ? "" : ", ", n,
			n == 1 ? reasons[i].one : reasons[i].more);
		is_first = false;
	}
	fputc('\n', stderr);
}

static void print_json(
	const struct stream *s, uint32_t clause_i, const struct clause_loss *loss, FILE *out)
{
	struct place place = s->clauses.v[clause_i].place;
	uint32_t line, column;
	struct json j;

	place_line(&s->sources, place, &line, &column);
	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_string(&j, "type", "loss");
	json_object_begin(&j, "data");
	json_string(&j, "file", s->sources.v.v[place.source_i].name);
	json_u64(&j, "line", line);
	json_u64(&j, "clause", clause_i + 1);
	json_string(&j, "probe", clause_name(s, clause_i));
	for (size_t i = 0; i < N_REASONS; i++)
		json_u64(&j, reasons[i].name, count_of(loss, i));
	json_object_end(&j);
	json_object_end(&j);
}

bool probe_print_losses(const struct probe_setup *setup, const struct stream *s,
	const struct probe_session *session, FILE *out)
{
	struct clause_loss loss;
	bool is_loss = false;

	for (uint32_t i = 0; i < s->clauses.n; i++) {
		probe_session_loss(session, i, &loss);
		if (!has_any(&loss))
			continue;
		is_loss |= has_lost(&loss);
		if (setup->is_json)
			print_json(s, i, &loss, out);
		print_text(s, i, &loss);
	}
	return is_loss;
}

bool probe_print_run_losses(
	const struct probe_setup *setup, const struct probe_run_loss *loss, FILE *out)
{
	struct json j;

	if (!loss->mappings && !loss->commands)
		return false;
	if (loss->mappings)
		fprintf(stderr,
			"weir: %" PRIu64 " records of mappings were lost: names may be missing\n",
			loss->mappings);
	if (loss->commands)
		fprintf(stderr,
			"weir: %" PRIu64 " commands of system() were not run: the run was ended\n",
			loss->commands);
	if (!setup->is_json)
		return true;
	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_string(&j, "type", "loss");
	json_object_begin(&j, "data");
	json_u64(&j, "mappings", loss->mappings);
	json_u64(&j, "commands", loss->commands);
	json_object_end(&j);
	json_object_end(&j);
	return true;
}

bool probe_has_losses(const struct stream *s, const struct probe_session *session)
{
	struct clause_loss loss;

	for (uint32_t i = 0; i < s->clauses.n; i++) {
		probe_session_loss(session, i, &loss);
		if (has_lost(&loss))
			return true;
	}
	return false;
}
