/* SPDX-License-Identifier: MIT */
#include "probe/compile/point_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "probe/compile/file_types.h"
#include "probe/points/point_kind.h"
#include "probe/points/source_line.h"
#include "probe/points/syscalls.h"
#include "probe/points/tracepoint_format.h"
#include "probe/script/tree_search.h"
#include "probe/types/btf_types.h"
#include "symbols/image_identity.h"

/* The kernel's types, put into the types of a mode. Programs have structures of the same names, so
 * where a clause looks at a program only those are given out that a builtin needs. */
struct kernel_types {
	struct point_types *owner;
	struct types *types;
	struct btf_types *btf, *handed; /* the kernel's own, and those that programs hand over */
	bool is_tried, is_for_kernel, is_of_calls;
};

struct point_types {
	struct file_types *files;
	struct kernel_types kernel[N_MODES];
	struct type_source sources[N_MODES][2]; /* files, kernel */
	struct usdt_operand operands[N_MODES][USDT_OPERANDS_MAX];
	struct file_map btf; /* the bytes */
	bool has_btf, is_btf_tried;
};

struct point_types *point_types_new(struct types *const *types)
{
	struct point_types *p = mem_zalloc(sizeof(*p));

	p->files = file_types_new(types);
	for (enum mode m = 0; m < N_MODES; m++)
		p->kernel[m] = (struct kernel_types){.owner = p, .types = types[m]};
	return p;
}

void point_types_free(struct point_types *p)
{
	if (!p)
		return;
	file_types_free(p->files);
	for (enum mode m = 0; m < N_MODES; m++) {
		btf_types_close(p->kernel[m].btf);
		btf_types_close(p->kernel[m].handed);
	}
	if (p->has_btf)
		file_map_release(&p->btf);
	free(p);
}

/* --- the kernel ------------------------------------------------------------------------------- */

static struct span btf_bytes(struct point_types *p)
{
	struct err err = {0};

	if (!p->is_btf_tried)
		p->has_btf = file_map_open(&p->btf, BTF_VMLINUX, &err) == 0;
	p->is_btf_tried = true;
	return p->has_btf ? p->btf.bytes : (struct span){0};
}

static struct btf_types *kernel_opened(struct kernel_types *k)
{
	struct err err = {0};
	struct span bytes;

	if (!k->is_tried) {
		bytes = btf_bytes(k->owner);
		if (bytes.n && btf_types_open(k->types, bytes, &k->btf, &err) < 0)
			k->btf = NULL;
	}
	k->is_tried = true;
	return k->btf;
}

/* In 32-bit programs only the structures that the kernel has for them are as they are there. */
static bool may_be_handed(const struct kernel_types *k, const char *name)
{
	return k->is_of_calls && syscall_hands_struct(name) &&
	       (types_mode(k->types) == MODE_64 || !strncmp(name, "compat_", 7) ||
		       !strncmp(name, "old_", 4));
}

static const struct type *handed_named(struct kernel_types *k, const char *word, const char *name)
{
	struct err err = {0};
	struct type_source s;

	if (!kernel_opened(k))
		return NULL;
	if (!k->handed) {
		if (btf_types_open(k->types, btf_bytes(k->owner), &k->handed, &err) < 0)
			return NULL;
		btf_types_set_handed(k->handed);
	}
	s = btf_types_source(k->handed);
	return s.named(s.ctx, word, name);
}

static const struct type *kernel_named(void *ctx, const char *word, const char *name)
{
	struct kernel_types *k = ctx;
	struct type_source s;

	if (!strncmp(word, TYPE_WORD_HANDED, strlen(TYPE_WORD_HANDED)))
		return handed_named(k, word + strlen(TYPE_WORD_HANDED), name);
	if (!strcmp(word, "struct") && may_be_handed(k, name))
		return handed_named(k, word, name);
	if (!strncmp(word, TYPE_WORD_KERNEL, strlen(TYPE_WORD_KERNEL)))
		word += strlen(TYPE_WORD_KERNEL);
	else if (!k->is_for_kernel) /* whether it can mean the kernel's: is_kernels_alone() */
		return NULL;
	if (!kernel_opened(k))
		return NULL;
	s = btf_types_source(k->btf);
	return s.named(s.ctx, word, name);
}

static const struct type *kernel_function(void *ctx, const char *name)
{
	struct kernel_types *k = ctx;
	struct type_source s;

	if (!k->is_for_kernel || !kernel_opened(k))
		return NULL;
	s = btf_types_source(k->btf);
	return s.function(s.ctx, name);
}

static bool kernel_enumerator(void *ctx, const char *name, int64_t *value, const struct type **of)
{
	struct kernel_types *k = ctx;
	struct type_source s;

	if (!k->is_for_kernel || !kernel_opened(k))
		return false;
	s = btf_types_source(k->btf);
	return s.enumerator(s.ctx, name, value, of);
}

int64_t point_types_kernel_offset(struct point_types *p, const char *struct_name, const char *path)
{
	struct btf_types *btf = kernel_opened(&p->kernel[MODE_64]);

	return btf ? btf_types_offset(btf, struct_name, path) : -1;
}

/* --- a clause --------------------------------------------------------------------------------- */

static void set_sources(
	struct point_types *p, struct types *types, const struct stream_point *point)
{
	enum mode mode = types_mode(types);
	struct kernel_types *k = &p->kernel[mode];
	const struct point *found = point->found;

	file_types_reset(p->files, mode);
	for (size_t i = 0; found && i < found->n_targets; i++)
		if (found->targets[i].mode == mode && found->targets[i].n_sites)
			file_types_add(p->files, mode, found->targets[i].path);
	k->is_of_calls = point_has(point->spec.kind, POINT_OF_CALLS);
	k->is_for_kernel =
		!point_has(point->spec.kind, POINT_IN_FILES | POINT_OF_CALLS | POINT_HAS_ERROR);
	p->sources[mode][0] = file_types_source(p->files, mode);
	p->sources[mode][1] = (struct type_source){.ctx = k,
		.named = kernel_named,
		.function = kernel_function,
		.enumerator = kernel_enumerator};
	types_set_sources(types, p->sources[mode], 2);
}

/* The symbol behind "ns::f(int)"; NULL when there are several, for their arguments differ. */
static const char *readable_symbol(const struct stream_point *point, enum mode mode)
{
	const struct point *found = point->found;
	const char *symbol = NULL;

	for (size_t i = 0; found && i < found->n_targets; i++) {
		const struct target *t = &found->targets[i];

		for (size_t k = 0; t->mode == mode && k < t->n_sites; k++) {
			const char *name = t->sites[k].function;

			if (name && symbol && strcmp(name, symbol))
				return NULL;
			symbol = name ? name : symbol;
		}
	}
	return symbol;
}

static const char *function_name(const struct stream_point *point, enum mode mode)
{
	const struct point_spec *spec = &point->spec;

	if (point->name)
		return point->name;
	/* A glob may be in the file alone. */
	if (!spec->name || spec->has_address || spec->offset || point_is_source_line(spec) ||
		strpbrk(spec->name, "*?["))
		return NULL;
	if (strstr(spec->name, "::") || strchr(spec->name, '(') || spec->provider)
		return readable_symbol(point, mode);
	return spec->name;
}

void point_types_tracepoint(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const char *name = clause->point->name, *colon = name ? strchr(name, ':') : NULL;
	struct err err = {0};
	char *category;
	uint32_t id;

	(void)p;
	if (!colon)
		return;
	category = mem_strndup(name, (size_t)(colon - name));
	if (tracepoint_format_read(types, category, colon + 1, &clause->fields, &id, &err) < 0)
		clause->fields = NULL;
	free(category);
}

/* The address of an operand's symbol, the same in all files that the code is for. */
static bool find_symbol(struct point_types *p, const struct stream_point *point, enum mode mode,
	const char *name, uint64_t *iaddr)
{
	const struct point *found = point->found;
	size_t n = 0;
	uint64_t one;

	for (size_t i = 0; found && i < found->n_targets; i++) {
		const struct target *t = &found->targets[i];
		bool is_meant = false;

		for (size_t k = 0; t->mode == mode && k < t->n_sites; k++)
			is_meant |= t->sites[k].operands &&
				    !strcmp(t->sites[k].operands, point->operands);
		if (!is_meant)
			continue;
		if (!file_types_symbol(p->files, mode, t->path, name, &one) || (n && one != *iaddr))
			return false;
		*iaddr = one;
		n++;
	}
	return n > 0;
}

static void resolve_symbols(struct point_types *p, struct check_clause *clause, int n)
{
	struct usdt_operand *operands = p->operands[clause->mode];

	for (int i = 0; i < n; i++) {
		struct usdt_operand *o = &operands[i];
		uint64_t iaddr = 0;
		char *name;

		if (o->kind != USDT_SYMBOL)
			continue;
		name = mem_strndup(o->symbol, o->symbol_n);
		if (find_symbol(p, clause->point, clause->mode, name, &iaddr)) {
			o->kind = USDT_LINKED;
			o->value += (int64_t)iaddr;
		} else {
			o->kind = USDT_UNREADABLE;
			o->why = "it is at a symbol that the file has not, or has several of";
		}
		free(name);
	}
}

void point_types_usdt(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const char *operands = clause->point->operands;
	struct err err = {0};
	int n;

	(void)types;
	if (!operands)
		return;
	n = usdt_operands_parse(clause->mode, operands, p->operands[clause->mode], &err);
	if (n < 0) {
		diag_error(clause->session->diags, clause->point->spec.place, "operands", "%s",
			err.text);
		return;
	}
	resolve_symbols(p, clause, n);
	clause->operands = p->operands[clause->mode];
	clause->n_operands = (uint32_t)n;
}

static bool is_function_word(void *ctx, const struct expr *e)
{
	(void)ctx;
	return e->kind == EXPR_NAME && (!strcmp(e->name, "args") || !strcmp(e->name, "retval"));
}

bool point_types_wants_function(const struct clause *clause)
{
	static const struct tree_search words = {.is_expr = is_function_word};

	return expr_has(clause->predicate, &words) || stmts_have(clause->body, &words);
}

/* The only site of a mode that the code is for; NULL when there are several. */
static const struct site *only_site(
	const struct stream_point *point, enum mode mode, const struct target **target)
{
	const struct point *found = point->found;
	const struct site *only = NULL;

	if (point->site) {
		*target = point->site_target;
		return (*target)->mode == mode ? point->site : NULL;
	}
	for (size_t i = 0; found && i < found->n_targets; i++) {
		const struct target *t = &found->targets[i];

		if (t->mode != mode || !t->n_sites)
			continue;
		if (only || t->n_sites > 1)
			return NULL;
		only = &t->sites[0];
		*target = t;
	}
	return only;
}

/* A return probe is at the first instruction, but sees the result when the function is over. */
static void set_call(struct point_types *p, struct check_clause *clause)
{
	const struct target *target = NULL;
	const struct site *site = only_site(clause->point, clause->mode, &target);
	struct call_facts call;

	if (!site || !file_types_call(p->files, clause->mode, target->path, site->addr.v, &call))
		return;
	clause->call = arena_dup(clause->session->arena, &call, sizeof(call));
}

void point_types_function(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const char *name = function_name(clause->point, clause->mode);

	if (!point_types_wants_function(clause->clause))
		return;
	/* What the script declares comes first: then its arguments are where the convention says. */
	if (name)
		clause->function = types_declared_function(types, name);
	if (!clause->function)
		set_call(p, clause);
	if (clause->call)
		clause->function = clause->call->function;
	else if (name && !clause->function)
		clause->function = types_function(types, name);
}

/* The kernel calls __traceiter_NAME with the tracepoint's own data in front of the arguments. */
void point_types_raw(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const struct point_spec *spec = &clause->point->spec;
	const char *name = clause->point->name ? clause->point->name : spec->name;
	const struct type *all;
	char *function;

	(void)p;
	if (!name || !point_types_wants_function(clause->clause))
		return;
	function = mem_printf("__traceiter_%s", name);
	all = types_function(types, function);
	if (all && all->n_fields)
		clause->function = types_new_function(
			types, all->of, all->fields + 1, all->n_fields - 1, false);
	free(function);
}

void point_types_syscall(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const struct point_spec *spec = &clause->point->spec;

	(void)p, (void)types;
	clause->syscall = spec->is_glob ? NULL : spec->name;
}

void point_types_set(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const struct point_kind_def *def = &point_kinds[clause->point->spec.kind];

	set_sources(p, types, clause->point);
	if (def->set_types)
		def->set_types(p, types, clause);
}

/* --- images ------------------------------------------------------------------------------------- */

static bool read_identity(const char *path, struct image_identity *id)
{
	struct file_map map;
	struct elf_file elf;
	struct err err = {0};

	if (file_map_open(&map, path, &err) < 0)
		return false;
	if (elf_file_init(&elf, map.bytes, &err) == 0) {
		image_identity_init_elf(id, &elf, path, NULL, !elf_file_build_id(&elf).n);
		elf_file_release(&elf);
	}
	file_map_release(&map);
	return true;
}

static void add_image(struct stream *s, struct stream_point *point, const struct target *target)
{
	struct stream_image *image = &point->images[point->n_images];
	struct image_identity id = {0};

	*image = (struct stream_image){
		.path = arena_strdup(s->arena, target->path), .mode = target->mode};
	if (read_identity(target->path, &id)) {
		image->build_id_n = id.build_id_n;
		memcpy(image->build_id, id.build_id, id.build_id_n);
		image->content_hash = id.build_id_n ? 0 : id.content_hash;
	}
	image_identity_release(&id);
	if (target == point->site_target && point->site) {
		point->has_site = true;
		point->site_image = point->n_images;
		point->site_addr = point->site->addr.v;
	}
	point->n_images++;
}

static void note_images(struct point_types *p, struct stream *s, struct stream_point *point)
{
	const struct point *found = point->found;
	bool is_by_address = point->spec.has_address && !point_is_source_line(&point->spec);

	if (!found || !point_has(point->spec.kind, POINT_IN_FILES))
		return;
	point->images = arena_zalloc(s->arena, (found->n_targets + 1) * sizeof(*point->images));
	for (size_t i = 0; i < found->n_targets; i++) {
		const struct target *t = &found->targets[i];

		if (point->site && t != point->site_target)
			continue;
		if (t->n_sites && point->n_images < STREAM_IMAGES_MAX &&
			(is_by_address || point->spec.offset || point->site ||
				file_types_is_used(p->files, t->mode, t->path)))
			add_image(s, point, t);
	}
}

static void note_kernel(struct stream *s)
{
	struct image_identity id = {0};

	kernel_identity(&id);
	s->kernel_id_n = id.build_id_n;
	memcpy(s->kernel_id, id.build_id, id.build_id_n);
	image_identity_release(&id);
}

void point_types_note_images(struct point_types *p, struct stream *s, bool reads_records)
{
	bool uses_kernel = reads_records;

	for (enum mode m = 0; m < N_MODES; m++)
		uses_kernel |= p->kernel[m].btf || p->kernel[m].handed;
	if (uses_kernel)
		note_kernel(s);
	for (size_t i = 0; i < s->points.n; i++)
		note_images(p, s, &s->points.v[i]);
}
