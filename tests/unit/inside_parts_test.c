/* SPDX-License-Identifier: MIT */
/* Parts of the engine `inside` that can be looked at without a program: its library, and the
 * instructions that the library knows. */
#include <stdlib.h>
#include <string.h>

#include "arch/x86_code.h"
#include "check.h"
#include "rt/steps/watched_insn.h"
#include "steps/engine/engine.h"
#include "steps/engine/inside_engine.h"

static const uint8_t stub[16] = {0x0f, 0x05, 0x90, 0x0f, 0x0b, 0xcc, 0xcc, 0xcc, 0xcd, 0x80, 0x90,
	0x0f, 0x0b, 0xcc, 0xcc, 0xcc};

static struct inside_library *read_library(void)
{
	struct inside_library *l = mem_zalloc(sizeof(*l));
	struct err err = {0};

	CHECK_EQ(inside_library_read(l, &err), 0);
	return l;
}

static void test_entry(void)
{
	static const uint8_t sigreturn[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
	struct inside_library *l = read_library();
	const uint8_t *entry = l->image + l->entry;

	CHECK(l->entry > 0);
	CHECK(entry[0] == 0xe9 || entry[0] == 0xeb); /* jmp to the handler */
	CHECK(!memcmp(entry + STEPS_RESTORER_AT, sigreturn, sizeof(sigreturn)));
	free(l);
}

static void test_stubs(void)
{
	struct inside_library *l = read_library();
	size_t most = 0, n = 0;

	for (size_t i = 0; i + sizeof(stub) <= sizeof(l->image); i += sizeof(stub)) {
		n = memcmp(l->image + i, stub, sizeof(stub)) ? 0 : n + 1;
		most = n > most ? n : most;
	}
	CHECK_EQ((int)most, STEPS_N_STATES);
	free(l);
}

static void test_syscalls(void)
{
	static const struct {
		uint8_t bytes[4];
		uint8_t n, length;
		bool is_32;
	} cases[] = {
		{{0x0f, 0x05}, 2, 2, false},
		{{0xcd, 0x80}, 2, 2, true},
		{{0x48, 0x0f, 0x05}, 3, 3, false},
		{{0x66, 0x40, 0x0f, 0x05}, 4, 4, false},
		{{0x0f, 0x34}, 2, 0, false},
		{{0xcd, 0x03}, 2, 0, false},
		{{0x0f}, 1, 0, false}, /* the end of memory */
		{{0}, 0, 0, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_32 = !cases[i].is_32;

		CHECK_EQ((int)syscall_length(cases[i].bytes, cases[i].n, &is_32), cases[i].length);
		CHECK(is_32 == cases[i].is_32);
	}
}

/* Every form of operand, against the decoder. */
static void test_mov_ss(void)
{
	unsigned n = 0;

	for (unsigned modrm = 0; modrm < 256; modrm++) {
		for (unsigned sib = 0; sib < 256; sib++) {
			uint8_t bytes[15] = {0x41, 0x8e, (uint8_t)modrm, (uint8_t)sib, 1, 2, 3, 4};
			struct x86_insn insn;
			bool is_ss = (modrm >> 3 & 7) == 2;

			if (!is_ss) {
				CHECK_EQ((int)shadow_length(bytes, sizeof(bytes)), 0);
				continue;
			}
			CHECK(x86_decode(&insn, (struct span){bytes, sizeof(bytes)}, 0x1000, true));
			CHECK_EQ((int)shadow_length(bytes, sizeof(bytes)), insn.length);
			n++;
		}
	}
	CHECK_EQ((int)n, 32 * 256);
}

static void test_row(void)
{
	CHECK(step_engine_find("inside") == &step_engine_inside);
	/* The trap flag works wherever these tests run, and asking twice forks once. */
	CHECK(step_engine_inside.hindrance() == NULL);
	CHECK(step_engine_inside.hindrance() == NULL);
}

int main(void)
{
	static const struct test tests[] = {
		{"the library's entry is the handler, with its restorer behind it", test_entry},
		{"there is a stub for each state", test_stubs},
		{"system calls are told by their bytes", test_syscalls},
		{"the length of a mov to ss is the decoder's", test_mov_ss},
		{"the engine is in the table, and finds out whether it works", test_row},
	};

	return RUN_TESTS(tests);
}
