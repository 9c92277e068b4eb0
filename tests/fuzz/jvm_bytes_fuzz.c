/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what is read of a JVM. The first byte says as what: lines, scopes, names, code, or as
 * the memory that holds its tables.
 */
#include <stdlib.h>
#include <string.h>

#include "jvm/bytecode_lines.h"
#include "jvm/exit_rule.h"
#include "classfile/java_name.h"
#include "jvm/scopes.h"
#include "jvm/vm_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define BASE 0x10000

static void read_lines(struct span bytes, unsigned least)
{
	struct line_entries lines = {0};

	line_entries_read(&lines, bytes, least);
	for (uint32_t bci = 0; bci < 20; bci++)
		line_entries_find(&lines, bci);
	vec_release(&lines);
}

/* A third each of descriptors, scopes and methods. */
static void read_scopes(struct span bytes, unsigned least)
{
	size_t third = bytes.n / 3;
	struct scopes s = {span_sub(bytes, 0, third), span_sub(bytes, third, third),
		span_sub(bytes, 2 * third, third), least};
	struct vm_layout l = {.pc_desc_bytes = 16,
		.pc_desc_pc = {0, 4, true},
		.pc_desc_scope = {4, 4, true},
		.invocation_bci = {-1, true}};
	struct scope found[8];

	for (uint32_t offset = 0; offset < 64; offset++)
		scopes_find(&s, &l, offset, found, 8);
}

static void read_names(struct span bytes)
{
	struct buf b = {0};

	for (enum java_name_kind kind = JAVA_CLASS; kind <= JAVA_FILE; kind++)
		if (java_name_is_legal(bytes, kind))
			java_text_put(&b, bytes);
	java_class_put(&b, bytes);
	java_parameters_put(&b, bytes);
	buf_release(&b);
}

static void follow_code(struct span bytes)
{
	struct exit_code code = {bytes, BASE, BASE, BASE + bytes.n};
	struct exit_rule rule;

	for (size_t at = 0; at < bytes.n && at < 64; at++) {
		exit_rule_find(&rule, &code, BASE + at, 400);
		exit_rule_find_prologue(&rule, &code, BASE + at, 48, 16);
		codelet_state_at_end(span_sub(bytes, 0, at), BASE, at & 1);
	}
}

/* Its begin is the exported variables. */
static void read_tables(struct span bytes)
{
	struct vm_memory m = {.bytes = bytes, .base = BASE};
	struct vm_table_symbols symbols;
	struct vm_layout layout;
	struct err err;

	for (size_t i = 0; i < VM_N_TABLE_SYMBOLS; i++)
		symbols.addr[i] = BASE + 8 * i;
	vm_layout_read(&layout, &m, &symbols, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes;
	uint8_t *copy;

	if (n < 2)
		return 0;
	copy = malloc(n - 1); /* so that one byte too far is seen */
	memcpy(copy, data + 1, n - 1);
	bytes = (struct span){copy, n - 1};
	switch (data[0] % 7) {
	case 0:
	case 1:
		read_lines(bytes, data[0] % 7);
		break;
	case 2:
	case 3:
		read_scopes(bytes, data[0] % 7 - 2);
		break;
	case 4:
		read_names(bytes);
		break;
	case 5:
		follow_code(bytes);
		break;
	default:
		read_tables(bytes);
	}
	free(copy);
	return 0;
}
