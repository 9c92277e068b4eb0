/* SPDX-License-Identifier: MIT */
/*
 * A server for one reader on this machine: loopback, GET alone, and nothing without the token that only
 * whoever was told the address knows. Knows nothing of traces: a function answers.
 *
 * What it refuses, before anybody is asked:
 *   403  another Host than the loopback address and its port (a name that was made to lead here), another
 *        origin, a wrong token
 *   405  other methods than GET and HEAD, anything with a body
 *   414  an address of more than HTTP_PATH_MAX bytes
 * What it bounds: connections, memory of each, time that one may be silent. Answers that take their time are
 * made in one thread, one after the other, so whoever makes them needs no lock; others are given meanwhile.
 */
#ifndef WEIR_SERVE_HTTP_SERVER_H
#define WEIR_SERVE_HTTP_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HTTP_PATH_MAX	     98304
#define HTTP_TOKEN_CHARS     32
#define HTTP_CONNECTIONS_MAX 64
#define HTTP_SILENCE_S	     20

struct http_answer {
	unsigned status;
	const char *type; /* a text that stays */
	struct buf body;  /* taken over */
	/* Set by the server while the answer is made: who asked has gone, or the server ends. */
	atomic_bool is_unwanted;
};

/* `path` is what follows the token and its slash, as it came: "q/tree?order=cum"; never NULL. */
struct http_answers {
	/* Called in the server's own thread, also while another answer is made: false when the answer takes
	 * time. */
	bool (*at_once)(void *ctx, const char *path, struct http_answer *answer);
	void (*in_turn)(void *ctx, const char *path, struct http_answer *answer);
	void *ctx;
};

struct http_server;

/* Port 0: any that is free. */
int http_server_open(struct http_server **out, uint16_t port, const struct http_answers *answers,
	struct err *err);
/* What is being answered is given up. */
void http_server_close(struct http_server *s);
uint16_t http_server_port(const struct http_server *s);
const char *http_server_token(const struct http_server *s); /* HTTP_TOKEN_CHARS */

#endif
