/* SPDX-License-Identifier: MIT */
/*
 * Turns records and maps into text or JSON lines. Formats follow bpftrace's so that its users and
 * their scripts read them; keys are sorted by value (numbers, then texts).
 */
#ifndef WEIR_PROBE_PRINT_PRINTER_H
#define WEIR_PROBE_PRINT_PRINTER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"
#include "probe/stream/stream.h"

/* The function that an address is in. Texts live until the next question. */
struct printer_symbol {
	const char *name;
	uint64_t offset;    /* of the address from the function's start */
	const char *module; /* path, "[vdso]", "[kernel]"; NULL = not known */
};

/* A place in the source. */
struct printer_place {
	const char *file; /* NULL = not known */
	uint32_t line;
	const char *
		inlined; /* the function that was inlined here; NULL: the one that has the address */
};
#define PRINTER_PLACES_MAX 32

/* Where an address lies in a file that is known by its build-id. */
struct printer_file_place {
	struct span build_id;
	uint64_t offset;
};

/* What values refer to. All of it may fail to know: then numbers are printed. Any may be NULL. */
struct printer_names {
	void *ctx;
	const char *(*site)(void *ctx, uint64_t site, bool is_function); /* else of the probe */
	/* *reason: why there are no more, when that is not the outermost one; else untouched. */
	size_t (*stack)(
		void *ctx, uint64_t stack_id, uint64_t *addresses, size_t max, const char **reason);
	/* The id that all equal stacks have. NULL: they have one already. */
	uint64_t (*stack_id)(void *ctx, uint64_t stack_id);
	/* False when not known; the module may be. Of the frames of a stack that called others, the address asked for
	 * is the last byte of the call. */
	bool (*user_symbol)(void *ctx, uint32_t pid, uint32_t bits, uint64_t address,
		struct printer_symbol *out);
	/* Places in the source, innermost first; 0 when they are not known. */
	size_t (*user_places)(void *ctx, uint32_t pid, uint32_t bits, uint64_t address,
		struct printer_place *out, size_t max);
	bool (*user_file)(void *ctx, uint32_t pid, uint32_t bits, uint64_t address,
		struct printer_file_place *out);
	bool (*kernel_symbol)(void *ctx, uint64_t address, struct printer_symbol *out);
};

enum printer_format { PRINTER_TEXT, PRINTER_JSON };

struct printer;
/* Borrows the stream; copies `names` (NULL: nothing is known). */
struct printer *printer_new(
	const struct stream *s, enum printer_format format, const struct printer_names *names);
void printer_free(struct printer *p);

/* A record of the rings, appended as it is to be written: printf, print, join, time and cat (whose
 * file is read). Others, which are to be acted upon, append nothing. */
void printer_record(
	struct printer *p, const struct stream_record *r, struct span args, struct buf *out);
/* One value, without a newline. */
void printer_value(
	struct printer *p, const struct shape *shape, struct span value, struct buf *out);
/* The text of a printf, cat or system with the arguments put in, whatever the output format is. */
void printer_text(
	struct printer *p, const struct stream_format *format, struct span args, struct buf *out);
/* A record of errorf() or warnf(): "x.wr:3:9-20: ERROR: TEXT" and a newline. */
void printer_message(
	struct printer *p, const struct stream_format *format, struct span args, struct buf *out);
/* A text as it is to be written: itself, or {"type": TYPE, "data": TEXT} and a newline. bpftrace's
 * type of what system() printed is "syscall". */
void printer_wrap(struct printer *p, const char *type, struct span text, struct buf *out);

/* A map: add its entries, then print. map_i counts in stream.maps. top 0 = all; div 0 = 1. An
 * empty one is an empty line in text, nothing or {} in JSON. */
void printer_map_begin(struct printer *p, uint32_t map_i);
void printer_map_add(struct printer *p, struct span key, struct span value);
void printer_map_end(struct printer *p, uint64_t top, uint64_t div, struct buf *out);

#endif
