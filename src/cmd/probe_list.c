/* SPDX-License-Identifier: MIT */
/* weir probe -l: trace points of this machine. */
#include "base/json.h"
#include "cmd/probe.h"

struct listing {
	FILE *out;
	struct json json;
	bool is_json;
	size_t n;
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

	l->n++;
	if (l->is_json) {
		print_json(l, name, details, n_details);
		return;
	}
	fprintf(l->out, "%s\n", name);
	for (size_t i = 0; i < n_details; i++)
		fprintf(l->out, "    %s\n", details[i]);
}

int probe_list(const struct probe_setup *setup, const char *pattern)
{
	struct listing l = {.out = setup->out, .is_json = setup->is_json};
	struct err err = {0};
	int rc;

	if (l.is_json) {
		json_init(&l.json, l.out);
		json_object_begin(&l.json, NULL);
		json_u64(&l.json, "weir", 1);
		json_string(&l.json, "kind", "probes");
		json_string(&l.json, "pattern", pattern);
		json_array_begin(&l.json, "rows");
	}
	rc = points_list(pattern ? pattern : "*", &setup->find, setup->a->verbose || l.is_json,
		print_one, &l, &err);
	if (l.is_json) {
		json_array_end(&l.json);
		json_object_end(&l.json);
	}
	if (rc < 0)
		return command_fail(&err);
	if (!l.n) {
		err_set(&err, ERR_NOT_FOUND, "'%s': no trace point matches",
			pattern ? pattern : "*");
		return command_fail(&err);
	}
	return STATUS_DONE;
}
