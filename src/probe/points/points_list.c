/* SPDX-License-Identifier: MIT */
/*
 * What trace points there are. A pattern that begins with a word of the language looks only there;
 * any other pattern looks through everything that the kernel offers by name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/glob.h"
#include "probe/points/find_kernel.h"
#include "probe/points/perf_counts.h"
#include "probe/points/point_kind.h"
#include "probe/points/syscalls.h"
#include "process/syscall_names.h"
#include "process/tracepoint.h"

#define FORMAT_BYTES_MAX 65536
#define DETAILS_MAX	 64

struct entry {
	enum point_kind kind;
	const char *name;
	const char *about; /* what its details are read from */
};

struct point_listing {
	struct arena *arena;
	const char *pattern;
	const struct find_options *options;
	int tracefs;		       /* -1: not needed, or not there */
	enum point_kind function_kind; /* of kernel functions */
	VEC(struct entry) entries;
	const char *details[DETAILS_MAX];
	size_t n_details;
};

static void add(struct point_listing *l, enum point_kind kind, const char *name, const char *about)
{
	vec_push(&l->entries, ((struct entry){kind, name, about}));
}

/* Patterns speak of the whole text or of the name alone. */
static void add_if(
	struct point_listing *l, enum point_kind kind, const char *name, const char *last)
{
	if (glob_match(l->pattern, name) || glob_match(l->pattern, last))
		add(l, kind, name, NULL);
}

/* --- details ---------------------------------------------------------------------------------- */

static void add_detail(struct point_listing *l, const char *text)
{
	if (l->n_details < DETAILS_MAX)
		l->details[l->n_details++] = text;
}

/* "syscall:openat:entry": both modes where they differ. */
void points_detail_syscall(struct point_listing *l, const char *name, const char *about)
{
	const char *start = strchr(name, ':') + 1;
	char *call = arena_strndup(l->arena, start, strcspn(start, ":"));

	(void)about;
	if (strcmp(start + strlen(call), ":return") == 0) {
		add_detail(l, "long retval");
		return;
	}
	for (int mode = N_MODES - 1; mode >= 0; mode--) {
		const struct syscall_arg *args = syscall_args(mode, call);
		bool is_only = syscall_number(MODE_32, call) < 0 ||
			       syscall_number(MODE_64, call) < 0 ||
			       syscall_args(MODE_32, call) == syscall_args(MODE_64, call);

		if (!args || syscall_number(mode, call) < 0)
			continue;
		if (!is_only)
			add_detail(l, mode == MODE_64 ? "64-bit:" : "32-bit:");
		for (size_t i = 0; i < SYSCALL_ARGS_MAX && args[i].name; i++) {
			size_t n = strlen(args[i].type);

			add_detail(l,
				arena_printf(l->arena, "%s%s%s", args[i].type,
					n && args[i].type[n - 1] == '*' ? "" : " ", args[i].name));
		}
		if (is_only && syscall_args(MODE_32, call) == syscall_args(MODE_64, call))
			break;
	}
}

/* "\tfield:pid_t next_pid;\toffset:56;...": what is behind the common fields. */
void points_detail_tracepoint(struct point_listing *l, const char *name, const char *about)
{
	char *path = arena_printf(l->arena, "events/%s/format", strchr(name, ':') + 1);
	struct buf b = {0};
	char *save = NULL;

	(void)about;
	for (char *p = path + strlen("events/"); *p; p++)
		if (*p == ':')
			*p = '/';
	if (l->tracefs >= 0 && tracefs_read(&b, l->tracefs, path, FORMAT_BYTES_MAX, NULL) == 0) {
		buf_text(&b);
		for (char *line = strtok_r((char *)b.p, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save)) {
			char *field = strstr(line, "field:");

			if (!field || strstr(field, " common_"))
				continue;
			field += strlen("field:");
			add_detail(l, arena_strndup(l->arena, field, strcspn(field, ";")));
		}
	}
	buf_release(&b);
}

void points_detail_usdt(struct point_listing *l, const char *name, const char *operands)
{
	(void)name;
	while (operands && *operands) {
		size_t n = strcspn(operands, " ");

		if (n)
			add_detail(l, arena_strndup(l->arena, operands, n));
		operands += n + (operands[n] != 0);
	}
}

/* --- everything that the kernel has ----------------------------------------------------------- */

static void add_syscalls(struct point_listing *l, const char *pattern, bool entries, bool returns)
{
	for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++) {
		for (int is_32 = 0; is_32 < 2; is_32++) {
			const char *name = syscall_name(is_32, i);

			if (!name || !glob_match(pattern, name))
				continue;
			if (entries)
				add(l, POINT_SYSCALL_ENTRY,
					arena_printf(l->arena, "syscall:%s:entry", name), NULL);
			if (returns)
				add(l, POINT_SYSCALL_RETURN,
					arena_printf(l->arena, "syscall:%s:return", name), NULL);
		}
	}
}

static void take_tracepoint(void *ctx, const char *category, const char *name)
{
	struct point_listing *l = ctx;

	if (strcmp(category, "syscalls") != 0)
		add_if(l, POINT_TRACEPOINT,
			arena_printf(l->arena, "tracepoint:%s:%s", category, name), name);
}

static void take_function(void *ctx, const char *module, const char *name)
{
	struct point_listing *l = ctx;

	add_if(l, l->function_kind,
		arena_printf(l->arena, "%s:%s%s%s", point_kinds[l->function_kind].name, module,
			*module ? ":" : "", name),
		name);
}

static void add_counts(struct point_listing *l, enum point_kind kind, const char *pattern)
{
	for (const struct perf_count *c = perf_counts; c->name; c++)
		if (c->is_hardware == (kind == POINT_HARDWARE) && glob_match(pattern, c->name))
			add(l, kind,
				arena_printf(l->arena, "%s:%s", point_kinds[kind].name, c->name),
				NULL);
}

static int list_everything(struct point_listing *l, struct err *err)
{
	int rc = tracepoints_each(take_tracepoint, l, err);

	add_syscalls(l, l->pattern, true, true);
	add_counts(l, POINT_SOFTWARE, l->pattern);
	add_counts(l, POINT_HARDWARE, l->pattern);
	l->function_kind = kernel_has_kprobes() ? POINT_KPROBE : POINT_FENTRY;
	if (kernel_has_kprobes())
		kernel_functions_each(take_function, l, NULL);
	else if (kernel_has_fentry())
		fentry_functions_each(NULL, take_function, l, NULL);
	/* Without tracefs the rest is still worth having. */
	return l->entries.n ? 0 : rc;
}

/* --- one kind --------------------------------------------------------------------------------- */

static void add_sites(struct point_listing *l, enum point_kind kind, const struct target *t)
{
	const char *word = point_kinds[kind].name;

	for (size_t i = 0; i < t->n_sites; i++) {
		const struct site *s = &t->sites[i];

		if (s->probe)
			add(l, kind,
				arena_printf(l->arena, "%s:%s:%s:%s", word, t->path, s->provider,
					s->probe),
				s->operands);
		else if (s->function)
			add(l, kind, arena_printf(l->arena, "%s:%s:%s", word, t->path, s->function),
				NULL);
	}
}

/* By way of a point of that text, whose messages become the failure. */
static int list_found(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	const char *word = point_kinds[kind].name;
	struct point_text text = {.text = arena_printf(l->arena, "%s:%s", word, rest)};
	struct sources sources = {0};
	struct point point = {0};
	struct point_spec spec = {0};
	struct diags d;
	int rc = 0;

	diags_init(&d, &sources);
	if (point_parse(&text, l->arena, &spec, &d) &&
		point_find(&spec, l->options, l->arena, &point, &d)) {
		for (size_t i = 0; i < point.n_names; i++)
			add(l, kind, arena_printf(l->arena, "%s:%s", word, point.names[i]), NULL);
		for (size_t i = 0; i < point.n_targets; i++)
			add_sites(l, kind, &point.targets[i]);
	}
	if (!l->entries.n && d.v.n && (d.n_errors || !spec.is_glob))
		rc = err_set(err, ERR_NOT_FOUND, "%s%s%s", d.v.v[0].text, d.v.v[0].hint ? "; " : "",
			d.v.v[0].hint ? d.v.v[0].hint : "");
	diags_release(&d);
	return rc;
}

int points_list_names(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	return list_found(l, kind, *rest ? rest : "*", err);
}

/* Completes "uprobe:libc" to "uprobe:libc:*", "t:sched" to "t:sched:*". */
int points_list_files(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	const char *colon = strchr(rest, ':');

	if (!colon || !colon[1])
		rest = arena_printf(l->arena, "%.*s:*", (int)strcspn(rest, ":"), rest);
	return list_found(l, kind, rest, err);
}

int points_list_tracepoints(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	if (!strchr(rest, ':') && glob_has(rest))
		return list_found(l, kind, arena_printf(l->arena, "*:%s", rest), err);
	return points_list_files(l, kind, rest, err);
}

int points_list_syscalls(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	const char *when = strchr(rest, ':');
	char *name = arena_strndup(l->arena, rest, strcspn(rest, ":"));

	(void)kind, (void)err;
	add_syscalls(l, *name ? name : "*", !when || glob_match(when + 1, "entry"),
		!when || glob_match(when + 1, "return"));
	return 0;
}

int points_list_counts(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	(void)err;
	add_counts(l, kind, *rest ? rest : "*");
	return 0;
}

int points_list_form(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	(void)rest, (void)err;
	add(l, kind, point_kinds[kind].form, NULL);
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

int points_list(const char *pattern, const struct find_options *options, bool verbose,
	void (*each)(void *ctx, const char *name, const char *const *details, size_t n_details),
	void *ctx, struct err *err)
{
	FD_AUTO tracefs = verbose ? tracefs_open(NULL) : -1;
	struct point_listing l = {.arena = arena_new(), .options = options, .tracefs = tracefs};
	enum point_kind kind;
	size_t n;
	int rc;

	l.pattern = pattern && *pattern ? pattern : "*";
	n = strcspn(l.pattern, ":");
	if (point_kind_find(l.pattern, n, &kind))
		rc = point_kinds[kind].list(&l, kind, l.pattern[n] ? l.pattern + n + 1 : "", err);
	else
		rc = list_everything(&l, err);
	vec_sort(&l.entries, compare_entries);
	for (size_t i = 0; i < l.entries.n; i++) {
		const struct entry *e = &l.entries.v[i];

		if (i && strcmp(e->name, e[-1].name) == 0)
			continue;
		l.n_details = 0;
		if (verbose && point_kinds[e->kind].detail)
			point_kinds[e->kind].detail(&l, e->name, e->about);
		each(ctx, e->name, l.details, l.n_details);
	}
	vec_release(&l.entries);
	arena_free(l.arena);
	return rc;
}
