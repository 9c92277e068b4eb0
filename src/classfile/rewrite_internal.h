/* SPDX-License-Identifier: MIT */
/* The parts of the rewriter: class_rewrite.c the class, method_rewrite.c one Code attribute, and
 * stack_frames.c the verifier's frames of it. Inside src/classfile only. */
#ifndef WEIR_CLASSFILE_REWRITE_INTERNAL_H
#define WEIR_CLASSFILE_REWRITE_INTERNAL_H

#include "classfile/class_rewrite.h"

#define NOT_AN_INSTRUCTION UINT32_MAX
#define MAJOR_WITH_FRAMES  50

/* Constants that are appended; by number. */
struct new_constants {
	struct buf bytes;
	uint32_t n; /* of all, so the next one's number */
	uint16_t enter, leave, throwable, stack_map;
	bool counts; /* leave is called with the bytecodes that were executed, too */
};
/* The number of an Integer constant; 0 = there is no room. */
uint16_t constants_add_integer(struct new_constants *k, uint32_t value);
/* That of a class, by its name as constants have it. */
uint16_t constants_add_class(struct new_constants *k, struct span name);

/* One method while it is changed. */
struct method_move {
	const struct class_file *c;
	const struct class_method *m;
	struct new_constants *k;
	uint32_t id;
	uint16_t push_constant; /* 0: the id is pushed as a short */
	struct span code;
	uint32_t *to;	  /* by old address, up to and with the end; NOT_AN_INSTRUCTION */
	uint8_t *is_wide; /* by old address: a goto that needs 32 bits now */
	uint16_t *group;  /* by old address: so many bytecodes are counted there; NULL: none are */
	uint16_t counter; /* the local variable that has their number, and */
	uint16_t max_locals;   /* is behind so many others */
	uint32_t handler;      /* new address, which is that of the old end */
	uint32_t covered_from; /* old address: from here on exceptions are handled */
	const char *reason;    /* why it cannot be done; static */
};

/* method_rewrite.c: appends the Code attribute with its name and length. False with a reason. */
bool method_rewrite(struct method_move *v, struct buf *to);
/* The new place of what was at the old address; false, with the reason: no instruction was there. */
bool method_moved(struct method_move *v, uint32_t at, uint32_t *to);

/* The same of the instruction itself, which what counts it stands in front of. */
bool method_moved_itself(struct method_move *v, uint32_t at, uint32_t *to);

/* bytecode_count.c: fills in v->group, which is all zero. False with a reason. */
bool bytecodes_group(struct method_move *v, struct span exceptions);
/* What is put at the method's start, in front of each group, and in front of the call of done; how long it is. Nothing
 * when there are no groups. */
void bytecodes_put_begin(const struct method_move *v, struct buf *to);
void bytecodes_put_count(const struct method_move *v, uint32_t at, struct buf *to);
void bytecodes_put_load(const struct method_move *v, struct buf *to);
uint32_t bytecodes_begin_bytes(const struct method_move *v);
uint32_t bytecodes_count_bytes(const struct method_move *v, uint32_t at);
uint32_t bytecodes_load_bytes(const struct method_move *v);

/* stack_frames.c. `table` is what a StackMapTable has (empty: there is none); a frame for the handler comes on
 * top. */
bool stack_frames_move(struct method_move *v, struct span table, struct buf *to);
/* The first old address at or behind `from` after which no frame has an object that is not yet initialised by
 * its constructor (JVMS: uninitializedThis); `from` when there are none. */
bool stack_frames_last_raw(struct method_move *v, struct span table, uint32_t *last);

static inline void put_be16(struct buf *b, uint32_t v)
{
	buf_put_u16(b, __builtin_bswap16((uint16_t)v));
}

static inline void put_be32(struct buf *b, uint32_t v)
{
	buf_put_u32(b, __builtin_bswap32(v));
}

static inline void set_be32(struct buf *b, size_t at, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(b->p + at, &v, sizeof(v));
}

#endif
