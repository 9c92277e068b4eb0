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
#include "probe/points/point_listing.h"
#include "probe/points/point_parts.h"
#include "probe/points/syscalls.h"
#include "process/syscall_names.h"
#include "process/tracepoint.h"

void listing_add(
	struct point_listing *l, const char *name, const char *about, point_detail_fn *detail)
{
	vec_push(&l->entries, ((struct listing_entry){name, about, detail}));
}

static void add(struct point_listing *l, enum point_kind kind, const char *name, const char *about)
{
	listing_add(l, name, about, point_kinds[kind].detail);
}

/* Patterns speak of the whole text or of the name alone. */
static void add_if(
	struct point_listing *l, enum point_kind kind, const char *name, const char *last)
{
	if (glob_match(l->pattern, name) || glob_match(l->pattern, last))
		add(l, kind, name, NULL);
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

	if (strcmp(category, "syscalls") == 0)
		return;
	add_if(l, POINT_TRACEPOINT, arena_printf(l->arena, "tracepoint:%s:%s", category, name),
		name);
	add_if(l, POINT_RAW_TRACEPOINT, arena_printf(l->arena, "rawtracepoint:%s", name), name);
}

static void take_function(void *ctx, const char *module, const char *name)
{
	struct point_listing *l = ctx;

	add_if(l, l->function_kind,
		arena_printf(l->arena, "%s:%s%s%s", point_kinds[l->function_kind].name, module,
			*module ? ":" : "", name),
		name);
}

static void add_count(
	struct point_listing *l, enum point_kind kind, const char *pattern, const char *name)
{
	if (name && glob_match(pattern, name))
		add(l, kind, arena_printf(l->arena, "%s:%s:", point_kinds[kind].name, name), NULL);
}

/* With the colon that a count may follow. */
static void add_counts(struct point_listing *l, enum point_kind kind, const char *pattern)
{
	for (const struct perf_count *c = perf_counts; c->name; c++) {
		if (c->is_hardware != (kind == POINT_HARDWARE))
			continue;
		add_count(l, kind, pattern, c->name);
		add_count(l, kind, pattern, c->alias);
	}
}

/* What the files of the processes of -p have. */
static void list_processes(struct point_listing *l)
{
	static const enum point_kind kinds[] = {POINT_UPROBE, POINT_USDT};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		points_list_files(l, kinds[i], "*:*", NULL);
}

static int list_everything(struct point_listing *l, struct err *err)
{
	int rc = tracepoints_each(take_tracepoint, l, err);

	add_syscalls(l, l->pattern, true, true);
	add_counts(l, POINT_SOFTWARE, l->pattern);
	add_counts(l, POINT_HARDWARE, l->pattern);
	if (l->options && l->options->n_pids && strcmp(l->pattern, "*") == 0)
		list_processes(l);
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
				t->path);
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
	size_t n_before = l->entries.n;
	int rc = 0;

	diags_init(&d, &sources);
	if (point_parse(&text, l->arena, &spec, &d) &&
		point_find(&spec, l->options, l->arena, &point, &d)) {
		for (size_t i = 0; i < point.n_names; i++)
			add(l, kind, arena_printf(l->arena, "%s:%s", word, point.names[i]), NULL);
		for (size_t i = 0; i < point.n_targets; i++)
			add_sites(l, kind, &point.targets[i]);
	}
	if (!l->is_one_of_many && l->entries.n == n_before && d.v.n &&
		(d.n_errors || !spec.is_glob))
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

/* "syscalls:sys_enter_*": listed as the points that they become. */
static void add_call_events(struct point_listing *l, const char *pattern)
{
	static const char *const before[] = {"sys_enter_", "sys_exit_"};

	for (int i = 0; i < 2 * SYSCALL_NUMBERS_MAX; i++) {
		const char *name = syscall_name(i % 2, i / 2);

		for (int k = 0; name && k < 2; k++)
			if (glob_match(pattern, arena_printf(l->arena, "%s%s", before[k], name)))
				add(l, k ? POINT_SYSCALL_RETURN : POINT_SYSCALL_ENTRY,
					arena_printf(l->arena, "syscall:%s:%s", name,
						k ? "return" : "entry"),
					NULL);
	}
}

int points_list_tracepoints(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	if (!strncmp(rest, "syscalls", 8) && (!rest[8] || rest[8] == ':')) {
		add_call_events(l, rest[8] && rest[9] ? rest + 9 : "*");
		return 0;
	}
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
	const char *event = arena_strndup(l->arena, rest, strcspn(rest, ":"));

	(void)err;
	add_counts(l, kind, *event ? event : "*");
	return 0;
}

/* "interval:ms:": with the colon that a number follows, as counters have it. */
int points_list_periods(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	static const char *const units[] = {"hz", "ms", "s", "us"};
	const char *digits = rest + strspn(rest, "0123456789");
	const char *unit =
		digits > rest ? digits : arena_strndup(l->arena, rest, strcspn(rest, ":"));

	(void)err;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!*unit || glob_match(unit, units[i]))
			add(l, kind,
				arena_printf(l->arena, "%s:%s:", point_kinds[kind].name, units[i]),
				NULL);
	return 0;
}

/* A point that a script has, or the form of all. */
int points_list_form(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	struct point_text text = {
		.text = arena_printf(l->arena, "%s:%s", point_kinds[kind].name, rest)};
	struct point_spec spec = {0};
	struct sources sources = {0};
	struct diags d;
	int rc = 0;

	if (!rest[strspn(rest, "*")]) {
		add(l, kind, point_kinds[kind].form, NULL);
		return 0;
	}
	diags_init(&d, &sources);
	if (point_parse(&text, l->arena, &spec, &d))
		add(l, kind, spec.text, NULL);
	else if (!l->is_one_of_many)
		rc = err_set(err, ERR_NOT_FOUND, "%s", d.v.v[0].text);
	diags_release(&d);
	return rc;
}

int points_list_iters(
	struct point_listing *l, enum point_kind kind, const char *rest, struct err *err)
{
	(void)err;
	for (const char *const *name = point_iterators; *name; name++)
		if (!*rest || glob_match(rest, *name))
			add(l, kind, arena_printf(l->arena, "iter:%s", *name), NULL);
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

/* "*ware:*": each kind that the word matches, as far as it has such points; not those that have any name. */
static void list_kinds(struct point_listing *l, const char *word, const char *rest)
{
	l->is_one_of_many = true;
	for (enum point_kind kind = 0; kind < N_POINT_KINDS; kind++)
		if (glob_match(word, point_kinds[kind].name) && !point_has(kind, POINT_IS_ONCE))
			point_kinds[kind].list(l, kind, rest, NULL);
	l->is_one_of_many = false;
}

static int list_pattern(struct point_listing *l, struct err *err)
{
	size_t n = strcspn(l->pattern, ":");
	const char *word = arena_strndup(l->arena, l->pattern, n);
	enum point_kind kind;

	if (types_list_is_meant(l->pattern))
		return types_list(l, l->pattern, err);
	if (point_kind_find(l->pattern, n, &kind))
		return point_kinds[kind].list(
			l, kind, l->pattern[n] ? l->pattern + n + 1 : "", err);
	if (!l->pattern[n] || !glob_has(word))
		return list_everything(l, err);
	list_kinds(l, word, l->pattern + n + 1);
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(
		((const struct listing_entry *)a)->name, ((const struct listing_entry *)b)->name);
}

static int list_all(struct point_listing *l, const char *const *patterns, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		size_t before = l->entries.n;

		l->pattern = *patterns[i] ? patterns[i] : "*";
		rc = list_pattern(l, err);
		if (rc == 0 && l->entries.n == before)
			rc = err_set(
				err, ERR_NOT_FOUND, "'%s': no trace point matches", l->pattern);
	}
	return rc;
}

int points_list(const char *const *patterns, size_t n_patterns, const struct find_options *options,
	bool verbose, points_list_each_fn *each, void *ctx, struct err *err)
{
	FD_AUTO tracefs = verbose ? tracefs_open(NULL) : -1;
	struct point_listing l = {.arena = arena_new(), .options = options, .tracefs = tracefs};
	int rc = list_all(&l, patterns, n_patterns, err);

	vec_sort(&l.entries, compare_entries);
	for (size_t i = 0; i < l.entries.n; i++) {
		const struct listing_entry *e = &l.entries.v[i];

		if (i && strcmp(e->name, e[-1].name) == 0)
			continue;
		l.details.n = 0;
		if (verbose && e->detail)
			e->detail(&l, e->name, e->about);
		each(ctx, e->name, l.details.v, l.details.n);
	}
	listing_release(&l);
	return rc;
}
