/* SPDX-License-Identifier: MIT */
/* config = { name = value; } of a script. */
#ifndef WEIR_PROBE_COMPILE_SETTINGS_H
#define WEIR_PROBE_COMPILE_SETTINGS_H

#include <stdint.h>

#include "probe/script/ast.h"
#include "probe/script/diag.h"

struct settings {
	uint32_t string_bytes; /* max_strlen: of str() without a length; 0 = not set */
	uint32_t max_entries;  /* max_map_keys: of each map; 0 = not set */
	enum missing_points { MISSING_ERROR, MISSING_WARN, MISSING_IGNORE } missing;
};

/* Values out of range are errors; settings that mean nothing here are warned about. */
void settings_read(const struct script *script, struct settings *out, struct diags *diags);

#endif
