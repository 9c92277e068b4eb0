/* SPDX-License-Identifier: MIT */
#include "record/hooks/targets.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "record/hooks/hooks_internal.h"
#include "record/hooks/inject.h"
#include "record/hooks/plan_internal.h"
#include "process/launch.h"
#include "process/proc.h"

/* ld.so ignores LD_PRELOAD in programs that run with another user's rights. */
static bool changes_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || geteuid() == 0)
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	       ((st.st_mode & S_ISGID) && st.st_gid != getegid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Why the dynamic loader of a program does not load libweir.so; NULL: it should. */
static const char *loader_hindrance(const struct elf_file *elf)
{
	if (image_is_go(elf))
		return "it is a Go program, which moves its stacks";
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		const char *loader;

		if (s->type != PT_INTERP)
			continue;
		loader = span_cstr(span_sub(elf->bytes, s->offset.v, s->file_size), 0);
		return loader && strstr(loader, "ld-musl")
			       ? "its loader is musl's, and libweir.so is for that of glibc"
			       : NULL;
	}
	return "it is statically linked";
}

/* The same for a file; NULL also for a script. */
static const char *file_hindrance(const char *path)
{
	const char *hindrance;
	struct file_map file;
	struct elf_file elf;

	if (file_map_open(&file, path, NULL) < 0)
		return NULL;
	if (elf_file_init(&elf, file.bytes, NULL) < 0) {
		file_map_release(&file);
		return NULL;
	}
	hindrance = loader_hindrance(&elf);
	elf_file_release(&elf);
	file_map_release(&file);
	return hindrance;
}

char *hook_targets_doubt(const char *command)
{
	char *path, *sentence = NULL;
	const char *hindrance;

	if (launch_find(command, &path, NULL) < 0)
		return NULL;
	hindrance = file_hindrance(path);
	if (hindrance)
		sentence = mem_printf(
			"'%s': %s: its functions cannot be hooked; samples only", path, hindrance);
	else if (changes_rights(path))
		sentence = mem_printf("'%s': runs with other rights than yours (setuid, setgid or "
				      "capabilities), its functions cannot be hooked; samples only",
			path);
	free(path);
	return sentence;
}

const char *hook_targets_hindrance(const char *path)
{
	const char *hindrance = file_hindrance(path);
	struct stat st;

	if (hindrance)
		return hindrance;
	if (stat(path, &st) == 0 &&
		((st.st_mode & (S_ISUID | S_ISGID)) ||
			getxattr(path, "security.capability", NULL, 0) > 0))
		return "it runs with rights of its own (setuid, setgid or capabilities)";
	return NULL;
}

static struct inject_options inject_options_of(struct hooks *h)
{
	return (struct inject_options){
		.library = h->libraries[1],
		.library32 = h->libraries[0],
		.place = h->listener.place,
		.moved_pc = hooks_moved_pc,
		.ctx = h,
	};
}

int hook_targets_attach(struct hooks *h, const pid_t *pids, size_t n, struct err *err)
{
	struct inject_options options = inject_options_of(h);

	for (size_t i = 0; i < n; i++) {
		int rc = hooks_reach(h, pids[i], err);

		if (rc == 0)
			rc = inject_attach(pids[i], &options, err);
		if (rc == 0)
			continue;
		while (i--)
			inject_detach(pids[i], &options, NULL);
		return rc;
	}
	return 0;
}

/* --- the end ------------------------------------------------------------------------------- */

#define SCANS_MAX	    8	      /* a process may fork while it is looked for */
#define PROC_START_ERROR_NS 20000000u /* a tick of /proc, and another one */

struct detach {
	struct hooks *hooks;
	struct inject_options options;
	struct stat libraries[2];
	void (*note)(void *ctx, const char *sentence);
	void *ctx;
	const char *until;
	VEC(pid_t) done;
	size_t n_new;
};

static bool is_done(const struct detach *d, pid_t pid)
{
	for (size_t i = 0; i < d->done.n; i++)
		if (d->done.v[i] == pid)
			return true;
	return false;
}

static void detach_one(void *ctx, pid_t pid)
{
	struct detach *d = ctx;
	struct err err;
	char *text;

	vec_push(&d->done, pid);
	if (inject_detach(pid, &d->options, &err) == 0 || !d->note)
		return;
	/* It has ended meanwhile, or has done it itself. */
	if (err.code == ERR_NOT_FOUND || !proc_exists(pid) || hooks_has_stopped(d->hooks, pid))
		return;
	text = mem_printf("%s; its hooks go when it next %s", err.text, d->until);
	d->note(d->ctx, text);
	free(text);
}

struct library_search {
	const struct detach *d;
	bool is_there;
};

static void look_for_library(void *ctx, const struct proc_mapping *m)
{
	struct library_search *search = ctx;
	const struct detach *d = search->d;

	for (int i = 0; m->inode && i < 2; i++)
		search->is_there |=
			m->inode == d->libraries[i].st_ino &&
			!strcmp(path_base_name(m->path), path_base_name(d->options.library));
}

/* A child that has called nothing hooked since its fork has not said hello: the library is in it
 * all the same, and so are the patches. Only processes that began after us can be such. */
static void detach_child(void *ctx, pid_t pid)
{
	struct detach *d = ctx;
	struct library_search search = {.d = d};

	if (pid == getpid() || is_done(d, pid) ||
		proc_start_ns(pid) + PROC_START_ERROR_NS < d->hooks->began_ns)
		return;
	if (proc_each_mapping(pid, look_for_library, &search, NULL) < 0 || !search.is_there)
		return;
	d->n_new++;
	detach_one(d, pid);
}

void hook_targets_detach(struct hooks *h, void (*note)(void *ctx, const char *sentence), void *ctx)
{
	struct detach d = {.hooks = h,
		.options = inject_options_of(h),
		.note = note,
		.ctx = ctx,
		.until = "looks at its ring"};

	hooks_each_process(h, detach_one, &d);
	d.until = "calls a hooked function";
	for (int i = 0; i < 2; i++)
		if (stat(h->libraries[i], &d.libraries[i]) < 0)
			d.libraries[i].st_ino = 0;
	for (int i = 0; i < SCANS_MAX; i++) {
		d.n_new = 0;
		proc_each_task(0, detach_child, &d);
		if (!d.n_new)
			break;
	}
	vec_release(&d.done);
}
