/* SPDX-License-Identifier: MIT */
/* Types of the kernel, out of its BTF: always LP64, pointers into SPACE_KERNEL. */
#ifndef WEIR_PROBE_TYPES_BTF_TYPES_H
#define WEIR_PROBE_TYPES_BTF_TYPES_H

#include "base/err.h"
#include "base/span.h"
#include "probe/types/type.h"

#define BTF_VMLINUX "/sys/kernel/btf/vmlinux"

struct btf_types;
/* `bytes` are borrowed; NULL `types` for look-ups of ids and offsets only. */
int btf_types_open(struct types *types, struct span bytes, struct btf_types **out, struct err *err);
void btf_types_close(struct btf_types *b);
struct type_source btf_types_source(struct btf_types *b);

/* From here on structures are those that programs hand over: in their memory, and in 64-bit programs
 * with pointers into it. */
void btf_types_set_handed(struct btf_types *b);

/* The id of a function (fentry) or of a struct, 0 when there is none. */
uint32_t btf_types_function_id(const struct btf_types *b, const char *name);
/* Byte offset of a field, "thread_info.status" style paths allowed; -1 when there is none. */
int64_t btf_types_offset(const struct btf_types *b, const char *struct_name, const char *path);
/* All functions, for globs and listings: `module` is "", the kernel itself. */
void btf_types_each_function(const struct btf_types *b,
	void (*each)(void *ctx, const char *module, const char *name), void *ctx);
/* All structures, unions or enumerations with a name, by the word. */
void btf_types_each_named(const struct btf_types *b, const char *word,
	void (*each)(void *ctx, const char *name), void *ctx);
/* Of the enumeration of this name, in order. */
void btf_types_each_enumerator(const struct btf_types *b, const char *name,
	void (*each)(void *ctx, const char *name, int64_t value), void *ctx);

#endif
