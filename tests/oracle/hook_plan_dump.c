/* SPDX-License-Identifier: MIT */
/*
 * Prints the plan of an image, for comparison with a disassembler:
 *   hook_plan_dump list WISHES IMAGE	METHOD SITE PATCHED ORIGINAL PAD START BYTES NAME of every
 *					function, and what was not hooked by a jump with its reason
 *					behind "#"
 *   hook_plan_dump extras WISHES IMAGE	ACTION DETAIL SITE PATCHED FUNCTION of the entries without
 *					function
 *   hook_plan_dump count WISHES IMAGE	functions by method, and reasons with their number
 *   hook_plan_dump time WISHES IMAGE	nanoseconds of processor time, number of functions
 * WISHES "@" are the allocation functions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "record/hooks/plan.h"

#define REASONS_MAX 64

struct reason_count {
	const char *reason;
	size_t n;
};

static const struct hook_plan *plan_of(
	const struct planned_image *image, const struct planned_function *f)
{
	return f->plan_bytes ? (const void *)(image->plans.p + f->plan_at) : NULL;
}

static void list(const struct planned_image *image)
{
	for (size_t i = 0; i < image->functions.n; i++) {
		const struct planned_function *f = &image->functions.v[i];
		const struct hook_plan *plan = plan_of(image, f);

		printf("%s %" PRIx64 " %u %u %" PRIx64 " %" PRIx64 " %" PRIu64 " %s%s%s\n",
			hook_method_name(f->method), f->site.v, f->n_patched,
			plan ? plan->n_original : 0, plan ? plan->pad_site : 0, f->function.v,
			f->bytes, f->name, f->reason ? " # " : "", f->reason ? f->reason : "");
	}
}

static void list_extras(const struct planned_image *image)
{
	size_t at = 0;

	for (size_t i = 0; i < image->n_extra; i++) {
		const struct hook_plan *plan = (const void *)(image->plans.p + at);

		printf("%u %u %" PRIx64 " %u %" PRIx64 "\n", plan->action, plan->detail, plan->site,
			plan->n_patched, plan->function);
		at += plan->bytes;
	}
}

static void add_reason(struct reason_count *reasons, const char *reason)
{
	size_t i = 0;

	while (i < REASONS_MAX - 1 && reasons[i].reason && strcmp(reasons[i].reason, reason))
		i++;
	reasons[i].reason = reason;
	reasons[i].n++;
}

static void print_reasons(const char *title, const struct reason_count *reasons)
{
	for (size_t i = 0; i < REASONS_MAX && reasons[i].reason; i++)
		printf("%s %zu %s\n", title, reasons[i].n, reasons[i].reason);
}

static void count(const struct planned_image *image)
{
	size_t n_by[HOOK_METHOD_CYGPROF + 1] = {0}, n_short = 0;
	struct reason_count trap[REASONS_MAX] = {0}, refused[REASONS_MAX] = {0};

	for (size_t i = 0; i < image->functions.n; i++) {
		const struct planned_function *f = &image->functions.v[i];
		const struct hook_plan *plan = plan_of(image, f);

		n_by[f->method]++;
		n_short += plan && plan->pad_site;
		if (f->reason)
			add_reason(f->method ? trap : refused, f->reason);
	}
	printf("functions %zu jump %zu short %zu int3 %zu nop %zu mcount %zu instrument %zu refused %zu\n",
		image->functions.n, n_by[HOOK_METHOD_JUMP] - n_short, n_short,
		n_by[HOOK_METHOD_INT3], n_by[HOOK_METHOD_NOP], n_by[HOOK_METHOD_MCOUNT],
		n_by[HOOK_METHOD_CYGPROF], n_by[0]);
	print_reasons("int3", trap);
	print_reasons("refused", refused);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void print_unmatched(void *ctx, const char *wish, const char *near)
{
	(void)ctx;
	(void)near;
	fprintf(stderr, "nothing matches %s\n", wish);
}

int main(int argc, char **argv)
{
	struct hook_planner *p = hook_planner_new();
	const struct planned_image *image = NULL;
	struct file_map map;
	struct elf_file elf;
	struct err err = {0};
	uint64_t start;
	int rc;

	if (argc != 4)
		return 2;
	if (strcmp(argv[2], "@") == 0)
		p->wants_allocations = true;
	else if (wishes_add(&p->wishes, argv[2], HOOK_ACTION_CALL, &err) < 0)
		return fprintf(stderr, "%s\n", err.text), 1;
	if (file_map_open(&map, argv[3], &err) < 0 || elf_file_init(&elf, map.bytes, &err) < 0)
		return fprintf(stderr, "%s\n", err.text), 1;
	start = cpu_ns();
	rc = hook_planner_image(
		p, &(struct planned_file){.key = 1}, &elf, argv[3], true, &image, &err);
	if (rc < 0)
		fprintf(stderr, "%s\n", err.text);
	else if (strcmp(argv[1], "list") == 0)
		list(image);
	else if (strcmp(argv[1], "extras") == 0)
		list_extras(image);
	else if (strcmp(argv[1], "count") == 0)
		count(image);
	else
		printf("%" PRIu64 " %u\n", cpu_ns() - start, p->n_ids);
	hook_planner_each_unmatched(p, print_unmatched, NULL);
	hook_planner_free(p);
	elf_file_release(&elf);
	file_map_release(&map);
	return rc < 0;
}
