/* SPDX-License-Identifier: MIT */
/* Trace streams in files: docs/format/probe-stream.md. */
#ifndef WEIR_PROBE_STREAM_STREAM_FILE_H
#define WEIR_PROBE_STREAM_STREAM_FILE_H

#include "probe/stream/stream.h"

#define STREAM_MAGIC "weirprobe\n"

/* Whether the bytes begin like a stream (and not like a script). */
bool stream_file_is(struct span bytes);
void stream_file_write(const struct stream *s, struct buf *out);
/* Checks everything that the loader relies on: numbers in range, pieces inside the code, shapes
 * whose sizes agree, map loads of known maps. What the code does is the kernel verifier's matter.
 */
int stream_file_read(struct span bytes, struct stream **out, struct err *err);

/* --dump: the script line by line, and under each line the instructions of both streams side by
 * side; maps and formats at the end. */
void stream_dump(const struct stream *s, struct buf *out);

#endif
