/* SPDX-License-Identifier: MIT */
/*
 * What a function is called. The symbol table has its linkage name, which may be mangled or carry a
 * version; whoever asks for it writes it as the source does, in more or less detail:
 *
 *	_ZN2ns5applyIiEET_S1_.constprop.0		the linkage name
 *	int ns::apply<int>(int) [clone .constprop.0]	demangled
 *	int ns::apply<int>(int)				without the mark of a clone
 *	ns::apply<int>(int)				without the type that a template returns
 *	int ns::apply<int>				without parameters
 *	ns::apply<int>					without both
 *	ns::apply					without template arguments, too
 */
#ifndef WEIR_SYMBOLS_FUNCTION_NAME_H
#define WEIR_SYMBOLS_FUNCTION_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define FUNCTION_NAME_FORMS 6 /* of one that is mangled */

/* A name to be compared with several patterns: its forms are made when the first one needs them.
 * Set `linkage`, zero the rest. */
struct function_name {
	const char *linkage; /* borrowed */
	char *unversioned;   /* "memcpy" of "memcpy@@GLIBC_2.14"; NULL: it has no version */
	char *forms[FUNCTION_NAME_FORMS]; /* those that differ, in the order above; none when it is
					     not mangled */
	size_t n_forms;
	bool is_split; /* all this is known */
};
void function_name_split(struct function_name *name);
void function_name_release(struct function_name *name);

/* A part of a function that is laid out elsewhere and entered by a jump: "foo.cold" and
 * "foo.cold.3" of compilers, "foo.warm" of BOLT. */
bool function_name_is_fragment(const char *linkage);

#endif
