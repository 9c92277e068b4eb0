/* SPDX-License-Identifier: MIT */
#include "symbols/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "symbols/symtab.h"

#define KALLSYMS_PATH "/proc/kallsyms"

struct entry {
	bool is_known;
	struct trace_image image;
	char *path;
	const struct elf_file *elf; /* borrowed */
	const struct cfi_table *cfi;
	struct cfi_table *own_cfi;
	struct symtab *symtab; /* NULL until first asked, or when there is none */
	struct iaddr entry;    /* the image's entry point; 0 = not known */
	bool is_loaded;
	char *reason; /* why there are no names; NULL when there are */
};

struct resolver {
	VEC(struct entry) entries; /* by image id */
	char *text;		   /* the made-up name given out last */
};

struct resolver *resolver_new(void)
{
	return mem_zalloc(sizeof(struct resolver));
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->entries.n; i++) {
		free(r->entries.v[i].path);
		free(r->entries.v[i].reason);
		symtab_free(r->entries.v[i].symtab);
		cfi_table_free(r->entries.v[i].own_cfi);
	}
	vec_release(&r->entries);
	free(r->text);
	free(r);
}

void resolver_add_image(struct resolver *r, uint32_t id, const struct trace_image *image,
	const char *path, const struct elf_file *elf, const struct cfi_table *cfi)
{
	while (r->entries.n <= id)
		vec_push(&r->entries, (struct entry){0});
	if (r->entries.v[id].is_known)
		return; /* one file, met once with its build-id and once with its inode */
	r->entries.v[id] = (struct entry){.is_known = true,
		.image = *image,
		.path = mem_strdup(path),
		.elf = elf,
		.cfi = cfi};
	if (elf)
		r->entries.v[id].entry = elf->entry;
}

static void load_from_file(struct entry *e)
{
	struct file_map file;
	struct elf_file elf;
	struct err err;
	struct span id;

	if (file_map_open(&file, e->path, &err) < 0) {
		e->reason = mem_strdup(err.text);
		return;
	}
	if (elf_file_init(&elf, file.bytes, &err) < 0) {
		e->reason = mem_printf("'%s': %s", e->path, err.text);
		file_map_release(&file);
		return;
	}
	id = elf_file_build_id(&elf);
	if (e->image.build_id_n && (id.n < e->image.build_id_n ||
					   memcmp(id.p, e->image.build_id, e->image.build_id_n)))
		e->reason = mem_printf("'%s': is another version now (build-id differs)", e->path);
	else if (!e->image.build_id_n && e->image.file_bytes && file.bytes.n != e->image.file_bytes)
		e->reason = mem_printf("'%s': is another version now (size differs)", e->path);
	else {
		e->entry = elf.entry;
		e->symtab = symtab_new_elf(&elf, e->path);
		e->own_cfi = cfi_table_new(&elf);
		e->cfi = e->own_cfi;
	}
	elf_file_release(&elf);
	file_map_release(&file);
}

static void load(struct entry *e)
{
	struct err err;
	char path[64];

	e->is_loaded = true;
	switch (e->image.kind) {
	case IMAGE_KIND_KERNEL:
		if (symtab_new_kallsyms(&e->symtab, KALLSYMS_PATH, &err) < 0)
			e->reason = mem_strdup(err.text);
		break;
	case IMAGE_KIND_JIT:
		snprintf(path, sizeof(path), "/tmp/perf-%u.map", e->image.pid);
		if (symtab_new_perf_map(&e->symtab, path, &err) < 0)
			e->reason =
				mem_printf("code made at run time, and no map of it at %s", path);
		break;
	case IMAGE_KIND_ELF:
		if (e->elf)
			e->symtab = symtab_new_elf(e->elf, e->path);
		else
			load_from_file(e);
		break;
	case IMAGE_KIND_VDSO:
		if (e->elf)
			e->symtab = symtab_new_elf(e->elf, NULL);
		else
			e->reason = mem_strdup("the vdso was not kept");
		break;
	case IMAGE_KIND_OTHER:
		e->reason = mem_printf("'%s': could not be read when it was mapped", e->path);
		break;
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void name_by_address(
	struct resolver *r, struct entry *e, uint64_t addr, struct resolved *out)
{
	struct iaddr start = {addr};
	uint64_t size;

	if (e && e->cfi && e->image.kind != IMAGE_KIND_JIT)
		cfi_table_function_at(e->cfi, (struct iaddr){addr}, &start, &size);
	if (e && e->entry.v && start.v == e->entry.v) {
		/* What the ELF header calls the entry point has one name everywhere. */
		*out = (struct resolved){"_start", addr - start.v, NULL};
		return;
	}
	free(r->text);
	r->text = e ? mem_printf("%s+0x%lx", base_name(e->path), start.v)
		    : mem_printf("[unknown 0x%lx]", addr);
	out->name = r->text;
	out->offset = addr - start.v;
	if (!e)
		out->reason = "address in no known module";
	else if (e->reason)
		out->reason = e->reason;
	else if (e->image.kind == IMAGE_KIND_JIT)
		out->reason = "address not in the process's perf map";
	else
		out->reason = "stripped: no symbol covers the address";
}

void resolver_find(struct resolver *r, uint32_t id, uint64_t addr, struct resolved *out)
{
	struct entry *e = id < r->entries.n && r->entries.v[id].is_known ? &r->entries.v[id] : NULL;
	const struct symbol *s;

	if (e && !e->is_loaded)
		load(e);
	s = e && e->symtab ? symtab_find(e->symtab, addr) : NULL;
	if (!s) {
		name_by_address(r, e, addr, out);
		return;
	}
	*out = (struct resolved){s->name, addr - s->start, NULL};
}

static uint64_t lookup_address(const struct trace_frame *f)
{
	return f->is_caller && f->addr ? f->addr - 1 : f->addr;
}

static struct trace_symbol_level level_of(
	const struct trace_frame *f, const struct resolved *found, uint32_t name)
{
	uint64_t offset = found->offset + (f->addr - lookup_address(f));

	return (struct trace_symbol_level){
		.name = name, .offset = offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset};
}

static bool needs_name(const struct trace_frame *f)
{
	return f->kind != FRAME_KIND_MARKER && !f->name;
}

void resolver_name_frames(struct resolver *r, struct trace_writer *w)
{
	uint32_t n = trace_writer_n_frames(w);

	for (uint32_t id = 1; id <= n; id++) {
		const struct trace_frame frame = *trace_writer_get_frame(w, id);
		struct trace_symbol_level level;
		struct resolved found;

		if (!needs_name(&frame))
			continue;
		resolver_find(r, frame.image, lookup_address(&frame), &found);
		level = level_of(&frame, &found, trace_writer_string(w, found.name));
		trace_writer_symbol(w,
			&(struct trace_symbol){.frame = id,
				.n_levels = 1,
				.levels = &level,
				.reason = found.reason ? trace_writer_string(w, found.reason) : 0});
	}
}

static void name_missing(struct trace_reader *reader)
{
	struct resolver *r = NULL;
	uint32_t n = trace_reader_n_frames(reader);

	for (uint32_t id = 1; id < n; id++) {
		const struct trace_frame *frame = trace_reader_frame(reader, id);
		struct trace_symbol_level level;
		struct resolved found;

		if (!needs_name(frame) || trace_reader_symbol(reader, id))
			continue;
		if (!r) {
			r = resolver_new();
			for (uint32_t i = 1; i < trace_reader_n_images(reader); i++) {
				const struct trace_image *image = trace_reader_image(reader, i);

				resolver_add_image(r, i, image,
					trace_reader_string(reader, image->path), NULL, NULL);
			}
		}
		resolver_find(r, frame->image, lookup_address(frame), &found);
		level = level_of(frame, &found, trace_reader_add_string(reader, found.name));
		trace_reader_set_symbol(reader,
			&(struct trace_symbol){.frame = id,
				.n_levels = 1,
				.levels = &level,
				.reason = found.reason
						  ? trace_reader_add_string(reader, found.reason)
						  : 0});
	}
	resolver_free(r);
}

int resolver_open_trace(struct trace_reader **out, const char *path, struct err *err)
{
	int rc = trace_reader_open(out, path, err);

	if (rc == 0)
		name_missing(*out);
	return rc;
}
