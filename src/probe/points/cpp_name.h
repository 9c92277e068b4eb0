/* SPDX-License-Identifier: MIT */
/* C++ and Rust functions by readable name, with or without parameters. */
#ifndef WEIR_PROBE_POINTS_CPP_NAME_H
#define WEIR_PROBE_POINTS_CPP_NAME_H

#include <stdbool.h>

/* What a script asks for: "ns::f" is every overload and instance of ns::f, "ns::f(int)" one,
 * "ns::*" a pattern. */
struct cpp_name {
	const char *asked; /* borrowed */
	bool has_parameters, has_template, has_glob;
	char needle[64]; /* mangled names without it cannot match; "" = nothing is known */
};

void cpp_name_init(struct cpp_name *c, const char *asked);
/* Does a mangled name mean it? Cheap for most that do not. */
bool cpp_name_is(const struct cpp_name *c, const char *mangled);
/* Looks like a readable name: has :: or parameters. */
bool cpp_name_looks(const char *asked);

#endif
