/* SPDX-License-Identifier: MIT */
/* Records of BTF turned into types. */
#ifndef WEIR_PROBE_TYPES_BTF_TYPE_BUILD_H
#define WEIR_PROBE_TYPES_BTF_TYPE_BUILD_H

#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "probe/types/btf_data.h"
#include "probe/types/type.h"

/* Zero-initialise and fill in the first two. */
struct btf_builder {
	struct types *types;   /* borrowed */
	struct btf_data *data; /* borrowed */
	struct map made;       /* id -> struct type * */
	struct map filled;     /* ids of structures whose fields were read, or are being read */
	VEC(uint32_t) waiting; /* structures behind pointers that nobody can ask for by name */
	uint32_t depth;	       /* of types inside types, now */
	bool is_handed;	       /* structures are in memory of programs */
};

void btf_builder_release(struct btf_builder *b);
/* The type of an id. Structures that it points to have their fields only when they have no name of
 * their own: the others are completed when they are asked for by name. */
const struct type *btf_build_type(struct btf_builder *b, uint32_t id);

#endif
