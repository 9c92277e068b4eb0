/* SPDX-License-Identifier: MIT */
/* Where the names of an image come from, and how sure it is that they are its own. */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map_guard.h"
#include "symbols/catalog/image_make.h"
#include "symbols/image_identity.h"
#include "symbols/resolve/resolver_internal.h"

#define KALLSYMS_PATH "/proc/kallsyms"

void resolver_entry_release(struct resolver_entry *e)
{
	if (e->has_found)
		symbols_found_release(&e->found);
	else
		catalog_image_close(e->symbols);
	symtab_free(e->symtab);
	if (e->has_jitdump)
		jitdump_release(&e->jitdump);
	file_map_release(&e->jitdump_file);
	cfi_table_free(e->own_cfi);
	buf_release(&e->bytes);
	image_identity_release(&e->identity);
	free(e->reason);
	free(e->path);
}

static void set_match(struct resolver_entry *e, enum match_rung rung, char *reason)
{
	free(e->reason);
	e->match.rung = e->match.image_rung = rung;
	e->match.catalog_id = "";
	e->reason = reason;
}

static void identity_of(struct image_identity *id, const struct resolver_entry *e)
{
	if (e->has_identity) {
		image_identity_copy(id, &e->identity);
		return;
	}
	if (e->elf)
		image_identity_init_elf(id, e->elf, e->path, NULL, !e->image.build_id_n);
	else
		*id = (struct image_identity){.path = mem_strdup(e->path)};
	image_identity_take_traced(id, &e->image);
}

/* A bare function name without CFI bounds would be one name an address. */
static void read_cfi(struct resolver_entry *e, const char *path)
{
	struct file_map file;
	struct elf_file elf;

	if (e->cfi || file_map_open(&file, path, NULL) < 0)
		return;
	if (elf_file_init(&elf, file.bytes, NULL) == 0) {
		e->entry = elf.entry;
		e->own_cfi = cfi_table_new(&elf);
		e->cfi = e->own_cfi;
		elf_file_release(&elf);
	}
	file_map_release(&file);
}

/* The ladder; false when nothing holds. */
static bool load_found(struct resolver_entry *e, const struct image_identity *id,
	const struct symbols_search *search, enum match_rung least)
{
	symbols_find(&e->found, id, search);
	if (!e->found.image || e->found.rung < least) {
		if (least == MATCH_NONE)
			set_match(e, MATCH_NONE, mem_strdup(e->found.reason));
		symbols_found_release(&e->found);
		return false;
	}
	e->has_found = true;
	e->symbols = e->found.image;
	set_match(e, e->found.names_rung, mem_strdup(e->found.reason));
	e->match.image_rung = e->found.rung;
	e->match.catalog_id = e->found.catalog_id;
	if (e->found.path)
		read_cfi(e, e->found.path);
	return true;
}

/* Zeros were read in place of symbols: what came of them is not to be trusted. */
static void forget_cut(struct resolver_entry *e)
{
	catalog_image_close(e->symbols);
	e->symbols = NULL;
	buf_reset(&e->bytes);
	symtab_free(e->symtab);
	e->symtab = NULL;
	set_match(e, MATCH_NONE, mem_printf("'%s': " FILE_CUT_REASON, e->path));
}

static void load_mapped(struct resolver_entry *e, const struct image_identity *id,
	const uint64_t *addrs, size_t n_addrs)
{
	struct image_recipe recipe = {.elf = e->elf,
		.path = e->path,
		.addrs = addrs,
		.n_addrs = n_addrs,
		.opened = e->opened,
		.no_data = true,
		.n_threads = 2};
	struct buf text = {0};

	set_match(e, image_identity_has_build_id(id) ? MATCH_BUILD_ID : MATCH_CHECKSUM,
		mem_printf("the mapped file itself, %s", image_identity_text(id, &text)));
	buf_release(&text);
	if (!image_has_lines(e->elf, e->path) ||
		image_make_open(id, &recipe, &e->bytes, &e->symbols, NULL) < 0)
		e->symtab = symtab_new_elf(e->elf, e->path);
	if (map_guard_is_cut(e->elf->bytes.p))
		forget_cut(e);
}

static void load_elf(
	struct resolver *r, struct resolver_entry *e, const uint64_t *addrs, size_t n_addrs)
{
	struct symbols_search search = {
		.catalog = r->catalog, .addrs = addrs, .n_addrs = n_addrs, .n_threads = 2};
	struct image_identity id;

	identity_of(&id, e);
	if (e->elf) {
		/* A file that was mapped is sure; the catalog may know more of the same version. */
		search.no_files = true;
		if (!r->catalog || !load_found(e, &id, &search, MATCH_BUILD_ID))
			load_mapped(e, &id, addrs, n_addrs);
	} else {
		load_found(e, &id, &search, MATCH_NONE);
	}
	image_identity_release(&id);
}

/* The kernel of a recording that was made earlier. Its symbols have other addresses after each start of
 * the machine: without knowing where it was loaded, any names would look right. */
static void load_past_kernel(struct resolver_entry *e, const struct name_place *place)
{
	const struct image_identity *its = place->kernel;
	const char *path = place->kallsyms ? place->kallsyms : KALLSYMS_PATH;
	uint64_t here = kallsyms_content_hash(path);
	struct image_identity running;
	struct err err;
	bool is_other;

	kernel_identity(&running);
	is_other = !place->kallsyms && its->build_id_n && running.build_id_n &&
		   !image_identity_same_build_id(its, &running);
	image_identity_release(&running);
	if (is_other)
		set_match(e, MATCH_NONE,
			mem_strdup("the kernel here is not the recorded one (--kallsyms names "
				   "its symbols)"));
	else if (!its->content_hash && !place->kallsyms)
		set_match(e, MATCH_NONE,
			mem_strdup("the recording does not say where its kernel was loaded "
				   "(--kallsyms names its symbols)"));
	else if (its->content_hash && here && its->content_hash != here)
		set_match(e, MATCH_NONE,
			mem_printf("'%s': is of a kernel that was loaded elsewhere than the "
				   "recorded one",
				path));
	else if (symtab_new_kallsyms(&e->symtab, path, &err) < 0)
		set_match(e, MATCH_NONE, mem_strdup(err.text));
	else
		set_match(e, place->kallsyms && !its->content_hash ? MATCH_PATH : MATCH_BUILD_ID,
			mem_printf("'%s'%s", path,
				its->content_hash ? ", loaded where the recorded kernel was"
						  : ", not compared with the recorded kernel"));
}

static void load_kernel(struct resolver *r, struct resolver_entry *e)
{
	struct symbols_search search = {.catalog = r->catalog, .no_files = true};
	struct image_identity id, running = {0};
	struct buf mine = {0}, its = {0};
	struct err err;

	if (r->place) {
		if (!r->catalog || r->place->kallsyms ||
			!load_found(e, r->place->kernel, &search, MATCH_BUILD_ID))
			load_past_kernel(e, r->place);
		return;
	}
	identity_of(&id, e);
	kernel_identity(&running);
	if (!e->has_identity) /* it is recorded here and now */
		id.content_hash = running.content_hash;
	if (r->catalog && load_found(e, &id, &search, MATCH_BUILD_ID))
		;
	else if (id.content_hash && running.content_hash && id.content_hash != running.content_hash)
		set_match(e, MATCH_NONE,
			mem_strdup(
				"the kernel here was started at another address than the traced one"));
	else if (id.build_id_n && running.build_id_n &&
		 !image_identity_same_build_id(&id, &running))
		set_match(e, MATCH_NONE,
			mem_printf("the kernel here is another one: %s here, %s was traced",
				image_identity_text(&running, &its),
				image_identity_text(&id, &mine)));
	else if (symtab_new_kallsyms(&e->symtab, KALLSYMS_PATH, &err) < 0)
		set_match(e, MATCH_NONE, mem_strdup(err.text));
	else
		set_match(e, id.build_id_n ? MATCH_BUILD_ID : MATCH_PATH,
			mem_printf("%s of the running kernel%s%s", KALLSYMS_PATH,
				id.build_id_n ? ", " : "; which kernel was traced is not known",
				id.build_id_n ? image_identity_text(&id, &mine) : ""));
	image_identity_release(&id);
	image_identity_release(&running);
	buf_release(&mine);
	buf_release(&its);
}

static const char *root_of(const struct resolver *r)
{
	return r->place ? r->place->root : "";
}

static const char *find_jitdump(const struct resolver *r, uint32_t pid, char *to, size_t bytes)
{
	char name[32];

	/* Compilers map the file so that recorders see its path. */
	snprintf(name, sizeof(name), "/jit-%u.dump", pid);
	for (size_t i = 0; i < r->entries.n; i++) {
		const char *path = r->entries.v[i].is_known ? r->entries.v[i].path : "";
		size_t n = strlen(path);

		if (n >= strlen(name) && !strcmp(path + n - strlen(name), name))
			return path;
	}
	snprintf(to, bytes, "%s/tmp/jit-%u.dump", root_of(r), pid);
	return to;
}

static void load_jit(struct resolver *r, struct resolver_entry *e)
{
	struct symbols_search search = {.catalog = r->catalog, .no_files = true};
	struct image_identity id;
	char map_path[PATH_MAX], dump[PATH_MAX];
	const char *dump_path = find_jitdump(r, e->image.pid, dump, sizeof(dump));

	snprintf(map_path, sizeof(map_path), "%s/tmp/perf-%u.map", root_of(r), e->image.pid);
	if (r->place && r->place->is_elsewhere && !r->place->root[0]) {
		set_match(e, MATCH_NONE,
			mem_strdup("code made at run time on another machine (--sysroot names "
				   "its files)"));
		return;
	}
	if (file_map_open(&e->jitdump_file, dump_path, NULL) == 0 &&
		jitdump_init(&e->jitdump, e->jitdump_file.bytes, NULL) == 0) {
		e->has_jitdump = true;
		set_match(e, MATCH_PATH, mem_printf("'%s', found by process id", dump_path));
	}
	if (symtab_new_perf_map(&e->symtab, map_path, NULL) == 0)
		set_match(e, MATCH_PATH,
			mem_printf("'%s', found by process id",
				e->has_jitdump ? dump_path : map_path));
	if (e->has_jitdump || e->symtab)
		return;
	identity_of(&id, e);
	if (!r->catalog || !load_found(e, &id, &search, MATCH_SEGMENTS))
		set_match(e, MATCH_NONE,
			mem_printf("code made at run time, and no map of it at %s", map_path));
	image_identity_release(&id);
}

static void load_vdso(struct resolver_entry *e)
{
	if (!e->elf) {
		set_match(e, MATCH_NONE, mem_strdup("the vdso was not kept"));
		return;
	}
	e->symtab = symtab_new_elf(e->elf, NULL);
	set_match(e, MATCH_BUILD_ID, mem_strdup("read from the process's own memory"));
}

void resolver_load(
	struct resolver *r, struct resolver_entry *e, const uint64_t *addrs, size_t n_addrs)
{
	e->is_loaded = true;
	e->match.catalog_id = "";
	switch (e->image.kind) {
	case IMAGE_KIND_KERNEL:
		load_kernel(r, e);
		break;
	case IMAGE_KIND_JIT:
		load_jit(r, e);
		break;
	case IMAGE_KIND_ELF:
		load_elf(r, e, addrs, n_addrs);
		break;
	case IMAGE_KIND_VDSO:
		load_vdso(e);
		break;
	case IMAGE_KIND_OTHER:
		load_elf(r, e, addrs, n_addrs);
		if (e->match.rung == MATCH_NONE)
			set_match(e, MATCH_NONE,
				mem_printf("'%s': could not be read when it was mapped", e->path));
		break;
	}
}
