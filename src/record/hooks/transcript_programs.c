/* SPDX-License-Identifier: MIT */
/*
 * Programs that ran and were never heard of. The kernel tells of each exec and of each mapped file,
 * the server of each hello; what is left when a program ends has not been hooked:
 *   with the library in it     it could not reach the recorder: a loss
 *   without                    LD_PRELOAD did not work there, or was not in its environment since a
 *                              running process was attached to: a note, with the reason
 * A program that has said hello and then that it cannot begin is a loss, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "record/hooks/targets.h"
#include "record/hooks/transcript_internal.h"

#define TALLIES_MAX 16
/* A program that began this shortly before the end may yet be about to say hello. */
#define BEGINNING_NS 1000000000u

/* *error: it has said that it could not begin. */
static bool was_heard(
	struct transcript *t, const struct program *p, uint64_t end, uint32_t *error)
{
	const struct hooks *h = t->h;
	bool was = false;

	HOLD(&t->h->lock);
	for (size_t i = h->heard.n; i-- && !was;) {
		uint64_t time = tick_clock_ns(&t->clock, h->heard.v[i].ticks);

		if (time < p->time)
			break; /* they are in order */
		was = h->heard.v[i].pid == p->pid && time <= end;
		*error = was ? h->heard.v[i].error : 0;
	}
	return was;
}

static void add_tally(struct transcript *t, const struct program *p, const char *reason)
{
	for (size_t i = 0; i < t->tallies.n; i++)
		if (t->tallies.v[i].is_loss == p->has_library && t->tallies.v[i].reason == reason &&
			(!strcmp(t->tallies.v[i].name, p->name) || !t->tallies.v[i].name[0])) {
			t->tallies.v[i].n++;
			return;
		}
	/* Those that come after so many have no names. */
	vec_push(&t->tallies,
		((struct program_tally){.name = mem_strdup(t->tallies.n < TALLIES_MAX ? p->name : ""),
			.reason = reason,
			.is_loss = p->has_library,
			.n = 1}));
}

static const char *reason_of(
	const struct transcript *t, const struct program *p, bool was, uint32_t error)
{
	const char *hindrance = p->path ? hook_targets_hindrance(p->path) : NULL;

	if (was)
		return error == EMFILE ? "it may not open two more files"
		       : error == ENOMEM
			       ? "it has no memory for the hooks (a limit on its address space)"
			       : "its hook library could not begin";
	if (p->has_library)
		return "it could not reach the recorder";
	if (hindrance)
		return hindrance;
	return t->h->options.is_attach
		       ? "a process that weir attached to has executed it; only what weir starts passes hooks on"
		       : "libweir.so was not preloaded (another environment or root folder, a limit on memory, or the file may not be read there)";
}

/* It has ended, or become another program, at `end`. */
static void judge(struct transcript *t, struct program *p, uint64_t end)
{
	uint32_t error = 0;
	bool was = was_heard(t, p, end, &error);

	if (!was || error) {
		const char *reason = reason_of(t, p, was, error);

		/* Of one that has not even loaded its libraries nothing was missed. */
		if (p->has_library || p->n_files > 2 ||
			(p->path && hook_targets_hindrance(p->path)))
			add_tally(t, p, reason);
	}
	free(p->name);
	free(p->path);
	*p = (struct program){0};
}

static struct program *find(const struct transcript *t, uint32_t pid)
{
	const uint64_t *at = map_find(&t->program_of, pid);

	return at && *at ? &t->programs.v[*at - 1] : NULL;
}

void transcript_program(struct transcript *t, uint32_t pid, const char *name, uint64_t time)
{
	struct program *p = find(t, pid);

	if (p) {
		judge(t, p, time);
	} else if (t->free_programs.n) {
		uint32_t i = t->free_programs.v[--t->free_programs.n];

		*map_ensure(&t->program_of, pid, NULL) = i + 1;
		p = &t->programs.v[i];
	} else {
		vec_push(&t->programs, ((struct program){0}));
		*map_ensure(&t->program_of, pid, NULL) = t->programs.n;
		p = &t->programs.v[t->programs.n - 1];
	}
	*p = (struct program){.pid = pid, .time = time, .name = mem_strdup(name)};
}

void transcript_mapped(struct transcript *t, uint32_t pid, const char *path)
{
	struct program *p = path[0] == '/' ? find(t, pid) : NULL;

	if (!p)
		return;
	if (!p->n_files++)
		p->path = mem_strdup(path);
	if (!strcmp(path_base_name(path), "libweir.so"))
		p->has_library = true;
}

void transcript_program_ends(struct transcript *t, uint32_t pid, uint64_t time)
{
	struct program *p = find(t, pid);

	if (!p)
		return;
	judge(t, p, time);
	vec_push(&t->free_programs, (uint32_t)(p - t->programs.v));
	*map_find(&t->program_of, pid) = 0;
}

static char *tally_text(const struct program_tally *tally)
{
	return mem_printf("program%s%s%s was not hooked: %s", tally->name[0] ? " '" : "",
		tally->name, tally->name[0] ? "'" : "", tally->reason);
}

static void write_tally(struct transcript *t, const struct program_tally *tally, uint64_t time)
{
	char *text = tally_text(tally);

	trace_writer_loss(t->world.w, t->world.life_stream, time,
		tally->is_loss ? RECORD_LOSS_EVENTS : RECORD_LOSS_NOTE, tally->n, text);
	free(text);
}

void transcript_write_unheard(struct transcript *t, uint64_t time)
{
	for (size_t i = 0; i < t->programs.n; i++) {
		struct program *p = &t->programs.v[i];

		if (p->name && p->time + BEGINNING_NS < time)
			judge(t, p, UINT64_MAX);
	}
	for (size_t i = 0; i < t->tallies.n; i++)
		write_tally(t, &t->tallies.v[i], time);
}

char *transcript_unhooked(const struct transcript *t)
{
	const struct program_tally *first = NULL;
	uint64_t n = 0, n_kinds = 0;
	char *text, *sentence;

	for (size_t i = 0; i < t->tallies.n; i++)
		if (!t->tallies.v[i].is_loss) {
			first = first ? first : &t->tallies.v[i];
			n += t->tallies.v[i].n;
			n_kinds++;
		}
	if (!first)
		return NULL;
	text = tally_text(first);
	if (n == 1)
		return text;
	sentence = n_kinds == 1 ? mem_printf("%s (%lu times)", text, n)
				: mem_printf("%s; nor were %lu others (weir report loss says why)",
					  text, n - first->n);
	free(text);
	return sentence;
}

uint64_t transcript_n_unheard(const struct transcript *t)
{
	const uint32_t *lost = t->h->lost.n_unheard;
	uint64_t n = (uint64_t)lost[HOOK_HELLO_FORK] + lost[HOOK_HELLO_MODULES];

	for (size_t i = 0; i < t->tallies.n; i++)
		n += t->tallies.v[i].is_loss ? t->tallies.v[i].n : 0;
	return n;
}

void transcript_free_programs(struct transcript *t)
{
	for (size_t i = 0; i < t->programs.n; i++) {
		free(t->programs.v[i].name);
		free(t->programs.v[i].path);
	}
	for (size_t i = 0; i < t->tallies.n; i++)
		free(t->tallies.v[i].name);
	vec_release(&t->programs);
	vec_release(&t->free_programs);
	vec_release(&t->tallies);
	map_release(&t->program_of);
}
