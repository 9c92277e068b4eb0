/* SPDX-License-Identifier: MIT */
#include "remote/agent_files.h"

#include <elf.h>
#include <libdeflate.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "process/own_file.h"

#define GZIP_LEVEL	6
#define FILE_BYTES_MAX	((size_t)256 << 20)
#define N_LIBRARIES_MAX 64

/* What weir looks for beside itself, where the build and where an installation has it. */
static const char *const beside[] = {
	"lib/x86_64-linux-gnu/libweir.so",
	"lib/i386-linux-gnu/libweir.so",
	"lib/x86_64-linux-gnu/libweirtranslate.so",
};

/* Sections are not needed to run, and most of a program with debug information: what no segment has is cut off. */
static void cut_sections(struct buf *b)
{
	Elf64_Ehdr header;
	uint64_t end = 0;

	if (b->n < sizeof(header))
		return;
	memcpy(&header, b->p, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
		header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
		return;
	for (size_t i = 0; i < header.e_phnum; i++) {
		struct span bytes = span_sub(
			buf_span(b), header.e_phoff + i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
		Elf64_Phdr segment;

		if (!bytes.p)
			return;
		memcpy(&segment, bytes.p, sizeof(segment));
		if (segment.p_offset + segment.p_filesz > end)
			end = segment.p_offset + segment.p_filesz;
	}
	if (end < sizeof(header) || end > b->n)
		return;
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	memcpy(b->p, &header, sizeof(header));
	b->n = end;
}

static int add_file(
	struct agent_files *a, const char *path, const char *name, bool is_cut, struct err *err)
{
	struct agent_file file = {.first = a->bytes.n / AGENT_BLOCK_BYTES};
	struct buf content = {0};

	if (file_read(&content, path, FILE_BYTES_MAX, err) < 0) {
		buf_release(&content);
		return err_prefix(err, "the agent for the other machine");
	}
	if (is_cut)
		cut_sections(&content);
	file.n_blocks = (content.n + AGENT_BLOCK_BYTES - 1) / AGENT_BLOCK_BYTES;
	buf_put_zeros(&content, file.n_blocks * AGENT_BLOCK_BYTES - content.n);
	sha256_hex(buf_span(&content), file.sum);
	file.name = mem_strdup(name);
	buf_put(&a->bytes, content.p, content.n);
	vec_push(&a->v, file);
	buf_release(&content);
	return 0;
}

struct libraries {
	VEC(char *) paths;
};

/* Those that have a file; the first one is the program. */
static int note_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct libraries *l = ctx;

	(void)size;
	if (info->dlpi_name[0] == '/' && l->paths.n < N_LIBRARIES_MAX)
		vec_push(&l->paths, mem_strdup(info->dlpi_name));
	return 0;
}

/* What is mapped here is what weir runs with. */
static int add_libraries(struct agent_files *a, struct err *err)
{
	struct libraries l = {0};
	bool has_loader = false;
	int rc = 0;

	dl_iterate_phdr(note_library, &l);
	for (size_t i = 0; i < l.paths.n && rc == 0; i++) {
		const char *name = path_base_name(l.paths.v[i]);

		has_loader |= !strcmp(name, AGENT_LOADER);
		rc = add_file(a, l.paths.v[i], name, true, err);
	}
	vec_release_all(&l.paths);
	if (rc == 0 && !has_loader)
		rc = err_set(err, ERR_UNSUPPORTED,
			"the agent for the other machine: weir runs without '%s' here, which has to start it there",
			AGENT_LOADER);
	return rc;
}

static int add_beside(struct agent_files *a, const char *name, struct err *err)
{
	char *installed = mem_printf("../lib/weir/%s", name);
	char *path = own_file_find(name, installed);
	/* Without a 32-bit one functions of 64-bit programs are hooked, as here. */
	int rc = path ? add_file(a, path, name, false, err) : 0;

	free(installed);
	free(path);
	return rc;
}

static void make_hash(struct agent_files *a)
{
	struct buf all = {0};

	for (size_t i = 0; i < a->v.n; i++)
		buf_printf(&all, "%s  %s\n", a->v.v[i].sum, a->v.v[i].name);
	sha256_hex(buf_span(&all), a->hash);
	buf_release(&all);
}

int agent_files_read(struct agent_files *a, struct err *err)
{
	int rc = add_file(a, "/proc/self/exe", AGENT_PROGRAM, true, err);

	if (rc == 0)
		rc = add_libraries(a, err);
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]) && rc == 0; i++)
		rc = add_beside(a, beside[i], err);
	if (rc == 0)
		make_hash(a);
	return rc;
}

void agent_files_gzip(const struct agent_files *a, struct buf *to)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(GZIP_LEVEL);
	size_t max = libdeflate_gzip_compress_bound(c, a->bytes.n), at = to->n;

	buf_put_zeros(to, max);
	to->n = at + libdeflate_gzip_compress(c, a->bytes.p, a->bytes.n, to->p + at, max);
	libdeflate_free_compressor(c);
}

void agent_files_release(struct agent_files *a)
{
	for (size_t i = 0; i < a->v.n; i++)
		free(a->v.v[i].name);
	vec_release(&a->v);
	buf_release(&a->bytes);
}
