/* SPDX-License-Identifier: MIT */
/*
 * Turns records and maps into text or JSON lines. Formats follow bpftrace's so that its users and
 * their scripts read them; keys are sorted by value (numbers, then texts).
 */
#ifndef WEIR_PROBE_PRINT_PRINTER_H
#define WEIR_PROBE_PRINT_PRINTER_H

#include "base/buf.h"
#include "base/span.h"
#include "probe/stream/stream.h"

/* What values refer to. All of it may fail to know: then numbers are printed. */
struct printer_names {
	void *ctx;
	const char *(*probe)(void *ctx, uint64_t site);
	const char *(*function)(void *ctx, uint64_t site);
	size_t (*stack)(void *ctx, uint64_t stack_id, uint64_t *addresses, size_t max);
	/* "malloc+12 (/lib/libc.so.6)", appended; false when not known. */
	bool (*user_symbol)(
		void *ctx, uint32_t pid, uint32_t bits, uint64_t address, struct buf *out);
	bool (*kernel_symbol)(void *ctx, uint64_t address, struct buf *out);
};

enum printer_format { PRINTER_TEXT, PRINTER_JSON };

struct printer;
struct printer *printer_new(
	const struct stream *s, enum printer_format format, const struct printer_names *names);
void printer_free(struct printer *p);

/* A record of the record ring, appended as it is to be written. */
void printer_record(
	struct printer *p, const struct stream_record *r, struct span args, struct buf *out);
/* One value. */
void printer_value(
	struct printer *p, const struct shape *shape, struct span value, struct buf *out);

/* A map: add its entries, then print. top 0 = all; div 0 = 1. */
void printer_map_begin(struct printer *p, uint32_t map_i);
void printer_map_add(struct printer *p, struct span key, struct span value);
void printer_map_end(struct printer *p, uint64_t top, uint64_t div, struct buf *out);

#endif
