/* SPDX-License-Identifier: MIT */
/* Words of the walked stack: from the copy, else through the caller's read function. */
#ifndef WEIR_UNWIND_STACK_READER_H
#define WEIR_UNWIND_STACK_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "unwind/unwind.h"

/* What lies just below the copy was dead when it was made, and belongs to other calls by now. */
#define STACK_DEAD_BYTES 4096

struct stack_reader {
	const struct unwind_memory *memory;
	void *ctx;	      /* of memory->read */
	uint64_t mask;	      /* of addresses and registers: 64 or 32 bits */
	unsigned word_bytes;  /* 8 or 4 */
	bool has_left_copy;   /* the walk went on to a stack that is not the copied one */
	bool failed;	      /* a read did not succeed since `failed` was last cleared, */
	uint64_t failed_addr; /* and this is where */
	bool lacks_below;     /* a rule asked for what lies below the copy, which is not known */
};

/* n is at most 8; the bytes are the low ones of *value, which stays untouched on failure. */
static inline bool stack_read(struct stack_reader *s, uint64_t addr, size_t n, uint64_t *value)
{
	const struct unwind_memory *m = s->memory;
	uint64_t offset = addr - m->start.v, word = 0;

	if (offset < m->bytes.n && m->bytes.n - offset >= n) {
		memcpy(&word, m->bytes.p + offset, n);
	} else if (0 - offset <= STACK_DEAD_BYTES || !m->read || !m->read(s->ctx, addr, &word, n)) {
		s->failed = true;
		s->failed_addr = addr;
		return false;
	}
	*value = word;
	return true;
}

/* For rules that name the address themselves. What they read below the stack pointer is live: the
 * innermost function's, which has a red zone there. */
static inline bool stack_read_named(
	struct stack_reader *s, uint64_t addr, size_t n, uint64_t *value)
{
	const struct unwind_memory *m = s->memory;
	uint64_t distance = m->start.v - addr, word = 0;

	if (distance - 1 >= STACK_DEAD_BYTES)
		return stack_read(s, addr, n, value);
	if (distance > m->below.n || distance < n) {
		s->failed = s->lacks_below = true;
		s->failed_addr = addr;
		return false;
	}
	memcpy(&word, m->below.p + m->below.n - distance, n);
	*value = word;
	return true;
}

static inline bool stack_read_word(struct stack_reader *s, uint64_t addr, uint64_t *value)
{
	addr &= s->mask;
	if (s->word_bytes == 8) /* two constant lengths compile to two loads */
		return stack_read(s, addr, 8, value);
	return stack_read(s, addr, 4, value);
}

#endif
