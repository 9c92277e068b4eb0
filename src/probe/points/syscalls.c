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
