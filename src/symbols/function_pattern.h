/* SPDX-License-Identifier: MIT */
/*
 * The functions that a user asks for, in all commands:
 *
 *	list	= pattern {"," pattern}
 *	pattern	= [image ":"] name
 *	name	= glob | "/" regex "/"		a slash inside a regular expression is written "\/"
 *
 *   image	a glob over the file name of a program or library; with a slash in it, over the path.
 *		"libz" without ".so" is every version of that library. A "::" separates nothing.
 *   glob	base/glob.h; compared with the whole name
 *   regex	an extended regular expression, found anywhere in the name
 *
 * A name is compared with the linkage name, with and without its version, and with each readable
 * form that symbols/function_name.h has: "ns::f" is every overload and instance of ns::f,
 * "ns::f(int)" one of them. Blanks that separate nothing do not count: "f(char *)" is "f(char*)".
 * A * is a wildcard in parameters, too. Parts that were split off (f.cold) are meant only by a
 * pattern that says so. A comma inside of brackets belongs to the name: "f(int, int)", "f<a, b>".
 *
 * What each command adds:
 *
 *			weir record		weir steps		weir probe
 *   options		--functions, --stack-at	--from, --to, --around	uprobe, uretprobe
 *   how many		a list			one			one for each trace point
 *   without image	the program		the program, else the	the image is the point's FILE:
 *						first library with it	a path, program or library
 *   besides		-			0xADDRESS		0xADDRESS, NAME+OFFSET
 *   what a * brings	all that match		a function of just that	all that match
 *						name goes before
 *   nothing matches	an error at the end,	an error at the end,	an error; a warning for more
 *			with the status of	likewise		than one name
 *			the command, if any
 */
#ifndef WEIR_SYMBOLS_FUNCTION_PATTERN_H
#define WEIR_SYMBOLS_FUNCTION_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/nearest_names.h"
#include "symbols/function_name.h"

struct function_pattern {
	char *text;	      /* as written, for messages */
	char *image;	      /* glob; NULL = none is named */
	char *name;	      /* glob, or the expression without its slashes */
	char *needle;	      /* stands in every mangled name that can match; NULL = not known */
	bool is_regex;	      /* `regex` is compiled */
	bool is_exact;	      /* one function and its overloads: no wildcard before parameters */
	bool is_all;	      /* "*" */
	bool has_wildcard;    /* anywhere */
	bool wants_fragments; /* f.cold */
	regex_t regex;
};

/* How many bytes of a comma list its first pattern has: up to a comma, or the end. */
size_t function_pattern_bytes(const char *list);

/* Reads the whole text as one pattern. On failure there is a sentence that quotes the text, `wrong_at`
 * (may be NULL) is the byte of it that is wrong, and nothing has to be released. */
int function_pattern_init(
	struct function_pattern *p, const char *text, size_t *wrong_at, struct err *err);
/* The same for a name alone, whose image is known otherwise: a colon is part of it. */
int function_pattern_init_name(struct function_pattern *p, const char *name, struct err *err);
void function_pattern_release(struct function_pattern *p);

/* True when the pattern names no image: which ones that means is for the command to say. */
bool function_pattern_wants_image(const struct function_pattern *p, const char *path);

/* In order: the later one fits better. */
enum function_match {
	FUNCTION_MATCH_NONE,
	FUNCTION_MATCH_PATTERN,	 /* wildcards or an expression */
	FUNCTION_MATCH_READABLE, /* what the source calls it */
	FUNCTION_MATCH_LINKAGE	 /* its very name in the symbol table */
};
/* Cheap for most names that do not match: few are demangled. */
enum function_match function_pattern_match(
	const struct function_pattern *p, struct function_name *name);

/* Offers a function of the image as what was meant by a pattern that matches none; near->wanted is the
 * pattern's name. Nothing is near to an expression. */
void function_pattern_offer(
	const struct function_pattern *p, struct nearest_names *near, const char *linkage);

#endif
