/* SPDX-License-Identifier: MIT */
/*
 * Constants that C programs have out of headers and no debug information tells, since they are macros: EPERM,
 * SIGTERM, AF_INET6, __NR_read. What the script or the program declares under such a name comes first.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "probe/compile/checker.h"
#include "probe/points/syscalls.h"

#define ERROR_MAX   255 /* higher ones have no names */
#define SIGNAL_MAX  64
#define CALL_PREFIX "__NR_"

/* Families; errors and signals that have a second name; states of threads, the same in all kernels. */
static const struct {
	const char *name;
	int value;
} others[] = {
	{"AF_UNIX", AF_UNIX},
	{"AF_INET", AF_INET},
	{"AF_INET6", AF_INET6},
	{"ENOTSUP", ENOTSUP},
	{"EWOULDBLOCK", EWOULDBLOCK},
	{"EDEADLOCK", EDEADLOCK},
	{"SIGIOT", SIGIOT},
	{"SIGIO", SIGIO},
	{"TASK_RUNNING", 0},
	{"TASK_INTERRUPTIBLE", 1},
	{"TASK_UNINTERRUPTIBLE", 2},
};

static const char *signal_word(int number)
{
	return sigabbrev_np(number);
}

/* The number from 1 to `max` of which `name_of` says that name, or 0. */
static int64_t number_of(const char *name, const char *(*name_of)(int), int max)
{
	for (int i = 1; i <= max; i++) {
		const char *known = name_of(i);

		if (known && !strcmp(known, name))
			return i;
	}
	return 0;
}

bool check_known_constant(enum mode mode, const char *name, int64_t *value)
{
	size_t n_prefix = strlen(CALL_PREFIX);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(others[i].name, name)) {
			*value = others[i].value;
			return true;
		}
	*value = 0;
	if (!strncmp(name, "SIG", 3))
		*value = number_of(name + 3, signal_word, SIGNAL_MAX);
	else if (name[0] == 'E')
		*value = number_of(name, strerrorname_np, ERROR_MAX);
	if (strncmp(name, CALL_PREFIX, n_prefix))
		return *value != 0;
	*value = syscall_number(mode, name + n_prefix);
	return *value >= 0;
}
