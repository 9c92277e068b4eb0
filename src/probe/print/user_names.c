/* SPDX-License-Identifier: MIT */
/*
 * Processes, what they have mapped, and the names of what is mapped.
 *
 * 1. A process has one address space now and those that it had before its last execs: an address
 *    that is not in the newest is looked for in the older ones, since a map may hold stacks of
 *    either program.
 * 2. A child shares its parent's address space until one of them changes it (addrspace.h).
 * 3. Files are opened when the kernel tells of their mapping, because they or their process may be
 *    gone later; those found in /proc, and all above FILES_OPEN_MAX, when a name is asked for.
 *    Either way a file that is not the one that was mapped has no names (process/images.h).
 * 4. Of processes that have ended the last DEAD_MAX are kept.
 */
#include "probe/print/user_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/map.h"
#include "probe/print/map_watch.h"
#include "probe/print/source_lines.h"
#include "process/images.h"
#include "process/proc.h"
#include "symbols/addrspace.h"
#include "symbols/symtab.h"

#define OLDER_MAX      3
#define DEAD_MAX       8192
#define FILES_OPEN_MAX 512
#define READ_AGAIN_NS  100000000u /* /proc of a process is not read more often for one address */

struct user_process {
	uint32_t pid;
	bool is_dead;
	uint64_t read_ns; /* when /proc was read; 0 = never */
	uint64_t died;	  /* number of its death, for keeping the last ones */
	struct addrspace *space;
	struct addrspace *older[OLDER_MAX]; /* newest first */
};

/* A file as some process has mapped it, or code that a process made. */
struct user_file {
	struct image_query query; /* by whom it was had first; path and build-id are owned */
	bool is_open, is_named;
	uint32_t image; /* once it is open */
	struct symtab *names;
	struct source_lines *lines; /* NULL: not asked for */
	uint64_t perf_map_bytes;    /* of the perf map that was read */
};

struct user_names {
	bool is_all;
	struct map_watch *watch;
	struct map process_of_pid; /* pid -> index + 1 */
	VEC(struct user_process) processes;
	uint32_t dead[DEAD_MAX]; /* pids, by the number of the death */
	uint64_t n_deaths;
	struct intern file_keys; /* id = number of the file */
	VEC(struct user_file) files;
	struct images *images;
	struct user_names_listener listener; /* changed NULL: nobody */
	bool was_asked;			     /* where an address lies */
	uint64_t moment_ns;		     /* that names are asked for; 0 = now */
};

struct user_names *user_names_new(bool is_all)
{
	struct user_names *un = mem_zalloc(sizeof(*un));

	un->is_all = is_all;
	un->images = images_new();
	return un;
}

static void release_spaces(struct user_process *p)
{
	addrspace_free(p->space);
	p->space = NULL;
	for (size_t i = 0; i < OLDER_MAX; i++) {
		addrspace_free(p->older[i]);
		p->older[i] = NULL;
	}
}

void user_names_free(struct user_names *un)
{
	if (!un)
		return;
	map_watch_close(un->watch);
	for (size_t i = 0; i < un->processes.n; i++)
		release_spaces(&un->processes.v[i]);
	for (size_t i = 0; i < un->files.n; i++) {
		symtab_free(un->files.v[i].names);
		source_lines_free(un->files.v[i].lines);
		free((char *)un->files.v[i].query.mapping.path);
		free((uint8_t *)un->files.v[i].query.build_id.p);
	}
	vec_release(&un->processes);
	vec_release(&un->files);
	map_release(&un->process_of_pid);
	intern_release(&un->file_keys);
	images_free(un->images);
	free(un);
}

/* --- processes -------------------------------------------------------------------------------- */

static struct user_process *find_process(struct user_names *un, uint32_t pid)
{
	const uint64_t *at = map_find(&un->process_of_pid, pid);

	return at ? &un->processes.v[*at - 1] : NULL;
}

static struct user_process *ensure_process(struct user_names *un, uint32_t pid)
{
	bool created;
	uint64_t *at = map_ensure(&un->process_of_pid, pid, &created);
	struct user_process *p;

	if (created) {
		vec_push(&un->processes, (struct user_process){.pid = pid});
		*at = un->processes.n;
	}
	p = &un->processes.v[*at - 1];
	if (!p->space)
		p->space = addrspace_new();
	return p;
}

void user_names_listen(struct user_names *un, struct user_names_listener listener)
{
	un->listener = listener;
}

static void tell_change(struct user_names *un, uint32_t pid, uint64_t start, uint64_t end)
{
	if (un->listener.changed)
		un->listener.changed(un->listener.ctx, pid, start, end);
}

/* What it had mapped becomes the past. */
static void begin_program(struct user_process *p, struct addrspace *space)
{
	if (p->space && addrspace_n(p->space)) {
		addrspace_free(p->older[OLDER_MAX - 1]);
		memmove(p->older + 1, p->older, (OLDER_MAX - 1) * sizeof(p->older[0]));
		p->older[0] = p->space;
	} else {
		addrspace_free(p->space);
	}
	p->space = space;
}

static void end_process(struct user_names *un, uint32_t pid)
{
	struct user_process *p = find_process(un, pid), *oldest;
	uint32_t *slot;

	if (!p || p->is_dead)
		return;
	tell_change(un, pid, 0, 0);
	p->is_dead = true;
	p->died = ++un->n_deaths;
	slot = &un->dead[p->died % DEAD_MAX];
	oldest = find_process(un, *slot);
	/* Else its number was used again. */
	if (oldest && oldest->is_dead && oldest->died + DEAD_MAX == p->died)
		release_spaces(oldest);
	*slot = pid;
}

/* --- mappings --------------------------------------------------------------------------------- */

/* Memory that belongs to one process, although it has a path. */
static bool is_own_memory(const char *path)
{
	static const char *const own[] = {
		"//", "/memfd:", "/dev/", "/SYSV", "/anon_hugepage", "/proc/"};

	if (path[0] != '/')
		return true;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strncmp(path, own[i], strlen(own[i])))
			return true;
	return false;
}

static void put_file_key(const struct user_process *p, const struct image_query *q, struct buf *key)
{
	const struct proc_mapping *m = &q->mapping;

	if (!strcmp(m->path, "[vdso]"))
		buf_printf(key, "vdso %d", m->start >> 32 ? 64 : 32);
	else if (is_own_memory(m->path))
		buf_printf(key, "process %u %lu %lu", p->pid, q->process_start_ns, m->inode);
	else if (q->build_id.n)
		buf_put_hex(key, q->build_id);
	else
		buf_printf(key, "inode %u:%u:%lu", m->major, m->minor, m->inode);
	buf_printf(key, " %s", m->path);
}

static void open_file(struct user_names *un, struct user_file *f)
{
	if (f->is_open)
		return;
	f->is_open = true;
	f->image = images_ensure(un->images, &f->query);
}

static uint32_t ensure_file(
	struct user_names *un, const struct user_process *p, const struct image_query *q)
{
	struct buf key = {0};
	uint32_t number;

	put_file_key(p, q, &key);
	number = intern_bytes(&un->file_keys, key.p, key.n);
	buf_release(&key);
	if (number == un->files.n) {
		struct user_file f = {.query = *q};

		f.query.mapping.path = mem_strdup(q->mapping.path);
		f.query.build_id.p = q->build_id.n ? mem_dup(q->build_id.p, q->build_id.n) : NULL;
		vec_push(&un->files, f);
	}
	return number;
}

static uint32_t add_mapping(struct user_names *un, struct user_process *p,
	const struct proc_mapping *at, struct span build_id)
{
	struct image_query q = {.pid = p->pid, .mapping = *at, .build_id = build_id};
	struct mapping m = {.start = at->start, .end = at->end, .offset = {at->offset}};

	q.process_start_ns = p->died; /* keeps code made by another process of this number apart */
	m.image = ensure_file(un, p, &q);
	addrspace_map(&p->space, &m);
	return m.image;
}

struct snapshot {
	struct user_names *un;
	struct user_process *p;
	size_t n;
};

static void take_mapping(void *ctx, const struct proc_mapping *m)
{
	struct snapshot *s = ctx;

	if (!(m->prot & PROT_EXEC) || !strcmp(m->path, "[vsyscall]"))
		return;
	add_mapping(s->un, s->p, m, (struct span){NULL, 0});
	s->n++;
}

bool user_names_process(struct user_names *un, pid_t pid)
{
	struct snapshot s = {.un = un};

	if (pid <= 0 || !proc_exists(pid))
		return false;
	s.p = ensure_process(un, (uint32_t)pid);
	s.p->read_ns = clock_mono_ns();
	if (proc_each_mapping(pid, take_mapping, &s, NULL) < 0 || !s.n)
		return false;
	s.p->is_dead = false;
	return true;
}

static void take_process(void *ctx, pid_t pid)
{
	user_names_process(ctx, pid);
}

void user_names_all_processes(struct user_names *un)
{
	proc_each_task(0, take_process, un);
}

/* --- what the kernel tells -------------------------------------------------------------------- */

static void apply_fork(struct user_names *un, const struct collected *r)
{
	struct user_process *parent, *child;
	struct addrspace *space;

	if (r->pid == r->fork.parent_pid)
		return; /* a thread */
	parent = find_process(un, r->fork.parent_pid);
	if (!parent && un->is_all && user_names_process(un, (pid_t)r->fork.parent_pid))
		parent = find_process(un, r->fork.parent_pid);
	if (!parent || !parent->space)
		return;
	space = addrspace_share(parent->space);
	child = ensure_process(un, r->pid); /* may move the parent */
	begin_program(child, space);
	child->is_dead = false;
}

static void apply_mmap(struct user_names *un, const struct collected *r)
{
	const struct collected_mmap *m = &r->mmap;
	uint32_t file;

	if (!(m->mapping.prot & PROT_EXEC) || m->mapping.end <= m->mapping.start)
		return;
	tell_change(un, r->pid, m->mapping.start, m->mapping.end);
	file = add_mapping(un, ensure_process(un, r->pid), &m->mapping,
		(struct span){m->build_id, m->build_id_n});
	if (un->files.n <= FILES_OPEN_MAX)
		open_file(un, &un->files.v[file]);
}

static void apply_exec(struct user_names *un, uint32_t pid)
{
	tell_change(un, pid, 0, 0);
	begin_program(ensure_process(un, pid), addrspace_new());
}

static void apply_record(void *ctx, const struct collected *r)
{
	struct user_names *un = ctx;

	if (r->pid == 0 || r->pid == UINT32_MAX)
		return; /* the kernel's own */
	if (r->kind == COLLECTED_FORK) {
		apply_fork(un, r);
		return;
	}
	if (!un->is_all && !find_process(un, r->pid))
		return;
	if (r->kind == COLLECTED_MMAP)
		apply_mmap(un, r);
	else if (r->kind == COLLECTED_COMM && r->comm.is_exec)
		apply_exec(un, r->pid);
	else if (r->kind == COLLECTED_EXIT && r->pid == r->tid)
		end_process(un, r->pid);
}

int user_names_watch(struct user_names *un, struct err *err)
{
	return un->watch ? 0 : map_watch_open(&un->watch, err);
}

int user_names_fd(const struct user_names *un)
{
	return un->watch ? un->watch->epoll_fd : -1;
}

void user_names_work_until(struct user_names *un, uint64_t time_ns)
{
	if (un->watch)
		map_watch_work(un->watch, time_ns, apply_record, un);
}

void user_names_work(struct user_names *un)
{
	user_names_work_until(un, un->moment_ns ? un->moment_ns : UINT64_MAX);
}

void user_names_at(struct user_names *un, uint64_t time_ns)
{
	un->moment_ns = time_ns;
}

uint64_t user_names_n_lost(const struct user_names *un)
{
	return un->watch && un->was_asked ? map_watch_n_lost(un->watch) : 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static void read_perf_map(struct user_file *f)
{
	char *path = mem_printf("/tmp/perf-%u.map", f->query.pid);
	struct symtab *names = NULL;
	struct stat st;

	/* The file grows while the program runs. */
	if (stat(path, &st) == 0 && (uint64_t)st.st_size != f->perf_map_bytes &&
		symtab_new_perf_map(&names, path, NULL) == 0) {
		symtab_free(f->names);
		f->names = names;
		f->perf_map_bytes = (uint64_t)st.st_size;
	}
	free(path);
}

static const struct symbol *find_in_file(
	struct user_names *un, struct user_file *f, const struct mapping *m, uint64_t address)
{
	const struct symbol *found = NULL;
	struct image *image;
	uint64_t bias;

	open_file(un, f);
	image = images_get(un->images, f->image);
	bias = images_bias(un->images, f->image, m->start, m->offset);
	if (image->kind == IMAGE_KIND_JIT) {
		found = f->names ? symtab_find(f->names, address) : NULL;
		if (found)
			return found;
		read_perf_map(f);
	} else if (!f->is_named && image->has_elf) {
		f->names = symtab_new_elf(
			&image->elf, image->kind == IMAGE_KIND_ELF ? image->path : NULL);
	}
	f->is_named = true;
	return f->names ? symtab_find(f->names, address - bias) : NULL;
}

static const struct mapping *find_mapping(const struct user_process *p, uint64_t address)
{
	const struct mapping *m =
		p->space ? addrspace_find(p->space, (struct vaddr){address}) : NULL;

	for (size_t i = 0; i < OLDER_MAX && !m; i++)
		if (p->older[i])
			m = addrspace_find(p->older[i], (struct vaddr){address});
	return m;
}

/* The mapping of an address, also when it has to be looked for in /proc. */
static const struct mapping *ensure_mapping(struct user_names *un, uint32_t pid, uint64_t address)
{
	struct user_process *p = find_process(un, pid);
	const struct mapping *m = p ? find_mapping(p, address) : NULL;

	un->was_asked = true;
	if (!m && (!p || (!p->is_dead && clock_mono_ns() - p->read_ns >= READ_AGAIN_NS)) &&
		user_names_process(un, (pid_t)pid)) {
		p = find_process(un, pid);
		m = find_mapping(p, address);
	}
	return m;
}

/* --- walking ---------------------------------------------------------------------------------- */

uint64_t user_names_space(struct user_names *un, uint32_t pid)
{
	const struct user_process *p = find_process(un, pid);

	return p && p->space ? addrspace_generation(p->space) : 0;
}

/* The image of an address, and the address in it. */
static const struct image *image_at(
	struct user_names *un, uint32_t pid, struct vaddr pc, struct iaddr *at)
{
	struct unwind_module module;

	if (!user_names_module(un, pid, pc, &module))
		return NULL;
	at->v = pc.v - module.bias;
	return images_get(un->images, module.cookie);
}

bool user_names_module(
	struct user_names *un, uint32_t pid, struct vaddr pc, struct unwind_module *module)
{
	const struct mapping *m = ensure_mapping(un, pid, pc.v);
	struct user_file *f = m ? &un->files.v[m->image] : NULL;

	if (!m)
		return false;
	open_file(un, f);
	images_module(un->images, f->image, images_bias(un->images, f->image, m->start, m->offset),
		module);
	return true;
}

bool user_names_follows_call(struct user_names *un, uint32_t pid, struct vaddr pc)
{
	struct iaddr at = {0};
	const struct image *image = image_at(un, pid, (struct vaddr){pc.v - 1}, &at);

	at.v++;
	return !image || image_follows_call(image, at);
}

bool user_names_ends_thread(struct user_names *un, uint32_t pid, struct vaddr pc)
{
	struct iaddr at = {0};
	const struct image *image = image_at(un, pid, pc, &at);

	return image && image_ends_thread(image, at);
}

/* --- answers ---------------------------------------------------------------------------------- */

bool user_names_find(
	struct user_names *un, uint32_t pid, uint64_t address, struct printer_symbol *out)
{
	const struct symbol *symbol;
	const struct mapping *m;

	/* What is known may be of the program before an exec that nobody has told of yet. */
	user_names_work(un);
	m = ensure_mapping(un, pid, address);
	if (!m)
		return false;
	symbol = find_in_file(un, &un->files.v[m->image], m, address);
	*out = (struct printer_symbol){.module = un->files.v[m->image].query.mapping.path};
	if (!symbol)
		return false;
	out->name = symbol->name;
	out->offset = address -
		      images_bias(un->images, un->files.v[m->image].image, m->start, m->offset) -
		      symbol->start;
	return true;
}

size_t user_names_places(struct user_names *un, uint32_t pid, uint64_t address,
	struct printer_place *out, size_t max)
{
	const struct mapping *m = ensure_mapping(un, pid, address);
	struct user_file *f = m ? &un->files.v[m->image] : NULL;
	const struct image *image;

	if (!f)
		return 0;
	open_file(un, f);
	image = images_get(un->images, f->image);
	if (!image->has_elf)
		return 0;
	if (!f->lines)
		f->lines = source_lines_new(
			&image->elf, image->kind == IMAGE_KIND_ELF ? image->path : NULL);
	return source_lines_at(f->lines,
		address - images_bias(un->images, f->image, m->start, m->offset), out, max);
}

bool user_names_file(
	struct user_names *un, uint32_t pid, uint64_t address, struct printer_file_place *out)
{
	const struct mapping *m = ensure_mapping(un, pid, address);
	struct user_file *f = m ? &un->files.v[m->image] : NULL;
	const struct image *image;

	if (!f)
		return false;
	open_file(un, f);
	image = images_get(un->images, f->image);
	*out = (struct printer_file_place){.build_id = {image->build_id, image->build_id_n},
		.offset = address - m->start + m->offset.v};
	return image->build_id_n;
}
