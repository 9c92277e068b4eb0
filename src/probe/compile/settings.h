/* SPDX-License-Identifier: MIT */
/* Settings: config = { name = value; } of a script, and BPFTRACE_NAME=value of the environment, which counts more. */
#ifndef WEIR_PROBE_COMPILE_SETTINGS_H
#define WEIR_PROBE_COMPILE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/script/ast.h"
#include "probe/script/diag.h"

/* 0 is what holds when nobody says anything. */
struct settings {
	uint32_t string_bytes; /* max_strlen: of str() without a length */
	uint32_t max_entries;  /* max_map_keys: of each map */
	uint32_t max_sites;    /* max_probes */
	uint32_t ring_pages;   /* perf_rb_pages, of 4096 bytes */
	uint32_t cat_bytes;    /* max_cat_bytes */
	enum missing_points { MISSING_ERROR, MISSING_WARN, MISSING_IGNORE } missing;
	unsigned stack_form; /* stack_mode: enum stack_form, whose order is that of the words */
	bool hides_lines;    /* show_debug_info is 0 */
	bool hides_maps;     /* print_maps_on_exit is 0 */
	unsigned like;	     /* enum stream_like, whose order is that of the words */
};

/* Unknown settings and values out of range are errors; in a script, settings that mean nothing here are warned
 * about. `environment` is a list of NAME=VALUE up to a NULL, or NULL; other variables are passed over. */
void settings_read(const struct script *script, const char *const *environment,
	struct settings *out, struct diags *diags);

#endif
