/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints are the folders of tracefs. Functions of kprobes are those that ftrace can follow,
 * or, where tracefs does not say, the code symbols of /proc/kallsyms. fentry takes functions by
 * their type, so there the kernel's BTF says which there are, and a single one costs no search of
 * all.
 */
#include "probe/points/find_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/nearest_names.h"
#include "probe/points/point_kind.h"
#include "probe/types/btf_types.h"
#include "process/tracepoint.h"

#define KALLSYMS_BYTES_MAX ((size_t)256 << 20)
#define KERNEL_NAME_MAX	   512	      /* bytes; KSYM_NAME_LEN */
#define KERNEL_NAMES_MAX   (1u << 20) /* names that one point may mean */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct kernel_search {
	const struct point_spec *spec;
	struct arena *arena;
	VEC(const char *) names; /* in the arena */
	struct nearest_names near;
	size_t n_syscalls; /* tracepoints of system calls that a pattern met */
};

/* In byte order, each once. */
static void finish(struct kernel_search *s, struct point *out)
{
	const char **v = s->names.v;

	vec_sort(&s->names, compare_names);
	for (size_t i = 0; i < s->names.n; i++)
		if (!out->n_names || strcmp(v[out->n_names - 1], v[i]) != 0)
			v[out->n_names++] = v[i];
	if (out->n_names)
		out->names = arena_dup(s->arena, v, out->n_names * sizeof(*v));
	vec_release(&s->names);
}

static bool report_missing(struct kernel_search *s, const char *what, struct diags *d)
{
	char text[512];

	if (s->spec->is_glob) {
		diag_warning(
			d, s->spec->place, "not-found", "no %s matches '%s'", what, s->spec->text);
		return true;
	}
	diag_error(d, s->spec->place, "not-found", "this kernel has no %s '%s%s%s'", what,
		s->spec->provider ? s->spec->provider : "", s->spec->provider ? ":" : "",
		s->spec->name);
	if (nearest_names_text(&s->near, text, sizeof(text)))
		diag_hint(d, "is it %s?", text);
	return false;
}

/* --- tracepoints ------------------------------------------------------------------------------ */

static void each_folder(int dir_fd, void (*each)(void *ctx, int fd, const char *name), void *ctx)
{
	int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!dir && copy >= 0)
		close(copy);
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && e->d_type != DT_REG)
			each(ctx, dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
}

struct name_walk {
	kernel_name_fn *each;
	void *ctx;
	const char *group;
};

static void take_event(void *ctx, int fd, const char *name)
{
	struct name_walk *w = ctx;

	(void)fd;
	w->each(w->ctx, w->group, name);
}

static void take_category(void *ctx, int fd, const char *name)
{
	struct name_walk *w = ctx;
	FD_AUTO category = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	w->group = name;
	if (category >= 0)
		each_folder(category, take_event, w);
}

int tracepoints_each(kernel_name_fn *each, void *ctx, struct err *err)
{
	struct name_walk w = {.each = each, .ctx = ctx};
	FD_AUTO tracefs = tracefs_open(err);
	FD_AUTO events = tracefs < 0 ? -1 : openat(tracefs, "events", O_RDONLY | O_DIRECTORY);

	if (tracefs < 0)
		return tracefs;
	if (events < 0)
		return err_sys(err, errno, "tracefs: events");
	each_folder(events, take_category, &w);
	return 0;
}

static void add_tracepoint(struct kernel_search *s, const char *category, const char *name)
{
	if (s->names.n < KERNEL_NAMES_MAX)
		vec_push(&s->names, s->spec->kind == POINT_TRACEPOINT
					    ? arena_printf(s->arena, "%s:%s", category, name)
					    : arena_strdup(s->arena, name));
}

/* Raw tracepoints may be named with the module that has them, as bpftrace does; categories of modules
 * have their names. */
static bool is_provider(const struct point_spec *spec, const char *category)
{
	return !spec->provider || glob_match(spec->provider, category) ||
	       (spec->kind == POINT_RAW_TRACEPOINT && glob_match(spec->provider, "vmlinux"));
}

static void match_tracepoint(void *ctx, const char *category, const char *name)
{
	struct kernel_search *s = ctx;
	const struct point_spec *spec = s->spec;

	if (!is_provider(spec, category) || !glob_match(spec->name, name)) {
		if (!spec->is_glob && (!spec->provider || strcmp(spec->provider, category) == 0 ||
					      strcmp(spec->name, name) == 0))
			nearest_names_add(
				&s->near, strcmp(spec->name, name) == 0
						  ? arena_printf(s->arena, "%s:%s", category, name)
						  : name);
		return;
	}
	/* Their names do not fire for 32-bit programs, and raw ones have no such names. */
	if (strcmp(category, "syscalls") == 0) {
		s->n_syscalls++;
		return;
	}
	add_tracepoint(s, category, name);
}

/* One tracepoint is looked at where it is: reading all folders takes 20 ms. */
static bool has_tracepoint(int tracefs, struct kernel_search *s)
{
	char *path =
		arena_printf(s->arena, "events/%s/%s/format", s->spec->provider, s->spec->name);

	if (faccessat(tracefs, path, F_OK, 0) != 0)
		return false;
	add_tracepoint(s, s->spec->provider, s->spec->name);
	return true;
}

bool find_tracepoints(
	struct point *out, const struct find_options *options, struct arena *arena, struct diags *d)
{
	struct kernel_search s = {
		.spec = &out->spec, .arena = arena, .near = {.wanted = out->spec.name}};
	struct err err;
	FD_AUTO tracefs = tracefs_open(&err);
	bool is_one = !out->spec.is_glob && out->spec.provider;

	(void)options;
	/* A raw tracepoint needs no tracefs to be attached, only to be looked for. */
	if (tracefs < 0 && out->spec.kind == POINT_RAW_TRACEPOINT && !out->spec.is_glob) {
		vec_push(&s.names, out->spec.name);
		finish(&s, out);
		return true;
	}
	if (tracefs < 0)
		return diag_error(d, out->spec.place, "no-tracefs", "%s", err.text);
	if (!(is_one && has_tracepoint(tracefs, &s)))
		tracepoints_each(match_tracepoint, &s, NULL);
	if (s.n_syscalls)
		diag_warning(d, out->spec.place, "left-out",
			"%zu tracepoints of system calls are left out: they do not fire for 32-bit "
			"programs",
			s.n_syscalls);
	if (s.n_syscalls)
		diag_hint(d, "write syscall:NAME:entry, syscall:NAME:return");
	finish(&s, out);
	return out->n_names > 0 || report_missing(&s, "tracepoint", d);
}

/* --- functions -------------------------------------------------------------------------------- */

bool kernel_has_kprobes(void)
{
	return access("/sys/bus/event_source/devices/kprobe/type", F_OK) == 0;
}

bool kernel_has_fentry(void)
{
	FD_AUTO tracefs = tracefs_open(NULL);

	if (access("/sys/kernel/btf/vmlinux", F_OK) != 0)
		return false;
	/* Without tracefs nothing can be said, so attaching is left to say it. */
	return tracefs < 0 || faccessat(tracefs, "available_filter_functions", F_OK, 0) == 0;
}

/* "ffffffff81000000 T name\t[module]", or "name [module]" of available_filter_functions. */
static void parse_line(char *line, bool is_kallsyms, kernel_name_fn *each, void *ctx)
{
	char *save = NULL;
	char *address = is_kallsyms ? strtok_r(line, " \t", &save) : NULL;
	char *type = is_kallsyms ? strtok_r(NULL, " \t", &save) : NULL;
	char *name = strtok_r(is_kallsyms ? NULL : line, " \t", &save);
	char *module = strtok_r(NULL, " \t", &save);
	size_t n;

	if (is_kallsyms && (!address || !type || (*type | 32) != 't'))
		return;
	if (!name || strnlen(name, KERNEL_NAME_MAX) >= KERNEL_NAME_MAX || strchr(name, '.') == name)
		return;
	n = module ? strlen(module) : 0;
	if (n > 2 && module[0] == '[' && module[n - 1] == ']') {
		module[n - 1] = 0;
		module++;
	} else {
		module = NULL;
	}
	/* Discarded code, and the padding in front of functions. */
	if (strncmp(name, "__ftrace_invalid_address__", 26) != 0 &&
		strncmp(name, "__pfx_", 6) != 0 && strncmp(name, "__cfi_", 6) != 0)
		each(ctx, module ? module : "", name);
}

int kernel_functions_each(kernel_name_fn *each, void *ctx, struct err *err)
{
	FD_AUTO tracefs = tracefs_open(NULL);
	struct buf b = {0};
	bool is_kallsyms = tracefs < 0 || tracefs_read(&b, tracefs, "available_filter_functions",
						  KALLSYMS_BYTES_MAX, NULL) < 0;
	char *save = NULL;
	int rc = 0;

	if (is_kallsyms)
		rc = file_read(&b, "/proc/kallsyms", KALLSYMS_BYTES_MAX, err);
	if (rc == 0) {
		buf_text(&b);
		for (char *line = strtok_r((char *)b.p, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			parse_line(line, is_kallsyms, each, ctx);
	}
	buf_release(&b);
	return rc;
}

int fentry_functions_each(const char *one, kernel_name_fn *each, void *ctx, struct err *err)
{
	struct btf_types *btf = NULL;
	struct file_map map;
	int rc = file_map_open(&map, BTF_VMLINUX, err);

	if (rc < 0)
		return rc;
	rc = btf_types_open(NULL, map.bytes, &btf, err);
	if (rc == 0) {
		if (one && btf_types_function_id(btf, one))
			each(ctx, "", one);
		else
			btf_types_each_function(btf, each, ctx);
		btf_types_close(btf);
	}
	file_map_release(&map);
	return rc;
}

/* Return probes take these locks themselves. */
static bool locks_up(const struct point_spec *spec, const char *name)
{
	static const char *const locks[] = {"_raw_spin_lock", "_raw_spin_lock_irqsave",
		"_raw_spin_unlock_irqrestore", "queued_spin_lock_slowpath"};

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (spec->kind == POINT_KRETPROBE && !strcmp(name, locks[i]))
			return true;
	return false;
}

static void match_function(void *ctx, const char *module, const char *name)
{
	struct kernel_search *s = ctx;
	const struct point_spec *spec = s->spec;
	const char *provider = spec->provider;

	/* "vmlinux" is the kernel itself. */
	if (provider && strcmp(provider, "vmlinux") == 0)
		provider = "";
	if ((provider && !glob_match(provider, module)) || !glob_match(spec->name, name)) {
		if (!spec->is_glob)
			nearest_names_add(&s->near, name);
		return;
	}
	if (s->names.n < KERNEL_NAMES_MAX && !locks_up(spec, name))
		vec_push(&s->names, *module ? arena_printf(s->arena, "%s:%s", module, name)
					    : arena_strdup(s->arena, name));
}

static bool report_lack(const struct point *point, struct diags *d)
{
	bool is_probe = !point_has(point->spec.kind, POINT_BY_BTF);
	bool is_return = point_has(point->spec.kind, POINT_AT_RETURN);

	if (locks_up(&point->spec, point->spec.name)) {
		diag_error(d, point->spec.place, "unsafe",
			"%s can't be used as it might lock up your system", point->spec.text);
		return true;
	}
	if (is_probe && !kernel_has_kprobes()) {
		diag_error(d, point->spec.place, "kernel-lacks",
			"this kernel has no kprobes (CONFIG_KPROBES)");
		if (kernel_has_fentry() && !point->spec.offset)
			diag_hint(d, "%s:%s is cheaper, where the kernel permits it",
				is_return ? "fexit" : "fentry", point->spec.name);
		return true;
	}
	if (!is_probe && !kernel_has_fentry()) {
		diag_error(d, point->spec.place, "kernel-lacks",
			"this kernel has no fentry: it needs BTF and dynamic ftrace");
		if (kernel_has_kprobes())
			diag_hint(d, "it has %s:%s", is_return ? "kretprobe" : "kprobe",
				point->spec.name);
		return true;
	}
	return false;
}

bool find_kernel_functions(
	struct point *out, const struct find_options *options, struct arena *arena, struct diags *d)
{
	struct kernel_search s = {
		.spec = &out->spec, .arena = arena, .near = {.wanted = out->spec.name}};
	const char *module = out->spec.provider;
	bool is_module = module && strcmp(module, "vmlinux") != 0;
	bool is_fentry = point_has(out->spec.kind, POINT_BY_BTF);
	struct err err;
	int rc;

	(void)options;
	if (report_lack(out, d))
		return false;
	rc = is_fentry && !is_module
		     ? fentry_functions_each(
			       out->spec.is_glob ? NULL : out->spec.name, match_function, &s, &err)
		     : kernel_functions_each(match_function, &s, &err);
	if (rc < 0)
		return diag_error(d, out->spec.place, "no-privilege", "%s", err.text);
	finish(&s, out);
	return out->n_names > 0 || report_missing(&s, "function that can be probed", d);
}
