/* SPDX-License-Identifier: MIT */
/* Any bytes as a file that is probed: functions by pattern, name and address, static probes; and as
 * the code of a function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "probe/points/point.h"
#include "probe/points/site_cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_target(const struct target *t, size_t n)
{
	for (size_t i = 0; i < t->n_sites; i++) {
		const struct site *s = &t->sites[i];

		/* In the file, in order, and never a site without a cost. */
		if (s->offset.v >= n || s->cheaper.v >= n || s->semaphore >= n ||
			s->cost == SITE_UNKNOWN)
			abort();
		if (i && t->sites[i - 1].offset.v > s->offset.v)
			abort();
	}
}

static void find(const char *word, int fd, const char *name, size_t n)
{
	char text[128];
	struct point_text point_text = {.text = text};
	struct arena *arena = arena_new();
	struct sources sources = {0};
	struct point point = {0};
	struct point_spec spec;
	struct diags d;

	snprintf(text, sizeof(text), "%s:/proc/self/fd/%d:%s", word, fd, name);
	diags_init(&d, &sources);
	if (!point_parse(&point_text, arena, &spec, &d))
		abort();
	if (!point_find(&spec, NULL, arena, &point, &d) && !d.n_errors)
		abort();
	for (size_t i = 0; i < point.n_targets; i++)
		check_target(&point.targets[i], n);
	diags_release(&d);
	arena_free(arena);
}

static void check_code(struct span code)
{
	for (int mode = 0; mode < N_MODES; mode++) {
		const char *why;
		uint32_t into = site_cheaper(code, (struct foff){0}, mode);

		site_cost(code, (struct foff){0}, mode, &why);
		if (into && (into >= code.n || !site_is_boundary(code, into, mode)))
			abort();
		site_is_boundary(code, code.n, mode);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("probed", MFD_CLOEXEC);

	check_code((struct span){data, n});
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	find("uprobe", fd, "*", n);
	find("uprobe", fd, "f+1", n);
	find("uprobe", fd, "ns::*", n);
	find("uprobe", fd, "0x401004", n);
	find("usdt", fd, "*", n);
	close(fd);
	return 0;
}
