/* SPDX-License-Identifier: MIT */
/* Inside of struct types: shared by the files that make, declare and lay out types, nobody else. */
#ifndef WEIR_PROBE_TYPES_TYPE_STORE_H
#define WEIR_PROBE_TYPES_TYPE_STORE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "probe/types/type.h"

#define TYPE_FIELDS_MAX 65535 /* of one structure or function */
#define TYPE_ALIGN_MAX	65536
#define TYPE_STRING_MAX 16384 /* bytes of a declared string */

enum declared_kind {
	DECLARED_NOTHING,
	DECLARED_TAG, /* struct, union, enum */
	DECLARED_TYPEDEF,
	DECLARED_FUNCTION,
	DECLARED_VARIABLE,
	DECLARED_ENUMERATOR
};

/* What a name of the script stands for. Tags have a name space of their own, as in C. */
struct declared {
	enum declared_kind kind;
	const struct type *type;
	struct type *open; /* TAG of a struct: the same type, to be filled */
	bool is_announced; /* TAG: "struct item;" or a body: not only mentioned */
	bool has_body;	   /* TAG: it is known, or just being read */
	int64_t value;	   /* ENUMERATOR */
	bool is_unsigned;  /* ENUMERATOR: value is to be read as uint64_t */
	struct place place;
};

struct names {
	struct intern keys; /* key id = index of the entry */
	VEC(struct declared) v;
};
/* NULL when there is none; the pointer is valid until the next names_ensure. */
struct declared *names_find(const struct names *names, const char *name);
struct declared *names_ensure(struct names *names, const char *name);
void names_release(struct names *names);

struct types {
	enum mode mode;
	enum space space; /* of pointers in declarations */
	struct arena *arena;
	struct intern made_keys; /* types that are made once: key id = index into made */
	VEC(struct type *) made;
	struct names tags, names;
	struct map defined; /* struct decl_type with a body -> its type */
	const struct type_source *sources;
	size_t n_sources;
	/* The same declarations as the kernel would lay them out; made when asked for. */
	struct types *kernel;
	const struct decl *decls;
	struct diags *diags; /* of whoever asks now: borrowed */
	uint32_t depth;	   /* of the declaration being resolved */
	bool is_declaring; /* what is not known yet may follow: sources are not asked for it */
};

/* --- names (type_names.c) -------------------------------------------------------------------- */

/* The first source that has it, complete where one has that; or NULL. `word` as in named(). */
const struct type *source_named(const struct types *t, const char *word, const char *name);
/* size_t, pid_t, ...: what glibc has in that mode; or NULL. */
const struct type *builtin_named(struct types *t, const char *name);
/* "struct item", in the arena. */
const char *tag_name(struct types *t, const struct decl_type *decl);

/* --- declarations (type_declare.c, type_define.c) -------------------------------------------- */

/* Never NULL; structures may be incomplete. */
const struct type *type_resolve(struct types *t, const struct decl_type *decl);
/* A struct, union or enum with a body. */
const struct type *type_define(struct types *t, const struct decl_type *decl);
/* For what needs a size: reports when there is none and gives TYPE_BAD. `what` is the beginning of
 * the sentence ("field 'x'"). */
const struct type *type_with_size(
	struct types *t, const struct type *type, struct place place, const char *what);
/* __attribute__((aligned(N))): reports and gives 0 when N is no power of two. */
uint32_t type_asked_align(struct types *t, const struct decl_type *decl);

/* --- constant expressions of declarations (type_constant.c) ----------------------------------- */

struct constant {
	int64_t value;
	bool is_unsigned; /* value is to be read as uint64_t */
};
/* False, with a message, when it is not one. */
bool constant_of_expr(struct types *t, const struct expr *e, struct constant *out);

/* --- layout (type_layout.c) ------------------------------------------------------------------ */

struct layout_field {
	struct type_field field; /* name and type are given; places are found */
	bool is_bit_field;
	uint8_t bits;	/* 0: no further bit-field shares the unit */
	bool is_packed; /* by itself or by its structure */
	uint32_t align; /* asked for by an attribute, 0 = none */
};
struct layout {
	bool is_union;
	uint32_t align; /* asked for the structure by an attribute, 0 = none; found: of all */
	uint64_t size;
};
/* Places all fields. False: it would be larger than TYPE_BYTES_MAX. */
bool layout_fields(struct layout *layout, struct layout_field *fields, size_t n);

#endif
