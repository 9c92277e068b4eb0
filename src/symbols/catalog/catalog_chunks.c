/* SPDX-License-Identifier: MIT */
/* Reading chunked tables. They are made in catalog_chunks_write.c. */
#include "symbols/catalog/catalog_chunks.h"

#include <stdlib.h>
#include <zstd.h>

#include "symbols/catalog/catalog_layout.h"

_Static_assert(sizeof(struct chunk_entry) == CHUNK_ENTRY_BYTES, "an entry is copied as it is");

struct chunk_entry chunk_table_entry(const struct chunk_table *t, size_t i)
{
	struct chunk_entry e;

	memcpy(&e, t->entries.p + i * CHUNK_ENTRY_BYTES, sizeof(e));
	return e;
}

/* Chunks lie one behind the other, so that none can be used twice. */
static int check_entry(const struct chunk_table *t, size_t i, uint64_t offset,
	const struct chunk_limits *limits, struct err *err)
{
	const struct chunk_entry e = chunk_table_entry(t, i);
	const char *problem = NULL;

	if (e.offset != offset || e.stored_bytes > t->data.n - offset)
		problem = "lies elsewhere";
	else if (!e.n_items || e.n_items > limits->items_max)
		problem = "has an impossible number of items";
	else if (e.raw_bytes > limits->raw_bytes_max)
		problem = "is too large";
	else if (e.raw_bytes / limits->item_bytes_min < e.n_items)
		problem = "is too small for its items";
	else if (e.flags & CHUNK_FLAG_PACKED ? e.raw_bytes / CHUNK_RATIO_MAX > e.stored_bytes
			     : e.raw_bytes != e.stored_bytes)
		problem = "unpacks to an impossible size";
	else if (limits->is_indexed &&
		 (e.key != (uint64_t)i << t->shift || e.n_items > (uint32_t)1 << t->shift ||
			 (i + 1 < t->n_chunks && e.n_items != (uint32_t)1 << t->shift)))
		problem = "is not where its number says";
	else if (!limits->is_indexed && i && e.key <= chunk_table_entry(t, i - 1).key)
		problem = "is not in order";
	if (problem)
		return err_set(
			err, ERR_FORMAT, "chunk %zu of the %s table %s", i, limits->name, problem);
	return 0;
}

int chunk_table_init(struct chunk_table *t, struct span section, const struct chunk_limits *limits,
	struct err *err)
{
	struct chunk_table made = {0};
	struct cursor c = cursor_of(section);
	uint64_t n_items = 0, offset = 0;

	if (!section.n) {
		*t = made;
		return 0;
	}
	made.n_chunks = cursor_u32(&c);
	made.shift = cursor_u32(&c);
	made.n_items = cursor_u64(&c);
	made.extra = cursor_u64(&c);
	made.entries = cursor_bytes(&c, (uint64_t)made.n_chunks * CHUNK_ENTRY_BYTES);
	if (c.failed)
		return err_set(
			err, ERR_FORMAT, "the %s table is shorter than it says", limits->name);
	made.data = (struct span){c.p, cursor_left(&c)};
	if (limits->is_indexed &&
		(made.shift > 31 || (uint32_t)1 << made.shift > limits->items_max))
		return err_set(err, ERR_FORMAT, "the %s table has chunks of 2^%u items",
			limits->name, made.shift);
	for (size_t i = 0; i < made.n_chunks; i++) {
		int rc = check_entry(&made, i, offset, limits, err);

		if (rc < 0)
			return rc;
		n_items += chunk_table_entry(&made, i).n_items;
		offset += chunk_table_entry(&made, i).stored_bytes;
	}
	if (n_items != made.n_items || n_items >= UINT32_MAX)
		return err_set(err, ERR_FORMAT,
			"the %s table says %llu items and its chunks have %llu", limits->name,
			(unsigned long long)made.n_items, (unsigned long long)n_items);
	*t = made;
	return 0;
}

void chunk_unpacker_release(struct chunk_unpacker *u)
{
	ZSTD_freeDCtx(u->zstd);
	free(u->raw);
	*u = (struct chunk_unpacker){0};
}

bool chunk_unpack(struct chunk_unpacker *u, const struct chunk_table *t, size_t i, struct span *raw)
{
	const struct chunk_entry e = chunk_table_entry(t, i);
	const uint8_t *stored = t->data.p + e.offset;

	if (!(e.flags & CHUNK_FLAG_PACKED)) {
		*raw = (struct span){stored, e.stored_bytes};
		return true;
	}
	if (!u->zstd)
		u->zstd = ZSTD_createDCtx();
	if (u->cap < e.raw_bytes) {
		free(u->raw);
		u->raw = mem_alloc(e.raw_bytes);
		u->cap = e.raw_bytes;
	}
	*raw = (struct span){u->raw, e.raw_bytes};
	return u->zstd && ZSTD_decompressDCtx(u->zstd, u->raw, e.raw_bytes, stored,
				  e.stored_bytes) == e.raw_bytes;
}
