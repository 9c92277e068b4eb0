/* SPDX-License-Identifier: MIT */
#include "symbols/catalog/match.h"

const char *match_rung_name(enum match_rung rung)
{
	static const char *const names[MATCH_N_RUNGS] = {
		[MATCH_NONE] = "none",
		[MATCH_SEGMENTS] = "segments",
		[MATCH_PATH] = "path",
		[MATCH_CHECKSUM] = "checksum",
		[MATCH_BUILD_ID] = "build-id",
	};

	return (unsigned)rung < MATCH_N_RUNGS ? names[rung] : "none";
}
