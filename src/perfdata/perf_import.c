/* SPDX-License-Identifier: MIT */
/*
 * Reading goes on in one direction, but for the header's parts of a file, which are read first. Records come
 * in rounds: what came before the last round but one has no older record behind it. Between, a limit of bytes keeps
 * memory bounded, and what comes too late then is counted.
 *
 * 1. The session is made with the first record of the kernel: all events are known by then.
 * 2. What perf has made up at the start (who runs, what is mapped) has no time: it gets that of the first
 *    record with one.
 * 3. A file that is cut, or makes no sense from some place on, is read up to there, and a loss says so.
 */
#include "perfdata/perf_import.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "formats/foreign/foreign_trace.h"
#include "perfdata/perf_events.h"
#include "perfdata/perf_facts.h"
#include "perfdata/perf_features.h"
#include "perfdata/perf_header.h"
#include "perfdata/perf_layout.h"
#include "perfdata/perf_unpack.h"
#include "record/session.h"
#include "symbols/resolve/resolver.h"

#define WAITING_BYTES_MAX ((size_t)48 << 20) /* of records that are not in order yet */
#define ALIGN(n)	  (((n) + 7) & ~(uint64_t)7)

struct import {
	struct foreign_input *in;
	struct trace_writer *w;
	const struct foreign_options *options;
	struct perf_events events;
	struct perf_features features;
	struct perf_unpack *unpack; /* NULL: nothing was packed yet */
	struct foreign_trace *told; /* what is left out */

	struct perf_set set;
	struct image_place files;
	struct name_place names;
	VEC(struct session_event) metrics;
	struct session_past past;
	struct session *session; /* NULL: not yet */

	struct collected_list list; /* not handed over yet */
	size_t waiting_bytes;	    /* those of the list, and those that wait in the session */
	uint64_t begin_ns;	    /* of the first record with a time; 0 = none has come */
	uint64_t newest_ns, half_ns, last_round_ns;
	uint64_t done_ns; /* all up to here were processed */
	uint64_t end_at;  /* of the records, in the file */
	bool is_bad;
};

bool perfdata_is(struct span first)
{
	return first.n >= PERF_MAGIC_BYTES &&
	       (!memcmp(first.p, PERF_MAGIC, PERF_MAGIC_BYTES) ||
		       !memcmp(first.p, PERF_MAGIC_SWAPPED, PERF_MAGIC_BYTES) ||
		       !memcmp(first.p, PERF_MAGIC_OLD, PERF_MAGIC_BYTES));
}

/* --- the session ------------------------------------------------------------------------ */

static struct span build_id_of(void *ctx, const char *path)
{
	return perf_features_build_id(&((struct import *)ctx)->features, path);
}

/* Whether files and maps of this machine are those of the recording, as far as its name tells. */
static void settle_place(struct import *m)
{
	const struct foreign_options *options = m->options;
	const char *root = options->sysroot ? options->sysroot : "";
	const struct perf_features *f = &m->features;
	struct utsname here;
	bool is_known = uname(&here) == 0;

	m->files = (struct image_place){.root = strcmp(root, "/") ? root : "",
		.is_elsewhere = is_known && f->host && strcmp(f->host, here.nodename) != 0,
		.is_same_kernel = is_known && f->os_release && !strcmp(f->os_release, here.release),
		.build_id = build_id_of,
		.ctx = m};
	m->files.is_same_kernel &= !m->files.is_elsewhere;
	m->names = (struct name_place){.root = m->files.root,
		.kallsyms = options->kallsyms,
		.catalog = options->catalog,
		.is_elsewhere = m->files.is_elsewhere,
		.kernel = &f->kernel};
}

/* One that only tells of processes is not the trace's main metric. */
static size_t main_event(const struct import *m)
{
	for (size_t i = 0; i < m->events.rows.n; i++)
		if (!perf_event_is_dummy(&m->events.rows.v[i]))
			return i;
	return 0;
}

/* The session has the main event first: events 0 and `main` change places. */
static size_t place_of(const struct import *m, size_t row)
{
	size_t first = main_event(m);

	return row == first ? 0 : row == 0 ? first : row;
}

static void begin_session(struct import *m)
{
	struct session_options options = {.past = &m->past};

	settle_place(m);
	for (size_t i = 0; i < m->events.rows.n; i++) {
		size_t row = place_of(m, i);

		vec_push(&m->metrics, ((struct session_event){perf_event_metric(&m->events, row),
					      perf_event_unit(&m->events, row), false}));
		*map_ensure(&m->set.event_of_id, i, NULL) = i;
	}
	m->set.scope = PERF_SCOPE_MACHINE;
	m->past = (struct session_past){.events = m->metrics.v,
		.n_events = m->metrics.n,
		.kernel = &m->features.kernel,
		.files = &m->files,
		.names = &m->names};
	m->session = session_new(m->w, &m->set, &options);
}

static void begin_time(struct import *m)
{
	for (size_t i = 0; i < m->list.items.n; i++) {
		uint64_t time = m->list.items.v[i]->time;

		if (time && (!m->begin_ns || time < m->begin_ns))
			m->begin_ns = time;
	}
	session_begin_past(m->session, m->begin_ns);
}

static void process(struct import *m, uint64_t until)
{
	if (!m->list.items.n && !m->waiting_bytes)
		return;
	if (!m->done_ns)
		begin_time(m);
	for (size_t i = 0; i < m->list.items.n; i++)
		if (m->list.items.v[i]->time < m->begin_ns)
			m->list.items.v[i]->time = m->begin_ns;
	m->list.complete_until = until > m->begin_ns ? until : m->begin_ns;
	m->done_ns = m->list.complete_until;
	session_add(m->session, &m->list);
	m->waiting_bytes = session_waiting_bytes(m->session);
}

static void finish_round(struct import *m)
{
	if (m->session && m->last_round_ns)
		process(m, m->last_round_ns);
	m->last_round_ns = m->newest_ns;
}

static void add_collected(struct import *m, struct collected *r)
{
	if (r->time > m->newest_ns)
		m->newest_ns = r->time;
	if (r->time && r->time < m->done_ns)
		foreign_trace_note(m->told, 1, "record that came too late to be in order");
	vec_push(&m->list.items, r);
	m->waiting_bytes += r->bytes;
	if (m->waiting_bytes < WAITING_BYTES_MAX / 2) {
		m->half_ns = m->newest_ns;
	} else if (m->waiting_bytes >= WAITING_BYTES_MAX) {
		process(m, m->half_ns);
		if (m->waiting_bytes >= WAITING_BYTES_MAX / 2)
			process(m, m->newest_ns);
	}
}

/* --- records of the kernel -------------------------------------------------------------- */

static const char *why_not_decoded(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return "sample that makes no sense";
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
		return "record about processes that makes no sense";
	case PERF_RECORD_AUX:
		return "record of a hardware trace, which is not read";
	case PERF_KERNEL_DEFERRED:
		return "call chain that was recorded later than its sample: not joined";
	default:
		return NULL;
	}
}

static bool is_of_guest(const struct collected_sample *s)
{
	return s->cpu_mode == PERF_RECORD_MISC_GUEST_KERNEL ||
	       s->cpu_mode == PERF_RECORD_MISC_GUEST_USER;
}

/* False: it is left out. */
static bool settle_sample(struct import *m, struct collected *r, size_t row)
{
	struct collected_sample *s = &r->sample;

	if (is_of_guest(s)) {
		foreign_trace_lost(m->told, 1,
			"sample of a virtual machine: its addresses mean something inside only");
		return false;
	}
	if (s->is_deferred)
		foreign_trace_note(
			m->told, 1, "sample without its program's part of the call chain");
	if (!s->period) {
		s->period = 1;
		foreign_trace_note(m->told, 1, "sample without a period: counted as 1");
	}
	s->id = place_of(m, row);
	return true;
}

static void take_kernel_record(
	struct import *m, const struct perf_event_header *h, struct span record)
{
	const char *why = why_not_decoded(h->type);
	struct collected *r;
	size_t row;

	if (!m->events.rows.n) {
		foreign_trace_lost(m->told, 1, "record in front of the events that it is of");
		return;
	}
	row = perf_events_of_record(&m->events, record);
	if (row == SIZE_MAX) {
		foreign_trace_lost(
			m->told, 1, "sample of an event that the file does not describe");
		return;
	}
	r = collected_decode(&m->events.rows.v[row].attr, record);
	if (!r && h->type == PERF_RECORD_SAMPLE)
		foreign_trace_lost(m->told, 1, why);
	else if (!r && why)
		foreign_trace_note(m->told, 1, why);
	if (!r)
		return;
	if (!m->session)
		begin_session(m);
	if (r->kind == COLLECTED_MMAP && r->pid == UINT32_MAX)
		perf_features_take_kernel(
			&m->features, r->mmap.mapping.path, r->mmap.mapping.offset);
	if (r->kind == COLLECTED_SAMPLE && !settle_sample(m, r, row))
		collected_free(r);
	else
		add_collected(m, r);
}

/* --- records of perf -------------------------------------------------------------------- */

static void take_attr(struct import *m, struct span body)
{
	struct perf_event_attr attr;
	size_t n;

	if (body.n < sizeof(attr.type) + sizeof(attr.size))
		return;
	memcpy(&attr, body.p, 8);
	n = attr.size;
	if (n > body.n || !perf_events_add(&m->events, (struct span){body.p, n},
				  (struct span){body.p + n, body.n - n}))
		foreign_trace_note(m->told, 1, "description of an event that makes no sense");
	else if (m->session)
		foreign_trace_note(m->told, 1, "event that was described after its samples");
}

static void take_update(struct import *m, struct span body)
{
	struct cursor c = cursor_of(body);
	uint64_t type = cursor_u64(&c), id = cursor_u64(&c);

	if (type == PERF_UPDATE_NAME && !c.failed)
		perf_events_name(&m->events, id, (struct span){c.p, cursor_left(&c)});
}

static bool take_record(void *ctx, struct span record);

static void unpack(struct import *m, struct span packed)
{
	if (!m->unpack)
		m->unpack = perf_unpack_new();
	if (perf_unpack_add(m->unpack, packed, take_record, m))
		return;
	m->is_bad = true;
	foreign_trace_lost(
		m->told, 1, "the rest of the file: what is compressed cannot be unpacked");
}

/* As far as it is known by the next one's offset what follows a record, that is skipped by the caller. */
static void take_perf_record(struct import *m, const struct perf_event_header *h, struct span body)
{
	struct cursor c = cursor_of(body);
	uint64_t number;

	switch (h->type) {
	case PERF_USER_ATTR:
		take_attr(m, body);
		break;
	case PERF_USER_BUILD_ID:
		perf_features_take_build_id(&m->features, h->misc, body);
		break;
	case PERF_USER_FINISHED_ROUND:
		finish_round(m);
		break;
	case PERF_USER_AUXTRACE:
		foreign_trace_note(m->told, 1, "piece of a hardware trace: not read");
		break;
	case PERF_USER_AUXTRACE_ERROR:
		foreign_trace_note(m->told, 1, "error in a hardware trace");
		break;
	case PERF_USER_EVENT_UPDATE:
		take_update(m, body);
		break;
	case PERF_USER_FEATURE:
		number = cursor_u64(&c);
		if (!perf_features_take(
			    &m->features, number, (struct span){c.p, cursor_left(&c)}, &m->events))
			foreign_trace_note(
				m->told, 1, "fact about the machine that makes no sense");
		break;
	case PERF_USER_COMPRESSED:
		unpack(m, body);
		break;
	case PERF_USER_COMPRESSED2:
		number = cursor_u64(&c);
		unpack(m, cursor_bytes(&c, number));
		break;
	default:
		if (h->type > PERF_USER_LAST)
			foreign_trace_note(m->told, 1, "record of a kind that is not known");
		break;
	}
}

static bool take_record(void *ctx, struct span record)
{
	struct import *m = ctx;
	struct perf_event_header h;

	memcpy(&h, record.p, sizeof(h));
	if (h.type >= PERF_USER_FIRST)
		take_perf_record(m, &h, span_sub(record, sizeof(h), record.n - sizeof(h)));
	else if (h.type && h.type <= PERF_KERNEL_LAST)
		take_kernel_record(m, &h, record);
	else
		foreign_trace_note(m->told, 1, "record of a kind that is not known");
	return !m->is_bad;
}

/* --- the file --------------------------------------------------------------------------- */

/* How long the next record is; 0: it cannot be. A compressed one may be longer than its header can say. */
static uint64_t record_bytes(struct import *m, const struct perf_event_header *h)
{
	struct span first;
	uint64_t packed;

	if (h->type == PERF_USER_COMPRESSED2) {
		first = foreign_input_peek(m->in, 16);
		if (first.n < 16)
			return 0;
		memcpy(&packed, first.p + 8, sizeof(packed));
		return packed <= UINT16_MAX ? ALIGN(16 + packed) : 0;
	}
	return h->size >= sizeof(*h) ? h->size : 0;
}

/* What follows a record and is none. */
static uint64_t bytes_behind(const struct perf_event_header *h, struct span body)
{
	struct cursor c = cursor_of(body);
	uint64_t n = 0;

	if (h->type == PERF_USER_AUXTRACE)
		n = cursor_u64(&c);
	else if (h->type == PERF_USER_TRACING_DATA)
		n = ALIGN((uint64_t)cursor_u32(&c));
	return n;
}

static void stop(struct import *m, const char *what)
{
	char *text = mem_printf(
		"the rest of the file: %s at byte %lu", what, foreign_input_offset(m->in));

	foreign_trace_lost_part(m->told, text);
	free(text);
	m->is_bad = true;
}

/* Reads until `m->is_bad` or the end. */
static bool next_record(struct import *m)
{
	uint64_t left = m->end_at - foreign_input_offset(m->in), n = 0, behind;
	struct perf_event_header h;
	struct span record;

	record = foreign_input_peek(m->in, sizeof(h));
	if (!left || !record.n)
		return false;
	if (record.n == sizeof(h)) {
		memcpy(&h, record.p, sizeof(h));
		n = record_bytes(m, &h);
		if (!n)
			stop(m, "a record that makes no sense");
		else if (n <= left)
			record = foreign_input_peek(m->in, n);
		if (n && (n > left || record.n < n))
			stop(m, "it ends within a record");
	} else {
		stop(m, "it ends within a record");
	}
	if (m->is_bad)
		return false;
	behind = bytes_behind(&h, span_sub(record, sizeof(h), n - sizeof(h)));
	if (!take_record(m, record))
		return false;
	foreign_input_skip(m->in, n);
	if (behind && (behind > left - n || !foreign_input_skip(m->in, behind)))
		stop(m, "it ends within a hardware trace");
	return !m->is_bad;
}

static void finish(struct import *m)
{
	struct session_counts counts;

	if (m->unpack && perf_unpack_left(m->unpack) && !m->is_bad)
		foreign_trace_lost(
			m->told, 1, "the last record: it ends within what is compressed");
	if (!m->session && m->events.rows.n)
		begin_session(m);
	if (!m->session)
		return;
	process(m, UINT64_MAX);
	session_finish(m->session, 0);
	counts = session_counts(m->session);
	foreign_trace_set_time(m->told, m->newest_ns);
	perf_facts_write(m->w, &m->features, &m->events, &counts);
}

static void release(struct import *m)
{
	for (size_t i = 0; i < m->list.items.n; i++)
		collected_free(m->list.items.v[i]);
	vec_release(&m->list.items);
	session_free(m->session);
	for (size_t i = 0; i < m->metrics.n; i++)
		free((char *)m->metrics.v[i].metric);
	vec_release(&m->metrics);
	map_release(&m->set.event_of_id);
	perf_unpack_free(m->unpack);
	perf_features_release(&m->features);
	perf_events_release(&m->events);
	free(m);
}

int perfdata_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct import *m = mem_zalloc(sizeof(*m));
	struct perf_header header;
	int rc;

	(void)path;
	m->in = in;
	m->w = w;
	m->options = options;
	perf_features_init(&m->features);
	m->told = foreign_trace_new(w, "perf.data");
	rc = perf_header_read(&header, in, &m->events, &m->features, err);
	if (rc == 0) {
		m->end_at = header.end_at;
		if (header.is_unfinished)
			foreign_trace_note(m->told, 1,
				"perf did not come to the end of the file: nothing is known of the "
				"machine and of the files' versions");
		while (next_record(m))
			;
		rc = foreign_input_failure(in, err);
	}
	if (rc == 0 && !m->events.rows.n)
		rc = foreign_input_wrong(in, err, "no event is described");
	if (rc == 0)
		finish(m);
	foreign_trace_free(m->told);
	release(m);
	return rc;
}
