/* SPDX-License-Identifier: MIT */
/*
 * What versions of bpftrace print differently. This is the one place that knows it: who prints asks for the
 * manner of the stream, and never for the version. Each row is described in docs/probe-language.md, OUTPUT OF
 * OLDER VERSIONS.
 */
#ifndef WEIR_PROBE_PRINT_PRINT_MANNER_H
#define WEIR_PROBE_PRINT_PRINT_MANNER_H

#include <stdbool.h>

#include "probe/stream/stream.h"

struct print_manner {
	const char *version; /* of bpftrace */
	/* values */
	bool has_decimal_pointers; /* with a sign; keys have hexadecimal ones */
	bool has_plain_numbers;	   /* in place of true, false and names of enumerators */
	bool has_stats_in_words;   /* count 1, average 2, total 2 */
	bool has_tight_keys;	   /* {.a=1,.b=2} */
	bool has_spaced_objects;   /* in JSON: { "a": 1 } of a structure */
	bool has_signed_keys;	   /* also where they are of an unsigned type */
	bool has_int_sign;	   /* %d of an unsigned number of 32 bits, as in C */
	/* maps */
	bool has_maps_by_name; /* at the end; else as the script names them first */
	bool has_empty_maps;   /* as an empty line; a count() without a key as 0 */
	bool has_blank_averages; /* a blank line is behind avg() and stats(), and not behind numbers */
	bool has_blank_after_name; /* "@h: " above a histogram */
	bool has_blank_end;	   /* two blank lines before what is printed at the end */
	/* lines and names */
	bool says_attaching; /* "Attaching 1 probe...", in the output; else "Attached 1 probe" beside it */
	bool has_old_points;   /* `probe` is BEGIN, END, tracepoint:syscalls:sys_enter_NAME */
	bool has_old_failures; /* of cat() */
};
const struct print_manner *print_manner_of(const struct stream *s);

#endif
