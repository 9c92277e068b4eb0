/* SPDX-License-Identifier: MIT */
/* Whether runs can be compared at all, and what makes it hard. */
#include <stdlib.h>
#include <string.h>

#include "base/path_name.h"
#include "query/diff/run_diff_internal.h"

#define LOSS_TOLD 0.01 /* of the samples or events */

static const char *const pers[] = {[DIFF_PER_RUN] = "",
	[DIFF_PER_WALL] = "/s",
	[DIFF_PER_CPU] = "/cpu-s",
	[DIFF_PER_CALL] = "/call",
	[DIFF_PER_SAMPLE] = "/sample"};

void run_facts_release(struct run_facts *f)
{
	free(f->name);
	free(f->program);
	free(f->arguments);
	free(f->host);
	free(f->frequency);
}

static char *copy_of(const char *text)
{
	return text && *text ? mem_strdup(text) : NULL;
}

/* The command's first word, as a shell would have it, without its folder. */
static void take_command(struct run_facts *f, const char *command)
{
	size_t n = command ? strcspn(command, " \t\n") : 0;
	char *path;

	if (!n)
		return;
	path = mem_strndup(command, n);
	f->program = mem_strdup(path_base_name(path));
	f->arguments = mem_strdup(command + n);
	free(path);
}

static struct run_facts facts_of(const struct diff_run *run, const struct profile *p)
{
	struct run_facts f = {.name = mem_strdup(trace_reader_name(p->reader)),
		.host = copy_of(trace_reader_meta(p->reader, "host")),
		.frequency = copy_of(trace_reader_meta(p->reader, "frequency")),
		.is_measured = run->is_measured,
		.is_counted = run->is_counted,
		.samples = run->samples,
		.samples_lost = p->loss.samples_lost,
		.events_lost = p->loss.events_lost,
		.is_cut = p->loss.is_cut};

	take_command(&f, trace_reader_meta(p->reader, "command"));
	return f;
}

static bool differ(const char *a, const char *b)
{
	return a && b && strcmp(a, b) != 0;
}

static const char *how(const struct run_facts *f)
{
	return f->is_counted ? "counts" : f->is_measured ? "events" : "samples";
}

/* Whether it is to be told now. */
static bool is_news(bool *is_told, bool is_so)
{
	bool is_new = is_so && !*is_told;

	*is_told |= is_so;
	return is_new;
}

/* Against the first run. */
static void note_differences(
	struct run_diff *d, const struct run_facts *first, const struct run_facts *f)
{
	if (is_news(&d->told_arguments, differ(first->arguments, f->arguments)))
		run_diff_add_note(d, "'%s' and '%s' had other arguments", first->name, f->name);
	if (is_news(&d->told_host, differ(first->host, f->host)))
		run_diff_add_note(d, "'%s' is of host %s, '%s' of %s", first->name, first->host,
			f->name, f->host);
	if (is_news(&d->told_frequency, differ(first->frequency, f->frequency)))
		run_diff_add_note(d,
			"'%s' was sampled at %s Hz, '%s' at %s Hz: samples count by their weights",
			first->name, first->frequency, f->name, f->frequency);
	if (is_news(&d->told_how, strcmp(how(first), how(f)) != 0))
		run_diff_add_note(d, "'%s' is measured by %s, '%s' by %s", first->name, how(first),
			f->name, how(f));
}

/* A limit is kept by what was not measured, too: that is told. */
static void note_nothing(struct run_diff *d, const struct run_facts *f, const struct diff_run *run)
{
	if (run->total.value == 0)
		run_diff_add_note(d, "'%s': has nothing of the metric %s", f->name, d->metric);
}

static void note_losses(struct run_diff *d, const struct run_facts *f, const struct profile *p)
{
	double samples = (double)p->loss.samples_lost, events = (double)p->loss.events_lost;

	if (samples > LOSS_TOLD * (samples + (double)p->n_samples))
		run_diff_add_note(d, "'%s': %.1f %% of the samples are lost", f->name,
			100 * samples / (samples + (double)p->n_samples));
	if (events > LOSS_TOLD * (events + (double)p->n_events))
		run_diff_add_note(d, "'%s': %.1f %% of the events are lost", f->name,
			100 * events / (events + (double)p->n_events));
	if (p->loss.is_cut)
		run_diff_add_note(d, "'%s': its end is missing, or a part cannot be read", f->name);
}

static void keep_metric(struct run_diff *d, const struct profile *p)
{
	const char *per = pers[d->question.per];

	d->metric = mem_strdup(p->metric);
	d->unit = !*per ? mem_strdup(p->unit) : mem_printf("%s%s", p->unit, per);
}

static bool has_unit(const struct run_diff *d, const struct profile *p)
{
	size_t n = strlen(p->unit);

	return !strncmp(d->unit, p->unit, n) && !strcmp(d->unit + n, pers[d->question.per]);
}

static int check_facts(
	struct run_diff *d, const struct run_facts *f, const struct profile *p, struct err *err)
{
	const struct run_facts *first = &d->facts.v[0];

	if (strcmp(d->metric, p->metric) != 0 || !has_unit(d, p))
		return err_set(err, ERR_UNSUPPORTED,
			"'%s' is by %s, '%s' by %s (%s): they are not compared", first->name,
			d->metric, f->name, p->metric, p->unit);
	if (differ(first->program, f->program) && !d->question.is_of_any_program)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s' is of the program %s, '%s' of %s: they are not compared (--any-program "
			"does it)",
			first->name, first->program, f->name, f->program);
	note_differences(d, first, f);
	return 0;
}

int run_diff_check(struct run_diff *d, const struct diff_run *run, const struct profile *profile,
	struct err *err)
{
	struct run_facts facts = facts_of(run, profile);
	int rc = 0;

	if (d->facts.n)
		rc = check_facts(d, &facts, profile, err);
	else
		keep_metric(d, profile);
	if (rc < 0) {
		run_facts_release(&facts);
		return rc;
	}
	note_nothing(d, &facts, run);
	note_losses(d, &facts, profile);
	vec_push(&d->facts, facts);
	return 0;
}
