/* SPDX-License-Identifier: MIT */
/*
 * Debug information of code that has moved, from bytes. The code is 64 bytes of instructions of 4
 * bytes each, and 8 bytes are put in front of each: the label of offset 4 * i is 12 * i.
 */
#include <libdeflate.h>
#include <stdlib.h>

#include "check.h"
#include "insert/debug_move.h"

#define CODE_BYTES 64
#define TEXT	   1 /* the section of the code */

struct world {
	struct elf_object o;
	struct moved m;
	struct err err;
};

static uint32_t add_section(
	struct world *w, const char *name, uint64_t flags, const struct buf *data)
{
	uint32_t number = (uint32_t)w->o.sections.n;

	vec_push(&w->o.sections,
		((struct object_section){
			.name = name, .type = SHT_PROGBITS, .flags = flags, .align = 1}));
	vec_push(&w->o.symbols,
		((struct object_symbol){.name = "", .type = STT_SECTION, .section = number}));
	if (data)
		object_section_set(&w->o, number, buf_span(data));
	return number;
}

/* Symbol numbers are section numbers. */
static void add_reloc(
	struct world *w, uint32_t section, uint64_t offset, uint32_t to, int64_t addend)
{
	vec_push(&w->o.sections.v[section].relocs,
		((struct object_reloc){offset, R_X86_64_64, to, addend}));
}

static void begin(struct world *w)
{
	*w = (struct world){0};
	vec_push(&w->o.sections, ((struct object_section){.name = ""}));
	vec_push(&w->o.symbols, ((struct object_symbol){.name = ""}));
	CHECK_EQ(add_section(w, ".text", SHF_ALLOC | SHF_EXECINSTR, NULL), TEXT);
}

/* Moves everything; the code grows by `bytes` before each instruction. */
static int move(struct world *w, uint64_t bytes)
{
	moved_init(&w->m, w->o.sections.n);
	for (uint64_t i = 0; i <= CODE_BYTES / 4; i++)
		moved_add(&w->m, TEXT, 4 * i, (4 + bytes) * i, (4 + bytes) * i + bytes);
	return debug_move(&w->o, &w->m, NULL, &w->err);
}

static void end(struct world *w)
{
	for (size_t i = 0; i < w->o.sections.n; i++) {
		buf_release(&w->o.sections.v[i].owned);
		vec_release(&w->o.sections.v[i].relocs);
	}
	vec_release(&w->o.sections);
	vec_release(&w->o.symbols);
	moved_release(&w->m);
}

static void put_length(struct buf *b, size_t at)
{
	uint32_t n = (uint32_t)(b->n - at - 4);

	memcpy(b->p + at, &n, 4);
}

static uint64_t number_at(const struct world *w, uint32_t section, size_t at, size_t n)
{
	uint64_t v = 0;

	if (at + n <= w->o.sections.v[section].data.n)
		memcpy(&v, w->o.sections.v[section].data.p + at, n);
	return v;
}

/* Line programs. */

#define LINE_BASE	    (-5)
#define LINE_RANGE	    14
#define OPCODE_BASE	    13
#define SPECIAL(ops, lines) (uint8_t)((lines)-LINE_BASE + LINE_RANGE * (ops) + OPCODE_BASE)

/* A line table of DWARF 4 without files; returns where the address of its sequence is. */
static size_t put_line_table(struct buf *b, const uint8_t *program, size_t n)
{
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	size_t at = b->n, operand;

	buf_put_u32(b, 0);
	buf_put_u16(b, 4);
	buf_put_u32(b, 6 + sizeof(lengths) + 2);
	buf_put(b, (uint8_t[]){1, 1, 1, (uint8_t)LINE_BASE, LINE_RANGE, OPCODE_BASE}, 6);
	buf_put(b, lengths, sizeof(lengths));
	buf_put(b, "\0", 2);
	buf_put(b, "\0\x09\x02", 3);
	operand = b->n;
	buf_put_u64(b, 0);
	buf_put(b, program, n);
	put_length(b, at);
	return operand;
}

struct row {
	uint64_t addr;
	unsigned line, column;
};

/* The rows of the program [p, end): another reading of it, of the opcodes used here. */
static size_t run_program(struct span s, size_t from, uint64_t addr, struct row *rows, size_t max)
{
	struct cursor c = cursor_of(span_sub(s, from, s.n - from));
	unsigned line = 1, column = 0;
	size_t n = 0;

	while (cursor_left(&c) && n < max) {
		uint8_t op = cursor_u8(&c);

		if (op >= OPCODE_BASE) {
			addr += (op - OPCODE_BASE) / LINE_RANGE;
			line += (unsigned)(LINE_BASE + (op - OPCODE_BASE) % LINE_RANGE);
		} else if (op == 2) {
			addr += cursor_uleb(&c);
		} else if (op == 3) {
			line += (unsigned)cursor_sleb(&c);
		} else if (op == 5) {
			column = (unsigned)cursor_uleb(&c);
		} else if (op == 8) {
			addr += (255 - OPCODE_BASE) / LINE_RANGE;
		} else if (op == 9) {
			addr += cursor_u16(&c);
		} else if (op == 0) {
			uint64_t length = cursor_uleb(&c);
			bool is_end = cursor_u8(&c) == 1;

			cursor_skip(&c, length - 1);
			if (is_end) {
				rows[n++] = (struct row){addr, 0, 0};
				break;
			}
		}
		if (op == 1 || op >= OPCODE_BASE)
			rows[n++] = (struct row){addr, line, column};
	}
	return n;
}

/* Each way to advance; offsets 4, 12, 28, 32, 32, 52, 64. */
static const uint8_t program[] = {SPECIAL(4, 2), 5, 9, 2, 8, 1, 10, 3, 0xe3, 0, SPECIAL(16, -5), 9,
	4, 0, 0, 2, 4, 7, 1, SPECIAL(0, 3), 8, SPECIAL(3, 1), 2, 12, 0, 1, 1};

static void rows_move_with_their_code(void)
{
	static const uint64_t old[] = {4, 12, 28, 32, 32, 52, 64};
	struct row was[16], now[16];
	struct world w;
	struct buf b = {0};
	size_t operand = put_line_table(&b, program, sizeof(program)), n;
	uint32_t line;

	begin(&w);
	line = add_section(&w, ".debug_line", 0, &b);
	add_reloc(&w, line, operand, TEXT, 0);
	CHECK_EQ(run_program(buf_span(&b), operand + 8, 0, was, 16), 7);
	CHECK_EQ(move(&w, 8), 0);
	n = run_program(w.o.sections.v[line].data, operand + 8, 0, now, 16);
	CHECK_EQ(n, 7);
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(was[i].addr, old[i]);
		CHECK_EQ(now[i].addr, old[i] * 3);
		CHECK_EQ(now[i].line, was[i].line);
		CHECK_EQ(now[i].column, was[i].column);
	}
	CHECK_EQ(number_at(&w, line, 0, 4), w.o.sections.v[line].data.n - 4);
	end(&w);
	buf_release(&b);
}

static void code_in_place_keeps_the_bytes(void)
{
	struct world w;
	struct buf b = {0};
	size_t operand = put_line_table(&b, program, sizeof(program));
	uint32_t line;

	begin(&w);
	line = add_section(&w, ".debug_line", 0, &b);
	add_reloc(&w, line, operand, TEXT, 0);
	CHECK_EQ(move(&w, 0), 0);
	CHECK_EQ(w.o.sections.v[line].data.n, b.n);
	CHECK(!memcmp(w.o.sections.v[line].data.p, b.p, b.n));
	CHECK(!moved_has(&w.m, line));
	end(&w);
	buf_release(&b);
}

static void a_sequence_elsewhere_stays(void)
{
	struct world w;
	struct buf b = {0};
	size_t operand = put_line_table(&b, program, sizeof(program));
	uint32_t line, other;

	begin(&w);
	other = add_section(&w, ".text.other", SHF_ALLOC | SHF_EXECINSTR, NULL);
	line = add_section(&w, ".debug_line", 0, &b);
	add_reloc(&w, line, operand, other, 0);
	CHECK_EQ(move(&w, 8), 0);
	CHECK(!memcmp(w.o.sections.v[line].data.p, b.p, b.n));
	end(&w);
	buf_release(&b);
}

static void a_second_table_is_found_by_the_map(void)
{
	struct world w;
	struct buf b = {0};
	size_t first = put_line_table(&b, program, sizeof(program)), at = b.n;
	size_t second = put_line_table(&b, program, sizeof(program)), now;
	struct row rows[16];
	uint32_t line;

	begin(&w);
	line = add_section(&w, ".debug_line", 0, &b);
	add_reloc(&w, line, first, TEXT, 0);
	add_reloc(&w, line, second, TEXT, 4);
	CHECK_EQ(move(&w, 8), 0);
	now = (size_t)moved_label(&w.m, line, at);
	CHECK(now > at);
	CHECK_EQ(number_at(&w, line, now, 4), w.o.sections.v[line].data.n - now - 4);
	CHECK_EQ(w.o.sections.v[line].relocs.v[0].offset, first);
	CHECK_EQ(w.o.sections.v[line].relocs.v[1].offset, now + second - at);
	CHECK_EQ(run_program(w.o.sections.v[line].data, now + second - at + 8, 12, rows, 16), 7);
	CHECK_EQ(rows[0].addr, 24);
	end(&w);
	buf_release(&b);
}

/* Units with one kind of entry: abbreviation 1. */

struct info {
	struct buf abbrevs, info;
	size_t low; /* offset of the root's address */
};

/* A unit with a root that has an address (abbreviation 1); abbreviation 2 has the attributes given.
 */
static void begin_unit(struct info *i, uint16_t version, const uint8_t *attrs, size_t n)
{
	*i = (struct info){0};
	buf_put(&i->abbrevs, (uint8_t[]){1, 0x11, 1, 0x11, 1, 0, 0, 2, 0x2e, 0}, 10);
	buf_put(&i->abbrevs, attrs, n);
	buf_put(&i->abbrevs, "\0\0", 3);
	buf_put_u32(&i->info, 0);
	buf_put_u16(&i->info, version);
	if (version >= 5)
		buf_put(&i->info, "\x01\x08", 2);
	buf_put_u32(&i->info, 0);
	if (version < 5)
		buf_put_u8(&i->info, 8);
	buf_put_u8(&i->info, 1);
	i->low = i->info.n;
	buf_put_u64(&i->info, 0);
	buf_put_u8(&i->info, 2);
}

/* Adds the sections; .debug_info is the last one. */
static uint32_t end_unit(struct world *w, struct info *i)
{
	uint32_t number;

	buf_put_u8(&i->info, 0);
	put_length(&i->info, 0);
	add_section(w, ".debug_abbrev", 0, &i->abbrevs);
	number = add_section(w, ".debug_info", 0, &i->info);
	add_reloc(w, number, i->low, TEXT, 0);
	return number;
}

static void release_unit(struct info *i)
{
	buf_release(&i->abbrevs);
	buf_release(&i->info);
}

/* An entry at offset 4 with a high_pc of a form of n bytes (as in `value`), and an entry_pc of 4.
 */
static int move_high(uint8_t form, const void *value, size_t n, uint64_t *high, uint64_t *entry)
{
	struct world w;
	struct info i;
	size_t low, at;
	uint32_t number;
	int ret;

	begin(&w);
	begin_unit(&i, 5, (uint8_t[]){0x52, 0x0b, 0x11, 1, 0x12, form}, 6);
	buf_put_u8(&i.info, 4);
	low = i.info.n;
	buf_put_u64(&i.info, 0);
	at = i.info.n;
	buf_put(&i.info, value, n);
	number = end_unit(&w, &i);
	add_reloc(&w, number, low, TEXT, 4);
	ret = move(&w, 8);
	if (ret == 0) {
		*entry = number_at(&w, number, low - 1, 1);
		*high = number_at(&w, number, at, n);
	} else {
		CHECK(!memcmp(w.o.sections.v[number].data.p, i.info.p, i.info.n));
		CHECK(w.err.text[0]);
	}
	end(&w);
	release_unit(&i);
	return ret;
}

static void lengths_of_code_grow(void)
{
	static const uint8_t forms[] = {0x0b, 0x05, 0x06, 0x07}, sizes[] = {1, 2, 4, 8};
	uint64_t high, entry;

	for (int i = 0; i < 4; i++) {
		CHECK_EQ(move_high(forms[i], (uint8_t[8]){16}, sizes[i], &high, &entry), 0);
		CHECK_EQ(high, 48);
		CHECK_EQ(entry, 12);
	}
	/* 48 takes one byte, and 120 two. */
	CHECK_EQ(move_high(0x0f, (uint8_t[]){16}, 1, &high, &entry), 0);
	CHECK_EQ(high, 48);
	CHECK_EQ(move_high(0x0f, (uint8_t[]){0x80 | 40, 0}, 2, &high, &entry), 0);
	CHECK_EQ(high, 0x80 | 120);
	CHECK_EQ(move_high(0x0d, (uint8_t[]){0x80 | 40, 0}, 2, &high, &entry), 0);
	CHECK_EQ(high, 0x80 | 120);
}

static void lengths_of_unknown_forms_are_refused(void)
{
	uint64_t high, entry;

	CHECK(move_high(0x0e, (uint8_t[]){16, 0, 0, 0}, 4, &high, &entry) < 0); /* no such class */
	CHECK(move_high(0x7f, (uint8_t[]){16, 0, 0, 0}, 4, &high, &entry) < 0); /* no such form */
}

/* An entry with a length in a LEB128 number of one byte, which needs two, and a reference to the
 * null entry behind it, as a LEB128 number too; then an attribute of the form given, of a byte. */
static int grow_high(uint8_t form, struct buf *now, uint64_t *reloc)
{
	struct world w;
	struct info i;
	size_t low;
	uint32_t number;
	int ret;

	begin(&w);
	begin_unit(&i, 5, (uint8_t[]){0x12, 0x0f, 0x11, 1, 0x49, 0x15, 0x0b, form}, 8);
	buf_put_u8(&i.info, 60);
	low = i.info.n;
	buf_put_u64(&i.info, 0);
	buf_put_u8(&i.info, (uint8_t)low + 8 + 2);
	buf_put_u8(&i.info, 0);
	number = end_unit(&w, &i);
	add_reloc(&w, number, low, TEXT, 4);
	ret = move(&w, 8);
	buf_put(now, w.o.sections.v[number].data.p, w.o.sections.v[number].data.n);
	*reloc = w.o.sections.v[number].relocs.v[1].offset - low;
	CHECK_EQ(now->n - i.info.n, ret == 0);
	CHECK_EQ(number_at(&w, number, 0, 4), now->n - 4);
	end(&w);
	release_unit(&i);
	return ret;
}

static void numbers_of_the_assembler_may_get_longer(void)
{
	struct buf b = {0};
	uint64_t reloc;

	CHECK_EQ(grow_high(0x0b, &b, &reloc), 0);
	CHECK(!memcmp(b.p + b.n - 13, (const uint8_t[]){0x80 | (180 & 0x7f), 1}, 2));
	CHECK_EQ(b.p[b.n - 3], b.n - 1);
	CHECK_EQ(reloc, 1);
	buf_reset(&b);
	CHECK_EQ(grow_high(0x18, &b, &reloc), ERR_FORMAT); /* an expression */
	CHECK_EQ(reloc, 0);
	buf_release(&b);
}

static void a_byte_that_overflows_is_refused(void)
{
	struct world w;
	struct info i;
	uint32_t number;
	size_t low;

	begin(&w);
	begin_unit(&i, 4, (uint8_t[]){0x11, 1, 0x12, 0x0b}, 4);
	low = i.info.n;
	buf_put_u64(&i.info, 0);
	buf_put_u8(&i.info, 60);
	number = end_unit(&w, &i);
	add_reloc(&w, number, low, TEXT, 0);
	CHECK_EQ(move(&w, 16), ERR_FORMAT);
	CHECK_STR(w.err.text, ".debug_info+0x1d: a range has become too long for its form");
	end(&w);
	release_unit(&i);
}

/* A unit whose entry has the attribute with a section offset; adds the section of lists first. */
static uint32_t add_lists(struct world *w, struct info *i, const char *name, uint8_t attr,
	uint16_t version, const struct buf *lists, int64_t offset)
{
	uint32_t number, list;
	size_t at;

	begin_unit(i, version, (uint8_t[]){attr, 0x17}, 2);
	at = i->info.n;
	buf_put_u32(&i->info, 0);
	list = add_section(w, name, 0, lists);
	number = end_unit(w, i);
	add_reloc(w, number, at, list, offset);
	return list;
}

static void pairs_of_offsets_move_in_place(void)
{
	static const uint64_t pairs[] = {99, 99, 4, 12, UINT64_MAX, 0, 4, 8, 0, 0, 0, 0};
	struct world w;
	struct info i;
	struct buf b = {0};
	uint32_t list;

	begin(&w);
	buf_put(&b, pairs, sizeof(pairs));
	list = add_lists(&w, &i, ".debug_ranges", 0x55, 4, &b, 16);
	add_reloc(&w, list, 40, TEXT, 8); /* another base */
	add_reloc(&w, list, 64, TEXT, 8); /* a pair of addresses */
	add_reloc(&w, list, 72, TEXT, 16);
	CHECK_EQ(move(&w, 8), 0);
	CHECK_EQ(number_at(&w, list, 0, 8), 99); /* no part of a list */
	CHECK_EQ(number_at(&w, list, 16, 8), 12);
	CHECK_EQ(number_at(&w, list, 24, 8), 36);
	CHECK_EQ(number_at(&w, list, 32, 8), UINT64_MAX);
	CHECK_EQ(number_at(&w, list, 40, 8), 0);
	CHECK_EQ(number_at(&w, list, 48, 8), 12);
	CHECK_EQ(number_at(&w, list, 56, 8), 24);
	CHECK_EQ(number_at(&w, list, 64, 8), 0);
	end(&w);
	release_unit(&i);
	buf_release(&b);
}

static void locations_move_in_place(void)
{
	struct world w;
	struct info i;
	struct buf b = {0};
	uint32_t list;

	begin(&w);
	buf_put_u64(&b, 4);
	buf_put_u64(&b, 8);
	buf_put(&b, "\x03\0abc", 5);
	buf_put_u64(&b, 8);
	buf_put_u64(&b, 11); /* inside an instruction */
	buf_put(&b, "\0", 2);
	buf_put_u64(&b, 0);
	buf_put_u64(&b, 0);
	list = add_lists(&w, &i, ".debug_loc", 0x02, 4, &b, 0);
	CHECK_EQ(move(&w, 8), 0);
	CHECK_EQ(number_at(&w, list, 0, 8), 12);
	CHECK_EQ(number_at(&w, list, 8, 8), 24);
	CHECK_EQ(number_at(&w, list, 18, 3), 0x636261);
	CHECK_EQ(number_at(&w, list, 21, 8), 24);
	CHECK_EQ(number_at(&w, list, 29, 8), 24 + 8 + 3);
	end(&w);
	release_unit(&i);
	buf_release(&b);
}

static void lists_without_end_are_refused(void)
{
	static const uint64_t pairs[] = {4, 8, 0, 0, 4, 8};
	struct world w;
	struct info i;
	struct buf b = {0};

	buf_put(&b, pairs, sizeof(pairs));
	begin(&w);
	add_lists(&w, &i, ".debug_ranges", 0x55, 4, &b, 32);
	CHECK_EQ(move(&w, 8), ERR_FORMAT);
	CHECK_STR(w.err.text, ".debug_ranges+0x20: the list has no end");
	end(&w);
	release_unit(&i);
	buf_release(&b);
}

/* A unit with two lists, at the start of the section (of pairs, or of bytes of DWARF 5 behind a
 * header) and somewhere inside of that. */
static int move_two_lists(const char *name, uint16_t version, const struct buf *lists,
	int64_t first, int64_t second, struct err *err)
{
	struct world w;
	struct info i;
	int ret;

	begin(&w);
	begin_unit(&i, version, (uint8_t[]){0x55, 0x17, 0x02, 0x17}, 4);
	buf_put_u64(&i.info, 0);
	add_section(&w, name, 0, lists);
	end_unit(&w, &i);
	add_reloc(&w, 4, i.info.n - 9, 2, first);
	add_reloc(&w, 4, i.info.n - 5, 2, second);
	ret = move(&w, 8);
	*err = w.err;
	end(&w);
	release_unit(&i);
	return ret;
}

static void lists_may_share_their_end(void)
{
	static const uint64_t pairs[] = {4, 8, 8, 12, UINT64_MAX, 8, 4, 8, 0, 0};
	static const uint8_t bytes[] = {4, 4, 8, 4, 8, 12, 5, 8, 0, 0, 0, 0, 0, 0, 0, 4, 4, 8, 0};
	struct buf b = {0}, b5 = {0};
	struct err err;

	buf_put(&b, pairs, sizeof(pairs));
	CHECK_EQ(move_two_lists(".debug_ranges", 4, &b, 0, 16, &err), 0);
	CHECK_EQ(move_two_lists(".debug_ranges", 4, &b, 0, 32, &err), 0);
	/* Offsets there are relative to one base for the one, to another for the other. */
	CHECK_EQ(move_two_lists(".debug_ranges", 4, &b, 0, 48, &err), ERR_FORMAT);
	CHECK_STR(err.text, ".debug_ranges+0x30: lists overlap");
	CHECK_EQ(move_two_lists(".debug_ranges", 4, &b, 0, 17, &err), ERR_FORMAT);
	buf_put_u32(&b5, 0);
	buf_put(&b5, "\x05\0\x08\0\0\0\0", 8);
	buf_put(&b5, bytes, sizeof(bytes));
	put_length(&b5, 0);
	CHECK_EQ(move_two_lists(".debug_rnglists", 5, &b5, 12, 15, &err), 0);
	CHECK_EQ(move_two_lists(".debug_rnglists", 5, &b5, 12, 18, &err), 0);
	CHECK_EQ(move_two_lists(".debug_rnglists", 5, &b5, 12, 13, &err), ERR_FORMAT);
	CHECK_STR(err.text, ".debug_rnglists+0xd: lists overlap");
	CHECK_EQ(move_two_lists(".debug_rnglists", 5, &b5, 12, 27, &err), ERR_FORMAT);
	CHECK_STR(err.text, ".debug_rnglists+0x1b: lists overlap");
	buf_release(&b);
	buf_release(&b5);
}

static void put_lists_header(struct buf *b, uint32_t n_offsets)
{
	buf_put_u32(b, 0);
	buf_put(b, "\x05\0\x08\0", 4);
	buf_put_u32(b, n_offsets);
}

static void range_lists_are_laid_out_anew(void)
{
	/* The last number is 2 bytes into its instruction. */
	static const uint8_t offsets[] = {4, 4, 60}, moved_offsets[] = {4, 12, 0x80 | 52, 1};
	static const uint8_t rest[] = {50, 0, 0x55, 4, 0, 4, 0};
	static const uint8_t moved_rest[] = {0x80 | 26, 1, 0, 0x55, 4, 0, 4, 0};
	struct world w;
	struct info i;
	struct buf b = {0};
	const uint8_t *now;
	uint32_t list;

	begin(&w);
	put_lists_header(&b, 0);
	buf_put(&b, offsets, sizeof(offsets));
	buf_put_u8(&b, 7); /* address and length */
	buf_put_u64(&b, 0);
	buf_put(&b, rest, sizeof(rest)); /* behind the list something that is none */
	put_length(&b, 0);
	list = add_lists(&w, &i, ".debug_rnglists", 0x55, 5, &b, 12);
	add_reloc(&w, list, 16, TEXT, 8);
	CHECK_EQ(move(&w, 8), 0);
	now = w.o.sections.v[list].data.p;
	CHECK_EQ(w.o.sections.v[list].data.n, b.n + 2);
	CHECK_EQ(number_at(&w, list, 0, 4), b.n + 2 - 4);
	CHECK(!memcmp(now + 12, moved_offsets, sizeof(moved_offsets)));
	CHECK_EQ(w.o.sections.v[list].relocs.v[0].offset, 17);
	CHECK(!memcmp(now + 25, moved_rest, sizeof(moved_rest)));
	CHECK_EQ(moved_label(&w.m, list, 12), 12);
	CHECK_EQ(moved_label(&w.m, list, 26), 28);
	end(&w);
	release_unit(&i);
	buf_release(&b);
}

/* A unit with addresses of its own and tables of lists, as clang writes it. */
static void location_lists_by_table_and_index_move(void)
{
	struct world w;
	struct info i = {0};
	struct buf b = {0}, addrs = {0};
	uint32_t list, addr, number;

	begin(&w);
	buf_put(&i.abbrevs, (uint8_t[]){1, 0x11, 0, 0x11, 0x1b, 0x73, 0x17, 0x8c, 1, 0x17, 0, 0, 0},
		13);
	buf_put_u32(&i.info, 0);
	buf_put(&i.info, "\x05\0\x01\x08\0\0\0\0\x01\x00", 10); /* low_pc: index 0 */
	buf_put_u64(&i.info, 0);
	put_length(&i.info, 0);
	buf_put_u64(&addrs, 0); /* header */
	buf_put_u64(&addrs, 0);
	buf_put_u64(&addrs, 0);
	put_lists_header(&b, 2);
	buf_put_u32(&b, 8); /* two lists */
	buf_put_u32(&b, 8 + 11);
	buf_put(&b, (uint8_t[]){9, 1, 2, 4, 4, 60, 3, 'a', 'b', 'c', 0}, 11); /* views, offsets */
	buf_put(&b, (uint8_t[]){1, 1, 4, 0, 4, 9, 3, 0, 0, 0, 0, 0, 0, 0, 0},
		15);						/* base 1; DW_OP_addr */
	buf_put(&b, (uint8_t[]){3, 1, 52, 0, 5, 1, 'd', 0}, 8); /* index 1 and length; default */
	put_length(&b, 0);
	add_section(&w, ".debug_abbrev", 0, &i.abbrevs);
	list = add_section(&w, ".debug_loclists", 0, &b);
	addr = add_section(&w, ".debug_addr", 0, &addrs);
	number = add_section(&w, ".debug_info", 0, &i.info);
	add_reloc(&w, number, 14, addr, 8);
	add_reloc(&w, number, 18, list, 12);
	add_reloc(&w, addr, 8, TEXT, 0);
	add_reloc(&w, addr, 16, TEXT, 8);
	add_reloc(&w, list, 38, TEXT, 4);
	CHECK_EQ(move(&w, 8), 0);
	CHECK_EQ(number_at(&w, list, 0, 4), b.n + 2 - 4);
	CHECK_EQ(number_at(&w, list, 12, 4), 8);
	CHECK_EQ(number_at(&w, list, 16, 4), 8 + 12);
	CHECK(!memcmp(w.o.sections.v[list].data.p + 20,
		(const uint8_t[]){
			9, 1, 2, 4, 12, 0x80 | 52, 1, 3, 'a', 'b', 'c', 0, 1, 1, 4, 0, 12, 9, 3},
		19));
	CHECK_EQ(w.o.sections.v[list].relocs.v[0].offset, 39);
	CHECK(!memcmp(w.o.sections.v[list].data.p + 47,
		(const uint8_t[]){3, 1, 0x80 | 28, 1, 0, 5, 1, 'd', 0}, 9));
	end(&w);
	release_unit(&i);
	buf_release(&b);
	buf_release(&addrs);
}

static void lengths_in_aranges_grow(void)
{
	struct world w;
	struct buf b = {0};
	uint32_t number;

	begin(&w);
	buf_put_u32(&b, 0);
	buf_put(&b, "\x02\0\0\0\0\0\x08\0\0\0\0", 12);
	buf_put_u64(&b, 0);
	buf_put_u64(&b, 20);
	buf_put_u64(&b, 0);
	buf_put_u64(&b, 0);
	put_length(&b, 0);
	number = add_section(&w, ".debug_aranges", 0, &b);
	add_reloc(&w, number, 16, TEXT, 4);
	CHECK_EQ(move(&w, 8), 0);
	CHECK_EQ(number_at(&w, number, 24, 8), 60);
	CHECK_EQ(number_at(&w, number, 40, 8), 0);
	end(&w);
	buf_release(&b);
}

static void compressed_sections_become_plain(void)
{
	struct libdeflate_compressor *z = libdeflate_alloc_compressor(6);
	struct world w;
	struct buf b = {0}, packed = {0};
	size_t operand = put_line_table(&b, program, sizeof(program));
	uint8_t bytes[512];
	struct row rows[16];
	uint32_t line;

	begin(&w);
	buf_put_u32(&packed, ELFCOMPRESS_ZLIB);
	buf_put_u32(&packed, 0);
	buf_put_u64(&packed, b.n);
	buf_put_u64(&packed, 1);
	buf_put(&packed, bytes, libdeflate_zlib_compress(z, b.p, b.n, bytes, sizeof(bytes)));
	line = add_section(&w, ".debug_line", SHF_COMPRESSED, &packed);
	w.o.sections.v[line].align = 8;
	add_reloc(&w, line, operand, TEXT, 0);
	CHECK_EQ(move(&w, 8), 0);
	CHECK_EQ(w.o.sections.v[line].flags, 0);
	CHECK_EQ(w.o.sections.v[line].align, 1);
	CHECK_EQ(run_program(w.o.sections.v[line].data, operand + 8, 0, rows, 16), 7);
	CHECK_EQ(rows[6].addr, 192);
	end(&w);
	buf_release(&b);
	buf_release(&packed);
	libdeflate_free_compressor(z);
}

static void what_is_not_understood_changes_nothing(void)
{
	struct world w;
	struct buf b = {0}, odd = {0};
	size_t operand = put_line_table(&b, program, sizeof(program));
	uint32_t line;

	begin(&w);
	line = add_section(&w, ".debug_line", 0, &b);
	add_reloc(&w, line, operand, TEXT, 0);
	buf_put_u32(&odd, 0);
	buf_put(&odd, "\x06\0\0\0\0\0", 6);
	put_length(&odd, 0);
	add_section(&w, ".debug_info", 0, &odd);
	CHECK_EQ(move(&w, 8), ERR_FORMAT);
	CHECK_STR(w.err.text, ".debug_info+0x4: the version of the unit is not known");
	CHECK_EQ(w.o.sections.v[line].data.n, b.n);
	CHECK(!memcmp(w.o.sections.v[line].data.p, b.p, b.n));
	CHECK(!moved_has(&w.m, line));
	end(&w);
	begin(&w);
	b.p[4] = 9; /* the version of the line table */
	add_section(&w, ".debug_line", 0, &b);
	CHECK_EQ(move(&w, 8), ERR_FORMAT);
	CHECK_STR(w.err.text, ".debug_line+0x4: the version of the line table is not known");
	end(&w);
	buf_release(&b);
	buf_release(&odd);
}

int main(void)
{
	static const struct test tests[] = {
		{"rows of a line program move with their code", rows_move_with_their_code},
		{"code that stays in place keeps the bytes of its line program",
			code_in_place_keeps_the_bytes},
		{"a sequence of another section stays as it is", a_sequence_elsewhere_stays},
		{"a second line table is found by the map of the section",
			a_second_table_is_found_by_the_map},
		{"lengths of code grow in place", lengths_of_code_grow},
		{"lengths of unknown forms are refused", lengths_of_unknown_forms_are_refused},
		{"a number gets longer only where there are no expressions",
			numbers_of_the_assembler_may_get_longer},
		{"a length of one byte that overflows is refused with its place",
			a_byte_that_overflows_is_refused},
		{"pairs of offsets move in place, pairs of addresses stay",
			pairs_of_offsets_move_in_place},
		{"location lists of DWARF 4 move in place", locations_move_in_place},
		{"lists without end are refused", lists_without_end_are_refused},
		{"lists may share their end when it means the same to both",
			lists_may_share_their_end},
		{"range lists of DWARF 5 are laid out anew", range_lists_are_laid_out_anew},
		{"location lists found by table, and addresses by index, move",
			location_lists_by_table_and_index_move},
		{"lengths in .debug_aranges grow", lengths_in_aranges_grow},
		{"compressed sections that change become plain", compressed_sections_become_plain},
		{"what is not understood changes nothing", what_is_not_understood_changes_nothing},
	};

	return RUN_TESTS(tests);
}
