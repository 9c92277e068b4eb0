/* SPDX-License-Identifier: MIT */
/* Objects with exception tables, made in memory; code that grows; and what is then in a section. */
#ifndef WEIR_TESTS_EXCEPTION_WORLD_H
#define WEIR_TESTS_EXCEPTION_WORLD_H

#include <elf.h>
#include <stdlib.h>

#include "check.h"
#include "insert/exception_tables.h"

/*
 * An object of this shape, its relocations made by hand:
 *	1 .text, 2 .eh_frame, 3 .gcc_except_table, 4 .text.unlikely, 5 .debug_frame
 * The symbols have the numbers of their sections; 6 is not defined; 7 is "middle", .text + 8.
 */
enum { TEXT = 1, EH = 2, LSDA = 3, COLD = 4, DEBUG = 5, OUTSIDE = 6, MIDDLE = 7 };
#define TEXT_BYTES 0x40

struct world {
	struct elf_object o;
	struct buf bytes[6];
	struct moved m;
	struct err err;
};

static inline void world_init(struct world *w)
{
	static const char *const names[] = {
		"", ".text", ".eh_frame", ".gcc_except_table", ".text.unlikely", ".debug_frame"};

	*w = (struct world){0};
	for (uint32_t i = 0; i < 6; i++) {
		struct object_section s = {
			.name = names[i], .type = i ? SHT_PROGBITS : SHT_NULL, .align = 8};

		if (i == TEXT || i == COLD)
			s.flags = SHF_ALLOC | SHF_EXECINSTR;
		vec_push(&w->o.sections, s);
		vec_push(&w->o.symbols,
			((struct object_symbol){.name = "", .type = STT_SECTION, .section = i}));
	}
	vec_push(&w->o.symbols, ((struct object_symbol){.name = "outside"}));
	vec_push(&w->o.symbols,
		((struct object_symbol){.name = "middle", .section = TEXT, .value = 8}));
	for (int i = 0; i < TEXT_BYTES; i++) {
		buf_put_u8(&w->bytes[TEXT], 0x90);
		buf_put_u8(&w->bytes[COLD], 0x90);
	}
	moved_init(&w->m, 6);
}

static inline void world_release(struct world *w)
{
	for (size_t i = 0; i < w->o.sections.n; i++) {
		buf_release(&w->o.sections.v[i].owned);
		vec_release(&w->o.sections.v[i].relocs);
		buf_release(&w->bytes[i]);
	}
	vec_release(&w->o.sections);
	vec_release(&w->o.symbols);
	moved_release(&w->m);
}

static inline void reloc(
	struct world *w, uint32_t section, uint32_t type, uint32_t symbol, int64_t addend)
{
	vec_push(&w->o.sections.v[section].relocs,
		((struct object_reloc){w->bytes[section].n, type, symbol, addend}));
}

/* Bytes as hexadecimal digits; blanks are for the eye. */
static inline void put(struct buf *b, const char *hex)
{
	unsigned byte;
	int n;

	while (sscanf(hex, " %2x%n", &byte, &n) == 1) {
		buf_put_u8(b, (uint8_t)byte);
		hex += n;
	}
}

static inline void world_close(struct world *w)
{
	for (size_t i = 1; i < w->o.sections.n; i++) {
		w->o.sections.v[i].data = buf_span(&w->bytes[i]);
		w->o.sections.v[i].size = w->bytes[i].n;
	}
}

static inline bool bytes_are(struct span have, const char *hex)
{
	struct buf want = {0};
	bool same;

	put(&want, hex);
	same = want.n == have.n && !memcmp(want.p, have.p, have.n);
	for (size_t i = 0; !same && i < have.n; i++)
		printf("%02x%s", have.p[i], i % 4 == 3 ? " " : "");
	if (!same)
		printf("\n");
	buf_release(&want);
	return same;
}

#define CHECK_SECTION(w, section, hex) CHECK(bytes_are((w)->o.sections.v[section].data, hex))

/* Augmentation "zR", pcrel sdata4: 24 bytes. With "zLR" it takes 24 too. */
#define CIE	 "14000000 00000000 01 7a5200 01 78 10 01 1b 0c0708 9001 0000"
#define CIE_LSDA "14000000 00000000 01 7a4c5200 01 78 10 02 1b 1b 0c0708 9001"

/* An FDE whose CIE lies at 0; `rest` is what follows the size of the range. */
static inline void put_fde(
	struct world *w, uint32_t text, int64_t start, uint32_t size, const char *rest)
{
	struct buf *b = &w->bytes[EH];
	size_t at = b->n;

	buf_put_u32(b, 0);
	buf_put_u32(b, (uint32_t)b->n);
	reloc(w, EH, R_X86_64_PC32, text, start);
	buf_put_u32(b, 0);
	buf_put_u32(b, size);
	put(b, rest);
	while (b->n % 4)
		buf_put_u8(b, 0);
	memcpy(b->p + at, &(uint32_t){(uint32_t)(b->n - at - 4)}, 4);
}

/* An FDE with an LSDA; needs CIE_LSDA. */
static inline void put_fde_lsda(
	struct world *w, uint32_t text, int64_t start, uint32_t size, int64_t lsda)
{
	struct buf *b = &w->bytes[EH];

	buf_put_u32(b, 20);
	buf_put_u32(b, (uint32_t)b->n);
	reloc(w, EH, R_X86_64_PC32, text, start);
	buf_put_u32(b, 0);
	buf_put_u32(b, size);
	buf_put_u8(b, 4);
	reloc(w, EH, R_X86_64_PC32, LSDA, lsda);
	buf_put_u32(b, 0);
	put(b, "000000");
}

/* `bytes` are put in front of the instruction at `old`; calls for a section come in rising order.
 */
static inline void grow(struct world *w, uint32_t section, uint64_t old, uint64_t bytes)
{
	uint64_t label = moved_label(&w->m, section, old);

	moved_add(&w->m, section, old, label, label + bytes);
}

static inline int move(struct world *w)
{
	w->err = (struct err){0};
	return exception_tables_move(&w->o, &w->m, &w->err);
}

static inline uint64_t reloc_at(const struct world *w, uint32_t section, size_t i)
{
	return w->o.sections.v[section].relocs.v[i].offset;
}

static inline void check_refused(struct world *w, const char *sentence)
{
	struct exception_tables t;

	world_close(w);
	CHECK(exception_tables_read(&t, &w->o, &w->err) < 0);
	CHECK_STR(w->err.text, sentence);
	grow(w, TEXT, 1, 5);
	CHECK(move(w) < 0);
	CHECK_STR(w->err.text, sentence);
	CHECK(w->o.sections.v[EH].data.p == w->bytes[EH].p && !moved_has(&w->m, EH));
}

#endif
