/* SPDX-License-Identifier: MIT */
#include "probe/points/syscalls.h"

#include <stdlib.h>
#include <string.h>

#include "process/syscall_names.h"

enum { MODES_32 = 1 << MODE_32, MODES_64 = 1 << MODE_64, MODES_BOTH = MODES_32 | MODES_64 };

struct row {
	const char *name;
	unsigned modes;
	struct syscall_arg args[SYSCALL_ARGS_MAX + 1]; /* up to a NULL name */
};

#define ARGS(modes, name, ...) {#name, MODES_##modes, {__VA_ARGS__}},
static const struct row rows[] = {
#include "probe/points/syscall_args.def"
};
#undef ARGS
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

int syscall_number(enum mode mode, const char *name)
{
	for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++) {
		const char *known = syscall_name(mode == MODE_32, i);

		if (known && !strcmp(known, name))
			return i;
	}
	return -1;
}

/* The calls that return something else than a number. The kernel widens results as
 * if they were signed: in 32 bits most addresses would be negative. */
static const struct {
	const char *name;
	enum syscall_result result;
} results[] = {
	{"brk", SYSCALL_RESULT_ADDRESS},
	{"getegid", SYSCALL_RESULT_ID},
	{"getegid32", SYSCALL_RESULT_ID},
	{"geteuid", SYSCALL_RESULT_ID},
	{"geteuid32", SYSCALL_RESULT_ID},
	{"getgid", SYSCALL_RESULT_ID},
	{"getgid32", SYSCALL_RESULT_ID},
	{"getuid", SYSCALL_RESULT_ID},
	{"getuid32", SYSCALL_RESULT_ID},
	{"map_shadow_stack", SYSCALL_RESULT_ADDRESS},
	{"mmap", SYSCALL_RESULT_ADDRESS},
	{"mmap2", SYSCALL_RESULT_ADDRESS},
	{"mremap", SYSCALL_RESULT_ADDRESS},
	{"setfsgid", SYSCALL_RESULT_ID},
	{"setfsgid32", SYSCALL_RESULT_ID},
	{"setfsuid", SYSCALL_RESULT_ID},
	{"setfsuid32", SYSCALL_RESULT_ID},
	{"shmat", SYSCALL_RESULT_ADDRESS},
};
#define N_RESULTS (sizeof(results) / sizeof(results[0]))

enum syscall_result syscall_result(const char *name)
{
	for (size_t i = 0; i < N_RESULTS; i++)
		if (!strcmp(results[i].name, name))
			return results[i].result;
	return SYSCALL_RESULT_NUMBER;
}

void syscall_each_address(enum mode mode, void (*each)(void *ctx, int number), void *ctx)
{
	for (size_t i = 0; i < N_RESULTS; i++) {
		int number = results[i].result == SYSCALL_RESULT_ADDRESS
				     ? syscall_number(mode, results[i].name)
				     : -1;

		if (number >= 0)
			each(ctx, number);
	}
}

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, ((const struct row *)row)->name);
}

const struct syscall_arg *syscall_args(enum mode mode, const char *name)
{
	const struct row *row = bsearch(name, rows, N_ROWS, sizeof(rows[0]), compare_name);

	if (!row && syscall_of_function(name)) {
		name = syscall_of_function(name);
		row = bsearch(name, rows, N_ROWS, sizeof(rows[0]), compare_name);
	}
	if (!row)
		return NULL;
	/* Where the modes differ there are two rows, and either may have been met. */
	if (row > rows && !strcmp(row[-1].name, name))
		row--;
	for (; row < rows + N_ROWS && !strcmp(row->name, name); row++)
		if (row->modes & 1u << mode)
			return row->args;
	return NULL;
}
