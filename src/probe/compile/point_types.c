/* SPDX-License-Identifier: MIT */
#include "probe/compile/point_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "probe/points/tracepoint_format.h"
#include "probe/types/btf_types.h"
#include "probe/types/dwarf_types.h"

#define SOURCES_MAX 32 /* files that one point asks; a glob may match more */

/* A file that may be asked for types. */
struct file_types {
	char *path;
	struct types *types; /* of its mode */
	struct dwarf_types *dwarf;
	bool is_tried;
};

/* The kernel's types, put into the types of a mode. Programs have structures of the same names, so
 * where a clause looks at a program only those are given out that a builtin needs. */
struct kernel_types {
	struct point_types *owner;
	struct types *types;
	struct btf_types *btf;
	bool is_tried, is_for_kernel;
};

struct point_types {
	struct types *types[N_MODES];
	VEC(struct file_types *) files;
	struct kernel_types kernel[N_MODES];
	struct type_source sources[N_MODES][SOURCES_MAX + 1];
	struct usdt_operand operands[N_MODES][USDT_OPERANDS_MAX];
	struct file_map btf; /* the bytes */
	bool has_btf, is_btf_tried;
};

struct point_types *point_types_new(struct types *const *types)
{
	struct point_types *p = mem_zalloc(sizeof(*p));

	for (enum mode m = 0; m < N_MODES; m++) {
		p->types[m] = types[m];
		p->kernel[m] = (struct kernel_types){.owner = p, .types = types[m]};
	}
	return p;
}

void point_types_free(struct point_types *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->files.n; i++) {
		dwarf_types_close(p->files.v[i]->dwarf);
		free(p->files.v[i]->path);
		free(p->files.v[i]);
	}
	vec_release(&p->files);
	for (enum mode m = 0; m < N_MODES; m++)
		btf_types_close(p->kernel[m].btf);
	if (p->has_btf)
		file_map_release(&p->btf);
	free(p);
}

/* --- files
 * -------------------------------------------------------------------------------------------- */

static struct dwarf_types *opened(struct file_types *f)
{
	struct err err = {0};

	/* Without debug information there is nothing to ask; the checker says what is not known. */
	if (!f->is_tried && dwarf_types_open(f->types, f->path, &f->dwarf, &err) < 0)
		f->dwarf = NULL;
	f->is_tried = true;
	return f->dwarf;
}

static const struct type *file_named(void *ctx, const char *word, const char *name)
{
	struct dwarf_types *d = opened(ctx);
	struct type_source s;

	if (!d)
		return NULL;
	s = dwarf_types_source(d);
	return s.named(s.ctx, word, name);
}

static const struct type *file_function(void *ctx, const char *name)
{
	struct dwarf_types *d = opened(ctx);
	struct type_source s;

	if (!d)
		return NULL;
	s = dwarf_types_source(d);
	return s.function(s.ctx, name);
}

static bool file_variable(void *ctx, const char *name, const struct type **type, uint64_t *iaddr)
{
	struct dwarf_types *d = opened(ctx);
	struct type_source s;

	if (!d)
		return false;
	s = dwarf_types_source(d);
	return s.variable(s.ctx, name, type, iaddr);
}

static struct type_source file_source(struct point_types *p, const char *path, enum mode mode)
{
	struct type_source s = {
		.named = file_named, .function = file_function, .variable = file_variable};
	struct file_types *f;

	for (size_t i = 0; i < p->files.n; i++) {
		f = p->files.v[i];
		if (f->types == p->types[mode] && !strcmp(f->path, path)) {
			s.ctx = f;
			return s;
		}
	}
	f = mem_zalloc(sizeof(*f));
	f->path = mem_strdup(path);
	f->types = p->types[mode];
	vec_push(&p->files, f);
	s.ctx = f;
	return s;
}

/* --- the kernel
 * --------------------------------------------------------------------------------------- */

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

static const struct type *kernel_named(void *ctx, const char *word, const char *name)
{
	struct kernel_types *k = ctx;
	struct type_source s;

	if (!k->is_for_kernel && strcmp(name, "task_struct"))
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

static bool kernel_variable(void *ctx, const char *name, const struct type **type, uint64_t *iaddr)
{
	(void)ctx, (void)name, (void)type, (void)iaddr;
	return false;
}

int64_t point_types_kernel_offset(struct point_types *p, const char *struct_name, const char *path)
{
	struct btf_types *btf = kernel_opened(&p->kernel[MODE_64]);

	return btf ? btf_types_offset(btf, struct_name, path) : -1;
}

/* --- a clause
 * ----------------------------------------------------------------------------------------- */

static bool is_of_kernel(enum point_kind kind)
{
	return kind == POINT_KPROBE || kind == POINT_KRETPROBE || kind == POINT_FENTRY ||
	       kind == POINT_FEXIT || kind == POINT_TRACEPOINT || kind == POINT_RAW_TRACEPOINT;
}

static void set_sources(
	struct point_types *p, struct types *types, const struct stream_point *point)
{
	enum mode mode = types_mode(types);
	struct kernel_types *k = &p->kernel[mode];
	const struct point *found = point->found;
	size_t n = 0;

	for (size_t i = 0; found && i < found->n_targets && n < SOURCES_MAX; i++)
		if (found->targets[i].mode == mode)
			p->sources[mode][n++] = file_source(p, found->targets[i].path, mode);
	k->is_for_kernel = is_of_kernel(point->spec.kind);
	p->sources[mode][n++] = (struct type_source){.ctx = k,
		.named = kernel_named,
		.function = kernel_function,
		.variable = kernel_variable};
	types_set_sources(types, p->sources[mode], n);
}

static const char *function_name(const struct stream_point *point)
{
	const struct point_spec *spec = &point->spec;

	if (point->name)
		return point->name;
	return spec->is_glob || spec->has_address || spec->offset ? NULL : spec->name;
}

static void set_tracepoint(struct types *types, struct check_clause *clause)
{
	const char *name = clause->point->name, *colon = strchr(name, ':');
	struct err err = {0};
	char *category;
	uint32_t id;

	if (!colon)
		return;
	category = mem_strndup(name, (size_t)(colon - name));
	if (tracepoint_format_read(types, category, colon + 1, &clause->fields, &id, &err) < 0)
		clause->fields = NULL;
	free(category);
}

static void set_operands(struct point_types *p, struct check_clause *clause)
{
	struct err err = {0};
	int n = usdt_operands_parse(
		clause->mode, clause->point->operands, p->operands[clause->mode], &err);

	if (n < 0) {
		diag_error(clause->session->diags, clause->point->spec.place, "operands", "%s",
			err.text);
		return;
	}
	clause->operands = p->operands[clause->mode];
	clause->n_operands = (uint32_t)n;
}

void point_types_set(struct point_types *p, struct types *types, struct check_clause *clause)
{
	const struct stream_point *point = clause->point;
	const char *name;

	set_sources(p, types, point);
	switch (point->spec.kind) {
	case POINT_UPROBE:
	case POINT_URETPROBE:
	case POINT_KPROBE:
	case POINT_KRETPROBE:
	case POINT_FENTRY:
	case POINT_FEXIT:
		name = function_name(point);
		if (name)
			clause->function = types_function(types, name);
		break;
	case POINT_TRACEPOINT:
		if (point->name)
			set_tracepoint(types, clause);
		break;
	case POINT_USDT:
		if (point->operands)
			set_operands(p, clause);
		break;
	case POINT_SYSCALL_ENTRY:
	case POINT_SYSCALL_RETURN:
		clause->syscall = point->spec.is_glob ? NULL : point->spec.name;
		break;
	default:
		break;
	}
}
