/* SPDX-License-Identifier: MIT */
/*
 * An assembled object, code inserted into it, and what came out, shown as words:
 *
 *	enter leave tail resync ...	calls of the library
 *	inc.K			the counter of block K of the section
 *	cost.N, cycles		an addition to the sums
 *	jz>I			a branch to word number I of the same function
 *	call>name		to something else
 *	mov[.data+8]		an operand that is relocated
 *	mov			any other instruction
 */
#ifndef WEIR_TESTS_INSERT_WORLD_H
#define WEIR_TESTS_INSERT_WORLD_H

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <unistd.h>

#include "arch/x86_code.h"
#include "base/file.h"
#include "check.h"
#include "elf/elf_object.h"
#include "insert/insert.h"

/* What compilers leave in an object: hand-written code is trusted less. */
#define COMPILED ".ident \"GCC: x\"\n"

#define SHOWN_WORDS_MAX 512

struct world {
	struct buf in, out;
	struct insert_report report;
	struct elf_object o; /* what came out */
	char shown[8192];
	/* Of the function that was shown last: where its words are in the section. */
	uint32_t section, at[SHOWN_WORDS_MAX];
	size_t n_words;
};

/* The folder is the test's own; one object at a time. */
static void run_tool(const char *command, const char *source, struct buf *out)
{
	char path[] = "/tmp/weir-insert-XXXXXX", line[256];
	struct err err = {0};
	int fd = mkstemp(path);
	FILE *f;

	CHECK(fd >= 0);
	close(fd);
	snprintf(line, sizeof(line), command, path);
	f = popen(line, "w");
	CHECK(f != NULL);
	fputs(source, f);
	CHECK_EQ(pclose(f), 0);
	CHECK_EQ(file_read(out, path, 1 << 20, &err), 0);
	unlink(path);
}

static void insert_with(struct world *w, const struct insert_options *options)
{
	struct err err = {0};

	CHECK_EQ(insert_object(buf_span(&w->in), options, &w->out, &w->report, &err), 0);
	CHECK_EQ(elf_object_open(&w->o, buf_span(&w->out), &err), 0);
	CHECK_STR(err.text, "");
}

static __attribute__((unused)) void begin(
	struct world *w, enum insert_mode mode, const char *source)
{
	*w = (struct world){0};
	run_tool("as --64 -o %s -", source, &w->in);
	insert_with(w, &(struct insert_options){.mode = mode});
}

static void end(struct world *w)
{
	elf_object_release(&w->o);
	insert_report_release(&w->report);
	buf_release(&w->in);
	buf_release(&w->out);
}

static const struct object_symbol *symbol_of(const struct world *w, const char *name)
{
	for (size_t i = 1; i < w->o.symbols.n; i++)
		if (!strcmp(w->o.symbols.v[i].name, name))
			return &w->o.symbols.v[i];
	return NULL;
}

static const char *reason_of(const struct world *w, const char *name)
{
	for (size_t i = 0; i < w->report.functions.n; i++)
		if (!strcmp(w->report.functions.v[i].name, name))
			return insert_reason_text(w->report.functions.v[i].reason);
	return "it is not in the report";
}

/* The word of the function shown last that begins at this offset of its section; -1. */
static int word_at(const struct world *w, uint32_t section, int64_t offset)
{
	for (size_t i = 0; section == w->section && i < w->n_words; i++)
		if (w->at[i] == offset)
			return (int)i;
	return -1;
}

static void show_place(const struct world *w, char *to, size_t n, uint32_t symbol, int64_t addend)
{
	const struct object_symbol *s = &w->o.symbols.v[symbol];
	bool is_section = s->type == STT_SECTION;
	int word = s->section < w->o.sections.n && s->section
			   ? word_at(w, s->section, (int64_t)s->value + addend)
			   : -1;

	if (word >= 0)
		snprintf(to, n, "%d", word);
	else if (addend)
		snprintf(to, n, "%s%+d", is_section ? w->o.sections.v[s->section].name : s->name,
			(int)addend);
	else
		snprintf(to, n, "%s", is_section ? w->o.sections.v[s->section].name : s->name);
}

static const struct object_reloc *reloc_in(
	const struct object_section *os, uint64_t at, uint64_t end)
{
	size_t k = object_section_reloc_at(os, at);

	/* That one refers to the unit, and changes nothing. */
	while (k < os->relocs.n && os->relocs.v[k].type == R_X86_64_NONE)
		k++;
	return k < os->relocs.n && os->relocs.v[k].offset < end ? &os->relocs.v[k] : NULL;
}

static bool is_pc(uint32_t type)
{
	return type != R_X86_64_64 && type != R_X86_64_32 && type != R_X86_64_32S &&
	       type != R_X86_64_TPOFF32;
}

/* Adds and moves of inserted code, which alone uses gs here. */
static bool show_counting(char *to, size_t n, const uint8_t *p, const char *place)
{
	bool is_counter = !strncmp(place, "weir_counters", 13);
	char what[64];

	if (p[0] != 0x65)
		return false;
	if (is_counter)
		snprintf(what, sizeof(what), "inc.%d", atoi(place + 13) / 8);
	else
		snprintf(what, sizeof(what), "%s",
			strncmp(place, "weir_count_cy", 13) ? "cost" : "cycles");
	if (p[2] == 0xff)
		snprintf(to, n, "%s", what);
	else if (what[1] == 'y')
		snprintf(to, n, "%s", what);
	else
		snprintf(to, n, "%s.%d", what, p[8]);
	return true;
}

static void show_insn(struct world *w, char *to, size_t n, uint32_t at)
{
	const struct object_section *os = &w->o.sections.v[w->section];
	const struct object_reloc *r;
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	const char *name;
	struct x86_insn x;
	char place[256] = "";

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	CHECK(ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		&decoder, NULL, os->data.p + at, os->data.n - at, &insn)));
	CHECK(x86_decode(&x, span_sub(os->data, at, os->data.n - at), at, true));
	name = ZydisMnemonicGetString(insn.mnemonic);
	r = reloc_in(os, at, at + insn.length);
	if (r)
		show_place(w, place, sizeof(place), r->symbol,
			r->addend + (is_pc(r->type) ? (int64_t)(at + insn.length - r->offset) : 0));
	if (r && show_counting(to, n, os->data.p + at, place))
		return;
	if (x.rel_bytes && !r) {
		snprintf(to, n, "%s>%d", name, word_at(w, w->section, (int64_t)x.target));
	} else if (x.rel_bytes) {
		if (!strncmp(place, "weir_count_", 11))
			snprintf(to, n, "%s", place + 11);
		else
			snprintf(to, n, "%s>%s", name, place);
	} else if (r)
		snprintf(to, n, "%s[%s]", name, place);
	else if (x.disp_at)
		snprintf(to, n, "%s[%d]", name, word_at(w, w->section, (int64_t)x.disp_target));
	else
		snprintf(to, n, "%s", name);
}

static const char *show(struct world *w, const char *function)
{
	const struct object_symbol *s = symbol_of(w, function);
	size_t used = 0;

	w->n_words = 0;
	w->shown[0] = 0;
	if (!s || !s->section || !s->size)
		return "there is no such function";
	w->section = s->section;
	for (uint64_t at = s->value; at < s->value + s->size && w->n_words < SHOWN_WORDS_MAX;) {
		struct x86_insn x;
		struct span bytes = w->o.sections.v[s->section].data;

		if (!x86_decode(&x, span_sub(bytes, at, bytes.n - at), at, true))
			return "it is no code";
		w->at[w->n_words++] = (uint32_t)at;
		at += x.length;
	}
	for (size_t i = 0; i < w->n_words; i++) {
		char word[320];

		show_insn(w, word, sizeof(word), w->at[i]);
		used += (size_t)snprintf(
			w->shown + used, sizeof(w->shown) - used, "%s%s", i ? " " : "", word);
	}
	return w->shown;
}

static __attribute__((unused)) uint32_t section_of(const struct world *w, const char *name)
{
	return elf_object_find_section(&w->o, name);
}

/* The word that the pointer or distance at this place of a section of data means; distances of
 * tables count from their start, `from_base` bytes in front of it. -1: none. */
static __attribute__((unused)) int entry_word(
	const struct world *w, const char *section, uint64_t offset, int64_t from_base)
{
	const struct object_section *os = &w->o.sections.v[section_of(w, section)];
	const struct object_reloc *r = reloc_in(os, offset, offset + 1);
	const struct object_symbol *s;

	if (!r)
		return -1;
	s = &w->o.symbols.v[r->symbol];
	return word_at(w, s->section, (int64_t)s->value + r->addend - from_base);
}

#endif
