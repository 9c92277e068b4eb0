/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a file of another tool, in order and in bounded memory: a window moves over them, and what
 * is gzipped or packed by zstd is unpacked on the way. A reader looks at what comes, and skips what it has
 * understood. What cannot be read or unpacked ends the input early, and foreign_input_failure() says so.
 */
#ifndef WEIR_FORMATS_FOREIGN_FOREIGN_INPUT_H
#define WEIR_FORMATS_FOREIGN_FOREIGN_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define FOREIGN_PEEK_MAX    ((size_t)64 << 20) /* the longest thing that can be seen as a whole */
#define FOREIGN_FIRST_BYTES ((size_t)4096)     /* what a format is told by */
#define FOREIGN_LINE_MAX    ((size_t)16 << 20) /* a longer line is cut, and counted */

struct foreign_input;

/* `path` is a regular file, or a pipe or device that is read once. `name` is for sentences, and must live
 * as long as the input. */
int foreign_input_open(
	struct foreign_input **out, const char *path, const char *name, struct err *err);
/* The same over bytes in memory, which must outlive it: for tests and fuzzing. */
struct foreign_input *foreign_input_of_bytes(struct span bytes, const char *name);
void foreign_input_close(struct foreign_input *in); /* NULL is fine */

/* Everything once more, from the first byte on: for formats that use things before they define them. False when
 * it can be read once only. */
bool foreign_input_restart(struct foreign_input *in);

const char *foreign_input_name(const struct foreign_input *in);
/* The path that can be opened; NULL for bytes in memory. */
const char *foreign_input_path(const struct foreign_input *in);

/* The next bytes, `n` of them (at most FOREIGN_PEEK_MAX) or all that are left. Good until the next call. */
struct span foreign_input_peek(struct foreign_input *in, size_t n);
/* Goes on behind the next `n` bytes; false when there are not so many. */
bool foreign_input_skip(struct foreign_input *in, uint64_t n);
/* peek and skip; what is there is shorter than `n` at the end alone. Good until the next call. */
struct span foreign_input_take(struct foreign_input *in, size_t n);
/* The next line without its end ("\n" or "\r\n"), good until the next call; false at the end. What of a
 * line is beyond FOREIGN_LINE_MAX is left out, and counted. */
bool foreign_input_line(struct foreign_input *in, struct span *line);
uint64_t foreign_input_n_cut(const struct foreign_input *in);
/* Of the next byte, in what is unpacked. */
uint64_t foreign_input_offset(const struct foreign_input *in);
/* Of the last line that was taken, from 1; 0: none was. */
uint64_t foreign_input_line_number(const struct foreign_input *in);
bool foreign_input_is_at_end(struct foreign_input *in);

/* Whether it can be read at any place too: a regular file that is not packed, or bytes in memory. */
bool foreign_input_is_seekable(const struct foreign_input *in);
/* Its size when it is seekable, else 0. */
uint64_t foreign_input_bytes(const struct foreign_input *in);
/* `n` bytes at `offset` into `to`, whatever has been taken; false when they are not there. */
bool foreign_input_at(struct foreign_input *in, uint64_t offset, void *to, size_t n);

/* 0, or the failure that ended it ("'FILE': ..."): asked at the end. */
int foreign_input_failure(const struct foreign_input *in, struct err *err);
/* The failure that ended the input, if any did; else "'FILE': WHAT at byte N", or "'FILE':LINE: WHAT" where lines are read; returns ERR_FORMAT. */
int foreign_input_wrong(const struct foreign_input *in, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
