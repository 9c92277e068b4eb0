/* SPDX-License-Identifier: MIT */
/* Names of site numbers: what the builtins probe and func print. Made when they are asked for. */
#include <string.h>

#include <stdlib.h>

#include "probe/run/run.h"
#include "process/syscall_names.h"
#include "symbols/symtab.h"

#define NUMBER_MASK 0xffff

static const char *call_text(struct probe_session *s, uint64_t site, bool is_function)
{
	int64_t number = (int64_t)(site & NUMBER_MASK);
	const char *name = syscall_name(site & SITE_CALL_32, number);

	if (!name)
		name = arena_printf(s->arena, "%lld", (long long)number);
	if (is_function)
		return name;
	if (s->options.has_old_points)
		return arena_printf(s->arena, "tracepoint:syscalls:sys_%s_%s",
			site & SITE_CALL_RETURN ? "exit" : "enter", name);
	return arena_printf(
		s->arena, "syscall:%s:%s", name, site & SITE_CALL_RETURN ? "return" : "entry");
}

/* As people write it; NULL stays NULL. */
static const char *readable(struct probe_session *s, const char *function)
{
	char *name = function ? symbol_demangle(function) : NULL;
	const char *kept = name ? arena_strdup(s->arena, name) : NULL;

	free(name);
	return kept;
}

/* "uprobe:/bin/x:main+4", "usdt:/bin/x:provider:name". */
static const char *file_text(struct probe_session *s, const struct run_site *r)
{
	const char *word = point_kinds[r->point->spec.kind].name;
	const struct site *site = r->site;

	if (site->probe)
		return arena_printf(s->arena, "%s:%s:%s:%s", word, r->target->path,
			site->provider ? site->provider : "", site->probe);
	if (!site->function)
		return arena_printf(s->arena, "%s:%s:0x%llx", word, r->target->path,
			(unsigned long long)site->addr.v);
	if (site->into_function)
		return arena_printf(s->arena, "%s:%s:%s+%u", word, r->target->path,
			readable(s, site->function), site->into_function);
	return arena_printf(
		s->arena, "%s:%s:%s", word, r->target->path, readable(s, site->function));
}

static const char *site_text(struct probe_session *s, uint64_t site, bool is_function)
{
	const struct run_site *r;

	if (site & SITE_SYSCALL)
		return call_text(s, site, is_function);
	if (site >= s->sites.n)
		return NULL;
	r = &s->sites.v[site];
	if (s->options.has_old_points && point_has(r->point->spec.kind, POINT_IS_ONCE))
		return point_kinds[r->point->spec.kind].alias;
	if (is_function)
		return r->site	 ? readable(s, r->site->function)
		       : r->name ? r->name
				 : r->point->spec.name;
	if (r->site)
		return r->point->spec.is_glob ? file_text(s, r) : r->point->spec.text;
	if (r->name && r->point->spec.is_glob)
		return arena_printf(
			s->arena, "%s:%s", point_kinds[r->point->spec.kind].name, r->name);
	return r->point->spec.text;
}

const char *probe_session_site(struct probe_session *s, uint64_t site, bool is_function)
{
	bool is_new;
	uint64_t *slot = map_ensure(&s->site_names, site * 2 + is_function, &is_new);

	if (is_new)
		*slot = (uintptr_t)site_text(s, site, is_function);
	return (const char *)(uintptr_t)*slot;
}
