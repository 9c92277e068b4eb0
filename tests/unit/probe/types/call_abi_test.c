/* SPDX-License-Identifier: MIT */
/* tests/oracle/probe_layout.sh compares far more calls with what gcc really passes. */
#include <stdlib.h>

#include "base/mem.h"
#include "check.h"
#include "probe/types/call_abi.h"

static struct types *t;
static enum mode mode;

/* A structure of these fields, each at its natural place. */
static const struct type *struct_of(const struct type *const *of, uint32_t n)
{
	struct type_field fields[8] = {{0}};
	struct type *s = types_new_struct(t, "struct s", false);
	uint64_t size = 0;
	uint32_t align = 1;

	for (uint32_t i = 0; i < n; i++) {
		size = (size + of[i]->align - 1) / of[i]->align * of[i]->align;
		fields[i] = (struct type_field){.name = "f", .type = of[i], .offset = size};
		size += of[i]->size;
		align = of[i]->align > align ? of[i]->align : align;
	}
	types_fill_struct(t, s, fields, n, (size + align - 1) / align * align, align);
	return s;
}

#define STRUCT(...)                                                                                \
	struct_of((const struct type *[]){__VA_ARGS__},                                            \
		sizeof((const struct type *[]){__VA_ARGS__}) / sizeof(struct type *))

static const struct type *function_of(
	const struct type *returns, const struct type *const *of, uint32_t n)
{
	struct type_field fields[12] = {{0}};

	for (uint32_t i = 0; i < n; i++)
		fields[i].type = of[i];
	return types_new_function(t, returns, fields, n, false);
}

#define FUNCTION(returns, ...)                                                                     \
	function_of(returns, (const struct type *[]){__VA_ARGS__},                                 \
		sizeof((const struct type *[]){__VA_ARGS__}) / sizeof(struct type *))

/* "di", "di,si", "stack 8", "vector", "[ax]"; with the number of bytes. */
static const char *place_text(struct value_place p)
{
	static const struct {
		uint16_t reg;
		const char *name;
	} names[] = {{PT_DI, "di"}, {PT_SI, "si"}, {PT_DX, "dx"}, {PT_CX, "cx"}, {PT_R8, "r8"},
		{PT_R9, "r9"}, {PT_AX, "ax"}};
	static char text[64];
	char regs[32] = "";

	for (unsigned i = 0; i < p.n_regs; i++) {
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (names[k].reg == p.reg[i])
				snprintf(regs + strlen(regs), sizeof(regs) - strlen(regs), "%s%s",
					i ? "," : "", names[k].name);
	}
	if (p.kind == VALUE_ON_STACK)
		snprintf(regs, sizeof(regs), "stack %d", p.offset);
	else if (p.kind == VALUE_IN_VECTOR)
		snprintf(regs, sizeof(regs), "vector");
	snprintf(text, sizeof(text), p.kind == VALUE_BEHIND_POINTER ? "[%s] %u" : "%s %u", regs,
		p.bytes);
	return text;
}

#define CHECK_ARGUMENT(function, i, text)                                                          \
	CHECK_STR(place_text(call_argument(mode, function, i)), text)
#define CHECK_RESULT(type, text) CHECK_STR(place_text(call_result(mode, type)), text)

static void begin(enum mode of)
{
	mode = of;
	t = types_new(of);
}

static void test_64(void)
{
	const struct type *i, *l, *d, *big, *f;

	begin(MODE_64);
	i = types_int(t, 4, true);
	l = types_long(t, true);
	d = types_float(t, 8);
	big = STRUCT(l, l, l);
	f = FUNCTION(i, i, d, l, i, i, i, l, l, i);
	CHECK_ARGUMENT(f, 0, "di 4");
	CHECK_ARGUMENT(f, 1, "vector 8"); /* takes no general register */
	CHECK_ARGUMENT(f, 2, "si 8");
	CHECK_ARGUMENT(f, 6, "r9 8");
	CHECK_ARGUMENT(f, 7, "stack 8 8");
	CHECK_ARGUMENT(f, 8, "stack 16 4");
	CHECK_ARGUMENT(f, 9, "stack 24 8"); /* behind those with a type: "..." */
	/* Structures: in registers, of both classes, whole or not at all, and in memory. */
	f = FUNCTION(i, STRUCT(l, i), STRUCT(d, l), l, STRUCT(l, l), l, big, i);
	CHECK_ARGUMENT(f, 0, "di,si 16");
	CHECK_ARGUMENT(f, 1, "vector 16");
	CHECK_ARGUMENT(f, 2, "cx 8");
	CHECK_ARGUMENT(f, 3, "r8,r9 16");
	CHECK_ARGUMENT(f, 4, "stack 8 8");
	CHECK_ARGUMENT(f, 5, "stack 16 24");
	CHECK_ARGUMENT(f, 6, "stack 40 4");
	f = FUNCTION(i, l, l, l, l, l, STRUCT(l, l), l);
	CHECK_ARGUMENT(f, 5, "stack 8 16");
	CHECK_ARGUMENT(f, 6, "r9 8"); /* what the structure did not fit into is still free */
	/* A result in memory shifts everything by a register. */
	f = FUNCTION(big, i, i);
	CHECK_ARGUMENT(f, 0, "si 4");
	CHECK_ARGUMENT(f, 1, "dx 4");
	/* long double and its alignment; __int128 takes two registers. */
	f = FUNCTION(i, i, types_float(t, 10), big, types_float(t, 10), types_int(t, 16, true));
	CHECK_ARGUMENT(f, 1, "stack 8 16");
	CHECK_ARGUMENT(f, 2, "stack 24 24");
	CHECK_ARGUMENT(f, 3, "stack 56 16");
	CHECK_ARGUMENT(f, 4, "si,dx 16");
	types_free(t);
}

static void test_64_vectors(void)
{
	const struct type *d;
	const struct type *f;

	begin(MODE_64);
	d = types_float(t, 8);
	f = FUNCTION(d, d, d, d, d, d, d, d, d, d, types_float(t, 4), STRUCT(d));
	CHECK_ARGUMENT(f, 7, "vector 8");
	CHECK_ARGUMENT(f, 8, "stack 8 8"); /* the ninth can be read */
	CHECK_ARGUMENT(f, 9, "stack 16 4");
	CHECK_ARGUMENT(f, 10, "stack 24 8");
	types_free(t);
}

static void test_64_results(void)
{
	const struct type *l, *f;

	begin(MODE_64);
	l = types_long(t, true);
	f = types_float(t, 4);
	CHECK_RESULT(types_int(t, 4, true), "ax 4");
	CHECK_RESULT(types_pointer(t, l, SPACE_USER), "ax 8");
	CHECK_RESULT(STRUCT(l), "ax 8");
	CHECK_RESULT(STRUCT(l, types_char(t)), "ax,dx 16");
	CHECK_RESULT(types_int(t, 16, true), "ax,dx 16");
	CHECK_RESULT(STRUCT(l, l, l), "[ax] 24");
	CHECK_RESULT(f, "vector 4");
	CHECK_RESULT(STRUCT(f, f, f), "vector 12");
	CHECK_RESULT(STRUCT(f, types_int(t, 4, true)), "ax 8"); /* INTEGER wins */
	CHECK_RESULT(types_float(t, 10), "vector 16");
	CHECK_EQ(call_result(mode, STRUCT(l)).kind, VALUE_IN_REGISTERS);
	types_free(t);
}

static void test_32(void)
{
	const struct type *i, *ll, *d, *three, *f;

	begin(MODE_32);
	i = types_int(t, 4, true);
	ll = types_int(t, 8, true);
	d = types_float(t, 8);
	three = types_array(t, types_char(t), 3);
	f = FUNCTION(i, i, types_char(t), ll, d, types_float(t, 10), STRUCT(three), i);
	CHECK_ARGUMENT(f, 0, "stack 4 4");
	CHECK_ARGUMENT(f, 1, "stack 8 1");
	CHECK_ARGUMENT(f, 2, "stack 12 8"); /* two slots, not aligned to 8 */
	CHECK_ARGUMENT(f, 3, "stack 20 8");
	CHECK_ARGUMENT(f, 4, "stack 28 12");
	CHECK_ARGUMENT(f, 5, "stack 40 3");
	CHECK_ARGUMENT(f, 6, "stack 44 4");
	CHECK_ARGUMENT(f, 7, "stack 48 4");
	f = FUNCTION(STRUCT(i), i); /* every structure is returned in memory */
	CHECK_ARGUMENT(f, 0, "stack 8 4");
	CHECK_RESULT(i, "ax 4");
	CHECK_RESULT(ll, "ax,dx 8");
	CHECK_EQ(call_result(mode, ll).kind, VALUE_IN_REGISTER);
	CHECK_RESULT(d, "vector 8");
	CHECK_RESULT(STRUCT(i), "[ax] 4");
	types_free(t);
}

static void test_raw(void)
{
	mode = MODE_64;
	CHECK_STR(place_text(call_raw_argument(MODE_64, 0)), "di 8");
	CHECK_STR(place_text(call_raw_argument(MODE_64, 5)), "r9 8");
	CHECK_STR(place_text(call_raw_argument(MODE_64, 6)), "stack 8 8");
	CHECK_STR(place_text(call_raw_argument(MODE_32, 0)), "stack 4 4");
	CHECK_STR(place_text(call_raw_argument(MODE_32, 9)), "stack 40 4");
}

static void test_hostile(void)
{
	const struct type *u;

	begin(MODE_64);
	u = types_int(t, 4, true);
	for (int i = 0; i < 60; i++) {
		struct type_field fields[2] = {{.name = "a", .type = u}, {.name = "b", .type = u}};
		struct type *next = types_new_struct(t, "union u", true);

		types_fill_struct(t, next, fields, 2, 4, 4);
		u = next;
	}
	CHECK(call_result(MODE_64, u).bytes == 4); /* and it ends */
	types_free(t);
}

static void test_register_names(void)
{
	static const struct {
		const char *name;
		unsigned offset, first, bytes;
	} names[] = {{"ax", PT_AX, 0, 8}, {"rax", PT_AX, 0, 8}, {"eax", PT_AX, 0, 4},
		{"al", PT_AX, 0, 1}, {"ah", PT_AX, 1, 1}, {"spl", PT_SP, 0, 1}, {"sp", PT_SP, 0, 8},
		{"esp", PT_SP, 0, 4}, {"rdi", PT_DI, 0, 8}, {"r10d", PT_R10, 0, 4},
		{"r8", PT_R8, 0, 8}, {"r8w", PT_R8, 0, 2}, {"r15b", PT_R15, 0, 1},
		{"ip", PT_IP, 0, 8}, {"cs", PT_CS, 0, 8}, {"orig_ax", PT_ORIG_AX, 0, 8},
		{"bh", PT_BX, 1, 1}};
	uint16_t offset;
	uint8_t first, bytes;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CHECK(pt_reg_find(names[i].name, &offset, &first, &bytes));
		CHECK_EQ(offset, names[i].offset);
		CHECK_EQ(first, names[i].first);
		CHECK_EQ(bytes, names[i].bytes);
	}
	CHECK(!pt_reg_find("", &offset, &first, &bytes));
	CHECK(!pt_reg_find("xmm0", &offset, &first, &bytes));
	CHECK(!pt_reg_find("r16", &offset, &first, &bytes));
}

int main(void)
{
	static const struct test tests[] = {
		{"64-bit arguments are in registers by class, then on the stack", test_64},
		{"eight floating-point arguments are out of reach, further ones are not",
			test_64_vectors},
		{"64-bit results are in two registers, in memory or out of reach", test_64_results},
		{"32-bit arguments take words of the stack", test_32},
		{"arguments of unknown functions are words", test_raw},
		{"a value nested without end is classified", test_hostile},
		{"registers are found by all their names", test_register_names},
	};

	return RUN_TESTS(tests);
}
