/* SPDX-License-Identifier: MIT */
/* What refers to code that has grown: tables, operands, symbols, groups, other sections. */
#include "insert/moved.h"
#include "insert_world.h"
#include "rt/count/count_abi.h"

#define FUNCTION(name) ".type " name ",@function\n" name ": "
#define SIZE(name)     ".size " name ",.-" name "\n"

/* A switch of three cases with a table of `entries`. */
#define SWITCH(load, entries)                                                                      \
	COMPILED ".text\n" FUNCTION("e") "ret\n" SIZE("e") FUNCTION("f") load                      \
		"1: xor %eax,%eax\n ret\n 2: ret\n 3: ud2\n" SIZE(                                 \
			"f") ".section .rodata\n" entries

static void map_has_two_answers(void)
{
	struct moved m;

	moved_init(&m, 2);
	moved_add(&m, 1, 0, 0, 8);
	moved_add(&m, 1, 4, 12, 20);
	CHECK_EQ(moved_label(&m, 1, 4), 12);
	CHECK_EQ(moved_place(&m, 1, 4), 20);
	CHECK_EQ(moved_label(&m, 1, 6), 22);
	CHECK_EQ(moved_place(&m, 1, 6), 22);
	moved_release(&m);
}

static void pic_table(void)
{
	struct world w;

	begin(&w, INSERT_MODE_COUNTS,
		SWITCH("lea 9f(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n",
			".long 7\n 9: .long 1b-9b, 2b-9b, 3b-9b, 2b-9b\n"));
	CHECK_STR(show(&w, "f"),
		"inc.1 lea[.rodata+4] movsxd add jmp inc.2 xor ret inc.3 ret inc.4 ud2");
	CHECK_EQ(entry_word(&w, ".rodata", 4, 0), 5);
	CHECK_EQ(entry_word(&w, ".rodata", 8, 4), 8);
	CHECK_EQ(entry_word(&w, ".rodata", 12, 8), 10);
	CHECK_EQ(entry_word(&w, ".rodata", 16, 12), 8);
	end(&w);
}

static void two_pic_tables(void)
{
	struct world w;

	/* The second table begins where code refers to it. */
	begin(&w, INSERT_MODE_COUNTS,
		SWITCH("lea 8f(%rip),%rcx\n lea 9f(%rip),%rdx\n add %rdx,%rax\n jmp *%rax\n",
			"8: .long 3b-8b, 1b-8b\n 9: .long 1b-9b, 2b-9b\n"));
	CHECK_STR(show(&w, "f"),
		"inc.1 lea[.rodata] lea[.rodata+8] add jmp inc.2 xor ret inc.3 ret inc.4 ud2");
	CHECK_EQ(entry_word(&w, ".rodata", 0, 0), 10);
	CHECK_EQ(entry_word(&w, ".rodata", 4, 4), 5);
	CHECK_EQ(entry_word(&w, ".rodata", 8, 0), 5);
	CHECK_EQ(entry_word(&w, ".rodata", 12, 4), 8);
	end(&w);
}

static void wide_pic_table(void)
{
	struct world w;

	begin(&w, INSERT_MODE_COUNTS,
		SWITCH("movabs $9f,%rdx\n mov (%rdx,%rdi,8),%rax\n add %rdx,%rax\n jmp *%rax\n",
			"9: .quad 1b-9b, 2b-9b, 3b-9b\n"));
	CHECK_STR(
		show(&w, "f"), "inc.1 mov[.rodata] mov add jmp inc.2 xor ret inc.3 ret inc.4 ud2");
	CHECK_EQ(entry_word(&w, ".rodata", 0, 0), 5);
	CHECK_EQ(entry_word(&w, ".rodata", 8, 8), 8);
	CHECK_EQ(entry_word(&w, ".rodata", 16, 16), 10);
	end(&w);
}

static void address_table(void)
{
	struct world w;

	begin(&w, INSERT_MODE_TREE, SWITCH("jmp *9f(,%rdi,8)\n", "9: .quad 1b, 3b, 2b, e, f\n"));
	CHECK_STR(show(&w, "f"),
		"enter inc.1 cost.1 jmp[.rodata] inc.2 cost.2 xor leave ret inc.3 cost.1 leave ret "
		"inc.4 cost.1 ud2");
	CHECK_EQ(entry_word(&w, ".rodata", 0, 0), 4);
	CHECK_EQ(entry_word(&w, ".rodata", 8, 0), 13);
	CHECK_EQ(entry_word(&w, ".rodata", 16, 0), 9);
	/* A jump of the function back to its own start: past the entry code. */
	CHECK_EQ(entry_word(&w, ".rodata", 32, 0), 1);
	CHECK_STR(show(&w, "e"), "enter inc.0 cost.1 leave ret");
	CHECK_EQ(entry_word(&w, ".rodata", 24, 0), 0);
	end(&w);
}

static void function_pointers(void)
{
	struct world w;

	/* Pointers to functions are no jump table. */
	begin(&w, INSERT_MODE_TREE, SWITCH("jmp *9f(,%rdi,8)\n", "9: .quad e, f\n"));
	CHECK_STR(
		show(&w, "f"), "enter inc.1 cost.1 tail jmp[.rodata] xor leave ret leave ret ud2");
	CHECK_EQ(entry_word(&w, ".rodata", 8, 0), 0);
	end(&w);
}

static void table_from_start(void)
{
	struct world w;

	begin(&w, INSERT_MODE_TREE,
		SWITCH("lea 9f(%rip),%rdx\n add %rdx,%rax\n jmp *%rax\n",
			"9: .long f-9b, 2b-9b, f-9b\n"));
	CHECK_STR(reason_of(&w, "f"), "inserted");
	show(&w, "f");
	CHECK_EQ(entry_word(&w, ".rodata", 0, 0), 1);
	CHECK_EQ(entry_word(&w, ".rodata", 8, 8), 1);
	CHECK(entry_word(&w, ".rodata", 4, 4) > 1);
	end(&w);
}

static void crooked_table(void)
{
	struct world w;

	/* An entry that is no place of an instruction: nothing may move. */
	begin(&w, INSERT_MODE_COUNTS,
		SWITCH("lea 9f(%rip),%rdx\n add %rdx,%rax\n jmp *%rax\n",
			"9: .long 1b-9b, 2b-9b, 1b-9b+1\n"));
	CHECK_STR(reason_of(&w, "f"), insert_reason_text(INSERT_REASON_MIDDLE));
	CHECK_STR(show(&w, "f"), "lea[.rodata] add jmp xor ret ret ud2");
	end(&w);
}

/* ---- operands ---- */

static void immediates(void)
{
	struct world w;

	/* Code that reads its own section, with bytes behind the distance: -5 and -8. */
	begin(&w, INSERT_MODE_COUNTS,
		COMPILED
			FUNCTION("f") "cmpb $1,g(%rip)\n movl $2,g(%rip)\n lea g(%rip),%rax\n cmpb $3,x+4(%rip)\n ret\n" SIZE(
				"f") ".section .text.g,\"ax\"\n" FUNCTION("pad") "ret\n" SIZE("pad")
				FUNCTION("g") "ret\n" SIZE("g"));
	CHECK_STR(show(&w, "g"), "inc.1 ret");
	CHECK_STR(show(&w, "f"), "inc.0 cmp[.text.g+9] mov[.text.g+9] lea[.text.g+9] cmp[x+4] ret");
	end(&w);
}

static void same_section(void)
{
	struct world w;

	/* Without a relocation: the assembler knew the distance. */
	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION(
			"f") "lea 1f(%rip),%rax\n test %edi,%edi\n jz 1f\n nop\n 1: ret\n" SIZE("f"));
	CHECK_STR(show(&w, "f"), "inc.0 lea[6] test jz>6 inc.1 nop inc.2 ret");
	end(&w);
}

static void kept_whole(void)
{
	struct world w;

	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION(
			"f") "data16 lea t@tlsgd(%rip),%rdi\n .value 0x6666\n rex64\n call __tls_get_addr@PLT\n"
			     "mov v@GOTPCREL(%rip),%rax\n call *h@GOTPCREL(%rip)\n mov t@gottpoff(%rip),%rax\n ret\n" SIZE(
				     "f"));
	CHECK_STR(show(&w, "f"),
		"enter inc.0 cost.6 lea[t] call>__tls_get_addr mov[v] call[h] mov[t] leave ret");
	{
		const struct object_section *os = &w.o.sections.v[w.section];
		const uint8_t *p = os->data.p + w.at[3];

		/* Linkers know the sequence by its bytes. */
		CHECK(!memcmp(p, "\x66\x48\x8d\x3d", 4));
		CHECK(!memcmp(p + 8, "\x66\x66\x48\xe8", 4));
		CHECK_EQ(reloc_in(os, w.at[3], w.at[4])->type, R_X86_64_TLSGD);
		CHECK_EQ(reloc_in(os, w.at[5], w.at[6])->type, R_X86_64_REX_GOTPCRELX);
		CHECK_EQ(reloc_in(os, w.at[6], w.at[7])->type, R_X86_64_GOTPCRELX);
	}
	end(&w);
}

/* Code for any size of programs: the distance counts from a place that is named by lea. */
static void table_distances(void)
{
	struct world w;

	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION(
			"f") "test %edi,%edi\n jz 2f\n 1: lea 1b(%rip),%rbx\n"
			     "2: movabs $_GLOBAL_OFFSET_TABLE_-1b,%r11\n add %r11,%rbx\n"
			     "lea _GLOBAL_OFFSET_TABLE_(%rip),%rax\n movabs $g@PLTOFF,%rdx\n jmp *%rdx\n" SIZE(
				     "f") FUNCTION("g") "ret\n" SIZE("g"));
	CHECK_STR(show(&w, "f"),
		"inc.0 test jz>5 inc.1 lea[3] inc.2 mov[_GLOBAL_OFFSET_TABLE_+33] add lea[_GLOBAL_OFFSET_TABLE_] "
		"mov[.text+75] jmp");
	{
		const struct object_reloc *r =
			reloc_in(&w.o.sections.v[w.section], w.at[6], w.at[7]);

		CHECK_EQ(r->type, R_X86_64_GOTPC64);
		CHECK_EQ((int64_t)r->offset - r->addend, w.at[3]);
		/* The assembler counts from the section. */
		r = reloc_in(&w.o.sections.v[w.section], w.at[9], w.at[10]);
		CHECK_EQ(r->type, R_X86_64_PLTOFF64);
		CHECK_EQ((uint64_t)r->addend, symbol_of(&w, "g")->value);
	}
	end(&w);
	/* lea of such a place is no label: the jump leaves the function. */
	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION(
			"f") "lea f(%rip),%rbx\n movabs $_GLOBAL_OFFSET_TABLE_-f,%r11\n add %r11,%rbx\n"
			     "nop\n 1: lea 1b(%rip),%rcx\n movabs $_GLOBAL_OFFSET_TABLE_-1b,%r11\n jmp *%rax\n" SIZE(
				     "f"));
	CHECK_STR(show(&w, "f"),
		"enter inc.0 cost.7 lea[0] mov[_GLOBAL_OFFSET_TABLE_+39] add nop lea[7] mov[_GLOBAL_OFFSET_TABLE_+17] tail jmp");
	end(&w);
	/* From a place that is none, and distances that are no operands. */
	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION("f") "movabs $_GLOBAL_OFFSET_TABLE_-f-1,%r11\n ret\n" SIZE("f"));
	CHECK_STR(reason_of(&w, "f"), insert_reason_text(INSERT_REASON_BOUND));
	end(&w);
	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION("f") "lea f(%rip),%rax\n movabs $x-f,%r11\n ret\n" SIZE("f"));
	CHECK_STR(reason_of(&w, "f"), insert_reason_text(INSERT_REASON_BOUND));
	end(&w);
}

static void odd_relocs(void)
{
	struct world w;

	/* A distance within the section that no relocation makes, and a relocated constant behind
	 * it. */
	begin(&w, INSERT_MODE_COUNTS, COMPILED FUNCTION("f") "movl $x,f(%rip)\n ret\n" SIZE("f"));
	CHECK_STR(reason_of(&w, "f"), insert_reason_text(INSERT_REASON_BOUND));
	end(&w);
}

/* ---- parts ---- */

static void cold_parts(void)
{
	struct world w;

	begin(&w, INSERT_MODE_TREE,
		COMPILED
			FUNCTION("f") "test %edi,%edi\n jz f.cold\n 1: ret\n" SIZE("f") ".section .text.unlikely,\"ax\"\n" FUNCTION(
				"f.cold") "xor %eax,%eax\n jmp 1b\n" SIZE("f.cold"));
	CHECK_STR(show(&w, "f.cold"), "inc.0 cost.2 xor jmp>.text+30");
	CHECK_STR(
		show(&w, "f"), "enter inc.0 cost.2 test jz>.text.unlikely inc.1 cost.1 leave ret");
	CHECK_EQ(w.at[5], 30);
	end(&w);
}

static void cold_parts_share_fate(void)
{
	struct world w;

	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION("g") "ret\n" SIZE("g")
			FUNCTION("f") "test %edi,%edi\n jz f.cold\n ret\n" SIZE("f") ".section .text.unlikely,\"ax\"\n" FUNCTION(
				"f.cold") "mov %gs:0,%eax\n ret\n" SIZE("f.cold"));
	CHECK_STR(reason_of(&w, "f"), insert_reason_text(INSERT_REASON_GS));
	CHECK_STR(reason_of(&w, "f.cold"), insert_reason_text(INSERT_REASON_GS));
	CHECK_STR(reason_of(&w, "g"), "inserted");
	end(&w);
}

static void symbols_move(void)
{
	struct world w;
	const struct object_symbol *s;

	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION("e") "ret\n" SIZE("e")
			FUNCTION("f") "nop\n inner: nop\n ret\n" SIZE("f"));
	s = symbol_of(&w, "f");
	CHECK_EQ(s->value, 9);
	CHECK_EQ(s->size, 11);
	CHECK_EQ(symbol_of(&w, "inner")->value, 18);
	end(&w);
}

static void groups(void)
{
	struct world w;
	uint32_t text, group;

	begin(&w, INSERT_MODE_TREE,
		COMPILED ".section .text.t,\"axG\",@progbits,t,comdat\n .weak t\n" FUNCTION(
			"t") "ret\n" SIZE("t"));
	text = section_of(&w, ".text.t");
	group = w.o.sections.v[text].group;
	CHECK(group != 0);
	CHECK_EQ(w.o.sections.v[section_of(&w, COUNT_SECTION_COUNTERS)].group, group);
	CHECK_EQ(w.o.sections.v[section_of(&w, COUNT_SECTION_FUNCTIONS)].group, group);
	CHECK(w.o.sections.v[section_of(&w, COUNT_SECTION_FUNCTIONS)].flags & SHF_LINK_ORDER);
	CHECK_EQ(w.o.sections.v[section_of(&w, COUNT_SECTION_FUNCTIONS)].link, text);
	CHECK_EQ(w.o.sections.v[section_of(&w, COUNT_SECTION_COUNTERS)].size, 8);
	end(&w);
}

static void units(void)
{
	struct world w;
	struct count_unit unit;
	struct count_function f;
	struct count_block b[2];
	struct span bytes;

	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION("f") "endbr64\n test %edi,%edi\n jz 1f\n 1: ret\n" SIZE("f"));
	bytes = w.o.sections.v[section_of(&w, COUNT_SECTION_FUNCTIONS)].data;
	CHECK(bytes.n >= sizeof(unit) + sizeof(f) + sizeof(b));
	memcpy(&unit, bytes.p, sizeof(unit));
	memcpy(&f, bytes.p + sizeof(unit), sizeof(f));
	memcpy(b, bytes.p + sizeof(unit) + sizeof(f), sizeof(b));
	CHECK_EQ(unit.n_functions, 1);
	CHECK_EQ(unit.n_blocks, 2);
	CHECK_EQ(f.entry, 4 + 5);
	CHECK_STR((const char *)bytes.p + sizeof(unit) + sizeof(f) + sizeof(b) + f.name, "f");
	CHECK_EQ(b[0].n_insns, 3);
	CHECK_EQ(b[0].old_start, 0);
	CHECK_EQ(b[1].n_insns, 1);
	CHECK_EQ(b[1].old_start, 8);
	CHECK_EQ(b[1].inserted_bytes, 8 + 9 + 5);
	end(&w);
}

/* Numbers behind the names: bytes in front of each block, then how many stretches, and each. */
static void inserted_bytes(void)
{
	/* endbr64, enter, counter; test, jz; counter, cost, leave; ret */
	static const uint64_t expected[] = {4, 0, 2, 4, 5 + 8, 2 + 2, 8 + 9 + 5};
	struct world w;
	struct count_unit unit;
	struct span bytes;
	struct cursor c;

	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION("f") "endbr64\n test %edi,%edi\n jz 1f\n 1: ret\n" SIZE("f"));
	bytes = w.o.sections.v[section_of(&w, COUNT_SECTION_FUNCTIONS)].data;
	memcpy(&unit, bytes.p, sizeof(unit));
	CHECK(unit.flags & COUNT_UNIT_INSERTED);
	c = cursor_of(bytes);
	cursor_skip(&c, sizeof(unit) + sizeof(struct count_function) +
				2 * sizeof(struct count_block) + unit.names_bytes);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		CHECK_EQ(cursor_uleb(&c), expected[i]);
	CHECK(!c.failed && cursor_left(&c) < 16); /* padding, and the number of calls */
	end(&w);
}

/* They end the unit: places behind them, their lengths, instructions of their blocks behind them. */
static void calls_of_unit(void)
{
	/* enter, counter: 22 bytes; call g: 5; test, jz: 4; counter: 17; a call through a register: 2 */
	static const struct count_call expected[] = {{22 + 5, 5, 2}, {22 + 5 + 4 + 17 + 2, 2, 1}};
	struct world w;
	struct count_unit unit;
	struct count_call calls[2];
	struct span bytes;
	uint64_t n;

	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION(
			"f") "call g\n test %edi,%edi\n jz 1f\n 1: call *%rbx\n ret\n" SIZE("f"));
	bytes = w.o.sections.v[section_of(&w, COUNT_SECTION_FUNCTIONS)].data;
	memcpy(&unit, bytes.p, sizeof(unit));
	CHECK(unit.flags & COUNT_UNIT_CALLS);
	CHECK_EQ(unit.bytes, bytes.n);
	memcpy(&n, bytes.p + bytes.n - sizeof(n), sizeof(n));
	CHECK_EQ(n, 2);
	memcpy(calls, bytes.p + bytes.n - sizeof(n) - sizeof(calls), sizeof(calls));
	for (size_t i = 0; i < 2; i++) {
		CHECK_EQ(calls[i].end, expected[i].end);
		CHECK_EQ(calls[i].length, expected[i].length);
		CHECK_EQ(calls[i].rest, expected[i].rest);
	}
	end(&w);
}

static void landing_pads(void)
{
	struct world w = {0};
	bool has_resync;

	run_tool("g++ -x c++ -O2 -fcf-protection=none -c -o %s -",
		"int g(); int f() { try { return g(); } catch (...) { return 1; } }\n", &w.in);
	insert_with(&w, &(struct insert_options){.mode = INSERT_MODE_TREE});
	has_resync = strstr(show(&w, "_Z1fv"), "resync inc.") != NULL;
	has_resync |= strstr(show(&w, "_Z1fv.cold"), "resync inc.") != NULL;
	CHECK(has_resync);
	end(&w);
}

static void nothing_is_identity(void)
{
	struct world w = {0};
	struct elf_object old;

	run_tool("gcc -x c -O2 -g -c -o %s -",
		"int g(int); int f(int a) { return a ? g(a) : 7; }\n", &w.in);
	insert_with(&w, &(struct insert_options){.mode = INSERT_MODE_NOTHING});
	CHECK_EQ(elf_object_open(&old, buf_span(&w.in), NULL), 0);
	CHECK_EQ(old.sections.n, w.o.sections.n);
	for (size_t i = 1; i < old.sections.n; i++)
		if (old.sections.v[i].type == SHT_PROGBITS && old.sections.v[i].data.n)
			CHECK(old.sections.v[i].data.n == w.o.sections.v[i].data.n &&
				!memcmp(old.sections.v[i].data.p, w.o.sections.v[i].data.p,
					old.sections.v[i].data.n));
	elf_object_release(&old);
	end(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"a map has labels and places", map_has_two_answers},
		{"tables of distances keep their targets", pic_table},
		{"a table begins where code refers to it", two_pic_tables},
		{"tables of 64-bit distances keep their targets", wide_pic_table},
		{"tables of addresses keep their targets, and jumps to the start skip the entry code",
			address_table},
		{"pointers to functions are calls", function_pointers},
		{"distances to a function's start within its own table skip the entry code",
			table_from_start},
		{"a table into the middle of an instruction is refused", crooked_table},
		{"operands with constants behind them keep their targets", immediates},
		{"operands within the section are mended", same_section},
		{"sequences that linkers rewrite stay whole", kept_whole},
		{"distances to the global offset table count from where their place went",
			table_distances},
		{"relocations that do not cover an operand are refused", odd_relocs},
		{"cold parts are entered without entry code", cold_parts},
		{"a function and its cold part share their fate", cold_parts_share_fate},
		{"symbols move and grow", symbols_move},
		{"what is added to a group's section joins the group", groups},
		{"a unit describes functions and blocks", units},
		{"units tell which bytes were inserted", inserted_bytes},
		{"units tell where calls return to, and what of the block is behind them",
			calls_of_unit},
		{"landing pads look at the frames again", landing_pads},
		{"nothing inserted changes nothing", nothing_is_identity},
	};

	return RUN_TESTS(tests);
}
