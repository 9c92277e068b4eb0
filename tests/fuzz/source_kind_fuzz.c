/* SPDX-License-Identifier: MIT */
/* Any bytes: their kind, with names that may decide, and then the reader of that kind. */
#include <stdlib.h>

#include "symbols/source/jitdump.h"
#include "symbols/source/source_kind.h"
#include "symbols/source/text_sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void ignore(void *ctx, const struct candidate *c)
{
	(void)ctx;
	(void)c;
}

static void read_as(enum source_kind kind, struct span bytes)
{
	const struct symbol_sink sink = {ignore, NULL};
	struct text_source t = {0};
	struct jitdump j;
	int rc = -1;

	switch (kind) {
	case SOURCE_KIND_LD_MAP:
		rc = ld_map_read(bytes, &sink, &t, NULL);
		break;
	case SOURCE_KIND_LLD_MAP:
		rc = lld_map_read(bytes, &sink, &t, NULL);
		break;
	case SOURCE_KIND_NM:
		rc = nm_text_read(bytes, &sink, &t, NULL);
		break;
	case SOURCE_KIND_PERF_MAP:
		rc = perf_map_read(bytes, &sink, &t, NULL);
		if (rc < 0)
			abort(); /* nearly all lines were good */
		break;
	case SOURCE_KIND_KALLSYMS:
		rc = kallsyms_read(bytes, &sink, &t, NULL);
		break;
	case SOURCE_KIND_JITDUMP:
		if (jitdump_init(&j, bytes, NULL) == 0)
			jitdump_release(&j);
		break;
	default:
		break;
	}
	if (rc == 0)
		text_source_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const names[] = {NULL, "kallsyms", "perf-1.map"};
	struct span bytes = {data, n};

	for (size_t i = 0; i < 3; i++)
		read_as(source_kind_of(bytes, names[i]), bytes);
	return 0;
}
