/* SPDX-License-Identifier: MIT */
/* From the text of scripts to one tree. */
#ifndef WEIR_PROBE_SCRIPT_PARSE_H
#define WEIR_PROBE_SCRIPT_PARSE_H

#include "probe/script/ast.h"
#include "probe/script/diag.h"

/* Positional parameters: $1 is words[0]. A missing one is 0 as a number and "" as a text. Named ones are
 * "--NAME" and "--NAME=VALUE": what getopt() gives. */
struct script_parameters {
	const char *const *words;
	size_t n;
	const char *const *named;
	size_t n_named;
	bool imports; /* import "FILE" may read files */
};

/* Parses every source, clauses in order; those that they import are added to `sources`. Wrong input adds messages and goes on at the next
 * statement or clause, so that several are found; the tree then is whole, but not to be compiled.
 */
struct script *script_parse(
	struct sources *sources, const struct script_parameters *parameters, struct diags *diags);
void script_free(struct script *s);

#endif
