/* SPDX-License-Identifier: MIT */
/*
 * What the kernel wants to see: a BTF of our own with a structure of that name and those fields,
 * one after the other, and for each instruction the way to its field ("0:1" is field 1). It finds
 * the field of the same name in its own BTF, checks that the instruction's number is the offset in
 * our structure, and puts the true one there. A program with a BTF must say what its function is.
 */
#include "bpf/kernel_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "bpf/sys.h"

#define FIELD_BYTES    8 /* of our structure: a pointer, or an integer and a hole */
#define KIND_INT       (1u << 24)
#define KIND_POINTER   (2u << 24)
#define KIND_STRUCT    (4u << 24)
#define KIND_FUNC      (12u << 24)
#define KIND_PROTOTYPE (13u << 24)
#define TYPE_INT       1
#define TYPE_STRUCT    2
#define TYPE_PROTOTYPE 3
#define TYPE_FUNC      4
#define TYPE_POINTER   5

void kernel_fields_add_offset(
	struct kernel_fields *fields, struct bpf_code *c, int dst, uint32_t field_i)
{
	struct kernel_field_use use = {(uint32_t)c->insns.n, field_i};

	bpf_alu_imm(c, BPF_ADD, dst, (int32_t)(field_i * FIELD_BYTES));
	vec_push(&fields->uses, use);
}

void kernel_fields_release(struct kernel_fields *fields)
{
	vec_release(&fields->uses);
}

/* Where it is in the table. */
static uint32_t put_text(struct buf *strings, const char *text)
{
	uint32_t at = (uint32_t)strings->n;

	buf_put_text(strings, text);
	return at;
}

static uint32_t count_fields(const struct kernel_fields *fields)
{
	uint32_t n = 0;

	while (n < KERNEL_FIELDS_MAX && fields->names[n])
		n++;
	return n;
}

static void put_types(const struct kernel_fields *fields, struct buf *types, struct buf *strings)
{
	uint32_t n = count_fields(fields);
	uint32_t integer[] = {put_text(strings, "int"), KIND_INT, 4, 1u << 24 | 32};
	uint32_t structure[] = {put_text(strings, fields->type), KIND_STRUCT | n, n * FIELD_BYTES};
	uint32_t function[] = {0, KIND_PROTOTYPE, TYPE_INT, put_text(strings, "program"), KIND_FUNC,
		TYPE_PROTOTYPE};
	uint32_t pointer[] = {0, KIND_POINTER, 0};

	buf_put(types, integer, sizeof(integer));
	buf_put(types, structure, sizeof(structure));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t member[] = {put_text(strings, fields->names[i]),
			fields->is_pointer[i] ? TYPE_POINTER : TYPE_INT, i * FIELD_BYTES * 8};

		buf_put(types, member, sizeof(member));
	}
	buf_put(types, function, sizeof(function));
	buf_put(types, pointer, sizeof(pointer));
}

/* `ways`: place of "0:I" for each field. */
static int open_btf(const struct kernel_fields *fields, uint32_t *ways)
{
	struct buf types = {0}, strings = {0};
	int fd;

	put_text(&strings, "");
	put_types(fields, &types, &strings);
	for (uint32_t i = 0; i < KERNEL_FIELDS_MAX; i++) {
		char way[] = {'0', ':', (char)('0' + i), 0};

		ways[i] = put_text(&strings, way);
	}
	fd = bpf_btf_open(buf_span(&types), buf_span(&strings));
	buf_release(&types);
	buf_release(&strings);
	return fd;
}

int kernel_fields_open_program(
	const struct kernel_fields *fields, const struct bpf_program_spec *spec)
{
	uint32_t ways[KERNEL_FIELDS_MAX], n = (uint32_t)fields->uses.n;
	FD_AUTO btf_fd = open_btf(fields, ways);
	struct bpf_core_relo *relocations;
	struct bpf_program_spec with = *spec;
	int fd;

	if (btf_fd < 0)
		return btf_fd;
	relocations = mem_calloc(n + 1, sizeof(*relocations));
	for (uint32_t i = 0; i < n; i++)
		relocations[i] = (struct bpf_core_relo){
			.insn_off = fields->uses.v[i].insn_i * (uint32_t)sizeof(struct bpf_insn),
			.type_id = TYPE_STRUCT,
			.access_str_off = ways[fields->uses.v[i].field_i],
			.kind = BPF_CORE_FIELD_BYTE_OFFSET};
	with.btf_fd = btf_fd;
	with.function_type = TYPE_FUNC;
	with.relocations = relocations;
	with.n_relocations = n;
	fd = bpf_program_open(&with, NULL, 0);
	free(relocations);
	return fd;
}
