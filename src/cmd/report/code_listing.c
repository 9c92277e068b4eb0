/* SPDX-License-Identifier: MIT */
/*
 * Disassembly of counted blocks without what was inserted: in front of the first line of a block,
 * calls of the run-time library, and whatever uses the gs segment: programs that use it themselves
 * are left alone.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arch/x86_code.h"
#include "arch/x86_format.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/report/source_view.h"
#include "elf/elf_file.h"

#define RUNTIME_PREFIX "weir_count_"
#define GS_PREFIX      0x65

struct code_listing {
	struct file_map map;
	struct elf_file elf;
	struct map runtime; /* addresses of the run-time library's functions */
	struct map name_of; /* address -> id in names + 1 */
	struct intern names;
};

static void add_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct code_listing *l = ctx;

	if (!strncmp(symbol->name, RUNTIME_PREFIX, strlen(RUNTIME_PREFIX)))
		map_ensure(&l->runtime, symbol->addr.v, NULL);
	*map_ensure(&l->name_of, symbol->addr.v, NULL) = intern_text(&l->names, symbol->name) + 1;
}

const struct trace_image *report_image(const struct report *report, const char *path)
{
	const struct trace_reader *r = report->reader;

	for (uint32_t id = 1; id < trace_reader_n_images(r); id++)
		if (!strcmp(trace_reader_string(r, trace_reader_image(r, id)->path), path))
			return trace_reader_image(r, id);
	return NULL;
}

static bool is_same(const struct code_listing *l, const struct trace_image *image)
{
	struct span id = elf_file_build_id(&l->elf);

	if (!image)
		return false;
	if (image->build_id_n)
		return id.n == image->build_id_n && !memcmp(id.p, image->build_id, id.n);
	return !image->file_bytes || image->file_bytes == l->map.bytes.n;
}

struct code_listing *code_listing_open(
	const struct report *report, const char *image, const char **why)
{
	const char *path = report->options->exe ? report->options->exe : image;
	struct code_listing *l = mem_zalloc(sizeof(*l));
	struct stat st;

	*why = NULL;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || file_map_open(&l->map, path, NULL) < 0)
		*why = "the program is not there (--exe names it)";
	else if (elf_file_init(&l->elf, l->map.bytes, NULL) < 0)
		*why = "the program is not an ELF file";
	else if (!is_same(l, report_image(report, image)))
		*why = "the program is not the one that ran (--exe names it)";
	if (*why) {
		code_listing_close(l);
		return NULL;
	}
	elf_file_each_function(&l->elf, false, add_symbol, l);
	return l;
}

void code_listing_close(struct code_listing *l)
{
	if (!l)
		return;
	elf_file_release(&l->elf);
	file_map_release(&l->map);
	map_release(&l->runtime);
	map_release(&l->name_of);
	intern_release(&l->names);
	free(l);
}

static bool is_inserted(
	const struct code_listing *l, const struct x86_insn *insn, const uint8_t *code)
{
	if (insn->flow == X86_FLOW_CALL && insn->has_target)
		return map_find(&l->runtime, insn->target) != NULL;
	return insn->disp_at && code[0] == GS_PREFIX;
}

/* With the name of the function that is called or jumped to. */
static bool put_text(const struct code_listing *l, struct buf *to, const struct x86_insn *insn,
	struct span code, uint64_t addr)
{
	const uint64_t *name = insn->has_target ? map_find(&l->name_of, insn->target) : NULL;
	char text[X86_TEXT_BYTES];

	if (!x86_format(text, code, addr, l->elf.is_64))
		return false;
	buf_reset(to);
	buf_put_cstr(to, text);
	if (name)
		buf_printf(to, " <%s>", intern_get(&l->names, (uint32_t)*name - 1));
	return true;
}

void code_listing_block(struct code_listing *l, const struct code_counts *counts,
	const struct code_block *block,
	void (*each)(void *ctx, uint64_t addr, const struct code_line *line, const char *text),
	void *ctx)
{
	const struct code_line *line = &counts->lines[block->first_line];
	const struct code_line *last = line + block->n_lines - 1;
	struct buf text = {0};
	uint64_t addr = line->address > block->address && line->address < block->end
				? line->address
				: block->address;

	while (addr < block->end) {
		struct span code = elf_file_bytes_at(&l->elf, (struct iaddr){addr});
		struct x86_insn insn;

		if (code.n > block->end - addr)
			code.n = (size_t)(block->end - addr);
		if (!x86_decode(&insn, code, addr, l->elf.is_64))
			break;
		while (line < last && line[1].address <= addr)
			line++;
		if (!is_inserted(l, &insn, code.p) && put_text(l, &text, &insn, code, addr))
			each(ctx, addr, line, buf_text(&text));
		addr += insn.length;
	}
	buf_release(&text);
}
