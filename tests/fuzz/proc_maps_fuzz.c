/* SPDX-License-Identifier: MIT */
/* Any bytes as the text of /proc/PID/maps. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "process/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(void *ctx, const struct proc_mapping *m)
{
	size_t text_bytes = *(const size_t *)ctx;

	if (m->start >= m->end || !m->path || strlen(m->path) > text_bytes)
		abort();
	if (m->prot & ~(uint32_t)(PROT_READ | PROT_WRITE | PROT_EXEC) || strchr(m->path, '\n'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	proc_parse_maps((struct span){data, n}, check, &n);
	return 0;
}
