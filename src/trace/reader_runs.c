/* SPDX-License-Identifier: MIT */
/*
 * The chunks of one stream one after another; see record_run.h. With a struct trace_ahead a second
 * thread unpacks the next chunk of a stream while the caller is busy with the current one.
 *
 * A stream has two slots. The caller owns the current one. The other one belongs to whoever its
 * state says, and the state changes under the lock alone:
 *
 *   SLOT_IDLE     the caller's
 *   SLOT_QUEUED   nobody's: the caller may take it back
 *   SLOT_LOADING  the thread's
 *   SLOT_READY    the caller's: `rc` says what came of it
 */
#include "trace/record_run.h"

#include <pthread.h>
#include <stdlib.h>
#include <zstd.h>

#include "trace/reader_internal.h"

enum slot_state { SLOT_IDLE, SLOT_QUEUED, SLOT_LOADING, SLOT_READY };

/* One chunk. */
struct slot {
	struct chunk_view view;
	struct buf unpacked;
	int rc;
	struct err err;
};

struct trace_runs {
	const struct trace_reader *r;
	struct trace_ahead *ahead; /* NULL: everything is done by the caller */
	uint32_t first_i;	   /* chunks of the stream, in reader->stream_chunks */
	uint32_t next_i, end_i;	   /* those still to be loaded */
	struct slot slots[2];
	unsigned current;
	bool is_asked;	  /* the other slot was asked for and not yet awaited */
	uint32_t asked_i; /* the chunk that it is for */
	/* the other slot: state and queue are changed under the lock */
	enum slot_state state;
	struct trace_runs *next_job;
	ZSTD_DCtx *zstd; /* the caller's */
};

struct trace_ahead {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t has_job, is_ready;
	struct trace_runs *first_job, *last_job;
	bool is_over;
	ZSTD_DCtx *zstd;
};

static void load(struct trace_runs *runs, struct slot *slot, uint32_t i, ZSTD_DCtx *zstd)
{
	slot->rc = chunk_load_listed(
		runs->r, runs->r->stream_chunks[i], zstd, &slot->unpacked, &slot->view, &slot->err);
}

/* ---- the second thread ---- */

static struct trace_runs *take_job(struct trace_ahead *a)
{
	struct trace_runs *job = a->first_job;

	if (!job)
		return NULL;
	a->first_job = job->next_job;
	if (!a->first_job)
		a->last_job = NULL;
	return job;
}

static void *unpack_ahead(void *context)
{
	struct trace_ahead *a = context;
	struct trace_runs *job;

	pthread_mutex_lock(&a->lock);
	while (!a->is_over) {
		job = take_job(a);
		if (!job) {
			pthread_cond_wait(&a->has_job, &a->lock);
			continue;
		}
		if (job->state != SLOT_QUEUED) /* the caller was faster */
			continue;
		job->state = SLOT_LOADING;
		pthread_mutex_unlock(&a->lock);
		load(job, &job->slots[!job->current], job->asked_i, a->zstd);
		pthread_mutex_lock(&a->lock);
		job->state = SLOT_READY;
		pthread_cond_signal(&a->is_ready);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct trace_ahead *trace_ahead_new(void)
{
	struct trace_ahead *a = mem_zalloc(sizeof(*a));

	a->zstd = ZSTD_createDCtx();
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->has_job, NULL);
	pthread_cond_init(&a->is_ready, NULL);
	if (a->zstd && pthread_create(&a->thread, NULL, unpack_ahead, a) == 0)
		return a;
	ZSTD_freeDCtx(a->zstd);
	free(a);
	return NULL;
}

void trace_ahead_free(struct trace_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->is_over = true;
	pthread_cond_signal(&a->has_job);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->has_job);
	pthread_cond_destroy(&a->is_ready);
	ZSTD_freeDCtx(a->zstd);
	free(a);
}

/* Asks for the next chunk. A job that the caller took back may still be queued: it is for the same
 * stream and serves again. */
static void ask(struct trace_runs *runs)
{
	struct trace_ahead *a = runs->ahead;
	bool is_queued = false;

	runs->asked_i = runs->next_i++;
	runs->is_asked = true;
	pthread_mutex_lock(&a->lock);
	runs->state = SLOT_QUEUED;
	for (struct trace_runs *job = a->first_job; job && !is_queued; job = job->next_job)
		is_queued = job == runs;
	if (!is_queued) {
		runs->next_job = NULL;
		if (a->last_job)
			a->last_job->next_job = runs;
		else
			a->first_job = runs;
		a->last_job = runs;
		pthread_cond_signal(&a->has_job);
	}
	pthread_mutex_unlock(&a->lock);
}

/* The chunk that was asked for is in the other slot; the caller loads it when nobody has begun. */
static void await(struct trace_runs *runs)
{
	struct trace_ahead *a = runs->ahead;
	bool is_mine;

	pthread_mutex_lock(&a->lock);
	is_mine = runs->state == SLOT_QUEUED;
	while (runs->state == SLOT_LOADING)
		pthread_cond_wait(&a->is_ready, &a->lock);
	runs->state = SLOT_IDLE;
	pthread_mutex_unlock(&a->lock);
	runs->is_asked = false;
	if (is_mine)
		load(runs, &runs->slots[!runs->current], runs->asked_i, runs->zstd);
}

/* Nobody works for the stream any more, and it is not in the queue. */
static void forget(struct trace_runs *runs)
{
	struct trace_ahead *a = runs->ahead;
	struct trace_runs **at = &a->first_job;

	pthread_mutex_lock(&a->lock);
	while (runs->state == SLOT_LOADING)
		pthread_cond_wait(&a->is_ready, &a->lock);
	for (a->last_job = NULL; *at;) {
		if (*at == runs) {
			*at = runs->next_job;
			continue;
		}
		a->last_job = *at;
		at = &(*at)->next_job;
	}
	pthread_mutex_unlock(&a->lock);
}

/* ---- the caller ---- */

int trace_runs_open(struct trace_runs **out, const struct trace_reader *r, uint32_t stream,
	struct trace_ahead *ahead, struct err *err)
{
	struct trace_runs *runs;

	if (!stream || stream >= r->streams.n)
		return err_set(err, ERR_NOT_FOUND, "'%s': has no stream %u", r->name, stream);
	runs = mem_zalloc(sizeof(*runs));
	runs->r = r;
	runs->first_i = runs->next_i = r->stream_first[stream];
	runs->end_i = r->stream_first[stream + 1];
	runs->ahead = ahead;
	runs->zstd = ZSTD_createDCtx();
	if (!runs->zstd) {
		trace_runs_close(runs);
		return err_set(err, ERR_FAILED, "'%s': not enough memory to unpack", r->name);
	}
	*out = runs;
	return 0;
}

void trace_runs_close(struct trace_runs *runs)
{
	if (!runs)
		return;
	if (runs->ahead)
		forget(runs);
	buf_release(&runs->slots[0].unpacked);
	buf_release(&runs->slots[1].unpacked);
	ZSTD_freeDCtx(runs->zstd);
	free(runs);
}

int trace_run_next(struct trace_runs *runs, struct trace_run *run, struct err *err)
{
	const struct chunk_header *h;
	struct slot *slot;

	*run = (struct trace_run){0};
	if (runs->is_asked) {
		await(runs);
		runs->current = !runs->current;
	} else if (runs->next_i < runs->end_i) {
		load(runs, &runs->slots[runs->current], runs->next_i++, runs->zstd);
	} else {
		return 0;
	}
	slot = &runs->slots[runs->current];
	if (runs->ahead && runs->next_i < runs->end_i)
		ask(runs);
	if (slot->rc < 0)
		return err_set(err, slot->rc, "%s", slot->err.text);
	h = &slot->view.header;
	if (!h->count && slot->view.raw.n)
		return chunk_error(runs->r, &slot->view, err, "has bytes but no records");
	*run = (struct trace_run){.p = slot->view.raw.p,
		.end = slot->view.raw.p + slot->view.raw.n,
		.n_left = h->count,
		.n_kinds = (uint32_t)runs->r->kinds.n,
		.time = h->first_time,
		.last_time = h->last_time};
	return 1;
}

uint64_t trace_runs_next_time(const struct trace_runs *runs)
{
	const struct trace_reader *r = runs->r;
	uint32_t i = runs->is_asked ? runs->asked_i : runs->next_i;

	return i == runs->end_i ? UINT64_MAX : r->chunks.v[r->stream_chunks[i]].first_time;
}

uint32_t trace_runs_n_chunks(const struct trace_runs *runs)
{
	return runs->end_i - runs->first_i;
}

uint64_t trace_runs_chunk_time(const struct trace_runs *runs, uint32_t i)
{
	const struct trace_reader *r = runs->r;

	return r->chunks.v[r->stream_chunks[runs->first_i + i]].first_time;
}

struct trace_chunk trace_runs_chunk(const struct trace_runs *runs, uint32_t i)
{
	const struct trace_reader *r = runs->r;
	const struct chunk_entry *e = &r->chunks.v[r->stream_chunks[runs->first_i + i]];

	return (struct trace_chunk){e->first_time, e->last_time, e->count};
}

void trace_runs_seek(struct trace_runs *runs, uint32_t i)
{
	if (runs->is_asked) { /* for a chunk that nobody wants any more */
		forget(runs);
		runs->state = SLOT_IDLE;
		runs->is_asked = false;
	}
	runs->next_i = runs->first_i + i;
}

int trace_run_damage(const struct trace_runs *runs, const struct trace_run *run, struct err *err)
{
	const struct chunk_view *view = &runs->slots[runs->current].view;
	uint32_t i = view->header.count - run->n_left;
	struct record_head head;
	int rc = record_head_decode(runs->r, view, run->p, run->end, run->time, i, &head, err);

	return rc < 0 ? rc
		      : chunk_error(runs->r, view, err, "its end is not where its header says");
}
