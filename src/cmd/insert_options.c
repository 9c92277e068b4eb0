/* SPDX-License-Identifier: MIT */
#include "cmd/insert_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "insert/cost/cost.h"
#include "insert/foreign_names.h"

/* ---- arguments ---- */

static int add_wishes(
	struct insert_setup *s, const struct command *command, const char *list, bool is_skip)
{
	while (*list) {
		size_t n = function_pattern_bytes(list);
		char *text = mem_strndup(list, n);
		struct insert_wish w = {.is_skip = is_skip};
		struct err err = {0};
		int rc = n ? function_pattern_init(&w.pattern, text, NULL, &err) : 0;

		free(text);
		if (rc < 0)
			return options_usage_error(command, "%s", err.text);
		if (n)
			vec_push(&s->wishes, w);
		if (n && w.pattern.image)
			return options_usage_error(command,
				"'%s': all that is linked is one image, none can be named", w.pattern.text);
		s->has_only |= n && !is_skip;
		list += n + (list[n] == ',');
	}
	return STATUS_DONE;
}

static bool matches(const struct insert_wish *w, const char *name)
{
	struct function_name n = {.linkage = name};
	bool result = function_pattern_match(&w->pattern, &n) != FUNCTION_MATCH_NONE;

	function_name_release(&n);
	return result;
}

static bool wants_function(void *context, const char *name)
{
	const struct insert_setup *s = context;
	bool is_wanted = !s->has_only;

	for (size_t i = 0; i < s->wishes.n; i++) {
		const struct insert_wish *w = &s->wishes.v[i];

		if ((w->is_skip || !is_wanted) && matches(w, name)) {
			if (w->is_skip)
				return false;
			is_wanted = true;
		}
	}
	return is_wanted;
}

static int take_wishes(
	struct insert_setup *s, const struct command *command, const struct insert_arguments *a)
{
	int status = STATUS_DONE;

	for (size_t i = 0; status == STATUS_DONE && i < a->only.n; i++)
		status = add_wishes(s, command, a->only.v[i], false);
	for (size_t i = 0; status == STATUS_DONE && i < a->skip.n; i++)
		status = add_wishes(s, command, a->skip.v[i], true);
	if (s->wishes.n)
		s->options.wants = wants_function;
	s->options.wants_context = s;
	return status;
}

void insert_setup_match(struct insert_setup *setup, const struct insert_report *r)
{
	for (size_t i = 0; i < setup->wishes.n; i++) {
		struct insert_wish *w = &setup->wishes.v[i];

		w->near.wanted = w->pattern.name;
		for (size_t k = 0; !w->is_matched && k < r->functions.n; k++) {
			w->is_matched = matches(w, r->functions.v[k].name);
			function_pattern_offer(&w->pattern, &w->near, r->functions.v[k].name);
		}
	}
}

bool insert_setup_unmatched(const struct insert_setup *setup, struct err *err)
{
	for (size_t i = 0; i < setup->wishes.n; i++) {
		const struct insert_wish *w = &setup->wishes.v[i];
		char names[512];
		bool has_near = !w->is_matched && nearest_names_text(&w->near, names, sizeof(names));

		if (w->is_matched)
			continue;
		err_set(err, ERR_NOT_FOUND, "no function matches '%s'%s%s%s", w->pattern.text,
			has_near ? "; is it " : "", has_near ? names : "", has_near ? "?" : "");
		return true;
	}
	return false;
}

static int take_metrics(
	struct insert_setup *s, const struct command *command, const struct insert_arguments *a)
{
	static const char *const known[] = {"instructions", "calls", "cycles", NULL};
	const char *list = a->metrics ? a->metrics : "";
	int status = STATUS_DONE;
	size_t metric = 0;

	while (*list) {
		size_t n = strcspn(list, ",");
		char *name = mem_strndup(list, n);

		if (n && options_choose(command, "--metrics", name, known, &metric))
			status = STATUS_USAGE;
		s->options.with_cycles |= metric == 2;
		free(name);
		list += n + (list[n] == ',');
	}
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
	static int (*const takes[])(struct insert_setup *s, const struct command *command,
		const struct insert_arguments *a) = {
		take_mode, take_metrics, take_cpu, take_timing, take_wishes};
	int status = STATUS_DONE;

	memset(setup, 0, sizeof(*setup));
	for (size_t i = 0; status == STATUS_DONE && i < sizeof(takes) / sizeof(takes[0]); i++)
		status = takes[i](setup, command, a);
	if (status != STATUS_DONE)
		insert_setup_release(setup);
	return status;
}

void insert_setup_release(struct insert_setup *setup)
{
	for (size_t i = 0; i < setup->wishes.n; i++)
		function_pattern_release(&setup->wishes.v[i].pattern);
	vec_release(&setup->wishes);
}

void insert_arguments_release(struct insert_arguments *a)
{
	vec_release(&a->only);
	vec_release(&a->skip);
}

bool insert_setup_times(const struct insert_setup *setup, const char *name)
{
	return setup->timing != FOREIGN_TIMING_NONE && !foreign_name_is_untimed(name) &&
	       (setup->timing == FOREIGN_TIMING_ALL || !foreign_name_is_short(name));
}

void insert_setup_hash(const struct insert_setup *setup, struct content_hash *hash)
{
	content_hash_add_u64(hash, setup->options.mode);
	content_hash_add_u64(hash, setup->timing);
	content_hash_add_u64(hash, setup->options.with_cycles);
	content_hash_add_text(hash,
		setup->options.with_cycles ? cost_cpu_name(cost_cpu_find(setup->options.cpu)) : "");
	for (size_t i = 0; i < setup->wishes.n; i++) {
		content_hash_add_text(hash, setup->wishes.v[i].is_skip ? "skip" : "only");
		content_hash_add_text(hash, setup->wishes.v[i].pattern.text);
	}
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
