/* SPDX-License-Identifier: MIT */
#include "dwarf/cfi_table.h"

#include "cfi_maker.h"
#include "check.h"
#include "dwarf/cfi_rule.h"

static const struct cfi_rule *rule_at(const struct cfi_table *t, uint64_t addr)
{
	return cfi_table_find(t, (struct iaddr){addr});
}

/* The place of a register, or one with CFI_HOW_UNSET. */
static struct cfi_place place_of(const struct cfi_rule *rule, enum cpu_reg reg)
{
	for (int i = 0; rule && i < rule->n_places; i++)
		if (rule->places[i].reg == reg)
			return rule->places[i];
	return (struct cfi_place){0};
}

#define CHECK_CFA(table, addr, reg, value)                                                         \
	do {                                                                                       \
		const struct cfi_rule *r_ = rule_at(table, addr);                                  \
		CHECK(r_);                                                                         \
		if (r_) {                                                                          \
			CHECK_EQ(r_->cfa_reg, reg);                                                \
			CHECK_EQ(r_->cfa_value, value);                                            \
		}                                                                                  \
	} while (0)

#define CHECK_PLACE(table, addr, register_, how_, value_)                                          \
	do {                                                                                       \
		struct cfi_place p_ = place_of(rule_at(table, addr), register_);                   \
		CHECK_EQ(p_.how, how_);                                                            \
		CHECK_EQ(p_.value, value_);                                                        \
	} while (0)

/* push rbp; mov rbp, rsp; ...; pop rbp; ret */
static const uint8_t usual_bytes[] = {ADVANCE(1), DEF_CFA_OFFSET(16), OFFSET(6, 2), ADVANCE(3),
	DEF_CFA_REGISTER(6), ADVANCE(40), DEF_CFA(7, 8)};
static const struct span usual_program = {usual_bytes, sizeof(usual_bytes)};

static void rows_of_a_usual_function(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct cfi_table *t;

	cfi_maker_fde(&m, cie, CODE_ADDR + 0x100, 0x30, usual_program, true);
	t = cfi_maker_table(&m);
	CHECK(!rule_at(t, CODE_ADDR + 0xff));
	CHECK_CFA(t, CODE_ADDR + 0x100, CPU_REG_RSP, 8);
	CHECK_PLACE(t, CODE_ADDR + 0x100, CPU_REG_RIP, CFI_HOW_AT_OFFSET, -8);
	CHECK_PLACE(t, CODE_ADDR + 0x100, CPU_REG_RBP, CFI_HOW_UNSET, 0);
	CHECK_CFA(t, CODE_ADDR + 0x101, CPU_REG_RSP, 16);
	CHECK_PLACE(t, CODE_ADDR + 0x103, CPU_REG_RBP, CFI_HOW_AT_OFFSET, -16);
	CHECK_CFA(t, CODE_ADDR + 0x103, CPU_REG_RSP, 16);
	CHECK_CFA(t, CODE_ADDR + 0x104, CPU_REG_RBP, 16);
	CHECK_CFA(t, CODE_ADDR + 0x12b, CPU_REG_RBP, 16);
	CHECK_CFA(t, CODE_ADDR + 0x12c, CPU_REG_RSP, 8);
	CHECK_CFA(t, CODE_ADDR + 0x12f, CPU_REG_RSP, 8);
	CHECK(!rule_at(t, CODE_ADDR + 0x130));
	CHECK(!rule_at(t, 0));
	CHECK(!rule_at(t, UINT64_MAX));
	cfi_table_free(t);
}

static void i386_registers_have_other_numbers(void)
{
	struct cfi_maker m = cfi_maker_eh(false);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct cfi_table *t;

	cfi_maker_fde(&m, cie, CODE_ADDR, 16,
		PROGRAM(ADVANCE(1), DEF_CFA_OFFSET(8), OFFSET(5, 2), ADVANCE(2),
			DEF_CFA_REGISTER(5), OFFSET(3, 3), OFFSET(6, 4), OFFSET(7, 5), OFFSET(1, 6),
			OFFSET(2, 7)),
		true);
	t = cfi_maker_table(&m);
	CHECK_CFA(t, CODE_ADDR, CPU_REG_RSP, 4);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_RIP, CFI_HOW_AT_OFFSET, -4);
	CHECK_CFA(t, CODE_ADDR + 3, CPU_REG_RBP, 8);
	CHECK_PLACE(t, CODE_ADDR + 3, CPU_REG_RBP, CFI_HOW_AT_OFFSET, -8);
	CHECK_PLACE(t, CODE_ADDR + 3, CPU_REG_RBX, CFI_HOW_AT_OFFSET, -12);
	CHECK_PLACE(t, CODE_ADDR + 3, CPU_REG_RSI, CFI_HOW_AT_OFFSET, -16);
	CHECK_PLACE(t, CODE_ADDR + 3, CPU_REG_RDI, CFI_HOW_AT_OFFSET, -20);
	CHECK_PLACE(t, CODE_ADDR + 3, CPU_REG_RCX, CFI_HOW_AT_OFFSET, -24);
	CHECK_PLACE(t, CODE_ADDR + 3, CPU_REG_RDX, CFI_HOW_AT_OFFSET, -28);
	cfi_table_free(t);
}

static void holes_and_bounds(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct iaddr start = {0};
	uint64_t size = 0;
	struct cfi_table *t;

	/* Out of order, adjacent, and with a hole. */
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x200, 0x20, usual_program, true);
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x100, 0x10, PROGRAM(0), true);
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x110, 0x10, PROGRAM(0), true);
	t = cfi_maker_table(&m);
	CHECK(rule_at(t, CODE_ADDR + 0x11f));
	CHECK(!rule_at(t, CODE_ADDR + 0x120));
	CHECK(!rule_at(t, CODE_ADDR + 0x1ff));
	CHECK(rule_at(t, CODE_ADDR + 0x200));
	CHECK(cfi_table_function_at(t, (struct iaddr){CODE_ADDR + 0x115}, &start, &size));
	CHECK_EQ(start.v, CODE_ADDR + 0x110);
	CHECK_EQ(size, 0x10);
	CHECK(!cfi_table_function_at(t, (struct iaddr){CODE_ADDR + 0x120}, &start, &size));
	CHECK(!cfi_table_function_at(t, (struct iaddr){CODE_ADDR + 0xff}, &start, &size));
	CHECK(!cfi_table_function_at(t, (struct iaddr){CODE_ADDR + 0x230}, &start, &size));
	CHECK_EQ(cfi_table_stats(t).n_fdes, 3);
	cfi_table_free(t);
}

static void equal_rules_are_shared(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct cfi_stats stats;
	struct cfi_table *t;

	for (unsigned i = 0; i < 10; i++)
		cfi_maker_fde(&m, cie, CODE_ADDR + i * 0x40, 0x30, usual_program, true);
	t = cfi_maker_table(&m);
	stats = cfi_table_stats(t);
	CHECK_EQ(stats.n_rules, 4);
	CHECK_EQ(stats.n_rows, 10 * 5); /* four rows and a hole each */
	CHECK_EQ(rule_at(t, CODE_ADDR + 4) - rule_at(t, CODE_ADDR + 0x44), 0);
	CHECK_EQ(stats.n_fdes_skipped, 0);
	cfi_table_free(t);

	/* Neighbours with the same rule are one row. */
	m = cfi_maker_eh(true);
	cie = cfi_maker_usual_cie(&m, "zR");
	for (unsigned i = 0; i < 10; i++)
		cfi_maker_fde(&m, cie, CODE_ADDR + i * 0x40, 0x40, PROGRAM(0), true);
	t = cfi_maker_table(&m);
	CHECK_EQ(cfi_table_stats(t).n_rows, 2);
	CHECK_EQ(cfi_table_stats(t).n_fdes, 10);
	cfi_table_free(t);
}

static void overlapping_fdes(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct cfi_table *t;

	cfi_maker_fde(&m, cie, CODE_ADDR, 0x20, PROGRAM(DEF_CFA_OFFSET(32)), true);
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x10, 0x20,
		PROGRAM(DEF_CFA_OFFSET(48), ADVANCE(4), DEF_CFA_OFFSET(56)), true);
	t = cfi_maker_table(&m);
	CHECK_CFA(t, CODE_ADDR + 0x1f, CPU_REG_RSP, 32);
	CHECK_CFA(t, CODE_ADDR + 0x20, CPU_REG_RSP, 56);
	CHECK_CFA(t, CODE_ADDR + 0x2f, CPU_REG_RSP, 56);
	CHECK(!rule_at(t, CODE_ADDR + 0x30));
	cfi_table_free(t);
}

static void every_advance(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct buf p = {0};
	size_t body;
	struct cfi_table *t;

	buf_put(&p, (uint8_t[]){ADVANCE(0x3f), DEF_CFA_OFFSET(16)}, 3);
	buf_put(&p, (uint8_t[]){0x02, 0xff, DEF_CFA_OFFSET(24)}, 4);
	buf_put(&p, (uint8_t[]){0x03, 0x34, 0x12, DEF_CFA_OFFSET(32)}, 5);
	buf_put(&p, (uint8_t[]){0x04, 1, 0x20, 0, 0, DEF_CFA_OFFSET(40)}, 7);
	buf_put(&p, (uint8_t[]){0x1d, 1, 0, 0, 0, 0, 0, 0, 0, DEF_CFA_OFFSET(48)}, 11);
	/* An FDE by hand, since DW_CFA_set_loc is relative to where it stands. */
	body = cfi_maker_begin(&m);
	buf_put_u32(&m.bytes, (uint32_t)(m.bytes.n - cie));
	cfi_maker_pointer(&m, 0x1b, CODE_ADDR);
	buf_put_u32(&m.bytes, 0x8000);
	buf_put_u8(&m.bytes, 0);
	buf_put(&m.bytes, p.p, p.n);
	buf_put_u8(&m.bytes, 0x01);
	cfi_maker_pointer(&m, 0x1b, CODE_ADDR + 0x7000);
	buf_put(&m.bytes, (uint8_t[]){DEF_CFA_OFFSET(56)}, 2);
	cfi_maker_end(&m, body);
	t = cfi_maker_table(&m);
	buf_release(&p);
	CHECK_EQ(cfi_table_stats(t).n_fdes_skipped, 0);
	CHECK_CFA(t, CODE_ADDR + 0x3e, CPU_REG_RSP, 8);
	CHECK_CFA(t, CODE_ADDR + 0x3f, CPU_REG_RSP, 16);
	CHECK_CFA(t, CODE_ADDR + 0x13d, CPU_REG_RSP, 16);
	CHECK_CFA(t, CODE_ADDR + 0x13e, CPU_REG_RSP, 24);
	CHECK_CFA(t, CODE_ADDR + 0x1371, CPU_REG_RSP, 24);
	CHECK_CFA(t, CODE_ADDR + 0x1372, CPU_REG_RSP, 32);
	CHECK_CFA(t, CODE_ADDR + 0x3372, CPU_REG_RSP, 32);
	CHECK_CFA(t, CODE_ADDR + 0x3373, CPU_REG_RSP, 40);
	CHECK_CFA(t, CODE_ADDR + 0x3374, CPU_REG_RSP, 48);
	CHECK_CFA(t, CODE_ADDR + 0x6fff, CPU_REG_RSP, 48);
	CHECK_CFA(t, CODE_ADDR + 0x7000, CPU_REG_RSP, 56);
	cfi_table_free(t);
}

static void remembered_states(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct cfi_table *t;

	cfi_maker_fde(&m, cie, CODE_ADDR, 16,
		PROGRAM(DEF_CFA_OFFSET(16), OFFSET(3, 2), 0x0a, ADVANCE(1), RESTORE(3),
			DEF_CFA_OFFSET(8), 0x0a, ADVANCE(1), DEF_CFA(6, 24), ADVANCE(1), 0x0b,
			ADVANCE(1), 0x0b),
		true);
	t = cfi_maker_table(&m);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_RBX, CFI_HOW_AT_OFFSET, -16);
	CHECK_CFA(t, CODE_ADDR + 1, CPU_REG_RSP, 8);
	CHECK_PLACE(t, CODE_ADDR + 1, CPU_REG_RBX, CFI_HOW_UNSET, 0);
	CHECK_CFA(t, CODE_ADDR + 2, CPU_REG_RBP, 24);
	CHECK_CFA(t, CODE_ADDR + 3, CPU_REG_RSP, 8);
	CHECK_CFA(t, CODE_ADDR + 4, CPU_REG_RSP, 16);
	CHECK_PLACE(t, CODE_ADDR + 4, CPU_REG_RBX, CFI_HOW_AT_OFFSET, -16);
	cfi_table_free(t);
}

static void every_register_rule(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t cie = cfi_maker_usual_cie(&m, "zR");
	struct span e;
	struct cfi_place p;
	struct cfi_table *t;

	cfi_maker_fde(&m, cie, CODE_ADDR, 16,
		PROGRAM(0x05, 3, 0x82, 0x01,	    /* offset_extended rbx, 130 */
			0x11, 12, 0x7e,		    /* offset_extended_sf r12, -2 */
			0x2f, 13, 3,		    /* GNU_negative_offset_extended r13, 3 */
			0x14, 14, 2,		    /* val_offset r14, 2 */
			0x15, 15, 0x7f,		    /* val_offset_sf r15, -1 */
			0x09, 0, 1,		    /* register rax in rdx */
			0x07, 2,		    /* undefined rcx */
			0x08, 4,		    /* same_value rsi */
			0x10, 5, 2, 0x77, 0x10,	    /* expression rdi: breg7 16 */
			0x16, 7, 2, 0x76, 0x08,	    /* val_expression rsp: breg6 8 */
			0x2e, 0x20,		    /* GNU_args_size */
			OFFSET(33, 2),		    /* a vector register: not followed */
			ADVANCE(1), 0x06, 3,	    /* restore_extended rbx */
			0x12, 6, 0x7d,		    /* def_cfa_sf rbp, -3 */
			ADVANCE(1), 0x13, 0x7c,	    /* def_cfa_offset_sf -4 */
			ADVANCE(1), 0x0f, 1, 0x37), /* def_cfa_expression lit7 */
		true);
	t = cfi_maker_table(&m);
	CHECK_EQ(cfi_table_stats(t).n_fdes_skipped, 0);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_RBX, CFI_HOW_AT_OFFSET, -1040);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_R12, CFI_HOW_AT_OFFSET, 16);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_R13, CFI_HOW_AT_OFFSET, 24);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_R14, CFI_HOW_IS_OFFSET, -16);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_R15, CFI_HOW_IS_OFFSET, 8);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_RAX, CFI_HOW_REGISTER, CPU_REG_RDX);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_RCX, CFI_HOW_UNDEFINED, 0);
	CHECK_PLACE(t, CODE_ADDR, CPU_REG_RSI, CFI_HOW_UNSET, 0);
	p = place_of(rule_at(t, CODE_ADDR), CPU_REG_RDI);
	CHECK_EQ(p.how, CFI_HOW_AT_EXPR);
	e = cfi_table_expression(t, p.value);
	CHECK(e.n == 2 && e.p[0] == 0x77 && e.p[1] == 0x10);
	CHECK_EQ(place_of(rule_at(t, CODE_ADDR), CPU_REG_RSP).how, CFI_HOW_IS_EXPR);
	CHECK(rule_at(t, CODE_ADDR)->flags & CFI_RULE_NEW_STACK);
	CHECK(!(rule_at(t, CODE_ADDR)->flags & CFI_RULE_PLAIN));
	CHECK_PLACE(t, CODE_ADDR + 1, CPU_REG_RBX, CFI_HOW_UNSET, 0);
	CHECK_CFA(t, CODE_ADDR + 1, CPU_REG_RBP, 24);
	CHECK_CFA(t, CODE_ADDR + 2, CPU_REG_RBP, 32);
	CHECK_EQ(rule_at(t, CODE_ADDR + 3)->cfa_reg, CFI_CFA_EXPR);
	e = cfi_table_expression(t, rule_at(t, CODE_ADDR + 3)->cfa_value);
	CHECK(e.n == 1 && e.p[0] == 0x37);
	CHECK_EQ(cfi_table_expression(t, -1).n, 0);
	CHECK_EQ(cfi_table_expression(t, 99).n, 0);
	cfi_table_free(t);
}

static void signal_and_outermost_frames(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	size_t signal = cfi_maker_usual_cie(&m, "zRS"), usual = cfi_maker_usual_cie(&m, "zR");
	struct cfi_table *t;

	cfi_maker_fde(&m, signal, CODE_ADDR, 8, PROGRAM(0), true);
	cfi_maker_fde(&m, usual, CODE_ADDR + 8, 8, PROGRAM(UNDEFINED(16)), true);
	cfi_maker_fde(&m, usual, CODE_ADDR + 16, 8, PROGRAM(0), true);
	t = cfi_maker_table(&m);
	CHECK_EQ(rule_at(t, CODE_ADDR)->flags, CFI_RULE_SIGNAL | CFI_RULE_PLAIN);
	CHECK_EQ(rule_at(t, CODE_ADDR + 8)->flags, CFI_RULE_OUTERMOST);
	CHECK_EQ(rule_at(t, CODE_ADDR + 16)->flags, CFI_RULE_PLAIN);
	cfi_table_free(t);
}

static void pointer_encodings(void)
{
	static const uint8_t encodings[] = {
		0x00, 0x03, 0x04, 0x0b, 0x0c, 0x10, 0x13, 0x14, 0x1b, 0x1c};

	for (int is_64 = 0; is_64 < 2; is_64++) {
		for (size_t i = 0; i < sizeof(encodings); i++) {
			struct cfi_maker m = cfi_maker_eh(is_64);
			struct cfi_table *t;

			if (is_64 && encodings[i] == 0x13)
				continue; /* the code lies below the frames */
			m.encoding = encodings[i];
			cfi_maker_fde(&m, cfi_maker_usual_cie(&m, "zR"), CODE_ADDR + 0x40, 0x20,
				PROGRAM(0), true);
			t = cfi_maker_table(&m);
			CHECK(rule_at(t, CODE_ADDR + 0x40) && rule_at(t, CODE_ADDR + 0x5f));
			CHECK(!rule_at(t, CODE_ADDR + 0x60) && !rule_at(t, CODE_ADDR + 0x3f));
			if (check_failures)
				printf("encoding %#x, %d bits\n", encodings[i], is_64 ? 64 : 32);
			cfi_table_free(t);
		}
	}
}

/* The frames' pointers count from .got, as on i386 with DW_EH_PE_datarel; 2-byte offsets. */
static void pointers_relative_to_data(void)
{
	static const uint8_t encodings[] = {0x32, 0x3a, 0x3b};

	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct cfi_maker m = cfi_maker_eh(false);
		struct cfi_image image;
		struct cfi_table *t;

		m.encoding = encodings[i];
		cfi_maker_fde(&m, cfi_maker_usual_cie(&m, "zR"), 0x40, 0x20, PROGRAM(0), true);
		cfi_image_init(&image, false, buf_span(&m.bytes), (struct span){NULL, 0});
		elf_maker_section(
			&image.maker, ".got.plt", SHT_PROGBITS, CODE_ADDR, PROGRAM(0, 0, 0, 0));
		CHECK_EQ(cfi_image_finish(&image), 0);
		t = cfi_table_new(&image.elf);
		CHECK(rule_at(t, CODE_ADDR + 0x40) && !rule_at(t, CODE_ADDR + 0x60));
		cfi_table_free(t);
		cfi_image_release(&image);
		buf_release(&m.bytes);
	}
}

static void augmentations_and_versions(void)
{
	static const char *const letters[] = {"", "zR", "zPLR", "zRS", "zPR", "zLR", "eh", "zRB?"};
	static const uint8_t versions[] = {1, 3, 4};

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		for (size_t v = 0; v < sizeof(versions); v++) {
			struct cfi_maker m = cfi_maker_eh(true);
			struct cfi_table *t;

			m.version = versions[v];
			cfi_maker_fde(&m, cfi_maker_usual_cie(&m, letters[i]), CODE_ADDR, 0x30,
				usual_program, letters[i][0] == 'z');
			t = cfi_maker_table(&m);
			CHECK_CFA(t, CODE_ADDR + 4, CPU_REG_RBP, 16);
			if (check_failures)
				printf("augmentation '%s', version %d\n", letters[i], versions[v]);
			cfi_table_free(t);
		}
	}
}

static void what_is_not_understood(void)
{
	static const uint8_t unknown_op[] = {0x2d}, stray_restore[] = {0x0b};
	struct cfi_maker m = cfi_maker_eh(true);
	size_t good = cfi_maker_usual_cie(&m, "zR"), strange, future;
	struct cfi_table *t;

	strange = cfi_maker_usual_cie(&m, "armcc+");
	m.version = 9;
	future = cfi_maker_usual_cie(&m, "zR");
	cfi_maker_fde(&m, good, CODE_ADDR, 0x10, (struct span){unknown_op, 1}, true);
	cfi_maker_fde(&m, good, CODE_ADDR + 0x10, 0x10, (struct span){stray_restore, 1}, true);
	/* Padding would complete the cut instruction: 4 + 4 + 4 + 1 bytes and 3 of program. */
	cfi_maker_fde(&m, good, CODE_ADDR + 0x20, 0x10, PROGRAM(0, 0x0c, 7), true);
	cfi_maker_fde(&m, strange, CODE_ADDR + 0x30, 0x10, PROGRAM(0), false);
	cfi_maker_fde(&m, future, CODE_ADDR + 0x40, 0x10, PROGRAM(0), true);
	cfi_maker_fde(&m, good + 4, CODE_ADDR + 0x50, 0x10, PROGRAM(0), true);
	cfi_maker_fde(&m, good, CODE_ADDR + 0x60, 0x10, usual_program, true);
	t = cfi_maker_table(&m);
	for (unsigned i = 0; i < 0x60; i += 0x10)
		CHECK(!rule_at(t, CODE_ADDR + i));
	CHECK_CFA(t, CODE_ADDR + 0x60, CPU_REG_RSP, 8);
	CHECK_EQ(cfi_table_stats(t).n_fdes_skipped, 6);
	CHECK_EQ(cfi_table_stats(t).n_fdes, 1);
	cfi_table_free(t);
}

static void terminators_and_long_lengths(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	struct cfi_table *t;

	cfi_maker_fde(&m, cfi_maker_usual_cie(&m, "zR"), CODE_ADDR, 0x10, PROGRAM(0), true);
	buf_put_u32(&m.bytes, 0);
	m.wide = true;
	cfi_maker_fde(&m, cfi_maker_usual_cie(&m, "zR"), CODE_ADDR + 0x20, 0x10, PROGRAM(0), true);
	buf_put_u32(&m.bytes, 0);
	t = cfi_maker_table(&m);
	CHECK(rule_at(t, CODE_ADDR) && rule_at(t, CODE_ADDR + 0x20));
	CHECK_EQ(cfi_table_stats(t).n_fdes_skipped, 0);
	cfi_table_free(t);
}

static void stale_and_far_fdes(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	struct cfi_image image;
	struct cfi_table *t;
	size_t cie;

	m.encoding = 0x04;
	cie = cfi_maker_usual_cie(&m, "zR");
	cfi_maker_fde(&m, cie, 0, 0x10, PROGRAM(0), true);
	cfi_maker_fde(&m, cie, CODE_ADDR, 0, PROGRAM(0), true);
	cfi_maker_fde(&m, cie, CODE_ADDR, 0x10, PROGRAM(0), true);
	cfi_maker_fde(&m, cie, 0x200000000u, 0x10, PROGRAM(0), true);
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x10, UINT64_MAX, PROGRAM(0), true);
	cfi_image_init(&image, true, buf_span(&m.bytes), (struct span){NULL, 0});
	image.maker.segments[0].mem_size = 0x300000000u;
	CHECK_EQ(cfi_image_finish(&image), 0);
	t = cfi_table_new(&image.elf);
	CHECK_EQ(cfi_table_stats(t).n_fdes, 1);
	CHECK_EQ(cfi_table_stats(t).n_fdes_stale, 2);
	CHECK_EQ(cfi_table_stats(t).n_fdes_too_far, 1);
	CHECK_EQ(cfi_table_stats(t).n_fdes_skipped, 1);
	CHECK(rule_at(t, CODE_ADDR) && !rule_at(t, 0x200000000u) && !rule_at(t, 0));
	cfi_table_free(t);
	cfi_image_release(&image);
	buf_release(&m.bytes);
}

static const struct test tests[] = {
	{"a usual function gives a row for each change", rows_of_a_usual_function},
	{"i386 register numbers are translated", i386_registers_have_other_numbers},
	{"between functions there is no rule, and bounds are those of the FDE", holes_and_bounds},
	{"equal rules are stored once and equal neighbours are one row", equal_rules_are_shared},
	{"of two FDEs for one address the first one counts", overlapping_fdes},
	{"every way to advance the location moves it as far as it says", every_advance},
	{"remembered states come back in order", remembered_states},
	{"every register rule is kept as it was said", every_register_rule},
	{"signal frames and outermost frames are marked", signal_and_outermost_frames},
	{"addresses are read in every pointer encoding", pointer_encodings},
	{"addresses may be relative to the global offset table", pointers_relative_to_data},
	{"every augmentation and CIE version is read", augmentations_and_versions},
	{"an FDE that is not understood is left out and counted", what_is_not_understood},
	{"terminators in the middle and 64-bit lengths are stepped over",
		terminators_and_long_lengths},
	{"FDEs of discarded code and beyond 4 GiB are counted", stale_and_far_fdes},
};

int main(void)
{
	return RUN_TESTS(tests);
}
