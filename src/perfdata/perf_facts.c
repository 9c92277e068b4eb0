/* SPDX-License-Identifier: MIT */
#include "perfdata/perf_facts.h"

#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "process/host_facts.h"

#define EVENTS_NAMED 8

static void write_text(struct trace_writer *w, const char *key, const char *text)
{
	if (text)
		trace_writer_meta(w, key, text);
}

static void write_events(struct trace_writer *w, const struct perf_events *events)
{
	const struct perf_event_attr *first = NULL;
	struct buf b = {0};
	size_t n = 0;

	for (size_t i = 0; i < events->rows.n; i++) {
		char *title;

		if (perf_event_is_dummy(&events->rows.v[i]))
			continue;
		first = first ? first : &events->rows.v[i].attr;
		title = n < EVENTS_NAMED ? perf_event_title(events, i) : NULL;
		if (title)
			buf_printf(&b, "%s%s", n ? "," : "", title);
		free(title);
		n++;
	}
	if (n > EVENTS_NAMED)
		buf_printf(&b, " and %zu more", n - EVENTS_NAMED);
	if (n)
		trace_writer_meta(w, "event", buf_text(&b));
	buf_release(&b);
	if (first && first->freq && first->sample_freq)
		host_fact_number(w, "frequency", first->sample_freq);
	if (first && first->sample_type & PERF_SAMPLE_STACK_USER)
		host_fact_number(w, "stack_bytes", first->sample_stack_user);
}

static void write_times(
	struct trace_writer *w, const struct perf_features *f, const struct session_counts *counts)
{
	uint64_t first = f->first_ns ? f->first_ns : counts->first_sample_ns;
	uint64_t last = f->first_ns ? f->last_ns : counts->last_sample_ns;

	if (last > first)
		host_fact_number(w, "wall_ns", last - first);
	if (f->has_clock && f->clock_id == CLOCK_MONOTONIC) {
		host_fact_number(w, "start_monotonic_ns", first);
		trace_writer_meta(w, "clock", "CLOCK_MONOTONIC");
	}
	if (f->has_clock)
		host_fact_number(w, "start_realtime_ns", f->wall_ns + (first - f->clock_ns));
}

void perf_facts_write(struct trace_writer *w, const struct perf_features *f,
	const struct perf_events *events, const struct session_counts *counts)
{
	char *os = f->os_release
			   ? mem_printf("Linux %s %s", f->os_release, f->machine ? f->machine : "")
			   : NULL;

	write_text(w, "command", f->command);
	write_text(w, "host", f->host);
	write_text(w, "os", os);
	write_text(w, "cpu", f->cpu);
	if (f->n_cpus)
		host_fact_number(w, "n_cpus", f->n_cpus);
	write_events(w, events);
	write_times(w, f, counts);
	if (counts->sampled_ns)
		host_fact_number(w, "sampled_ns", counts->sampled_ns);
	host_fact_number(w, "n_processes", counts->n_processes);
	host_fact_number(w, "n_threads", counts->n_threads);
	free(os);
}
