/* SPDX-License-Identifier: MIT */
#include "perfdata/perf_unpack.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"

/* A record has 64 KiB at most: so there is always room for more of one that has begun. */
#define ROOM_BYTES ((size_t)256 << 10)

struct perf_unpack {
	ZSTD_DStream *stream;
	size_t n; /* bytes in the room, from its beginning on */
	uint8_t room[ROOM_BYTES];
};

struct perf_unpack *perf_unpack_new(void)
{
	struct perf_unpack *u = mem_alloc(sizeof(*u));

	u->n = 0;
	u->stream = ZSTD_createDStream();
	return u;
}

void perf_unpack_free(struct perf_unpack *u)
{
	if (!u)
		return;
	ZSTD_freeDStream(u->stream);
	free(u);
}

size_t perf_unpack_left(const struct perf_unpack *u)
{
	return u->n;
}

static bool give_records(
	struct perf_unpack *u, bool (*each)(void *ctx, struct span record), void *ctx)
{
	struct perf_event_header h;
	size_t at = 0;

	while (u->n - at >= sizeof(h)) {
		memcpy(&h, u->room + at, sizeof(h));
		if (h.size < sizeof(h))
			return false;
		if (h.size > u->n - at)
			break;
		if (!each(ctx, (struct span){u->room + at, h.size}))
			return false;
		at += h.size;
	}
	memmove(u->room, u->room + at, u->n - at);
	u->n -= at;
	return true;
}

bool perf_unpack_add(struct perf_unpack *u, struct span packed,
	bool (*each)(void *ctx, struct span record), void *ctx)
{
	ZSTD_inBuffer in = {packed.p, packed.n, 0};
	ZSTD_outBuffer out;

	do {
		out = (ZSTD_outBuffer){u->room, ROOM_BYTES, u->n};
		if (!u->stream || ZSTD_isError(ZSTD_decompressStream(u->stream, &out, &in)))
			return false;
		u->n = out.pos;
		if (!give_records(u, each, ctx))
			return false;
	} while (in.pos < in.size || out.pos == ROOM_BYTES);
	return true;
}
