/* SPDX-License-Identifier: MIT */
/*
 * The BTF format (Documentation/bpf/btf.rst of the kernel): a header, type records counted from 1,
 * and texts. Nothing is copied but where each record is; names are looked up through tables that
 * are made when they are first needed.
 */
#ifndef WEIR_PROBE_TYPES_BTF_DATA_H
#define WEIR_PROBE_TYPES_BTF_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"

/* Word `i` of a record, or of what follows it. */
static inline uint32_t btf_word(const uint8_t *p, size_t i)
{
	uint32_t v;

	memcpy(&v, p + i * sizeof(v), sizeof(v));
	return v;
}

enum btf_kind {
	BTF_VOID = 0,
	BTF_INT = 1,
	BTF_PTR = 2,
	BTF_ARRAY = 3,
	BTF_STRUCT = 4,
	BTF_UNION = 5,
	BTF_ENUM = 6,
	BTF_FWD = 7,
	BTF_TYPEDEF = 8,
	BTF_VOLATILE = 9,
	BTF_CONST = 10,
	BTF_RESTRICT = 11,
	BTF_FUNC = 12,
	BTF_FUNC_PROTO = 13,
	BTF_VAR = 14,
	BTF_DATASEC = 15,
	BTF_FLOAT = 16,
	BTF_DECL_TAG = 17,
	BTF_TYPE_TAG = 18,
	BTF_ENUM64 = 19
};

/* One record. */
struct btf_record {
	enum btf_kind kind;
	bool flag;	     /* kind_flag */
	uint16_t n;	     /* of what follows: members, enumerators, parameters */
	uint32_t size;	     /* of INT, STRUCT, UNION, ENUM, FLOAT: bytes; else the id of a type */
	const char *name;    /* "" when it has none */
	const uint8_t *rest; /* what follows: of its size by kind and n */
};

struct btf_member {
	const char *name;
	uint32_t type;
	uint32_t bit;  /* offset, in bits */
	uint32_t bits; /* of a bit-field, else 0 */
};

/* Names that are looked for together. */
enum btf_group {
	BTF_GROUP_TAGS,	     /* struct, union, enum */
	BTF_GROUP_NAMES,     /* typedef, int, float */
	BTF_GROUP_FUNCTIONS, /* functions */
	BTF_N_GROUPS
};

struct btf_data {
	struct span texts;
	struct span types;
	VEC(uint32_t) offsets; /* of records in `types`, by id; [0] is not used */
	struct map names[BTF_N_GROUPS]; /* hash of kind and name -> the first id */
	bool has_names[BTF_N_GROUPS];	/* they are read when one is first asked for */
};

/* `bytes` are borrowed. O(number of records). */
int btf_data_init(struct btf_data *d, struct span bytes, struct err *err);
void btf_data_release(struct btf_data *d);

/* The record of an id. BTF_VOID for 0 and for ids that are not there. */
struct btf_record btf_data_get(const struct btf_data *d, uint32_t id);
/* The first one of this kind and name, 0 when there is none. Declarations (FWD) are not found. */
uint32_t btf_data_find(struct btf_data *d, enum btf_kind kind, const char *name);
/* A text at an offset; "" when there is none. */
const char *btf_data_text(const struct btf_data *d, uint32_t offset);
/* Member i < n of a STRUCT or UNION. */
struct btf_member btf_data_member(
	const struct btf_data *d, const struct btf_record *record, uint32_t i);
/* Through typedefs, const, volatile, restrict and type tags; BTF_VOID's id 0 when they never end.
 */
uint32_t btf_data_strip(const struct btf_data *d, uint32_t id);

#endif
