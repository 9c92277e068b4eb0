/* SPDX-License-Identifier: MIT */
#include "record/hook_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/records.h"

#define MINOR_ANY UINT32_MAX

static const struct {
	const char *name;
	enum hook hook;
	uint32_t major; /* 0 = by name only */
	uint32_t minor; /* without RECORD_MINOR_EXIT */
} names[] = {
	{"method", HOOK_METHOD, RECORD_MAJOR_ROUTINE, RECORD_ROUTINE_ENTER},
	{"stack", HOOK_STACK, RECORD_MAJOR_STACK_SAMPLE, RECORD_MINOR_STACK},
	{"stack-at", HOOK_STACK_AT, RECORD_MAJOR_STACK_EVENT, RECORD_MINOR_STACK},
	{"switch", HOOK_SWITCH, RECORD_MAJOR_SWITCH, MINOR_ANY},
	{"syscall", HOOK_SYSCALL, 0, 0}, /* routines as well, but of the kernel */
	{"fault", HOOK_FAULT, RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD},
	{"alloc", HOOK_ALLOC, RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD},
	{"heap", HOOK_HEAP, RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD},
	{"bytecode", HOOK_BYTECODE, RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD},
	{"interrupt", HOOK_INTERRUPT, RECORD_MAJOR_INTERRUPT, MINOR_ANY},
	{"module", HOOK_MODULE, RECORD_MAJOR_MODULE, MINOR_ANY},
};
#define NAMES_TEXT                                                                                 \
	"method, stack, stack-at, switch, syscall, fault, alloc, heap, bytecode, interrupt, module"

/* Codes without a switch: what a trace cannot do without, and interpreted methods, which a
 * runtime's own agent writes. */
static const uint32_t fixed_majors[] = {RECORD_MAJOR_THREAD, RECORD_MAJOR_INTERPRETED,
	RECORD_MAJOR_PROCESS, RECORD_MAJOR_PHASE, RECORD_MAJOR_LOSS};

static bool is_fixed(uint32_t major)
{
	for (size_t i = 0; i < sizeof(fixed_majors) / sizeof(fixed_majors[0]); i++)
		if (fixed_majors[i] == major)
			return true;
	return false;
}

/* A number that fits 32 bits, up to `end`. */
static bool parse_number(const char *text, char end, uint32_t *number, const char **rest)
{
	char *after;
	unsigned long long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoull(text, &after, 0);
	if (n > UINT32_MAX || (*after && *after != end))
		return false;
	*number = (uint32_t)n;
	*rest = after;
	return true;
}

/* "0x40" or "0x40/0x7fffffff"; *hooks is 0 for a code without a switch. */
static bool parse_code(const char *item, uint32_t *hooks)
{
	uint32_t major, minor = MINOR_ANY;

	if (!parse_number(item, '/', &major, &item) ||
		(*item == '/' && !parse_number(item + 1, 0, &minor, &item)))
		return false;
	*hooks = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].major == major && major &&
			(minor == MINOR_ANY || names[i].minor == MINOR_ANY ||
				names[i].minor == (minor & ~RECORD_MINOR_EXIT)))
			*hooks |= names[i].hook;
	return *hooks || is_fixed(major);
}

static bool parse_name(const char *item, uint32_t *hooks)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].name, item)) {
			*hooks = names[i].hook;
			return true;
		}
	return false;
}

static int apply_item(
	const char *option, const char *item, uint32_t *hooks, bool *is_plain, struct err *err)
{
	const char *name = item;
	bool is_off = false;
	uint32_t found;

	*is_plain = false;
	if (*name == '-' || !strncmp(name, "no-", 3)) {
		is_off = true;
		name += *name == '-' ? 1 : 3;
	} else if (*name == '+') {
		name++;
	} else {
		*is_plain = true;
	}
	if (!parse_name(name, &found) && !parse_code(name, &found))
		return err_set(err, ERR_FAILED,
			"%s: '%s' is not known (there are " NAMES_TEXT
			", and codes such as 0x40 or 0x40/0x7fffffff)",
			option, item);
	if (is_off && !found)
		return err_set(
			err, ERR_FAILED, "%s: '%s': these records are always made", option, item);
	*hooks = is_off ? *hooks & ~found : *hooks | found;
	return 0;
}

int hook_list_parse(const char *option, const char *list, uint32_t *hooks, struct err *err)
{
	char *copy = mem_strdup(list), *next = copy, *item;
	uint32_t apart = 0, added = HOOKS_DEFAULT; /* without the defaults, and with them */
	bool any_plain = false, is_plain;
	int rc = 0;

	while (rc == 0 && (item = strsep(&next, ","))) {
		rc = apply_item(option, item, &apart, &is_plain, err);
		if (rc == 0)
			rc = apply_item(option, item, &added, &is_plain, err);
		any_plain |= rc == 0 && is_plain;
	}
	free(copy);
	if (rc == 0)
		*hooks = any_plain ? apart : added;
	return rc;
}
