/* SPDX-License-Identifier: MIT */
/*
 * One stretch of memory holds all:
 *
 *   base                       slots
 *   | image: text, data, ... | stack, boot | stack, boot | ...
 *
 * The system calls are made at a stub that stands in place of the first bytes of some code for as long
 * as that takes: all threads stand still.
 */
#include "translate/inject_translator.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "process/proc.h"
#include "process/ptrace/inject_internal.h"

#define PAGE	    4096u
#define IMAGE_MAX   (64u << 20)
#define STACK_BYTES (64u << 10)
#define SLOT_BYTES  (STACK_BYTES + PAGE)
#define REG_NONE    (-1)
/* Where no program has anything, so that what it maps itself is where it would be without us. */
#define IMAGE_HINT 0x1fff00000000u

_Static_assert(sizeof(struct translate_boot) <= PAGE, "a boot is in one page");

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(uint64_t)(PAGE - 1);
}

static uint64_t pages_for(uint64_t bytes)
{
	return page_of(bytes + PAGE - 1);
}

/* --- the image --------------------------------------------------------------------------------- */

static int measure(struct translator_image *image, struct err *err)
{
	uint64_t low = UINT64_MAX, end = 0;

	for (size_t i = 0; i < image->elf.n_segments; i++) {
		const struct elf_segment *s = &image->elf.segments[i];

		if (s->type != PT_LOAD)
			continue;
		if (s->mem_size > IMAGE_MAX || s->addr.v > IMAGE_MAX)
			return err_set(err, ERR_FORMAT, "is no translator: it is too large");
		low = page_of(s->addr.v) < low ? page_of(s->addr.v) : low;
		end = s->addr.v + s->mem_size > end ? s->addr.v + s->mem_size : end;
	}
	if (low >= end)
		return err_set(err, ERR_FORMAT, "is no translator: it has no segments");
	image->low = low;
	image->bytes = pages_for(end - low);
	return 0;
}

static int find_header(struct translator_image *image, struct err *err)
{
	struct translate_header header;
	struct elf_symbol symbol;
	struct span bytes;

	if (!elf_file_find_object(&image->elf, TRANSLATE_HEADER_SYMBOL, &symbol))
		return err_set(err, ERR_FORMAT, "is no translator: %s is not in it",
			TRANSLATE_HEADER_SYMBOL);
	bytes = elf_file_bytes_at(&image->elf, symbol.addr);
	if (bytes.n < sizeof(header))
		return err_set(
			err, ERR_FORMAT, "is no translator: %s is cut", TRANSLATE_HEADER_SYMBOL);
	memcpy(&header, bytes.p, sizeof(header));
	if (header.magic != TRANSLATE_MAGIC || header.version != TRANSLATE_VERSION)
		return err_set(err, ERR_FORMAT, "is the translator of another version of weir");
	image->header = symbol.addr.v - image->low;
	/* Distances from the fields that have them. */
	image->start = image->header + offsetof(struct translate_header, start) + header.start;
	image->service =
		image->header + offsetof(struct translate_header, service) + header.service;
	image->waits = image->header + offsetof(struct translate_header, waits) + header.waits;
	image->asked = image->header + offsetof(struct translate_header, asked) + header.asked;
	if (image->start >= image->bytes || image->service >= image->bytes ||
		image->waits >= image->bytes || image->asked >= image->bytes)
		return err_set(err, ERR_FORMAT, "is no translator: it begins outside of itself");
	return 0;
}

int translator_image_open(struct translator_image *image, const char *path, struct err *err)
{
	int rc;

	memset(image, 0, sizeof(*image));
	rc = file_map_open(&image->file, path, err);
	if (rc < 0)
		return rc;
	rc = elf_file_init(&image->elf, image->file.bytes, err);
	if (rc == 0 &&
		(!image->elf.is_64 || image->elf.machine != EM_X86_64 || image->elf.type != ET_DYN))
		rc = err_set(err, ERR_FORMAT, "is no translator: not a shared object for x86-64");
	if (rc == 0)
		rc = measure(image, err);
	if (rc == 0)
		rc = find_header(image, err);
	if (rc < 0) {
		err_prefix(err, "'%s'", path);
		translator_image_close(image);
	}
	return rc;
}

void translator_image_close(struct translator_image *image)
{
	if (image->file.bytes.p) {
		elf_file_release(&image->elf);
		file_map_release(&image->file);
	}
	memset(image, 0, sizeof(*image));
}

/* --- into a process ---------------------------------------------------------------------------- */

struct code_search {
	uint64_t addr;
};

/* Code of a file: what the kernel maps by itself may not be written everywhere. */
static void look_for_code(void *ctx, const struct proc_mapping *m)
{
	struct code_search *search = ctx;

	if (!search->addr && m->prot & PROT_EXEC && !m->is_shared && m->path[0] == '/')
		search->addr = m->start;
}

/* Anonymous code, if there is no other. */
static void look_for_any_code(void *ctx, const struct proc_mapping *m)
{
	struct code_search *search = ctx;

	if (!search->addr && m->prot & PROT_EXEC && !m->is_shared && m->path[0] != '[')
		search->addr = m->start;
}

static int plant_stub(const struct remote_thread *t, struct remote_stub *stub, struct err *err)
{
	struct code_search search = {0};

	proc_each_mapping(t->pid, look_for_code, &search, NULL);
	if (!search.addr)
		proc_each_mapping(t->pid, look_for_any_code, &search, NULL);
	if (!search.addr)
		return err_set(err, ERR_FAILED, "its memory cannot be read");
	return remote_stub_plant(t, stub, search.addr, err);
}

/* Arguments that are not given are 0. */
static int call(struct remote_thread *t, const struct remote_stub *stub, const char *name,
	long number, const uint64_t args[6], uint64_t *result, struct err *err)
{
	int64_t value;
	int rc = remote_syscall(t, stub, number, args, &value, err);

	if (rc < 0)
		return rc;
	if (value < 0 && value >= -4095)
		return err_sys(
			err, (int)-value, "it may not have memory for translated code: %s", name);
	*result = (uint64_t)value;
	return 0;
}

static int write_memory(
	const struct remote_thread *t, uint64_t addr, const void *from, size_t n, struct err *err)
{
	if (n && !remote_write(t, addr, from, n))
		return err_sys(err, errno, "writing its memory at 0x%lx", addr);
	return 0;
}

static int write_image(const struct translator_image *image, const struct remote_thread *t,
	uint64_t base, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < image->elf.n_segments; i++) {
		const struct elf_segment *s = &image->elf.segments[i];
		struct span bytes = elf_file_bytes_at(&image->elf, s->addr);

		if (s->type != PT_LOAD || !s->file_size)
			continue;
		if (bytes.n < s->file_size)
			return err_set(err, ERR_FORMAT, "the translator's file is cut");
		rc = write_memory(t, base + (s->addr.v - image->low), bytes.p, s->file_size, err);
	}
	return rc;
}

static int protect(const struct translator_image *image, struct remote_thread *t,
	const struct remote_stub *stub, uint64_t base, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < image->elf.n_segments; i++) {
		const struct elf_segment *s = &image->elf.segments[i];
		uint64_t from = page_of(s->addr.v), to = pages_for(s->addr.v + s->mem_size),
			 ignored;
		uint64_t prot =
			(s->flags & PF_R ? PROT_READ : 0) | (s->flags & PF_X ? PROT_EXEC : 0);

		if (s->type != PT_LOAD || s->flags & PF_W || from == to)
			continue;
		rc = call(t, stub, "mprotect", SYS_mprotect,
			(const uint64_t[6]){base + (from - image->low), to - from, prot}, &ignored,
			err);
	}
	return rc;
}

static int place_image(const struct translator_image *image, struct remote_thread *t,
	size_t n_threads, const struct remote_stub *stub, uint64_t *base, struct err *err)
{
	uint64_t bytes = image->bytes + n_threads * SLOT_BYTES, ignored;
	const uint64_t args[6] = {IMAGE_HINT, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1};
	int rc = call(t, stub, "mmap", SYS_mmap, args, base, err);

	if (rc < 0)
		return rc;
	rc = write_image(image, t, *base, err);
	if (rc == 0)
		rc = protect(image, t, stub, *base, err);
	if (rc < 0 && t->is_stopped)
		call(t, stub, "munmap", SYS_munmap, (const uint64_t[6]){*base, bytes}, &ignored,
			NULL);
	return rc;
}

int translator_inject(const struct translator_image *image, struct remote_thread *t,
	size_t n_threads, uint64_t options, struct translator_place *place, struct err *err)
{
	struct remote_stub stub = {0};
	uint64_t base = 0;
	int rc = plant_stub(t, &stub, err);

	if (rc < 0)
		return rc;
	rc = place_image(image, t, n_threads, &stub, &base, err);
	remote_stub_remove(t, &stub);
	if (rc == 0)
		rc = write_memory(t,
			base + image->header + offsetof(struct translate_header, options), &options,
			sizeof(options), err);
	if (rc == 0)
		*place = (struct translator_place){base, base + image->header, base + image->start,
			base + image->service, base + image->waits, base + image->asked,
			base + image->bytes + n_threads * SLOT_BYTES, base + image->bytes};
	return rc;
}

/* --- taking it away --------------------------------------------------------------------------- */

/* Threads of its recording that may still be in it. */
static bool is_used(const struct remote_thread *t, const struct translate_header *header)
{
	for (uint32_t i = 0; i < header->n_threads && i < TRANSLATE_THREADS_MAX; i++) {
		struct translate_thread area;
		uint64_t at;

		if (!remote_read(t, header->threads + i * sizeof(at), &at, sizeof(at)))
			return true;
		if (at && (!remote_read(t, at, &area, sizeof(area)) || area.state == TRANSLATE_THREAD_LIVE))
			return true;
	}
	return false;
}

bool translator_remove(const struct translator_place *place, struct remote_thread *t)
{
	/* By its own instruction: no other one may stand in place of code, since other threads run. */
	const struct remote_stub stub = {.addr = place->waits - 2 - REMOTE_STUB64_SYSCALL};
	struct translate_header header;
	struct translate_mapping m;
	uint64_t ignored;

	if (!remote_read(t, place->header, &header, sizeof(header)) || header.magic != TRANSLATE_MAGIC ||
		header.n_mappings > TRANSLATE_MAPPINGS_MAX || is_used(t, &header))
		return false;
	for (uint64_t i = 0; i < header.n_mappings; i++)
		if (!remote_read(t, header.mappings + i * sizeof(m), &m, sizeof(m)) ||
			call(t, &stub, "munmap", SYS_munmap, (const uint64_t[6]){m.start, m.bytes}, &ignored,
				NULL) < 0)
			return false;
	return call(t, &stub, "munmap", SYS_munmap, (const uint64_t[6]){place->base, place->end - place->base},
		       &ignored, NULL) == 0;
}

/* --- beginning --------------------------------------------------------------------------------- */

static void fill_boot(struct translate_boot *boot, const struct user_regs_struct *r)
{
	const uint64_t regs[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	memcpy(boot->regs, regs, sizeof(regs));
	boot->pc = r->rip;
	boot->flags = r->eflags;
	boot->gs_base = r->gs_base;
}

int translator_start(const struct translator_place *place, struct remote_thread *t, size_t i,
	bool is_attached, struct err *err)
{
	uint64_t at = place->slots + i * SLOT_BYTES + STACK_BYTES;
	struct user_regs_struct *r = &t->regs.r64;
	const struct remote_restart restart = remote_thread_restart(t);
	struct translate_boot boot = {
		.outcome = restart.outcome, .call = restart.call, .is_attached = is_attached};
	uint64_t blocked, section;
	int rc;

	boot.has_rseq = is_attached && remote_thread_has_rseq(t, &section);
	if (restart.outcome) {
		r->rax = (uint64_t)restart.again;
		r->rip = restart.behind - REMOTE_SYSCALL_BYTES;
	}
	fill_boot(&boot, r);
	rc = remote_thread_get_mask(t, &boot.mask, err);
	if (rc == 0)
		rc = write_memory(t, at, &boot, sizeof(boot), err);
	blocked = ~TRANSLATE_SIGNALS_RAISED | boot.mask;
	r->orig_rax = (uint64_t)REG_NONE;
	r->rip = place->start;
	r->rdi = at;
	r->rsp = at;
	r->eflags = 0x202; /* interrupts on; direction forward, no single step */
	if (rc == 0)
		rc = remote_thread_set_regs(t, err);
	/* The mask last: if we die in between, the translator sets the one that it has. */
	return rc < 0 ? rc : remote_thread_set_mask(t, blocked, err);
}
