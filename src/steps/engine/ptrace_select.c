/* SPDX-License-Identifier: MIT */
/*
 * What is stepped and what runs at full speed: whole threads, regions that begin at functions
 * (found by debug registers, so that no byte of the program changes), bursts.
 */
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/clock.h"
#include "base/file.h"
#include "process/proc.h"
#include "steps/engine/ptrace_engine.h"

#define AT_ENTRY_KEY	  9
#define HANDLER_STACK_MAX (8u << 20)
#define DR7_ENABLE(i)	  (1ul << ((i)*2)) /* local; 1 byte, on execution: the other bits are 0 */

/* --- debug registers ------------------------------------------------------------------------- */

static bool poke_debug(const struct tracee *t, size_t i, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, t->tid,
		       (void *)(offsetof(struct user, u_debugreg) + i * sizeof(long)),
		       (void *)(uintptr_t)value) == 0;
}

void tracee_clear_places(struct tracee *t)
{
	if (t->n_places)
		poke_debug(t, 7, 0);
	t->n_places = 0;
}

bool tracee_set_places(struct tracee *t, const uint64_t *places, size_t n)
{
	uint64_t control = 0;

	tracee_clear_places(t);
	for (size_t i = 0; i < n; i++) {
		if (!poke_debug(t, i, places[i]))
			return false;
		control |= DR7_ENABLE(i);
		t->places[i] = places[i];
	}
	t->n_places = n;
	return poke_debug(t, 7, control);
}

/* --- in and out ------------------------------------------------------------------------------ */

static void go_in(struct ptrace_engine *e, struct tracee *t, enum step_why why)
{
	tracee_clear_places(t);
	t->is_waiting_for_code = false;
	t->mode = TRACEE_STEP;
	t->is_in = true;
	e->has_begun = true;
	tracee_pin(e, t);
	tracee_take_mask(t);
	tracee_mark_in(e, t, why);
}

static void run_free(struct tracee *t)
{
	t->mode = TRACEE_FREE;
	t->is_in = false;
	t->has_saved = false;
	t->around_sp = 0;
	tracee_unpin(t);
	tracee_give_mask(t);
	tracee_clear_flag(t);
}

static void go_out(struct ptrace_engine *e, struct tracee *t, enum step_why why)
{
	tracee_mark_out(e, t, why);
	run_free(t);
}

/* The function at which stepping begins; NULL: it begins with the program. */
static const struct step_function *beginning(const struct step_options *o)
{
	return o->around ? o->around : o->from;
}

void tracee_leave_regions(struct ptrace_engine *e, struct tracee *t)
{
	t->around_sp = 0;
	t->n_handlers = 0;
	if (!beginning(e->o))
		return;
	tracee_mark_out(e, t, STEP_WHY_REGION);
	t->is_in = false;
}

static uint64_t entry_of_program(const struct tracee *t)
{
	struct buf b = {0};
	char path[64];
	uint64_t entry = 0;
	size_t word = t->is_64 ? 8 : 4;

	snprintf(path, sizeof(path), "/proc/%d/auxv", t->pid);
	if (file_read(&b, path, 1u << 16, NULL) == 0)
		for (size_t at = 0; at + 2 * word <= b.n && !entry; at += 2 * word) {
			uint64_t key = 0, value = 0;

			memcpy(&key, b.p + at, word);
			memcpy(&value, b.p + at + word, word);
			entry = key == AT_ENTRY_KEY ? value : 0;
		}
	buf_release(&b);
	return entry;
}

/* Breakpoints at the beginning; false when the function is not there yet. */
static bool watch_beginning(struct ptrace_engine *e, struct tracee *t)
{
	uint64_t places[PLACES_MAX];
	size_t n = step_session_find(e->s, t->track, beginning(e->o), places, PLACES_MAX);

	if (n > PLACES_MAX) {
		if (!e->has_too_many)
			step_session_note(e->s, "'%s' has %zu places; the first %d are watched",
				beginning(e->o)->text, n, PLACES_MAX);
		e->has_too_many = true;
		n = PLACES_MAX;
	}
	e->has_found |= n > 0;
	return n && tracee_set_places(t, places, n);
}

/* The function may be in a library that is not loaded yet: asked again where the program proper
 * begins, and then whenever something is mapped. */
static void wait_for_beginning(struct ptrace_engine *e, struct tracee *t)
{
	uint64_t entry = entry_of_program(t);

	run_free(t);
	t->is_waiting_for_code = false;
	if (watch_beginning(e, t))
		return;
	if (entry && t->regs.rip != entry && tracee_set_places(t, &entry, 1)) {
		t->is_at_entry_wait = true;
		return;
	}
	t->is_waiting_for_code = true;
}

void tracee_look_for_code(struct ptrace_engine *e, struct tracee *t)
{
	if (!t->is_waiting_for_code || !tracee_read_regs(t))
		return;
	step_session_maps(e->s, t->track);
	if (watch_beginning(e, t))
		t->is_waiting_for_code = false;
}

static bool is_named(const struct tracee *t, const char *threads)
{
	char name[64], *end;
	long tid = strtol(threads, &end, 10);

	if (!*end)
		return tid == t->tid;
	proc_name(t->pid, t->tid, name, sizeof(name));
	return !fnmatch(threads, name, 0);
}

static bool is_wanted_thread(struct ptrace_engine *e, const struct tracee *t)
{
	bool is_wanted = !e->o->threads || is_named(t, e->o->threads);

	e->has_wanted_thread |= is_wanted;
	return is_wanted;
}

void engine_note_silence(const struct ptrace_engine *e)
{
	const char *option = e->o->around ? "--around" : "--from";
	const struct step_function *f = beginning(e->o);

	if (!e->has_wanted_thread)
		step_session_note(e->s, "--threads: no thread was called '%s'", e->o->threads);
	else if (f && !e->has_found)
		step_session_complain_of_missing(e->s, option, f);
	else if (f && !e->has_begun)
		step_session_note(e->s, "%s: '%s' was not called", option, f->text);
	if (e->has_looked_for_end && !e->has_found_end)
		step_session_complain_of_missing(e->s, "--to", e->o->to);
}

void tracee_begin(struct ptrace_engine *e, struct tracee *t, enum step_why why)
{
	bool was_in = t->is_in && t->mode == TRACEE_NEW;

	t->is_in = false;
	if (!is_wanted_thread(e, t) || e->o->burst)
		run_free(t);
	else if (beginning(e->o) && !(was_in && (e->o->from || t->around_sp)))
		wait_for_beginning(e, t);
	else
		go_in(e, t, why);
}

/* --- changes --------------------------------------------------------------------------------- */

static bool is_at_end(struct ptrace_engine *e, struct tracee *t)
{
	if (t->to_space != t->track->space->number || t->to_changes != t->track->space->n_changes) {
		size_t n = step_session_find(e->s, t->track, e->o->to, t->to, PLACES_MAX);

		t->to_space = t->track->space->number;
		t->to_changes = t->track->space->n_changes;
		t->n_to = n < PLACES_MAX ? n : PLACES_MAX;
		e->has_looked_for_end = true;
		e->has_found_end |= n > 0;
	}
	for (size_t i = 0; i < t->n_to; i++)
		if (t->to[i] == t->regs.rip)
			return true;
	return false;
}

/* A handler has been left by a jump (siglongjmp) when the stack pointer is no longer below where it
 * began. */
static bool is_in_handler(struct tracee *t)
{
	if (t->n_handlers && (t->regs.rsp > t->handler_sp + 16 ||
				     t->handler_sp - t->regs.rsp > HANDLER_STACK_MAX))
		t->n_handlers = 0;
	return t->n_handlers;
}

/* The call that began the region has returned, or was left in another way. Handlers may run on a
 * stack of their own, so stack pointers are compared outside of them only. */
static bool has_left(struct tracee *t)
{
	return t->around_sp && t->regs.rsp > t->around_sp && !is_in_handler(t);
}

void tracee_select(struct ptrace_engine *e, struct tracee *t)
{
	if (e->o->burst && !t->n_burst) {
		go_out(e, t, STEP_WHY_BURST);
	} else if (e->o->around && has_left(t)) {
		go_out(e, t, STEP_WHY_REGION);
		wait_for_beginning(e, t);
	} else if (e->o->to && t->is_in && is_at_end(e, t)) {
		go_out(e, t, STEP_WHY_REGION);
		if (e->o->from)
			wait_for_beginning(e, t);
	}
}

void tracee_at_place(struct ptrace_engine *e, struct tracee *t)
{
	if (!tracee_read_regs(t))
		return;
	if (t->is_at_entry_wait) {
		t->is_at_entry_wait = false;
		tracee_clear_places(t);
		step_session_maps(e->s, t->track);
		wait_for_beginning(e, t);
		return;
	}
	step_session_maps(e->s, t->track);
	tracee_stand(t);
	go_in(e, t, STEP_WHY_REGION);
	t->n_handlers = 0;
	t->around_sp = e->o->around ? t->regs.rsp : 0;
}

/* --- bursts ---------------------------------------------------------------------------------- */

void engine_bursts(struct ptrace_engine *e)
{
	uint64_t now = clock_mono_ns();

	if (now < e->next_burst_ns)
		return;
	e->next_burst_ns = now + (uint64_t)(e->o->every_ms * 1e6);
	for (size_t i = 0; i < e->tracees.n; i++) {
		struct tracee *t = e->tracees.v[i];

		if (t->mode != TRACEE_FREE || t->wants_stop || !is_wanted_thread(e, t))
			continue;
		t->wants_stop = ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) == 0;
	}
}

void tracee_interrupted(struct ptrace_engine *e, struct tracee *t)
{
	if (!e->o->burst || t->mode != TRACEE_FREE)
		return;
	step_session_maps(e->s, t->track);
	tracee_stand(t);
	t->n_burst = e->o->burst;
	go_in(e, t, STEP_WHY_BURST);
}
