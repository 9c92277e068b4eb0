/* SPDX-License-Identifier: MIT */
/*
 * Programs that read fields of a kernel structure whose layout is the running kernel's. The kernel
 * itself fills in the offsets when it loads the program (CO-RE, Linux 5.17), so that its BTF, which
 * is megabytes, need not be read.
 */
#ifndef WEIR_BPF_KERNEL_FIELDS_H
#define WEIR_BPF_KERNEL_FIELDS_H

#include "base/mem.h"
#include "bpf/code.h"
#include "bpf/program.h"

#define KERNEL_FIELDS_MAX 4

/* An instruction and the field that it is about. */
struct kernel_field_use {
	uint32_t insn_i, field_i;
};

struct kernel_fields {
	const char *type;		      /* "task_struct" */
	const char *names[KERNEL_FIELDS_MAX]; /* the rest NULL */
	bool is_pointer[KERNEL_FIELDS_MAX];   /* else a 4-byte integer */
	VEC(struct kernel_field_use) uses;
};

/* dst += offset of the field. */
void kernel_fields_add_offset(
	struct kernel_fields *fields, struct bpf_code *c, int dst, uint32_t field_i);
/* Like bpf_program_open without a log. */
int kernel_fields_open_program(
	const struct kernel_fields *fields, const struct bpf_program_spec *spec);
void kernel_fields_release(struct kernel_fields *fields);

#endif
