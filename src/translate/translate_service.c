/* SPDX-License-Identifier: MIT */
/* What the translator asks its recorder for, by an int3 with a number in rax (enum translate_service). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/mapped_file.h"
#include "process/proc.h"
#include "process/ptrace/inject_internal.h"
#include "translate/tracer.h"

#define SENTENCE_BYTES 300

/* --- regions ----------------------------------------------------------------------------------- */

struct region_search {
	uint64_t addr;
	struct proc_mapping found; /* start == end: nothing */
	char *path;		   /* its own copy */
};

static void look_for_mapping(void *ctx, const struct proc_mapping *m)
{
	struct region_search *search = ctx;

	if (search->addr < m->start || search->addr >= m->end)
		return;
	free(search->path);
	search->path = mem_strdup(m->path);
	search->found = *m;
	search->found.path = search->path;
}

static bool is_ordinary_file(const struct proc_mapping *m)
{
	return m->inode && m->path[0] == '/' && strncmp(m->path, "/memfd:", 7) &&
	       strncmp(m->path, "/dev/", 5) && strncmp(m->path, "/SYSV", 5);
}

uint32_t region_flags(const struct proc_mapping *m)
{
	return (is_ordinary_file(m) && !m->is_shared ? TRANSLATE_REGION_FILE : 0) |
	       (m->prot & PROT_WRITE ? TRANSLATE_REGION_WRITABLE : 0) |
	       (m->is_shared || (m->inode && !is_ordinary_file(m)) ? TRANSLATE_REGION_SHARED : 0) |
	       (!strcmp(m->path, "[vsyscall]") ? TRANSLATE_REGION_VSYSCALL : 0);
}

static int64_t serve_region(struct translate_tracer *s, struct traced_program *p, uint64_t at)
{
	struct translate_region region;
	struct region_search search = {0};
	int64_t answer = 0;

	if (!program_read(p, at, &region, sizeof(region)))
		return -1;
	search.addr = region.address;
	proc_each_mapping(p->pid, look_for_mapping, &search, NULL);
	region.start = region.end = region.address;
	region.flags = region.n_functions = 0;
	/* Rows up to now are of what was mapped up to now. */
	program_blocks(s, p, false);
	if (search.path && search.found.prot & PROT_EXEC) {
		region.start = search.found.start;
		region.end = search.found.end;
		region.flags = region_flags(&search.found);
		answer = s->work->region(s->ctx, p, &search.found, &region);
	}
	free(search.path);
	return program_write(p, at, &region, sizeof(region)) ? answer : -1;
}

static int64_t serve_file_code(const struct traced_program *p, uint64_t at)
{
	struct translate_file_code code;
	struct region_search search = {0};
	struct mapped_file f;
	ssize_t got = 0;

	if (!program_read(p, at, &code, sizeof(code)))
		return -1;
	search.addr = code.address;
	proc_each_mapping(p->pid, look_for_mapping, &search, NULL);
	if (search.path &&
		mapped_file_open(&f, p->pid, &search.found, (struct span){0}, NULL) == 0) {
		got = pread(f.fd, code.bytes, sizeof(code.bytes),
			(off_t)(code.address - search.found.start + search.found.offset));
		mapped_file_close(&f);
	}
	free(search.path);
	code.n = got > 0 ? (uint32_t)got : 0;
	return got > 0 && program_write(p, at, &code, sizeof(code)) ? 0 : -1;
}

/* --- the others -------------------------------------------------------------------------------- */

static const char *const whys[] = {
	[TRANSLATE_WHY_INSTRUCTION] = "it has an instruction that the translator does not know",
	[TRANSLATE_WHY_GS] = "it uses the gs segment itself",
	[TRANSLATE_WHY_TRACED] = "it is traced by another process",
	[TRANSLATE_WHY_MEMORY] = "there is no memory for translated code",
	[TRANSLATE_WHY_FAULT] = NULL, /* it dies, as it would without us */
	[TRANSLATE_WHY_CONFINED] =
		"it sets up a filter of system calls (seccomp), by which one made for us could end it",
	[TRANSLATE_WHY_BLOCKS] = "it has more blocks than can be numbered",
	[TRANSLATE_WHY_ASKED] = NULL,
};

static void restore_regs(struct user_regs_struct *r, const struct translate_thread *area)
{
	r->rax = area->regs[0];
	r->rcx = area->regs[1];
	r->rdx = area->regs[2];
	r->rbx = area->regs[3];
	r->rsp = area->regs[4];
	r->rbp = area->regs[5];
	r->rsi = area->regs[6];
	r->rdi = area->regs[7];
	r->r8 = area->regs[8];
	r->r9 = area->regs[9];
	r->r10 = area->regs[10];
	r->r11 = area->regs[11];
	r->r12 = area->regs[12];
	r->r13 = area->regs[13];
	r->r14 = area->regs[14];
	r->r15 = area->regs[15];
	r->rip = area->pc;
	r->eflags = area->flags;
	r->gs_base = area->program_gs;
	/* As if it had been in the call until now: the kernel makes it again, or ends it for a signal. */
	if (area->outcome) {
		r->rax = (uint64_t)area->outcome;
		r->orig_rax = (uint64_t)area->call;
		r->rip = area->pc + REMOTE_SYSCALL_BYTES;
	}
}

/* It has got no area, for want of memory: `area` is what it would have begun with. */
static bool is_not_begun(const struct traced_thread *t, uint64_t at, struct translate_thread *area)
{
	const struct translator_place *place = &t->program->place;
	struct translate_boot boot;

	if (at < place->slots || at >= place->end ||
		!program_read(t->program, at, &boot, sizeof(boot)))
		return false;
	*area = (struct translate_thread){.pc = boot.pc,
		.flags = boot.flags,
		.program_gs = boot.gs_base,
		.mask = boot.mask,
		.outcome = boot.outcome,
		.call = boot.call};
	memcpy(area->regs, boot.regs, sizeof(area->regs));
	return true;
}

/* From here on it runs natively; what it has counted until now stays. */
static bool serve_leave(
	struct translate_tracer *s, struct traced_thread *t, struct user_regs_struct *regs)
{
	const struct remote_thread r = traced_remote(t);
	uint64_t why = regs->rsi;
	struct translate_thread area;

	if (thread_area(t, regs->rdi, &area)) {
		thread_read(s, t, t->area);
		thread_free_area(t);
	} else if (!is_not_begun(t, regs->rdi, &area)) {
		return false;
	}
	t->is_translated = false;
	t->is_left = why == TRANSLATE_WHY_TRACED;
	restore_regs(regs, &area);
	remote_thread_set_mask(&r, area.mask, NULL);
	if (s->work->leaves)
		s->work->leaves(s->ctx, t, why < sizeof(whys) / sizeof(whys[0]) ? whys[why] : NULL);
	if (why < sizeof(whys) / sizeof(whys[0]) && whys[why]) {
		char text[256];

		snprintf(text, sizeof(text), "process %d is not %s from here on: %s",
			t->program->pid, s->work->done, whys[why]);
		if (why == TRANSLATE_WHY_INSTRUCTION)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " (at 0x%lx)",
				area.pc);
		s->work->tell(s->ctx, t->program, true, 1, text);
		translate_note(s, "%s", text);
	}
	return true;
}

static void serve_report(struct translate_tracer *s, const struct traced_thread *t, uint64_t at)
{
	char text[SENTENCE_BYTES];
	size_t n = 0;

	while (n < sizeof(text) - 1 && program_read(t->program, at + n, text + n, 1) && text[n])
		n++;
	text[n] = 0;
	s->work->tell(s->ctx, t->program, false, 1, text);
	translate_note(s, "process %d: %s", t->program->pid, text);
}

static void serve_exec(struct translate_tracer *s, struct traced_thread *t)
{
	struct translate_thread area;

	if (s->work->before_exec && thread_area(t, t->area, &area))
		s->work->before_exec(s->ctx, t, &area);
}

void thread_serve(
	struct translate_tracer *s, struct traced_thread *t, struct user_regs_struct *regs)
{
	int64_t answer = 0;

	switch (regs->rax) {
	case TRANSLATE_REGION:
		answer = serve_region(s, t->program, regs->rdi);
		break;
	case TRANSLATE_EXEC:
		thread_read(s, t, regs->rdi);
		program_blocks(s, t->program, true);
		serve_exec(s, t);
		break;
	case TRANSLATE_MAPS:
		thread_read(s, t, regs->rdi);
		if (s->work->maps)
			s->work->maps(s->ctx, t);
		break;
	case TRANSLATE_FILE_CODE:
		answer = serve_file_code(t->program, regs->rdi);
		break;
	case TRANSLATE_LEAVE:
		if (serve_leave(s, t, regs))
			return;
		answer = -1;
		break;
	case TRANSLATE_FORKED:
		t->program->is_inherited = false;
		t->area = regs->rdi;
		t->n_taken = 0;
		break;
	case TRANSLATE_REPORT:
		serve_report(s, t, regs->rdi);
		break;
	default:
		answer = -1;
	}
	regs->rax = (uint64_t)answer;
}
