/* SPDX-License-Identifier: MIT */
#include "cmd/insert_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "insert/cost/cost.h"
#include "insert/insert_report.h"

/* ---- arguments ---- */

static void split_list(const char *list, struct option_texts *out)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		if (n)
			vec_push(out, mem_strndup(list, n));
		list += n + (list[n] == ',');
	}
}

static const char *const *globs_of(const struct option_texts *given, struct option_texts *out)
{
	for (size_t i = 0; i < given->n; i++)
		split_list(given->v[i], out);
	if (!out->n)
		return NULL;
	vec_push(out, NULL);
	return out->v;
}

static int take_metrics(
	struct insert_setup *s, const struct command *command, const struct insert_arguments *a)
{
	static const char *const known[] = {"instructions", "calls", "cycles", NULL};
	struct option_texts names = {0};
	int status = STATUS_DONE;
	size_t metric;

	split_list(a->metrics ? a->metrics : "", &names);
	for (size_t i = 0; i < names.n; i++) {
		if (options_choose(command, "--metrics", names.v[i], known, &metric))
			status = STATUS_USAGE;
		s->options.with_cycles |= metric == 2;
	}
	vec_release_all(&names);
	if (status == STATUS_DONE && s->options.with_cycles && a->counts)
		status = options_usage_error(
			command, "cycles are summed in the call tree: not with --counts");
	return status;
}

static int take_cpu(
	struct insert_setup *s, const struct command *command, const struct insert_arguments *a)
{
	struct option_texts names = {0};
	int status;
	size_t i;

	s->options.cpu = a->cpu;
	if (!a->cpu || cost_cpu_find(a->cpu))
		return STATUS_DONE;
	for (i = 0; cost_cpu_at(i); i++)
		vec_push(&names, cost_cpu_name(cost_cpu_at(i)));
	vec_push(&names, NULL);
	status = options_choose(command, "--cpu", a->cpu, names.v, &i);
	vec_release(&names);
	return status;
}

static int take_timing(
	struct insert_setup *s, const struct command *command, const struct insert_arguments *a)
{
	static const char *const ways[] = {"own", "self", "off", NULL};
	static const char *const timings[] = {[FOREIGN_TIMING_ALL] = "all",
		[FOREIGN_TIMING_SLOW] = "slow",
		[FOREIGN_TIMING_NONE] = "none",
		NULL};
	size_t way, timing;

	if (options_choose(command, "--os-calls", a->os_calls ? a->os_calls : "own", ways, &way) ||
		options_choose(command, "--time-foreign",
			a->time_foreign ? a->time_foreign : "slow", timings, &timing))
		return STATUS_USAGE;
	s->timing = way == 2 ? FOREIGN_TIMING_NONE : (enum foreign_timing)timing;
	return STATUS_DONE;
}

static int take_mode(
	struct insert_setup *s, const struct command *command, const struct insert_arguments *a)
{
	static const char *const names[] = {[INSERT_MODE_TREE] = "tree",
		[INSERT_MODE_COUNTS] = "counts",
		[INSERT_MODE_NOPS] = "nops",
		[INSERT_MODE_NOTHING] = "nothing",
		NULL};
	size_t mode = a->counts ? INSERT_MODE_COUNTS : INSERT_MODE_TREE;
	int status =
		a->mode ? options_choose(command, "--mode", a->mode, names, &mode) : STATUS_DONE;

	s->options.mode = (enum insert_mode)mode;
	return status;
}

int insert_setup_init(
	struct insert_setup *setup, const struct command *command, const struct insert_arguments *a)
{
	int status;

	memset(setup, 0, sizeof(*setup));
	status = take_mode(setup, command, a);
	if (status == STATUS_DONE)
		status = take_metrics(setup, command, a);
	if (status == STATUS_DONE)
		status = take_cpu(setup, command, a);
	if (status == STATUS_DONE)
		status = take_timing(setup, command, a);
	if (status != STATUS_DONE)
		return status;
	setup->options.only = globs_of(&a->only, &setup->only);
	setup->options.skip = globs_of(&a->skip, &setup->skip);
	return STATUS_DONE;
}

void insert_setup_release(struct insert_setup *setup)
{
	vec_release_all(&setup->only);
	vec_release_all(&setup->skip);
}

void insert_arguments_release(struct insert_arguments *a)
{
	vec_release(&a->only);
	vec_release(&a->skip);
}

static void hash_texts(struct content_hash *hash, const struct option_texts *texts)
{
	content_hash_add_u64(hash, texts->n);
	for (size_t i = 0; i < texts->n; i++)
		content_hash_add_text(hash, texts->v[i] ? texts->v[i] : "");
}

void insert_setup_hash(const struct insert_setup *setup, struct content_hash *hash)
{
	content_hash_add_u64(hash, setup->options.mode);
	content_hash_add_u64(hash, setup->options.with_cycles);
	content_hash_add_text(hash,
		setup->options.with_cycles ? cost_cpu_name(cost_cpu_find(setup->options.cpu)) : "");
	hash_texts(hash, &setup->only);
	hash_texts(hash, &setup->skip);
}

/* ---- what was done ---- */

void insert_print_summary(const char *path, const struct insert_report *r, FILE *out)
{
	struct insert_totals t = {0};

	insert_totals_add(&t, r);
	fprintf(out,
		"'%s': %" PRIu64 " of %" PRIu64 " functions inserted (%" PRIu64
		" blocks) in %" PRIu64 " objects, text %" PRIu64 " -> %" PRIu64 " bytes",
		path, t.n_inserted, t.n_functions, r->n_blocks, r->n_objects, r->old_text,
		r->new_text);
	if (r->n_left_alone)
		fprintf(out, ", %" PRIu64 " left as they were", r->n_left_alone);
	fputc('\n', out);
}

void insert_print_notes(const char *path, const struct insert_report *r)
{
	if (r->notes.n == 1)
		fprintf(stderr, "weir: '%s': %s\n", path, r->notes.v[0]);
	else if (r->notes.n)
		fprintf(stderr, "weir: '%s': %s (and %zu more like this; -v tells)\n", path,
			r->notes.v[0], r->notes.n - 1);
}

static void print_function(const struct insert_function *f, FILE *out)
{
	if (f->member)
		fprintf(out, "  %s: %s", f->member, f->name);
	else
		fprintf(out, "  %s", f->name);
	if (f->reason != INSERT_REASON_DONE)
		fprintf(out, ": left alone: %s\n", insert_reason_text(f->reason));
	else
		fprintf(out, ": %u blocks, %u instructions, %" PRIu64 " -> %" PRIu64 " bytes\n",
			f->n_blocks, f->n_insns, f->old_bytes, f->new_bytes);
}

void insert_print_functions(const struct insert_report *r, bool only_left_alone, FILE *out)
{
	for (size_t i = 0; i < r->functions.n; i++)
		if (!only_left_alone || r->functions.v[i].reason != INSERT_REASON_DONE)
			print_function(&r->functions.v[i], out);
	for (size_t i = 0; i < r->notes.n; i++)
		fprintf(out, "  %s\n", r->notes.v[i]);
}

static void json_function(struct json *j, const struct insert_function *f)
{
	bool is_done = f->reason == INSERT_REASON_DONE;

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "name", f->name);
	json_string(j, "member", f->member);
	json_bool(j, "inserted", is_done);
	json_string(j, "reason", is_done ? NULL : insert_reason_text(f->reason));
	json_u64(j, "blocks", f->n_blocks);
	json_u64(j, "instructions", f->n_insns);
	json_u64(j, "old_bytes", f->old_bytes);
	json_u64(j, "new_bytes", f->new_bytes);
	json_bool(j, "compiled", f->is_compiled);
	json_object_end(j);
}

void insert_print_json(const char *in, const char *output, const struct insert_report *r, FILE *out)
{
	struct insert_totals t = {0};
	struct json j;

	insert_totals_add(&t, r);
	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_u64(&j, "weir", 1);
	json_string(&j, "kind", "insert");
	json_string(&j, "input", in);
	json_string(&j, "output", output);
	json_u64(&j, "objects", r->n_objects);
	json_u64(&j, "objects_left_alone", r->n_left_alone);
	json_u64(&j, "functions", t.n_functions);
	json_u64(&j, "inserted", t.n_inserted);
	json_u64(&j, "functions_compiled", t.n_compiled);
	json_u64(&j, "inserted_compiled", t.n_compiled_inserted);
	json_u64(&j, "blocks", r->n_blocks);
	json_u64(&j, "old_text", r->old_text);
	json_u64(&j, "new_text", r->new_text);
	json_object_begin(&j, "reasons");
	for (int i = INSERT_REASON_DONE + 1; i < INSERT_N_REASONS; i++)
		if (t.by_reason[i])
			json_u64(&j, insert_reason_text((enum insert_reason)i), t.by_reason[i]);
	json_object_end(&j);
	json_array_begin(&j, "rows");
	for (size_t i = 0; i < r->functions.n; i++)
		json_function(&j, &r->functions.v[i]);
	json_array_end(&j);
	json_array_begin(&j, "notes");
	for (size_t i = 0; i < r->notes.n; i++)
		json_string(&j, NULL, r->notes.v[i]);
	json_array_end(&j);
	json_object_end(&j);
}
