/* SPDX-License-Identifier: MIT */
/*
 * The planner: wishes on one side, images on the other. An image is planned in two rounds, because
 * padding between functions serves some of them as room for a jump behind their last instruction
 * and others as a place that a short jump reaches: those that can have a jump of their own come
 * first.
 */
#include "record/hooks/plan.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "record/hooks/plan_internal.h"

struct hook_planner *hook_planner_new(void)
{
	return mem_zalloc(sizeof(struct hook_planner));
}

void image_entry_free(struct image_entry *e)
{
	if (!e)
		return;
	free(e->image.path);
	free(e->image.source);
	vec_release(&e->image.functions);
	buf_release(&e->image.plans);
	buf_release(&e->names);
	free(e);
}

void hook_planner_free(struct hook_planner *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->images.n; i++)
		image_entry_free(p->images.v[i]);
	vec_release(&p->images);
	map_release(&p->by_key);
	map_release(&p->by_class);
	wishes_release(&p->wishes);
	free(p);
}

/* --- choosing ---------------------------------------------------------------------------- */

struct choice {
	uint32_t function_i;
	uint8_t detail;
	size_t name_at; /* in the names of the image_entry */
};

/* One image while it is planned. */
struct planning {
	struct hook_planner *p;
	struct image_entry *e;
	struct image_facts f;
	const char *refusal; /* of the whole image */
	bool is_main, is_libc, wants_java;
	VEC(struct wish *) wishes; /* that concern it */
	VEC(struct choice) chosen; /* of each planned_function */
	struct extras extras;
	struct buf wire; /* the functions' plans */
};

static void planning_release(struct planning *g)
{
	image_facts_release(&g->f);
	vec_release(&g->wishes);
	vec_release(&g->chosen);
	vec_release(&g->extras.all);
	buf_release(&g->wire);
}

static uint8_t wished_action(const struct planning *g, const struct image_function *fn)
{
	uint8_t action = 0;

	for (uint32_t i = 0; g->wishes.n && i < fn->n_names; i++) {
		struct function_name name = {.linkage = g->f.names.v[fn->name_i + i].name};

		for (size_t k = 0; k < g->wishes.n; k++) {
			struct wish *w = g->wishes.v[k];

			if ((w->is_matched && w->action <= action) ||
				!function_pattern_match(&w->pattern, &name))
				continue;
			w->is_matched = true;
			if (w->action > action)
				action = (uint8_t)w->action;
		}
		function_name_release(&name);
	}
	return action;
}

/* What may have been meant by those that nothing matches yet. */
static void offer_names(const struct planning *g)
{
	for (size_t i = 0; i < g->wishes.n; i++) {
		struct wish *w = g->wishes.v[i];

		for (size_t k = 0; !w->is_matched && k < g->f.names.n; k++)
			function_pattern_offer(&w->pattern, &w->near, g->f.names.v[k].name);
	}
}

static bool is_allocation(
	const struct planning *g, const struct image_function *fn, uint8_t *detail)
{
	if (!g->p->wants_allocations || g->refusal)
		return false;
	for (uint32_t i = 0; i < fn->n_names; i++) {
		const struct candidate *n = &g->f.names.v[fn->name_i + i];

		if (n->source == SYMBOL_SOURCE_DYNSYM && n->bind != CANDIDATE_BIND_LOCAL &&
			allocation_amount(n->name, detail))
			return true;
	}
	return false;
}

static const char *refusal_of(
	const struct planning *g, uint32_t function_i, const struct image_function *fn)
{
	const char *refusal = g->refusal ? g->refusal : function_refusal(&g->f, fn);

	for (size_t i = 0; !refusal && i < g->extras.all.n; i++)
		if (g->extras.all.v[i].function_i == function_i)
			refusal = "the hook library needs it for itself";
	return refusal;
}

static int choose(struct planning *g, struct err *err)
{
	struct image_entry *e = g->e;

	for (uint32_t i = 0; i < g->f.functions.n; i++) {
		const struct image_function *fn = &g->f.functions.v[i];
		const char *name = image_function_name(&g->f, fn);
		struct planned_function planned = {.function = {fn->start}, .site = {fn->start}};
		uint8_t detail = 0;

		if (fn->is_fragment)
			continue;
		planned.action = wished_action(g, fn);
		if (is_allocation(g, fn, &detail))
			planned.action = HOOK_ACTION_AMOUNT;
		if (!planned.action)
			continue;
		if (e->image.functions.n >= HOOK_ID_MAX - g->p->n_ids)
			return err_set(err, ERR_LIMIT,
				"'%s': more than %u functions are to be hooked", e->image.path,
				HOOK_ID_MAX);
		planned.id = e->first_id + (uint32_t)e->image.functions.n;
		planned.bytes = fn->end - fn->start;
		planned.reason = refusal_of(g, i, fn);
		vec_push(&e->image.functions, planned);
		vec_push(&g->chosen, ((struct choice){i, detail, e->names.n}));
		buf_put(&e->names, name, strlen(name) + 1);
	}
	for (size_t i = 0; i < e->image.functions.n; i++)
		e->image.functions.v[i].name = (const char *)e->names.p + g->chosen.v[i].name_at;
	return 0;
}

/* --- planning ---------------------------------------------------------------------------- */

static void take_plan(struct planning *g, size_t i, const struct site_plan *plan)
{
	struct planned_function *planned = &g->e->image.functions.v[i];
	const struct plan_header header = {
		planned->id, planned->action, g->chosen.v[i].detail, planned->function.v};

	planned->method = plan->method;
	planned->reason = plan->reason;
	planned->site.v = plan->site;
	planned->n_patched = plan->n_patched;
	/* libc blocks all signals around some of its code, and a trap that is blocked kills. */
	if (g->is_libc && plan->method == HOOK_METHOD_INT3) {
		planned->method = 0;
		planned->reason =
			"no room for a jump, and libc may block the signal of a breakpoint";
	}
	if (!planned->method)
		return;
	planned->n_moves = plan->code.n_moves;
	memcpy(planned->moves, plan->code.moves, sizeof(planned->moves));
	planned->plan_at = (uint32_t)g->wire.n;
	site_plan_put(plan, &g->f, &header, &g->wire);
	planned->plan_bytes = (uint32_t)g->wire.n - planned->plan_at;
	g->p->needs_traps |= plan->method == HOOK_METHOD_INT3;
}

static void add_range(void *ctx, struct range range)
{
	struct ranges *r = ctx;

	vec_push(&r->all, range);
}

static void find_entry_targets(struct planning *g)
{
	struct ranges ranges = {0};

	for (size_t i = 0; i < g->chosen.n; i++)
		if (!g->e->image.functions.v[i].reason)
			add_range(&ranges, function_wanted(&g->f,
						   &g->f.functions.v[g->chosen.v[i].function_i]));
	for (size_t i = 0; i < g->extras.all.n; i++)
		if (g->extras.all.v[i].action == HOOK_ACTION_NOTE)
			add_range(
				&ranges, function_wanted(&g->f,
						 &g->f.functions.v[g->extras.all.v[i].function_i]));
	image_find_targets(&g->f, ranges.all.v, ranges.all.n);
	vec_release(&ranges.all);
}

/* Functions with a jump of their own. For the others, what padding they could use. */
static void plan_jumps(struct planning *g, struct ranges *pads)
{
	for (size_t i = 0; i < g->chosen.n; i++) {
		const struct image_function *fn = &g->f.functions.v[g->chosen.v[i].function_i];
		struct planned_function *planned = &g->e->image.functions.v[i];
		struct site_plan plan = {.site = fn->start};

		if (planned->reason)
			continue;
		if (fn->calls_cyg &&
			!g->p->ignores_own_calls) { /* the library needs its address and id */
			plan.method = HOOK_METHOD_CYGPROF;
			take_plan(g, i, &plan);
		} else if (touches_return_address(&g->f, fn)) {
			planned->reason = "it reads or moves its own return address";
		} else if (site_plan_jump(&plan, &g->f, fn)) {
			take_plan(g, i, &plan);
		} else {
			planned->reason = plan.reason;
			planned->n_patched = 1; /* to be planned yet */
			function_pads(&g->f, fn, add_range, pads);
		}
	}
}

static void plan_rest(struct planning *g)
{
	for (size_t i = 0; i < g->chosen.n; i++) {
		struct planned_function *planned = &g->e->image.functions.v[i];
		struct site_plan plan = {.reason = planned->reason};

		if (planned->method || !planned->n_patched)
			continue;
		site_plan_last(&plan, &g->f, &g->f.functions.v[g->chosen.v[i].function_i]);
		take_plan(g, i, &plan);
	}
}

static void plan_extra(struct planning *g, const struct extra *extra)
{
	struct image_facts *f = &g->f;
	struct site_plan plan = {.site = extra->stub};
	struct plan_header header = {0, (uint8_t)extra->action, (uint8_t)extra->own, extra->stub};

	if (extra->action == HOOK_ACTION_VARIABLE) {
		plan.method = HOOK_METHOD_JUMP;
	} else if (extra->function_i == NO_FUNCTION) {
		if (image_code(f, extra->stub).n < JUMP_BYTES)
			return;
		plan.method = HOOK_METHOD_JUMP;
		plan.n_patched = plan.n_original = JUMP_BYTES;
	} else {
		const struct image_function *fn = &f->functions.v[extra->function_i];

		header.function = fn->start;
		if (extra->action == HOOK_ACTION_TELL) {
			plan.site = fn->start;
			plan.method = HOOK_METHOD_JUMP;
			plan.n_original = (uint8_t)(fn->end - fn->start < HOOK_ORIGINAL_MAX
							    ? fn->end - fn->start
							    : HOOK_ORIGINAL_MAX);
		} else if (extra->action == HOOK_ACTION_NOTE ? !site_plan_jump(&plan, f, fn)
							     : !site_plan_replace(&plan, f, fn))
			return;
	}
	site_plan_put(&plan, f, &header, &g->e->image.plans);
	g->e->image.n_extra++;
}

/* Those of libc are known from the start, so that nothing else is done with them. Whether the
 * signal functions are needed is known only now. */
static void plan_extras(struct planning *g)
{
	bool has_cyg = false;

	for (size_t i = 0; i < g->e->image.functions.n; i++)
		has_cyg |= g->e->image.functions.v[i].method == HOOK_METHOD_CYGPROF;
	if (has_cyg)
		extras_find_cyg(&g->extras, &g->f);
	for (size_t i = 0; i < g->extras.all.n; i++) {
		const struct extra *extra = &g->extras.all.v[i];

		if (extra->own == HOOK_OWN_SIGMASK || extra->own == HOOK_OWN_SIGACTION)
			if (!g->p->needs_traps)
				continue;
		plan_extra(g, extra);
	}
}

static int plan_image(struct planning *g, const struct elf_file *elf, struct err *err)
{
	struct planned_image *image = &g->e->image;
	struct ranges pads = {0};
	uint32_t n_before;
	int rc = image_facts_init(&g->f, elf, image->path, err);

	if (rc < 0)
		return rc;
	if (g->is_libc)
		extras_find_libc(&g->extras, &g->f);
	g->f.is_jvm = image_function_named(&g->f, "JNI_CreateJavaVM") != NO_FUNCTION;
	if (g->wants_java)
		extras_find_jvm(&g->extras, &g->f);
	if (g->wants_java && g->p->wants_heap_bytes)
		extras_find_heap(&g->extras, &g->f);
	g->f.is_v8 = image_function_named(&g->f, "Builtins_JSEntry") != NO_FUNCTION;
	if (!extras_find_v8(&g->extras, &g->f))
		g->refusal = "V8 walks its stack, and cannot be told of the hooks on it";
	rc = choose(g, err);
	if (rc < 0)
		return rc;
	offer_names(g);
	image_find_callees(&g->f);
	find_entry_targets(g);
	plan_jumps(g, &pads);
	image_find_targets(&g->f, pads.all.v, pads.all.n);
	vec_release(&pads.all);
	plan_rest(g);
	plan_extras(g);
	n_before = (uint32_t)image->plans.n;
	buf_put(&image->plans, g->wire.p, g->wire.n);
	for (size_t i = 0; i < image->functions.n; i++)
		if (image->functions.v[i].plan_bytes)
			image->functions.v[i].plan_at += n_before;
	return 0;
}

static int check_image(const struct elf_file *elf, const char *path, struct err *err)
{
	if (elf->type != ET_EXEC && elf->type != ET_DYN)
		return err_set(err, ERR_UNSUPPORTED, "'%s': is no program or library", path);
	if (elf->machine != (elf->is_64 ? EM_X86_64 : EM_386))
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': code of machine %u (%d bits) is not known", path, elf->machine,
			elf->is_64 ? 64 : 32);
	return 0;
}

/* Whether there can be anything to plan: most images of a process concern nobody. */
static bool is_concerned(struct planning *g, const struct elf_file *elf)
{
	const char *path = g->e->image.path;

	for (size_t i = 0; i < g->p->wishes.all.n; i++)
		if (wish_concerns(&g->p->wishes.all.v[i], path, g->is_main))
			vec_push(&g->wishes, &g->p->wishes.all.v[i]);
	g->refusal = image_refusal(elf, path);
	g->is_libc = !g->refusal && image_is_libc(elf, path);
	g->wants_java = !g->refusal && image_is_jvm(elf, path) && hook_planner_may_want_java(g->p);
	return g->wishes.n || g->is_libc || g->wants_java ||
	       (!g->refusal && image_defines_v8(elf)) ||
	       (g->p->wants_allocations && !g->refusal && image_defines_allocations(elf));
}

static void note_build_id(struct planned_image *image, const struct elf_file *elf)
{
	struct span id = elf_file_build_id(elf);

	image->build_id_n = (uint8_t)(id.n < BUILD_ID_MAX ? id.n : BUILD_ID_MAX);
	if (id.n)
		memcpy(image->build_id, id.p, image->build_id_n);
}

int hook_planner_image(struct hook_planner *p, const struct planned_file *file,
	const struct elf_file *elf, const char *path, bool is_main,
	const struct planned_image **out, struct err *err)
{
	const uint64_t *known = map_find(&p->by_key, file->key);
	struct planning g = {.p = p, .is_main = is_main};
	int rc;

	if (known) {
		*out = &p->images.v[*known - 1]->image;
		return 0;
	}
	rc = check_image(elf, path, err);
	if (rc < 0)
		return rc;
	g.e = mem_zalloc(sizeof(*g.e));
	g.e->image.path = mem_strdup(path);
	g.e->image.file = *file;
	note_build_id(&g.e->image, elf);
	g.e->image.is_64 = elf->is_64;
	g.e->first_id = p->n_ids + 1;
	if (is_concerned(&g, elf))
		rc = plan_image(&g, elf, err);
	planning_release(&g);
	if (rc < 0) {
		image_entry_free(g.e);
		return rc;
	}
	*map_ensure(&p->by_key, file->key, NULL) = hook_planner_add(p, g.e);
	*out = &g.e->image;
	return 0;
}

size_t hook_planner_add(struct hook_planner *p, struct image_entry *e)
{
	p->n_ids += (uint32_t)e->image.functions.n;
	vec_push(&p->images, e);
	return p->images.n;
}

/* --- asking ------------------------------------------------------------------------------ */

const struct planned_function *hook_planner_function(
	const struct hook_planner *p, uint32_t id, const struct planned_image **image)
{
	size_t behind = SEARCH(0, p->images.n, i, p->images.v[i]->first_id <= id);
	const struct image_entry *e;

	if (!id || id > p->n_ids)
		return NULL;
	do /* the last one that begins at the id or before, and is not empty */
		e = p->images.v[--behind];
	while (id - e->first_id >= e->image.functions.n);
	if (image)
		*image = &e->image;
	return &e->image.functions.v[id - e->first_id];
}

void hook_planner_each_unmatched(const struct hook_planner *p,
	void (*f)(void *ctx, const char *wish, const char *near), void *ctx)
{
	char near[512];

	for (size_t i = 0; i < p->wishes.all.n; i++) {
		const struct wish *w = &p->wishes.all.v[i];

		if (!w->is_matched)
			f(ctx, w->pattern.text,
				nearest_names_text(&w->near, near, sizeof(near)) ? near : NULL);
	}
}

const char *hook_refusal_phrase(enum hook_refusal refusal)
{
	static const char *const phrases[HOOK_REFUSAL_N] = {
		[HOOK_REFUSAL_NONE] = "hooked",
		[HOOK_REFUSAL_CHANGED] = "the code in memory is not that of the file",
		[HOOK_REFUSAL_NO_ROOM] = "no free memory is near enough for the moved code",
		[HOOK_REFUSAL_PROTECTED] = "the code's memory cannot be made writable",
		[HOOK_REFUSAL_SHADOW_STACK] =
			"the processor checks return addresses (shadow stack)",
		[HOOK_REFUSAL_REGION] =
			"the hook library's region for return addresses is not where it must be",
		[HOOK_REFUSAL_SIGTRAP] = "a breakpoint is needed, and SIGTRAP is blocked or in use",
		[HOOK_REFUSAL_NO_MEMORY] =
			"it has no memory for the hooks (a limit on its address space)",
		[HOOK_REFUSAL_NO_FILES] = "it may not open two more files",
		[HOOK_REFUSAL_FAILED] = "its hook library could not begin",
	};

	return refusal < HOOK_REFUSAL_N ? phrases[refusal] : "the hook library did not say why";
}

const char *hook_method_name(enum hook_method method)
{
	static const char *const names[] = {
		[0] = "refused",
		[HOOK_METHOD_JUMP] = "jump",
		[HOOK_METHOD_INT3] = "int3",
		[HOOK_METHOD_NOP] = "nop",
		[HOOK_METHOD_MCOUNT] = "mcount",
		[HOOK_METHOD_CYGPROF] = "instrument",
		[HOOK_METHOD_BYTECODE] = "bytecode",
	};

	return names[method < sizeof(names) / sizeof(names[0]) ? method : 0];
}
