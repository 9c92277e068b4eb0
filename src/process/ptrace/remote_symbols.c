/* SPDX-License-Identifier: MIT */
/*
 * Delicate code, at which a thread may hold a lock that dlopen needs:
 * - the whole loader;
 * - of a library that brings its own malloc (not the C library) everything but functions with other
 *   names, such as the system calls that a sanitizer wraps;
 * - in the C library, and in a program that brings its own malloc, functions by their names. A
 *   stripped C library has no names for its static functions, but the object file of malloc is one
 *   stretch of code: everything from the end of the function before the first malloc function to
 *   the start of the one behind the last belongs to it.
 */
#include "process/ptrace/remote_symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/mem.h"
#include "process/proc.h"

#define GAP_ALIGN  16
#define PAGE_BYTES 4096

enum image_role { ROLE_ORDINARY, ROLE_PROGRAM, ROLE_LIBC, ROLE_LOADER };

struct range {
	uint64_t start, end; /* in the image's address space */
};

struct remote_image {
	enum image_role role;
	bool has_malloc;
	VEC(struct range) delicate;
	VEC(struct range) harmless; /* of an ordinary library that has malloc */
};

/* --- which functions are delicate ---------------------------------------------------------- */

/* The functions of the object file that malloc is in. */
static bool is_malloc_family(const char *name)
{
	static const char *const names[] = {"malloc", "free", "calloc", "realloc", "memalign",
		"valloc", "pvalloc", "aligned_alloc", "posix_memalign", "malloc_trim",
		"malloc_usable_size", "mallinfo", "mallinfo2", "malloc_stats", "mallopt",
		"malloc_info"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool is_delicate_name(const char *name)
{
	static const char *const parts[] = {"malloc", "free", "calloc", "realloc", "memalign",
		"valloc", "aligned_alloc", "sbrk", "morecore", "arena", "tcache", "dl_", "fork",
		"pthread_create", "allocate_stack", "nptl_", "tls_", "_IO_lock", "_Znw", "_Zna",
		"_Zdl", "_Zda", "tcmalloc", "mi_"};

	/* dlopen, dlsym, dlclose, ... */
	if (!strncmp(name, "dl", 2))
		return true;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

struct scan {
	struct remote_image *image;
	struct range family; /* of malloc */
	bool has_family;
	uint64_t before, behind; /* the nearest other functions around it */
};

static void see_names(void *ctx, const struct elf_symbol *s)
{
	struct scan *scan = ctx;
	struct range r = {s->addr.v, s->addr.v + s->size};

	if (!strcmp(s->name, "malloc"))
		scan->image->has_malloc = true;
	if (is_delicate_name(s->name))
		vec_push(&scan->image->delicate, r);
	if (!is_malloc_family(s->name))
		return;
	if (!scan->has_family || r.start < scan->family.start)
		scan->family.start = r.start;
	if (!scan->has_family || r.end > scan->family.end)
		scan->family.end = r.end;
	scan->has_family = true;
}

static void see_harmless(void *ctx, const struct elf_symbol *s)
{
	struct remote_image *image = ctx;

	if (s->size && !is_delicate_name(s->name) && !strcasestr(s->name, "alloc") &&
		!strcasestr(s->name, "mallctl"))
		vec_push(&image->harmless, ((struct range){s->addr.v, s->addr.v + s->size}));
}

static void see_neighbours(void *ctx, const struct elf_symbol *s)
{
	struct scan *scan = ctx;
	uint64_t start = s->addr.v, end = s->addr.v + s->size;

	if (end <= scan->family.start && end > scan->before)
		scan->before = end;
	if (start >= scan->family.end && start < scan->behind)
		scan->behind = start;
}

static void each_function(const struct elf_file *elf,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx)
{
	elf_file_each_function(elf, true, each, ctx);
	elf_file_each_function(elf, false, each, ctx);
}

static void find_delicate(struct remote_image *image, const struct elf_file *elf)
{
	struct scan scan = {.image = image, .behind = UINT64_MAX};

	each_function(elf, see_names, &scan);
	if (image->has_malloc && image->role == ROLE_ORDINARY)
		each_function(elf, see_harmless, image);
	/* In the object file of a whole allocator the functions around are its own. */
	if (!scan.has_family || image->role != ROLE_LIBC)
		return;
	each_function(elf, see_neighbours, &scan);
	vec_push(&image->delicate, ((struct range){scan.before, scan.behind}));
}

/* --- opening ------------------------------------------------------------------------------- */

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* musl's loader is its C library, too. */
static enum image_role role_of(const char *path, bool is_program)
{
	const char *name = path_base_name(path);

	if (is_program)
		return ROLE_PROGRAM;
	if (begins(name, "ld-musl") || begins(name, "libc.so") || begins(name, "libc-2.") ||
		begins(name, "libc.musl") || begins(name, "libpthread"))
		return ROLE_LIBC;
	if (begins(name, "ld-linux") || begins(name, "ld-2.") || begins(name, "ld.so") ||
		begins(name, "ld64.so") || begins(name, "libdl.so") || begins(name, "libdl-2."))
		return ROLE_LOADER;
	return ROLE_ORDINARY;
}

struct opening {
	struct remote_symbols *s;
	char program[4096]; /* target of /proc/PID/exe */
};

static void add_mapping(void *ctx, const struct proc_mapping *m)
{
	struct opening *opening = ctx;
	struct remote_symbols *s = opening->s;
	struct image_query query = {.pid = (uint32_t)s->pid, .mapping = *m};
	struct mapping mapping = {
		.start = m->start, .end = m->end, .offset = {m->offset}, .at_start = true};
	const struct image *image;

	if (!(m->prot & PROT_EXEC))
		return;
	mapping.image = images_ensure(s->images, &query);
	mapping.bias = images_bias(s->images, mapping.image, m->start, mapping.offset);
	addrspace_map(&s->space, &mapping);
	if (mapping.image < s->all.n)
		return;
	vec_push(&s->all, (struct remote_image){0});
	image = images_get(s->images, mapping.image);
	if (!image->has_elf)
		return;
	s->all.v[mapping.image].role = role_of(image->path, !strcmp(m->path, opening->program));
	find_delicate(&s->all.v[mapping.image], &image->elf);
}

static int find_width(struct remote_symbols *s, struct err *err)
{
	char *path = mem_printf("/proc/%d/exe", proc_number(s->pid));
	struct file_map file = {0};
	struct elf_file elf;
	int rc = file_map_open(&file, path, err);

	free(path);
	if (rc < 0)
		return rc;
	rc = elf_file_init(&elf, file.bytes, err);
	if (rc == 0) {
		s->is_64 = elf.is_64;
		if (elf.machine != (elf.is_64 ? EM_X86_64 : EM_386))
			rc = err_set(err, ERR_UNSUPPORTED,
				"process %d: its program is for a machine that is not known (%u)",
				s->pid, elf.machine);
		elf_file_release(&elf);
	}
	file_map_release(&file);
	return rc;
}

int remote_symbols_open(struct remote_symbols **out, pid_t pid, struct err *err)
{
	struct remote_symbols *s = mem_zalloc(sizeof(*s));
	struct opening opening = {.s = s};
	int rc;

	proc_exe(pid, opening.program, sizeof(opening.program));
	s->pid = pid;
	s->images = images_new();
	s->space = addrspace_new();
	rc = find_width(s, err);
	if (rc == 0)
		rc = proc_each_mapping(pid, add_mapping, &opening, err);
	if (rc < 0) {
		remote_symbols_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void remote_symbols_close(struct remote_symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->all.n; i++) {
		vec_release(&s->all.v[i].delicate);
		vec_release(&s->all.v[i].harmless);
	}
	vec_release(&s->all);
	addrspace_free(s->space);
	images_free(s->images);
	free(s);
}

/* --- asking -------------------------------------------------------------------------------- */

static bool is_in(const struct range *v, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < n; i++)
		if (addr - v[i].start < v[i].end - v[i].start)
			return true;
	return false;
}

enum remote_place remote_symbols_place(const struct remote_symbols *s, uint64_t addr)
{
	const struct mapping *m = addrspace_find(s->space, (struct vaddr){addr});
	const struct remote_image *image;

	if (!m)
		return REMOTE_PLACE_NOWHERE;
	image = &s->all.v[m->image];
	addr -= m->bias;
	switch (image->role) {
	case ROLE_LOADER:
		return REMOTE_PLACE_DELICATE;
	case ROLE_LIBC:
		return is_in(image->delicate.v, image->delicate.n, addr) ? REMOTE_PLACE_DELICATE
									 : REMOTE_PLACE_LIBC;
	case ROLE_PROGRAM:
		return image->has_malloc && is_in(image->delicate.v, image->delicate.n, addr)
			       ? REMOTE_PLACE_DELICATE
			       : REMOTE_PLACE_PROGRAM;
	case ROLE_ORDINARY:
		break;
	}
	if (!image->has_malloc)
		return REMOTE_PLACE_PROGRAM;
	return is_in(image->harmless.v, image->harmless.n, addr) ? REMOTE_PLACE_LIBC
								 : REMOTE_PLACE_DELICATE;
}

bool remote_symbols_program_allocates(const struct remote_symbols *s)
{
	for (size_t i = 0; i < s->all.n; i++)
		if (s->all.v[i].role == ROLE_PROGRAM && s->all.v[i].has_malloc)
			return true;
	return false;
}

struct search {
	const char *name;
	uint64_t found; /* in the image's address space */
};

static void search_name(void *ctx, const struct elf_symbol *symbol)
{
	struct search *search = ctx;

	if (symbol->type != STT_GNU_IFUNC && !strcmp(symbol->name, search->name))
		search->found = symbol->addr.v;
}

/* Every mapping in turn: those of the C library, then the others. */
uint64_t remote_symbols_find(const struct remote_symbols *s, const char *image, const char *name)
{
	for (int others = 0; others < 2; others++) {
		for (size_t i = 0; i < addrspace_n(s->space); i++) {
			const struct mapping *m = addrspace_get(s->space, i);
			const struct image *file = images_get(s->images, m->image);
			struct search search = {.name = name};

			if (!file->has_elf || (s->all.v[m->image].role == ROLE_LIBC) == others)
				continue;
			if (image && strcmp(path_base_name(file->path), image))
				continue;
			elf_file_each_function(&file->elf, true, search_name, &search);
			if (search.found)
				return search.found + m->bias;
		}
	}
	return 0;
}

uint64_t remote_symbols_find_object(
	const struct remote_symbols *s, const char *image, const char *name, uint64_t *bytes)
{
	for (size_t i = 0; i < addrspace_n(s->space); i++) {
		const struct mapping *m = addrspace_get(s->space, i);
		const struct image *file = images_get(s->images, m->image);
		struct elf_symbol symbol;

		if (!file->has_elf || strcmp(path_base_name(file->path), image) ||
			!elf_file_find_object(&file->elf, name, &symbol))
			continue;
		*bytes = symbol.size;
		return symbol.addr.v + m->bias;
	}
	return 0;
}

bool remote_symbols_has_image(const struct remote_symbols *s, const char *image)
{
	for (uint32_t i = 0; i < images_n(s->images); i++)
		if (!strcmp(path_base_name(images_get(s->images, i)->path), image))
			return true;
	return false;
}

/* The address behind the last byte of the file's code in this mapping; 0 when it is not known. */
static uint64_t code_end(const struct remote_symbols *s, const struct mapping *m)
{
	const struct image *image = images_get(s->images, m->image);
	uint64_t end = 0;

	if (image->kind != IMAGE_KIND_ELF || !image->has_elf)
		return 0;
	for (size_t i = 0; i < image->elf.n_segments; i++) {
		const struct elf_segment *segment = &image->elf.segments[i];
		uint64_t here = segment->addr.v + segment->mem_size + m->bias;

		if (segment->type == PT_LOAD && here > m->start && here <= m->end && here > end)
			end = here;
	}
	return end;
}

uint64_t remote_symbols_find_gap(const struct remote_symbols *s, size_t bytes,
	bool (*fits)(void *ctx, uint64_t addr), void *ctx)
{
	static const enum image_role order[] = {
		ROLE_LIBC, ROLE_LOADER, ROLE_ORDINARY, ROLE_PROGRAM};

	for (size_t role_i = 0; role_i < sizeof(order) / sizeof(order[0]); role_i++) {
		for (size_t i = 0; i < addrspace_n(s->space); i++) {
			const struct mapping *m = addrspace_get(s->space, i);
			uint64_t end = code_end(s, m);
			uint64_t at = (end + GAP_ALIGN - 1) & ~(uint64_t)(GAP_ALIGN - 1);

			if (s->all.v[m->image].role != order[role_i] || !end)
				continue;
			/* At most the rest of a page, or it is not what it seems. */
			if (m->end - end < PAGE_BYTES && at + bytes <= m->end && fits(ctx, at))
				return at;
		}
	}
	return 0;
}

void remote_symbols_prepare_walks(const struct remote_symbols *s)
{
	for (uint32_t i = 0; i < images_n(s->images); i++)
		images_cfi(s->images, i);
}
