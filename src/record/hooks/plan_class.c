/* SPDX-License-Identifier: MIT */
/*
 * Java methods. A class is to them what an image is to functions: a pattern's image is compared with its name,
 * `com.example.Main`, the rest with that of the method, `run` or `run(int, long)`; and a pattern without an image,
 * which is about the program itself, with both, `com.example.Main.run`, in classes that are not the JVM's own.
 *
 * JVMs hand the same class over again when it is retransformed, and not always in the same bytes: so it is
 * known by its name and its methods, which keep their ids.
 */
#include <stdlib.h>

#include "base/glob.h"
#include "classfile/class_rewrite.h"
#include "record/hooks/plan_internal.h"

/* As the agent defines it (rt/java/agent.c). */
static struct class_calls calls_of(const struct hook_planner *p)
{
	return (struct class_calls){
		"java/lang/WeirHook", "enter", "leave", p->wants_bytecodes ? "done" : NULL};
}

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* What comes with the JDK, whoever loads it. */
static bool is_of_jdk(const char *name, bool is_library)
{
	static const char *const packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun.",
		"org.ietf.jgss.", "org.w3c.dom.", "org.xml.sax."};

	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (begins_with(name, packages[i]))
			return true;
	return is_library;
}

static bool names_library(const char *image)
{
	return strchr(image, '/') || strstr(image, ".so");
}

static bool wish_may_be_java(const struct wish *w)
{
	const struct function_pattern *p = &w->pattern;

	if (p->image)
		return !names_library(p->image);
	return p->is_regex || p->is_all || strchr(p->name, '.') || glob_has(p->name);
}

bool hook_planner_may_want_java(const struct hook_planner *p)
{
	for (size_t i = 0; i < p->wishes.all.n; i++)
		if (wish_may_be_java(&p->wishes.all.v[i]))
			return true;
	return false;
}

/* As far as both are certain: of a glob its first letters. */
static bool may_begin(const char *glob, const char *name)
{
	size_t n_glob = strcspn(glob, "*?[\\("), n_name = strlen(name);

	return strncmp(glob, name, n_glob < n_name ? n_glob : n_name) == 0;
}

static bool wish_may_want_class(const struct wish *w, const char *name, bool is_library)
{
	const struct function_pattern *p = &w->pattern;

	if (!wish_may_be_java(w))
		return false;
	if (p->image)
		return glob_match(p->image, name);
	return !is_of_jdk(name, is_library) && (p->is_regex || may_begin(p->name, name));
}

bool hook_planner_may_want_class(const struct hook_planner *p, const char *name, bool is_library)
{
	for (size_t i = 0; i < p->wishes.all.n; i++)
		if (wish_may_want_class(&p->wishes.all.v[i], name, is_library))
			return true;
	return false;
}

/* --- a method ------------------------------------------------------------------------------ */

/* "f(int, long)" is also "f(int,long)". */
static char *without_blanks(const char *text)
{
	char *copy = mem_strdup(text), *to = copy;

	for (const char *s = text; *s; s++)
		if (*s != ' ')
			*to++ = *s;
	*to = 0;
	return copy;
}

static bool pattern_matches(const struct function_pattern *p, const char *name)
{
	struct function_name n = {.linkage = name};
	bool is_match = function_pattern_match(p, &n) != FUNCTION_MATCH_NONE;

	function_name_release(&n);
	return is_match;
}

/* With its parameters, in both spellings, and without. */
static bool wish_matches(const struct wish *w, const char *name)
{
	char *dense = without_blanks(name);
	char *bare = mem_strndup(name, strcspn(name, "("));
	bool is_match = pattern_matches(&w->pattern, name) || pattern_matches(&w->pattern, dense) ||
			pattern_matches(&w->pattern, bare);

	free(dense);
	free(bare);
	return is_match;
}

static uint8_t wished_action(struct hook_planner *p, const struct class_file *c,
	const struct class_method *m, bool is_library)
{
	char *full = class_method_full_name(c, m);
	uint8_t action = 0;

	for (size_t i = 0; i < p->wishes.all.n; i++) {
		struct wish *w = &p->wishes.all.v[i];

		if (!wish_may_want_class(w, c->name, is_library) ||
			!wish_matches(w, w->pattern.image ? full + strlen(c->name) + 1 : full))
			continue;
		w->is_matched = true;
		if (w->action > action)
			action = (uint8_t)w->action;
	}
	free(full);
	return action;
}

/* What may have been meant by those that nothing matches yet. */
static void offer_names(struct hook_planner *p, const struct class_file *c, bool is_library)
{
	for (size_t i = 0; i < p->wishes.all.n; i++) {
		struct wish *w = &p->wishes.all.v[i];

		for (size_t k = 0; !w->is_matched && k < c->methods.n; k++) {
			char *full;

			if (!wish_may_want_class(w, c->name, is_library))
				break;
			full = class_method_full_name(c, &c->methods.v[k]);
			full[strcspn(full, "(")] = 0;
			nearest_names_add(
				&w->near, w->pattern.image ? full + strlen(c->name) + 1 : full);
			free(full);
		}
	}
}

/* --- a class ------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t key, const char *text)
{
	for (; text && *text; text++)
		key = map_hash_mix(key, (uint8_t)*text);
	return map_hash_mix(key, 0x100);
}

static uint64_t key_of(const struct class_file *c)
{
	uint64_t key = hash_text(0, c->name);

	for (size_t i = 0; i < c->methods.n; i++) {
		key = hash_text(key, c->methods.v[i].name);
		key = hash_text(key, c->methods.v[i].descriptor);
	}
	return hash_text(key, c->source);
}

/* `Main.java` of com.example.Main is com/example/Main.java below the root of the sources. */
static char *source_of(const struct class_file *c)
{
	const char *dot = strrchr(c->name, '.');
	char *path;

	if (!c->source)
		return NULL;
	path = mem_printf("%.*s%s", dot ? (int)(dot - c->name) + 1 : 0, c->name, c->source);
	for (long i = 0; dot && i <= dot - c->name; i++)
		if (path[i] == '.')
			path[i] = '/';
	return path;
}

static const char *refusal_of(uint8_t action)
{
	return action == HOOK_ACTION_STACK
		       ? "stacks at entries of Java methods are not taken: use --functions"
		       : NULL;
}

/* One function for each method that is wished for; where each is among the methods is in `site`. */
static void add_functions(
	struct hook_planner *p, struct image_entry *e, const struct class_file *c, bool is_library)
{
	VEC(size_t) names = {0};

	for (size_t i = 0; i < c->methods.n; i++) {
		const struct class_method *m = &c->methods.v[i];
		uint8_t action = wished_action(p, c, m, is_library);
		uint32_t id = e->first_id + (uint32_t)e->image.functions.n;
		char *name;

		if (!action || m->flags & CLASS_FLAG_ABSTRACT)
			continue;
		name = class_method_full_name(c, m);
		vec_push(&names, e->names.n);
		buf_put_text(&e->names, name);
		free(name);
		vec_push(&e->image.functions, ((struct planned_function){.id = id,
						      .action = HOOK_ACTION_CALL,
						      .reason = refusal_of(action),
						      .site = {i},
						      .line = m->line}));
	}
	for (size_t i = 0; i < names.n; i++)
		e->image.functions.v[i].name = (const char *)e->names.p + names.v[i];
	vec_release(&names);
}

static struct image_entry *new_entry(
	struct hook_planner *p, const struct class_file *c, bool is_library)
{
	struct image_entry *e = mem_zalloc(sizeof(*e));

	e->image.is_class = true;
	e->image.is_64 = true;
	e->image.path = mem_strdup(c->name);
	e->image.source = source_of(c);
	e->first_id = p->n_ids + 1;
	add_functions(p, e, c, is_library);
	offer_names(p, c, is_library);
	return e;
}

/* What became of the methods; a class that was loaded before keeps what it had. */
static void take_wishes(struct image_entry *e, const struct class_wish *wishes)
{
	for (size_t i = 0; i < e->image.functions.n; i++) {
		struct planned_function *f = &e->image.functions.v[i];

		if (f->method || f->reason)
			continue;
		f->reason = wishes[f->site.v].reason;
		f->method = f->reason ? 0 : HOOK_METHOD_BYTECODE;
	}
}

static int plan_class(struct hook_planner *p, const struct class_file *c, bool is_library,
	const struct planned_image **out, struct buf *to, struct err *err)
{
	uint64_t *known = map_ensure(&p->by_class, key_of(c), NULL);
	struct image_entry *e = *known ? p->images.v[*known - 1] : new_entry(p, c, is_library);
	struct class_wish *wishes = mem_calloc(c->methods.n + 1, sizeof(*wishes));
	struct class_calls calls = calls_of(p);
	int rc = 0;

	for (size_t i = 0; i < e->image.functions.n; i++) {
		const struct planned_function *f = &e->image.functions.v[i];

		wishes[f->site.v].id = f->reason ? 0 : f->id;
	}
	if (!*known && e->image.functions.n >= HOOK_ID_MAX - p->n_ids) {
		rc = err_set(err, ERR_LIMIT, "'%s': more than %u functions are to be hooked",
			c->name, HOOK_ID_MAX);
		image_entry_free(e);
	} else {
		class_rewrite(c, &calls, wishes, to);
		take_wishes(e, wishes);
		if (!*known)
			*known = hook_planner_add(p, e);
		*out = &e->image;
	}
	free(wishes);
	return rc;
}

int hook_planner_class(struct hook_planner *p, struct span bytes, bool is_library,
	const struct planned_image **out, struct buf *to, struct err *err)
{
	struct class_file c;
	int rc = class_file_read(&c, bytes, err);

	if (rc < 0)
		return rc;
	*out = NULL;
	if (hook_planner_may_want_class(p, c.name, is_library))
		rc = plan_class(p, &c, is_library, out, to, err);
	class_file_release(&c);
	return rc;
}
