/* SPDX-License-Identifier: MIT */
/* From a tree to a trace stream. */
#ifndef WEIR_PROBE_COMPILE_COMPILE_H
#define WEIR_PROBE_COMPILE_COMPILE_H

#include <regex.h>

#include "probe/points/point.h"
#include "probe/script/ast.h"
#include "probe/script/parse.h"
#include "probe/stream/stream.h"

struct compile_options {
	struct find_options find;
	uint32_t string_bytes; /* of str() without a length; 0 = 128 */
	bool is_unsafe;	       /* system() is allowed */
	bool is_kept;	       /* it may be run elsewhere (-o) */
	bool wants_all_modes;  /* also those that do not occur on this machine (-o) */
	const char *clock_map; /* "@ts": what tseries() takes for the time, in tests; or NULL */
	struct script_parameters parameters;
	const regex_t *point_filter; /* on the texts of points but begin, end and error; or NULL */
	struct buf *usage; /* gets the text that --help asks for; needed with named parameters */
	const enum stream_like *like;	/* of --like, counts more than settings; or NULL */
	const char *const *environment; /* NAME=VALUE up to a NULL, for settings; or NULL */
};

/* Parses, finds the points, checks and emits. NULL when there were errors, and when --help is all that is wanted; warnings may be there in
 * any case. `sources` are copied into the stream. */
struct stream *compile_scripts(
	struct sources *sources, const struct compile_options *options, struct diags *diags);

#endif
