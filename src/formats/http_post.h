/* SPDX-License-Identifier: MIT */
/* One request to a server that takes exports: plain HTTP/1.1, no redirections, no credentials. */
#ifndef WEIR_FORMATS_HTTP_POST_H
#define WEIR_FORMATS_HTTP_POST_H

#include "base/buf.h"
#include "base/err.h"

#define HTTP_ANSWER_BYTES_MAX (64 * 1024) /* of the answer; the rest is not looked at */
#define HTTP_SECONDS_MAX      30	  /* without any byte */

/*
 * Sends `body` to http://HOST[:PORT][/PATH]; `path` is used when the URL has none. Appends the body of the answer
 * to `answer`. Fails, with what the server says, unless its status is 2xx; https is refused by a sentence.
 */
int http_post(const char *url, const char *path, const char *content_type, struct span body,
	struct buf *answer, struct err *err);
/* All bytes of an answer: its body, unless it comes in chunks; a failure unless its status is 2xx. */
int http_answer_take(const char *url, struct buf *all, struct buf *answer, struct err *err);

#endif
