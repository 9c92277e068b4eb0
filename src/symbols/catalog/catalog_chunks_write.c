/* SPDX-License-Identifier: MIT */
/*
 * Making chunked tables. Chunks do not depend on each other, so threads take them one at a time;
 * each packed chunk has its own place, and the tables are put together afterwards.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <zstd.h>

#include "symbols/catalog/catalog_chunks.h"
#include "symbols/catalog/catalog_layout.h"

#define PACK_LEVEL	 3
#define PACK_THREADS_MAX 64

struct packing {
	struct chunk_writer **writers;
	size_t n_writers;
	atomic_size_t next; /* number of the first chunk, of all tables, that nobody has taken */
	atomic_bool failed;
};

void chunk_writer_cut(struct chunk_writer *w, uint64_t key, uint32_t n_items)
{
	vec_push(&w->entries, ((struct chunk_entry){.key = key,
				      .offset = w->cut,
				      .raw_bytes = (uint32_t)(w->raw.n - w->cut),
				      .n_items = n_items}));
	w->cut = w->raw.n;
	w->n_items += n_items;
}

void chunk_writer_release(struct chunk_writer *w)
{
	for (size_t i = 0; w->packed && i < w->entries.n; i++)
		buf_release(&w->packed[i]);
	free(w->packed);
	vec_release(&w->entries);
	buf_release(&w->raw);
	*w = (struct chunk_writer){0};
}

/* Leaves `packed` empty when the chunk is better stored as it is. */
static bool pack_chunk(ZSTD_CCtx *zstd, struct buf *scratch, struct chunk_writer *w, size_t i)
{
	const struct chunk_entry *e = &w->entries.v[i];
	size_t n;

	buf_reset(scratch);
	if (scratch->cap < ZSTD_compressBound(e->raw_bytes))
		mem_grow((void **)&scratch->p, &scratch->cap, ZSTD_compressBound(e->raw_bytes), 1);
	n = ZSTD_compressCCtx(
		zstd, scratch->p, scratch->cap, w->raw.p + e->offset, e->raw_bytes, PACK_LEVEL);
	if (ZSTD_isError(n))
		return false;
	if (n < e->raw_bytes && e->raw_bytes / CHUNK_RATIO_MAX <= n)
		buf_put(&w->packed[i], scratch->p, n);
	return true;
}

static void *run_packer(void *ctx)
{
	struct packing *p = ctx;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct buf scratch = {0};

	while (zstd) {
		size_t i = atomic_fetch_add(&p->next, 1), w = 0;

		while (w < p->n_writers && i >= p->writers[w]->entries.n)
			i -= p->writers[w++]->entries.n;
		if (w == p->n_writers)
			break;
		if (!pack_chunk(zstd, &scratch, p->writers[w], i))
			atomic_store(&p->failed, true);
	}
	if (!zstd)
		atomic_store(&p->failed, true);
	buf_release(&scratch);
	ZSTD_freeCCtx(zstd);
	return NULL;
}

int chunk_writers_pack(struct chunk_writer **writers, size_t n, unsigned n_threads, struct err *err)
{
	struct packing p = {.writers = writers, .n_writers = n};
	pthread_t threads[PACK_THREADS_MAX];
	unsigned n_started = 0;

	for (size_t i = 0; i < n; i++)
		writers[i]->packed = mem_calloc(writers[i]->entries.n, sizeof(*writers[i]->packed));
	/* The caller is one of them; a thread that cannot be made is not missed. */
	while (n_started + 1 < n_threads && n_started < PACK_THREADS_MAX &&
		!pthread_create(&threads[n_started], NULL, run_packer, &p))
		n_started++;
	run_packer(&p);
	while (n_started)
		pthread_join(threads[--n_started], NULL);
	return p.failed ? err_set(err, ERR_FAILED, "zstd cannot pack a table of the image") : 0;
}

void chunk_writer_put(const struct chunk_writer *w, struct buf *out)
{
	uint64_t offset = 0;

	buf_put_u32(out, (uint32_t)w->entries.n);
	buf_put_u32(out, w->shift);
	buf_put_u64(out, w->n_items);
	buf_put_u64(out, w->extra);
	for (size_t i = 0; i < w->entries.n; i++) {
		struct chunk_entry e = w->entries.v[i];

		e.offset = offset;
		e.flags = w->packed[i].n ? CHUNK_FLAG_PACKED : 0;
		e.stored_bytes = e.flags ? (uint32_t)w->packed[i].n : e.raw_bytes;
		offset += e.stored_bytes;
		buf_put(out, &e, sizeof(e));
	}
	for (size_t i = 0; i < w->entries.n; i++) {
		const struct chunk_entry *e = &w->entries.v[i];

		if (w->packed[i].n)
			buf_put(out, w->packed[i].p, w->packed[i].n);
		else
			buf_put(out, w->raw.p + e->offset, e->raw_bytes);
	}
}
