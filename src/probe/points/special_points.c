/* SPDX-License-Identifier: MIT */
/* Points that are neither code nor events with a name: signals to weir, memory, objects of the kernel. */
#include <signal.h>
#include <string.h>

#include "base/arena.h"
#include "base/nearest_names.h"
#include "probe/points/point_kind.h"
#include "probe/points/point_parts.h"

#define WATCH_BYTES_MAX 8

/* signal:SIGUSR1 */
bool point_parse_signal(struct point_parse *p)
{
	static const struct {
		const char *name;
		uint64_t number;
	} signals[] = {{"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}};

	if (!point_split(p, 2) || p->n_parts < 2 || strcmp(p->parts[0].text, "signal"))
		return point_fail_form(p, "is nothing that happens to weir");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (strcmp(signals[i].name, p->parts[1].text))
			continue;
		p->out->name = signals[i].name;
		p->out->count = signals[i].number;
		p->out->text = arena_printf(p->arena, "%s:signal:%s", p->word, signals[i].name);
		return true;
	}
	diag_error(p->d, point_place_of(p, &p->parts[1]), "point", "'%s' cannot be used here",
		p->parts[1].text);
	return diag_hint(p->d, "there are SIGUSR1 and SIGUSR2: the others end the run");
}

/* NAME: what the result is called */
bool point_parse_bench(struct point_parse *p)
{
	if (!point_split(p, 1) || p->n_parts < 1 || !*p->parts[0].text)
		return point_fail_form(p, "has no name");
	p->out->name = p->parts[0].text;
	p->out->text = arena_printf(p->arena, "%s:%s", p->word, p->out->name);
	return true;
}

/* --- watchpoints ------------------------------------------------------------------------------ */

/* The letters in the order r, w, x; NULL when there are others, or one twice. */
static const char *watch_mode(struct point_parse *p, const char *text)
{
	char mode[4] = "";
	size_t n = 0;

	for (const char *c = "rwx"; *c; c++)
		if (strchr(text, *c))
			mode[n++] = *c;
	return n && n == strlen(text) ? arena_strdup(p->arena, mode) : NULL;
}

static bool check_watch_mode(struct point_parse *p, const struct part *part)
{
	const char *mode = watch_mode(p, part->text);

	if (!mode) {
		diag_error(p->d, point_place_of(p, part), "point",
			"'%s' does not say what is watched for", part->text);
		return diag_hint(p->d, "w: writes, rw: reads and writes, x: execution");
	}
	if (!strcmp(mode, "r")) {
		diag_error(p->d, point_place_of(p, part), "point",
			"x86 processors cannot watch for reads alone");
		return diag_hint(p->d, "rw is for reads and writes");
	}
	if (strchr(mode, 'x') && mode[1])
		return diag_error(p->d, point_place_of(p, part), "point",
			"one watchpoint is for execution or for data, not for both");
	p->out->name = mode;
	return true;
}

static bool check_watch_bytes(struct point_parse *p, const struct part *part)
{
	uint64_t n = 0;

	if (!point_whole_number(part->text, &n) || !n || n > WATCH_BYTES_MAX || (n & (n - 1)))
		return diag_error(p->d, point_place_of(p, part), "range",
			"a watchpoint has 1, 2, 4 or 8 bytes, not '%s'", part->text);
	p->out->count = n;
	if (p->out->address & (n - 1))
		return diag_error(p->d, point_place_of(p, &p->parts[0]), "range",
			"the address of %llu bytes must be a multiple of %llu",
			(unsigned long long)n, (unsigned long long)n);
	return true;
}

/* ADDRESS:BYTES:MODE */
bool point_parse_watchpoint(struct point_parse *p)
{
	struct point_spec *out = p->out;

	if (!point_split(p, 3) || p->n_parts < 3)
		return point_fail_form(p, "is no watchpoint");
	if (!point_whole_number(p->parts[0].text, &out->address)) {
		diag_error(p->d, point_place_of(p, &p->parts[0]), "point", "'%s' is no address",
			p->parts[0].text);
		return diag_hint(p->d,
			"an argument of a function cannot be watched: print it at a uprobe, and "
			"watch the address that it has");
	}
	out->has_address = true;
	if (!check_watch_bytes(p, &p->parts[1]) || !check_watch_mode(p, &p->parts[2]))
		return false;
	out->text = arena_printf(p->arena, "%s:0x%llx:%llu:%s", p->word,
		(unsigned long long)out->address, (unsigned long long)out->count, out->name);
	return true;
}

/* --- iterators -------------------------------------------------------------------------------- */

const char *const point_iterators[] = {"task", "task_file", "task_vma", NULL};

/* task | task_file | task_vma */
bool point_parse_iter(struct point_parse *p)
{
	struct nearest_names near = {0};
	char text[512];

	if (!point_split(p, 2) || !*p->parts[0].text)
		return point_fail_form(p, "names no objects");
	for (const char *const *name = point_iterators; *name; name++) {
		if (strcmp(*name, p->parts[0].text))
			continue;
		if (p->n_parts > 1)
			return point_fail_form(
				p, "cannot be kept in a file: nobody would print what it finds");
		p->out->name = arena_printf(p->arena, "bpf_iter_%s", *name);
		p->out->text = arena_printf(p->arena, "%s:%s", p->word, *name);
		return true;
	}
	diag_error(p->d, point_place_of(p, &p->parts[0]), "point",
		"the kernel's '%s' cannot be gone through here", p->parts[0].text);
	near.wanted = p->parts[0].text;
	for (const char *const *name = point_iterators; *name; name++)
		nearest_names_add(&near, *name);
	if (nearest_names_text(&near, text, sizeof(text)))
		return diag_hint(p->d, "is it %s?", text);
	return diag_hint(p->d, "there are task, task_file and task_vma");
}
