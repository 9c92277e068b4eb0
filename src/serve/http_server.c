/* SPDX-License-Identifier: MIT */
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/mem.h"

/* The library brings much along (TLS, ...) that no other command needs: each would begin a millisecond later
 * and take 3 MB more. So it is opened when there is something to serve. */
#define LIBRARY "libmicrohttpd.so.12"
#define FUNCTIONS(F)                                                                               \
	F(lookup_connection_value)                                                                 \
	F(create_response_from_buffer)                                                             \
	F(add_response_header)                                                                     \
	F(queue_response)                                                                          \
	F(destroy_response)                                                                        \
	F(start_daemon)                                                                            \
	F(stop_daemon)                                                                             \
	F(get_daemon_info)

#define POINTER(name) typeof(MHD_##name) *name;
static struct {
	FUNCTIONS(POINTER)
} mhd;

#define CONNECTION_BYTES (HTTP_PATH_MAX + 65536)

struct http_server {
	struct MHD_Daemon *daemon;
	http_answer_fn *answer;
	void *ctx;
	uint16_t port;
	char token[HTTP_TOKEN_CHARS + 1];
};

/* Nothing but what the page brings along may run in it, and it may talk to nobody but us. */
static const char *const headers[][2] = {
	{"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		"img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

/* ---- who asks ---- */

/* In a time that does not tell how much of it was right. */
static bool token_is_right(const struct http_server *s, const char *text)
{
	unsigned char difference = 0;

	for (size_t i = 0; i < HTTP_TOKEN_CHARS; i++) {
		if (!text[i])
			return false;
		difference |= (unsigned char)(text[i] ^ s->token[i]);
	}
	return !difference && text[HTTP_TOKEN_CHARS] == '/';
}

/* A page of somebody else can make a browser ask us, but not with our name. */
static bool host_is_ours(const struct http_server *s, const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};

	for (size_t i = 0; host && i < sizeof(names) / sizeof(names[0]); i++) {
		char ours[40];

		snprintf(ours, sizeof(ours), "%s:%u", names[i], s->port);
		if (!strcmp(host, ours))
			return true;
	}
	return false;
}

static bool origin_is_ours(const struct http_server *s, const char *origin)
{
	return !origin || (!strncmp(origin, "http://", 7) && host_is_ours(s, origin + 7));
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return mhd.lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* ---- what is answered ---- */

static enum MHD_Result reply(
	struct MHD_Connection *c, unsigned status, const char *type, struct buf *body)
{
	struct MHD_Response *response = mhd.create_response_from_buffer(
		body->n, body->p ? body->p : mem_zalloc(1), MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result = MHD_NO;

	*body = (struct buf){0};
	if (!response)
		return MHD_NO;
	mhd.add_response_header(response, "Content-Type", type);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		mhd.add_response_header(response, headers[i][0], headers[i][1]);
	result = mhd.queue_response(c, status, response);
	mhd.destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *sentence)
{
	struct buf body = {0};

	buf_put_cstr(&body, sentence);
	return reply(c, status, "text/plain; charset=utf-8", &body);
}

/* The address as it came is kept in *connection, since what the library hands on is decoded. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *n_upload,
	void **connection)
{
	struct http_server *s = cls;
	const char *raw = *connection;
	struct http_answer answer = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};

	(void)url;
	(void)version;
	(void)upload;
	if (*n_upload || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "weir answers GET alone.\n");
	if (!raw || raw[0] != '/' || strlen(raw) > HTTP_PATH_MAX)
		return refuse(c, MHD_HTTP_URI_TOO_LONG, "The address is too long.\n");
	if (!host_is_ours(s, header(c, "Host")) || !origin_is_ours(s, header(c, "Origin")))
		return refuse(c, MHD_HTTP_FORBIDDEN, "This is weir's, on this machine alone.\n");
	if (!token_is_right(s, raw + 1))
		return refuse(c, MHD_HTTP_FORBIDDEN,
			"The address needs the token that 'weir view' has printed.\n");
	s->answer(s->ctx, raw + 1 + HTTP_TOKEN_CHARS + 1, &answer);
	return reply(c, answer.status, answer.type, &answer.body);
}

static void *on_address(void *cls, const char *uri, struct MHD_Connection *c)
{
	(void)cls;
	(void)c;
	return mem_strndup(uri, HTTP_PATH_MAX + 1);
}

static void on_end(void *cls, struct MHD_Connection *c, void **connection,
	enum MHD_RequestTerminationCode code)
{
	(void)cls;
	(void)c;
	(void)code;
	free(*connection);
	*connection = NULL;
}

/* Broken requests are the other side's. */
static void on_log(void *cls, const char *format, va_list ap)
{
	(void)cls;
	(void)format;
	(void)ap;
}

/* ---- life ---- */

static int open_library(struct err *err)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool has_all = library != NULL;

	if (!library)
		return err_set(err, ERR_UNSUPPORTED,
			"%s is not here (Debian: apt install libmicrohttpd12); 'weir report --html' needs none",
			LIBRARY);
#define FIND(name)                                                                                 \
	*(void **)&mhd.name = dlsym(library, "MHD_" #name);                                        \
	has_all &= mhd.name != NULL;
	FUNCTIONS(FIND)
	return has_all ? 0 : err_set(err, ERR_UNSUPPORTED, "%s lacks a function", LIBRARY);
}

static int make_token(struct http_server *s, struct err *err)
{
	uint8_t bytes[HTTP_TOKEN_CHARS / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(err, errno, "no random numbers for the token");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int http_server_open(
	struct http_server **out, uint16_t port, http_answer_fn *answer, void *ctx, struct err *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct http_server *s = mem_zalloc(sizeof(*s));
	const union MHD_DaemonInfo *info;
	int rc = open_library(err);

	if (rc == 0)
		rc = make_token(s, err);
	s->answer = answer;
	s->ctx = ctx;
	s->port = port;
	errno = 0;
	if (rc == 0)
		s->daemon = mhd.start_daemon(
			MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ERROR_LOG, port,
			NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
			MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
			MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
			MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SILENCE_S,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
			MHD_OPTION_URI_LOG_CALLBACK, on_address, NULL, MHD_OPTION_NOTIFY_COMPLETED,
			on_end, NULL, MHD_OPTION_END);
	if (rc == 0 && !s->daemon)
		rc = err_sys(err, errno ? errno : EADDRINUSE, "port %u on 127.0.0.1", port);
	info = s->daemon ? mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (info)
		s->port = info->port;
	if (rc < 0)
		http_server_close(s);
	else
		*out = s;
	return rc;
}

void http_server_close(struct http_server *s)
{
	if (!s)
		return;
	if (s->daemon)
		mhd.stop_daemon(s->daemon);
	free(s);
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

const char *http_server_token(const struct http_server *s)
{
	return s->token;
}
