/* SPDX-License-Identifier: MIT */
/* System calls by name, in both modes: 32-bit programs have numbers, and calls, of their own. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/glob.h"
#include "base/nearest_names.h"
#include "probe/points/point_kind.h"
#include "probe/points/syscalls.h"
#include "process/syscall_names.h"

#define SYSCALL_EVENT_MAX 128 /* bytes */

/* The kernel's tracepoints are named after its functions, which differ from the calls. */
static const struct {
	const char *function, *call;
} renamed[] = {
	{"newstat", "stat"},
	{"newlstat", "lstat"},
	{"newfstat", "fstat"},
	{"newuname", "uname"},
	{"sendfile64", "sendfile"},
	{"umount", "umount2"},
	{"sysctl", "_sysctl"},
	{"llseek", "_llseek"},
	{"select", "_newselect"},
};

const char *syscall_of_function(const char *function)
{
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (strcmp(renamed[i].function, function) == 0)
			return renamed[i].call;
	return NULL;
}

/* Of a call as a script, or the kernel's tracepoints, name it; -1 = there is none. */
static int number_of(enum mode mode, const char *name)
{
	int number = syscall_number(mode, name);
	const char *call = syscall_of_function(name);

	return number < 0 && call ? syscall_number(mode, call) : number;
}

static void set_bit(uint64_t *bits, int number)
{
	bits[number / 64] |= 1ull << (number % 64);
}

/* A glob of the kernel's tracepoints of calls, such as sys_*_read, has them in front of the name. */
static bool is_meant(const struct point_spec *spec, const char *call)
{
	char event[SYSCALL_EVENT_MAX];

	if (!spec->provider)
		return glob_match(spec->name, call);
	snprintf(event, sizeof(event), "%s%s",
		point_has(spec->kind, POINT_AT_RETURN) ? "sys_exit_" : "sys_enter_", call);
	return glob_match(spec->name, event);
}

static size_t collect(uint64_t *bits, enum mode mode, const struct point_spec *spec)
{
	size_t n = 0;
	int number;

	if (!spec->is_glob) {
		number = number_of(mode, spec->name);
		if (number >= 0)
			set_bit(bits, number);
		return number >= 0;
	}
	for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++) {
		const char *known = syscall_name(mode == MODE_32, i);

		if (!known || !is_meant(spec, known))
			continue;
		set_bit(bits, i);
		n++;
	}
	return n;
}

static void report_missing(const struct point_spec *spec, struct diags *d)
{
	struct nearest_names near = {.wanted = spec->name};
	char text[512];

	if (spec->is_glob) {
		diag_warning(
			d, spec->place, "not-found", "no system call matches '%s'", spec->name);
		return;
	}
	for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++)
		for (int is_32 = 0; is_32 < 2; is_32++)
			if (syscall_name(is_32, i))
				nearest_names_add(&near, syscall_name(is_32, i));
	diag_error(d, spec->place, "not-found", "there is no system call '%s'", spec->name);
	if (nearest_names_text(&near, text, sizeof(text)))
		diag_hint(d, "is it %s?", text);
}

bool find_syscalls(
	struct point *out, const struct find_options *options, struct arena *arena, struct diags *d)
{
	size_t n = 0;

	(void)options;
	for (int mode = 0; mode < N_MODES; mode++) {
		out->numbers[mode] = arena_zalloc(arena, SYSCALL_NUMBERS_MAX / 8);
		n += collect(out->numbers[mode], mode, &out->spec);
	}
	/* Also those that are newer than the tables. */
	out->is_all_calls = !out->spec.provider && strcmp(out->spec.name, "*") == 0;
	if (!n)
		report_missing(&out->spec, d);
	return n > 0 || out->spec.is_glob;
}

bool point_has_calls(const struct point *p, enum mode mode)
{
	for (size_t i = 0; p->numbers[mode] && i < SYSCALL_NUMBERS_MAX / 64; i++)
		if (p->numbers[mode][i])
			return true;
	return p->is_all_calls;
}
