/* SPDX-License-Identifier: MIT */
/*
 * What trace points there are. A pattern that begins with a word of the language looks only there;
 * any other pattern looks through everything that the kernel offers by name.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/glob.h"
#include "probe/points/find_kernel.h"
#include "probe/points/perf_counts.h"
#include "probe/points/point.h"
#include "probe/points/syscalls.h"
#include "process/syscall_names.h"
#include "process/tracepoint.h"

#define FORMAT_BYTES_MAX 65536
#define DETAILS_MAX	 64

struct entry {
	const char *name;
	const char *about; /* what its details are read from */
};

struct listing {
	struct arena *arena;
	const char *pattern;
	bool is_verbose;
	const char *function_word; /* of kernel functions */
	VEC(struct entry) entries;
	const char *details[DETAILS_MAX];
	size_t n_details;
};

static void add(struct listing *l, const char *name, const char *about)
{
	vec_push(&l->entries, ((struct entry){name, about}));
}

/* Patterns speak of the whole text or of the name alone. */
static void add_if(struct listing *l, const char *name, const char *last)
{
	if (glob_match(l->pattern, name) || glob_match(l->pattern, last))
		add(l, arena_strdup(l->arena, name), NULL);
}

/* --- details ---------------------------------------------------------------------------------- */

static void add_detail(struct listing *l, const char *text)
{
	if (l->n_details < DETAILS_MAX)
		l->details[l->n_details++] = text;
}

/* "syscall:openat:entry": both modes where they differ. */
static void detail_syscall(struct listing *l, const char *name)
{
	const char *start = strchr(name, ':') + 1;
	char *call = arena_strndup(l->arena, start, strcspn(start, ":"));

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
static void detail_tracepoint(struct listing *l, const char *name, int tracefs)
{
	char *path = arena_printf(l->arena, "events/%s/format", strchr(name, ':') + 1);
	struct buf b = {0};
	char *save = NULL;

	for (char *p = path + strlen("events/"); *p; p++)
		if (*p == ':')
			*p = '/';
	if (tracefs >= 0 && tracefs_read(&b, tracefs, path, FORMAT_BYTES_MAX, NULL) == 0) {
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

static void detail_usdt(struct listing *l, const char *operands)
{
	while (operands && *operands) {
		size_t n = strcspn(operands, " ");

		if (n)
			add_detail(l, arena_strndup(l->arena, operands, n));
		operands += n + (operands[n] != 0);
	}
}

static void detail(struct listing *l, const struct entry *e, int tracefs)
{
	l->n_details = 0;
	if (!l->is_verbose)
		return;
	if (strncmp(e->name, "syscall:", 8) == 0)
		detail_syscall(l, e->name);
	else if (strncmp(e->name, "tracepoint:", 11) == 0)
		detail_tracepoint(l, e->name, tracefs);
	else if (e->about)
		detail_usdt(l, e->about);
}

/* --- everything that the kernel has ----------------------------------------------------------- */

static void add_syscalls(struct listing *l, const char *pattern, bool entries, bool returns)
{
	for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++) {
		for (int is_32 = 0; is_32 < 2; is_32++) {
			const char *name = syscall_name(is_32, i);

			if (!name || !glob_match(pattern, name))
				continue;
			if (entries)
				add(l, arena_printf(l->arena, "syscall:%s:entry", name), NULL);
			if (returns)
				add(l, arena_printf(l->arena, "syscall:%s:return", name), NULL);
		}
	}
}

static void take_tracepoint(void *ctx, const char *category, const char *name)
{
	struct listing *l = ctx;

	if (strcmp(category, "syscalls") != 0)
		add_if(l, arena_printf(l->arena, "tracepoint:%s:%s", category, name), name);
}

static void take_function(void *ctx, const char *module, const char *name)
{
	struct listing *l = ctx;

	add_if(l,
		arena_printf(
			l->arena, "%s:%s%s%s", l->function_word, module, *module ? ":" : "", name),
		name);
}

static void add_counts(struct listing *l, const char *word, const char *pattern)
{
	for (const struct perf_count *c = perf_counts; c->name; c++)
		if (c->is_hardware == (strcmp(word, "hardware") == 0) &&
			glob_match(pattern, c->name))
			add(l, arena_printf(l->arena, "%s:%s", word, c->name), NULL);
}

static int list_everything(struct listing *l, struct err *err)
{
	int rc = tracepoints_each(take_tracepoint, l, err);

	add_syscalls(l, l->pattern, true, true);
	add_counts(l, "software", l->pattern);
	add_counts(l, "hardware", l->pattern);
	l->function_word = kernel_has_kprobes() ? "kprobe" : "fentry";
	if (kernel_has_kprobes())
		kernel_functions_each(take_function, l, NULL);
	else if (kernel_has_fentry())
		fentry_functions_each(take_function, l, NULL);
	/* Without tracefs the rest is still worth having. */
	return l->entries.n ? 0 : rc;
}

/* --- one kind --------------------------------------------------------------------------------- */

/* Completes "uprobe:libc" to "uprobe:libc:*", "t:sched" to "t:sched:*". */
static const char *complete(struct listing *l, const struct point_word *w, const char *rest)
{
	const char *colon = strchr(rest, ':');

	switch (w->kind) {
	case POINT_TRACEPOINT:
		if (!colon && strcmp(rest, "*") == 0)
			return "*:*";
		if (!colon && glob_has(rest))
			return arena_printf(l->arena, "*:%s", rest);
		/* fall through */
	case POINT_UPROBE:
	case POINT_URETPROBE:
	case POINT_USDT:
		if (!colon || !colon[1])
			return arena_printf(l->arena, "%.*s:*", (int)strcspn(rest, ":"), rest);
		return rest;
	default:
		return *rest ? rest : "*";
	}
}

static void add_point(struct listing *l, const struct point_word *w, const struct point *p)
{
	for (size_t i = 0; i < p->n_names; i++)
		add(l, arena_printf(l->arena, "%s:%s", w->name, p->names[i]), NULL);
	for (size_t i = 0; i < p->n_targets; i++) {
		const struct target *t = &p->targets[i];

		for (size_t k = 0; k < t->n_sites; k++) {
			const struct site *s = &t->sites[k];

			if (w->kind == POINT_USDT)
				add(l,
					arena_printf(l->arena, "usdt:%s:%s:%s", t->path,
						s->provider, s->probe),
					s->operands);
			else if (s->function)
				add(l,
					arena_printf(l->arena, "%s:%s:%s", w->name, t->path,
						s->function),
					NULL);
		}
	}
}

static const struct point_word *first_of_kind(const struct point_word *w)
{
	const struct point_word *first = point_words;

	while (first->kind != w->kind)
		first++;
	return first;
}

/* By way of a point of that text, whose messages become the failure. */
static int list_found(struct listing *l, const struct point_word *w, const char *rest,
	const struct find_options *options, struct err *err)
{
	struct point_text text = {.text = arena_printf(l->arena, "%s:%s", w->name, rest)};
	struct sources sources = {0};
	struct point point = {0};
	struct point_spec spec = {0};
	struct diags d;
	int rc = 0;

	diags_init(&d, &sources);
	if (point_parse(&text, l->arena, &spec, &d) &&
		point_find(&spec, options, l->arena, &point, &d))
		add_point(l, w, &point);
	if (!l->entries.n && d.v.n && (d.n_errors || !spec.is_glob))
		rc = err_set(err, ERR_NOT_FOUND, "%s%s%s", d.v.v[0].text, d.v.v[0].hint ? "; " : "",
			d.v.v[0].hint ? d.v.v[0].hint : "");
	diags_release(&d);
	return rc;
}

static int list_kind(struct listing *l, const struct point_word *w, const char *rest,
	const struct find_options *options, struct err *err)
{
	switch (w->kind) {
	case POINT_SYSCALL_ENTRY: {
		const char *when = strchr(rest, ':');
		char *name = arena_strndup(l->arena, rest, strcspn(rest, ":"));

		add_syscalls(l, *name ? name : "*", !when || glob_match(when + 1, "entry"),
			!when || glob_match(when + 1, "return"));
		return 0;
	}
	case POINT_SOFTWARE:
	case POINT_HARDWARE:
		add_counts(l, w->name, *rest ? rest : "*");
		return 0;
	case POINT_BEGIN:
	case POINT_END:
	case POINT_ERROR:
	case POINT_INTERVAL:
	case POINT_PROFILE:
		add(l, w->form, NULL);
		return 0;
	default:
		return list_found(l, w, complete(l, w, rest), options, err);
	}
}

static const struct point_word *word_of(const char *pattern, size_t n)
{
	for (const struct point_word *w = point_words; w->name; w++)
		if ((strlen(w->name) == n && strncmp(w->name, pattern, n) == 0) ||
			(w->alias && strlen(w->alias) == n && strncmp(w->alias, pattern, n) == 0))
			return first_of_kind(w);
	return NULL;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

int points_list(const char *pattern, const struct find_options *options, bool verbose,
	void (*each)(void *ctx, const char *name, const char *const *details, size_t n_details),
	void *ctx, struct err *err)
{
	struct listing l = {.arena = arena_new(), .is_verbose = verbose};
	size_t n;
	const struct point_word *w;
	FD_AUTO tracefs = verbose ? tracefs_open(NULL) : -1;
	int rc;

	l.pattern = pattern && *pattern ? pattern : "*";
	n = strcspn(l.pattern, ":");
	w = word_of(l.pattern, n);
	if (w)
		rc = list_kind(&l, w, l.pattern[n] ? l.pattern + n + 1 : "", options, err);
	else
		rc = list_everything(&l, err);
	if (l.entries.n > 1)
		qsort(l.entries.v, l.entries.n, sizeof(*l.entries.v), compare_entries);
	for (size_t i = 0; i < l.entries.n; i++) {
		const struct entry *e = &l.entries.v[i];

		if (i && strcmp(e->name, e[-1].name) == 0)
			continue;
		detail(&l, e, tracefs);
		each(ctx, e->name, l.details, l.n_details);
	}
	vec_release(&l.entries);
	arena_free(l.arena);
	return rc;
}
