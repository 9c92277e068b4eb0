/* SPDX-License-Identifier: MIT */
/* What -l -v says of a point: its arguments, as far as the kernel or the file's debug information know. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "process/tracepoint.h"
#include "probe/points/find_file.h"
#include "probe/points/point_listing.h"
#include "probe/points/syscalls.h"

#define FORMAT_BYTES_MAX 65536
#define DETAILS_MAX	 4096
#define TRACE_ITER	 "__traceiter_" /* what the kernel calls for a raw tracepoint */

void listing_add_detail(struct point_listing *l, const char *text)
{
	if (l->details.n < DETAILS_MAX)
		vec_push(&l->details, text);
}

void listing_add_value(struct point_listing *l, const struct type *type, const char *name)
{
	struct buf b = {0};
	char *text, *star;

	type_print(type, &b);
	buf_text(&b); /* ends it */
	text = (char *)b.p;
	star = strstr(text, " *");
	/* "struct item* p": one blank parts type and name. */
	if (star && !strpbrk(text, "(["))
		memmove(star, star + 1, strlen(star));
	listing_add_detail(
		l, arena_printf(l->arena, "%s%s%s", text, name ? " " : "", name ? name : ""));
	buf_release(&b);
}

static struct types *types_of(struct point_listing *l, enum mode mode)
{
	if (!l->types[mode])
		l->types[mode] = types_new(mode);
	return l->types[mode];
}

struct btf_types *listing_btf(struct point_listing *l)
{
	if (!l->is_btf_tried && file_map_open(&l->btf_map, BTF_VMLINUX, NULL) == 0 &&
		btf_types_open(types_of(l, MODE_64), l->btf_map.bytes, &l->btf, NULL) < 0) {
		l->btf = NULL;
		file_map_release(&l->btf_map);
	}
	l->is_btf_tried = true;
	return l->btf;
}

void listing_release(struct point_listing *l)
{
	dwarf_types_close(l->file.dwarf);
	if (l->btf)
		file_map_release(&l->btf_map);
	btf_types_close(l->btf);
	for (enum mode m = 0; m < N_MODES; m++)
		types_free(l->types[m]);
	vec_release(&l->entries);
	vec_release(&l->details);
	arena_free(l->arena);
}

/* --- functions -------------------------------------------------------------------------------- */

static void add_parameters(struct point_listing *l, const struct type *function, uint32_t first)
{
	for (uint32_t i = first; i < function->n_fields; i++)
		listing_add_value(l, function->fields[i].type, function->fields[i].name);
}

static const struct type *function_of_file(
	struct point_listing *l, const char *path, const char *name)
{
	struct listing_file *f = &l->file;
	struct probe_file file;

	if (!f->path || strcmp(f->path, path)) {
		dwarf_types_close(f->dwarf);
		*f = (struct listing_file){.path = path};
		if (file_identify(path, &file) != FILE_ELF ||
			dwarf_types_open(types_of(l, file.mode), path, &f->dwarf, NULL) < 0)
			f->dwarf = NULL;
		if (f->dwarf)
			f->source = dwarf_types_source(f->dwarf);
	}
	return f->dwarf ? f->source.function(f->source.ctx, name) : NULL;
}

/* "uprobe:PATH:NAME"; `path` is its path. */
void points_detail_function(struct point_listing *l, const char *name, const char *path)
{
	const char *function = strchr(name, ':') + 1 + strlen(path) + 1;
	const struct type *type = function_of_file(l, path, function);
	bool is_return = strncmp(name, "uretprobe", strlen("uretprobe")) == 0;

	if (type && !is_return)
		add_parameters(l, type, 0);
	else if (type && type->of->kind != TYPE_VOID)
		listing_add_value(l, type->of, "retval");
}

/* "fexit:[MODULE:]NAME" */
void points_detail_kernel(struct point_listing *l, const char *name, const char *about)
{
	struct btf_types *btf = listing_btf(l);
	struct type_source s = btf ? btf_types_source(btf) : (struct type_source){0};
	const struct type *type = btf ? s.function(s.ctx, strrchr(name, ':') + 1) : NULL;
	bool is_return = !strncmp(name, "fexit", 5) || !strncmp(name, "kretprobe", 9);

	(void)about;
	if (!type)
		return;
	if (strncmp(name, "kretprobe", 9))
		add_parameters(l, type, 0);
	if (is_return && type->of->kind != TYPE_VOID)
		listing_add_value(l, type->of, "retval");
}

/* The first parameter is the tracepoint's own. */
void points_detail_raw(struct point_listing *l, const char *name, const char *about)
{
	struct btf_types *btf = listing_btf(l);
	struct type_source s = btf ? btf_types_source(btf) : (struct type_source){0};
	const char *function = arena_printf(l->arena, TRACE_ITER "%s", strrchr(name, ':') + 1);
	const struct type *type = btf ? s.function(s.ctx, function) : NULL;

	(void)about;
	if (type)
		add_parameters(l, type, 1);
}

/* Fields of ctx. */
void points_detail_iter(struct point_listing *l, const char *name, const char *about)
{
	struct btf_types *btf = listing_btf(l);
	struct type_source s = btf ? btf_types_source(btf) : (struct type_source){0};
	const char *tag = arena_printf(l->arena, "bpf_iter__%s", strchr(name, ':') + 1);
	const struct type *type = btf ? s.named(s.ctx, "struct", tag) : NULL;

	(void)about;
	for (uint32_t i = 0; type && i < type->n_fields; i++) {
		const struct type_field *f = &type->fields[i];

		if (!f->name && f->type->n_fields) /* a union that makes a pointer 64 bits long */
			f = &f->type->fields[0];
		listing_add_value(l, f->type, f->name);
	}
}

/* --- what has a format of its own ------------------------------------------------------------- */

/* "syscall:openat:entry": both modes where they differ. */
void points_detail_syscall(struct point_listing *l, const char *name, const char *about)
{
	const char *start = strchr(name, ':') + 1;
	char *call = arena_strndup(l->arena, start, strcspn(start, ":"));

	(void)about;
	if (strcmp(start + strlen(call), ":return") == 0) {
		listing_add_detail(l, "long retval");
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
			listing_add_detail(l, mode == MODE_64 ? "64-bit:" : "32-bit:");
		for (size_t i = 0; i < SYSCALL_ARGS_MAX && args[i].name; i++) {
			const char *of = syscall_struct(mode, call, args[i].name);
			const char *type =
				of ? arena_printf(l->arena, "struct %s *", of) : args[i].type;
			size_t n = strlen(type);

			listing_add_detail(
				l, arena_printf(l->arena, "%s%s%s", type,
					   n && type[n - 1] == '*' ? "" : " ", args[i].name));
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
			listing_add_detail(l, arena_strndup(l->arena, field, strcspn(field, ";")));
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
			listing_add_detail(l, arena_strndup(l->arena, operands, n));
		operands += n + (operands[n] != 0);
	}
}
