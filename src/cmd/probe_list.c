/* SPDX-License-Identifier: MIT */
/* weir probe -l: trace points of this machine, or those of scripts. */
#include <string.h>

#include "base/json.h"
#include "cmd/probe.h"
#include "probe/script/parse.h"

struct listing {
	FILE *out;
	struct json json;
	bool is_json;
};

static void print_json(
	struct listing *l, const char *name, const char *const *details, size_t n_details)
{
	json_newline(&l->json);
	json_object_begin(&l->json, NULL);
	json_string(&l->json, "name", name);
	json_array_begin(&l->json, "arguments");
	for (size_t i = 0; i < n_details; i++)
		json_string(&l->json, NULL, details[i]);
	json_array_end(&l->json);
	json_object_end(&l->json);
}

static void print_one(void *ctx, const char *name, const char *const *details, size_t n_details)
{
	struct listing *l = ctx;
	bool is_type;

	if (l->is_json) {
		print_json(l, name, details, n_details);
		return;
	}
	is_type = n_details && !strchr(name, ':');
	fprintf(l->out, "%s%s\n", name, is_type ? " {" : "");
	for (size_t i = 0; i < n_details; i++)
		fprintf(l->out, "    %s\n", details[i]);
	if (is_type)
		fputs("};\n", l->out);
}

/* ---- patterns ---- */

/* "uprobe:x:f(int, int),syscall:open": the first comma parts patterns no more than the one inside of
 * brackets does. */
static size_t pattern_length(const char *text)
{
	int depth = 0;
	size_t n = 0;

	for (; text[n] && (text[n] != ',' || depth > 0); n++)
		depth += (text[n] == '(') - (text[n] == ')');
	return n;
}

static void add_patterns(struct option_texts *patterns, const char *text)
{
	while (*(text += strspn(text, " ,"))) {
		size_t n = pattern_length(text), end = n;

		while (end && text[end - 1] == ' ')
			end--;
		vec_push(patterns, mem_strndup(text, end));
		text += n;
	}
}

/* The trace points of scripts. */
static int add_points(
	const struct probe_setup *setup, struct sources *sources, struct option_texts *patterns)
{
	struct script_parameters none = {.imports = true};
	struct diags diags;
	struct script *script;
	int status = STATUS_DONE;

	diags_init(&diags, sources);
	script = script_parse(sources, &none, &diags);
	if (diags.n_errors) {
		probe_print_messages(setup, &diags);
		status = STATUS_FAILED;
	}
	for (const struct clause *c = script->clauses; c && status == STATUS_DONE; c = c->next)
		for (const struct point_text *point = c->points; point; point = point->next)
			vec_push(patterns, mem_strdup(point->text));
	script_free(script);
	diags_release(&diags);
	return status;
}

static int list(const struct probe_setup *setup, const struct option_texts *patterns)
{
	struct listing l = {.out = setup->out, .is_json = setup->is_json};
	struct err err = {0};
	int rc;

	if (l.is_json) {
		json_init(&l.json, l.out);
		json_object_begin(&l.json, NULL);
		json_u64(&l.json, "weir", 1);
		json_string(&l.json, "kind", "probes");
		json_string(&l.json, "pattern", patterns->v[0]);
		json_array_begin(&l.json, "rows");
	}
	rc = points_list(patterns->v, patterns->n, &setup->find, setup->a->verbose || l.is_json,
		print_one, &l, &err);
	if (l.is_json) {
		json_array_end(&l.json);
		json_object_end(&l.json);
	}
	return rc < 0 ? command_fail(&err) : STATUS_DONE;
}

int probe_list(const struct probe_setup *setup, struct sources *sources, char *const *words,
	size_t n_words)
{
	struct option_texts patterns = {0};
	int status = STATUS_DONE;

	for (size_t i = 0; i < n_words; i++)
		add_patterns(&patterns, words[i]);
	if (sources->v.n)
		status = add_points(setup, sources, &patterns);
	else if (!patterns.n)
		vec_push(&patterns, mem_strdup("*"));
	if (status == STATUS_DONE)
		status = list(setup, &patterns);
	vec_release_all(&patterns);
	return status;
}
