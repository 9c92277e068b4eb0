/* SPDX-License-Identifier: MIT */
/*
 * Programs that ran and were never heard of. The kernel tells of each exec and of each mapped file,
 * the server of each hello; what is left when a program ends has not been hooked:
 *   with the library in it     it could not reach the recorder: a loss
 *   without                    LD_PRELOAD did not work there, or was not in its environment since a
 *                              running process was attached to: a note, with the reason
 * A program that has said hello and then that it cannot begin is a loss, too.
 *
 * What was asked for may be in such a program. Then the functions are there, and are shown as not hooked,
 * with the program's reason: that no function matches would be wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "record/hooks/targets.h"
#include "record/hooks/transcript_internal.h"

#define TALLIES_MAX 16
/* A program that began this shortly before the end may yet be about to say hello. */
#define BEGINNING_NS 1000000000u

/* *error: it has said that it could not begin. */
static bool was_heard(struct transcript *t, const struct program *p, uint64_t end, uint32_t *error)
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

/* Not above this much of addresses the library may have no room, or its memory none. */
#define SMALL_LIMIT_BYTES ((uint64_t)512 << 20)

/* What can be seen while it lives, and explains why the library is not in it. */
static void look_at(struct program *p)
{
	struct rlimit limit;
	struct stat own, root;
	char path[64];

	if (prlimit((pid_t)p->pid, RLIMIT_AS, NULL, &limit) == 0)
		p->has_small_limit = limit.rlim_cur < SMALL_LIMIT_BYTES;
	snprintf(path, sizeof(path), "/proc/%u/root/", p->pid);
	if (stat(path, &root) == 0 && stat("/", &own) == 0)
		p->has_own_root = root.st_ino != own.st_ino || root.st_dev != own.st_dev;
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
	vec_push(&t->tallies, ((struct program_tally){
				      .name = mem_strdup(t->tallies.n < TALLIES_MAX ? p->name : ""),
				      .path = p->path ? mem_strdup(p->path) : NULL,
				      .reason = reason,
				      .is_loss = p->has_library,
				      .n = 1}));
}

static const char *reason_of(
	const struct transcript *t, const struct program *p, bool was, uint32_t error)
{
	const char *hindrance = p->path ? hook_targets_hindrance(p->path) : NULL;
	struct stat st;

	if (was)
		return hook_refusal_phrase(error == EMFILE   ? HOOK_REFUSAL_NO_FILES
					   : error == ENOMEM ? HOOK_REFUSAL_NO_MEMORY
							     : HOOK_REFUSAL_FAILED);
	if (p->has_library)
		return "it could not reach the recorder";
	if (hindrance)
		return hindrance;
	if (p->has_small_limit)
		return "the limit on its address space (ulimit -v) leaves no room for libweir.so";
	if (p->has_own_root)
		return "there is no libweir.so below its root folder";
	if (p->path && stat(p->path, &st) < 0 && errno == ENOENT)
		return "libweir.so was not preloaded: the program's own file is not here, either (another root folder, or deleted since)";
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
	look_at(p);
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

/* --- functions of such programs --------------------------------------------------------------- */

static void note_unmatched(void *has_any, const char *wish, const char *near)
{
	(void)wish;
	(void)near;
	*(bool *)has_any = true;
}

/* The file as it was mapped. */
static const struct image *find_image(const struct transcript *t, const char *path)
{
	for (uint32_t i = images_n(t->world.images); i--;) {
		const struct image *image = images_get(t->world.images, i);

		if (image->has_elf && image->kind == IMAGE_KIND_ELF && !strcmp(image->path, path))
			return image;
	}
	return NULL;
}

/* Plans it as if it were hooked, to know what is there. */
static void plan_unhooked(struct transcript *t, const struct program_tally *tally)
{
	const struct image *image = tally->path ? find_image(t, tally->path) : NULL;
	struct hook_planner *planner = t->h->planner;
	const struct planned_image *planned;
	struct planned_file file = {.inode = image ? image->inode : 0};
	uint32_t first;

	if (!image && !t->h->unread_program)
		t->h->unread_program = mem_strdup(tally->name);
	if (!image)
		return;
	HOLD(&t->h->planner_lock);
	first = planner->n_ids + 1;
	file.key = map_hash_mix(map_hash(first), image->inode); /* of its own */
	if (hook_planner_image(planner, &file, &image->elf, image->path, true, &planned, NULL) ==
			0 &&
		planner->n_ids >= first)
		vec_push(&t->unhooked,
			((struct unhooked_functions){first, planner->n_ids, tally->reason}));
}

void transcript_judge_programs(struct transcript *t, uint64_t time)
{
	bool has_unmatched = false;

	for (size_t i = 0; i < t->programs.n; i++) {
		struct program *p = &t->programs.v[i];

		if (p->name && p->time + BEGINNING_NS < time)
			judge(t, p, UINT64_MAX);
	}
	hooks_each_unmatched(t->h, note_unmatched, &has_unmatched);
	for (size_t i = 0; has_unmatched && i < t->tallies.n; i++)
		plan_unhooked(t, &t->tallies.v[i]);
}

const char *transcript_unhooked_reason(const struct transcript *t, uint32_t id)
{
	for (size_t i = 0; i < t->unhooked.n; i++)
		if (id >= t->unhooked.v[i].first && id <= t->unhooked.v[i].last)
			return t->unhooked.v[i].reason;
	return NULL;
}

/* ---------------------------------------------------------------------------------------------- */

void transcript_write_unheard(struct transcript *t, uint64_t time)
{
	for (size_t i = 0; i < t->tallies.n; i++)
		write_tally(t, &t->tallies.v[i], time);
}

/* What else there is for functions that were asked for. */
static char *with_advice(const struct transcript *t, char *sentence)
{
	uint32_t id = t->unhooked.n ? t->unhooked.v[0].first : 0;
	const struct planned_function *f = id ? hooks_planned(t->h, id, NULL) : NULL;
	char *longer;

	if (!f)
		return sentence;
	longer = mem_printf(
		"%s; '%s' is there: 'weir steps --around %s' and 'weir probe' count its calls",
		sentence, f->name, f->name);
	free(sentence);
	return longer;
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
		return with_advice(t, text);
	sentence = n_kinds == 1 ? mem_printf("%s (%lu times)", text, n)
				: mem_printf("%s; nor were %lu others (weir report loss says why)",
					  text, n - first->n);
	free(text);
	return with_advice(t, sentence);
}

uint64_t transcript_n_unheard(const struct transcript *t)
{
	const uint32_t *lost = t->h->lost.n_unheard;
	uint64_t n = (uint64_t)lost[HOOK_HELLO_FORK] + lost[HOOK_HELLO_MODULES] +
		     lost[HOOK_HELLO_CLASSES];

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
	for (size_t i = 0; i < t->tallies.n; i++) {
		free(t->tallies.v[i].name);
		free(t->tallies.v[i].path);
	}
	vec_release(&t->unhooked);
	vec_release(&t->programs);
	vec_release(&t->free_programs);
	vec_release(&t->tallies);
	map_release(&t->program_of);
}
