/* SPDX-License-Identifier: MIT */
/*
 * The library's thread reads requests, refuses, and gives what can be given at once. Other requests wait in a queue, their
 * connections suspended, for a second thread that makes their answers, and resumes each connection when its answer is there.
 *
 * A request is the library's thread's, until it is in the queue; then it is the second thread's, until its connection is
 * resumed. Queue, `current` and `is_over` are changed under the lock alone.
 */
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
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
	F(get_daemon_info)                                                                         \
	F(get_connection_info)                                                                     \
	F(suspend_connection)                                                                      \
	F(resume_connection)

#define POINTER(name) typeof(MHD_##name) *name;
static struct {
	FUNCTIONS(POINTER)
} mhd;

#define CONNECTION_BYTES (HTTP_PATH_MAX + 65536)

struct request {
	char *address; /* as it came: what the library hands on is decoded */
	struct MHD_Connection *connection;
	struct http_answer answer;
	bool is_answered;
	struct request *next; /* in the queue */
};

struct http_server {
	struct MHD_Daemon *daemon;
	struct http_answers answers;
	pthread_t worker;
	bool has_worker;
	pthread_mutex_t lock;
	pthread_cond_t has_request;
	struct request *first, *last; /* the queue */
	struct request *current;      /* whose answer is being made; NULL: none is */
	bool is_over;
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

static enum MHD_Result reply(struct MHD_Connection *c, struct http_answer *answer)
{
	struct buf *body = &answer->body;
	struct MHD_Response *response = mhd.create_response_from_buffer(
		body->n, body->p ? body->p : mem_zalloc(1), MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result = MHD_NO;

	*body = (struct buf){0};
	if (!response)
		return MHD_NO;
	mhd.add_response_header(response, "Content-Type", answer->type);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		mhd.add_response_header(response, headers[i][0], headers[i][1]);
	result = mhd.queue_response(c, answer->status, response);
	mhd.destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *sentence)
{
	struct http_answer answer = {.status = status, .type = "text/plain; charset=utf-8"};

	buf_put_cstr(&answer.body, sentence);
	return reply(c, &answer);
}

static const char *path_of(const struct request *request)
{
	return request->address + 1 + HTTP_TOKEN_CHARS + 1;
}

/* ---- answers that take time ---- */

static struct request *take_request(struct http_server *s)
{
	struct request *request = s->first;

	if (request)
		s->first = request->next;
	if (!s->first)
		s->last = NULL;
	return request;
}

static void *answer_in_turn(void *context)
{
	struct http_server *s = context;

	pthread_mutex_lock(&s->lock);
	while (!s->is_over) {
		struct request *request = s->current = take_request(s);

		if (!request) {
			pthread_cond_wait(&s->has_request, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		s->answers.in_turn(s->answers.ctx, path_of(request), &request->answer);
		pthread_mutex_lock(&s->lock);
		s->current = NULL;
		request->is_answered = true;
		mhd.resume_connection(request->connection);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* A browser that does not want an answer any more closes the connection, which the library does not look at while
 * it is suspended. */
static bool has_gone(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	char byte;
	ssize_t n = info ? recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : -1;

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void give_up_for_nobody(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	for (struct request *r = s->first; r; r = r->next)
		if (has_gone(r->connection))
			atomic_store(&r->answer.is_unwanted, true);
	if (s->current && has_gone(s->current->connection))
		atomic_store(&s->current->answer.is_unwanted, true);
	pthread_mutex_unlock(&s->lock);
}

static enum MHD_Result wait_in_turn(struct http_server *s, struct request *request)
{
	enum MHD_Result result = MHD_YES;

	pthread_mutex_lock(&s->lock);
	if (s->is_over) {
		result = MHD_NO;
	} else {
		mhd.suspend_connection(request->connection);
		request->next = NULL;
		if (s->last)
			s->last->next = request;
		else
			s->first = request;
		s->last = request;
		pthread_cond_signal(&s->has_request);
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

/* Nobody is answered any more; connections that wait are resumed, since the library cannot end with them. */
static void end_worker(struct http_server *s)
{
	struct request *request;

	pthread_mutex_lock(&s->lock);
	s->is_over = true;
	if (s->current)
		atomic_store(&s->current->answer.is_unwanted, true);
	pthread_cond_signal(&s->has_request);
	pthread_mutex_unlock(&s->lock);
	if (s->has_worker)
		pthread_join(s->worker, NULL);
	while ((request = take_request(s))) {
		request->answer.status = MHD_HTTP_SERVICE_UNAVAILABLE;
		request->is_answered = true;
		mhd.resume_connection(request->connection);
	}
}

/* ---- requests ---- */

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *n_upload,
	void **connection)
{
	struct http_server *s = cls;
	struct request *request = *connection;
	const char *raw = request ? request->address : NULL;

	(void)url;
	(void)version;
	(void)upload;
	if (request && request->is_answered)
		return reply(c, &request->answer);
	if (*n_upload || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "weir answers GET alone.\n");
	if (!raw || raw[0] != '/' || strlen(raw) > HTTP_PATH_MAX)
		return refuse(c, MHD_HTTP_URI_TOO_LONG, "The address is too long.\n");
	if (!host_is_ours(s, header(c, "Host")) || !origin_is_ours(s, header(c, "Origin")))
		return refuse(c, MHD_HTTP_FORBIDDEN, "This is weir's, on this machine alone.\n");
	if (!token_is_right(s, raw + 1))
		return refuse(c, MHD_HTTP_FORBIDDEN,
			"The address needs the token that 'weir view' has printed.\n");
	give_up_for_nobody(s);
	request->connection = c;
	return s->answers.at_once(s->answers.ctx, path_of(request), &request->answer)
		       ? reply(c, &request->answer)
		       : wait_in_turn(s, request);
}

static void *on_address(void *cls, const char *uri, struct MHD_Connection *c)
{
	struct request *request = mem_zalloc(sizeof(*request));

	(void)cls;
	(void)c;
	request->address = mem_strndup(uri, HTTP_PATH_MAX + 1);
	request->answer.status = MHD_HTTP_OK;
	request->answer.type = "text/plain; charset=utf-8";
	return request;
}

static void on_end(void *cls, struct MHD_Connection *c, void **connection,
	enum MHD_RequestTerminationCode code)
{
	struct request *request = *connection;

	(void)cls;
	(void)c;
	(void)code;
	if (!request)
		return;
	buf_release(&request->answer.body);
	free(request->address);
	free(request);
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

static int begin_worker(struct http_server *s, struct err *err)
{
	int rc = pthread_create(&s->worker, NULL, answer_in_turn, s);

	s->has_worker = rc == 0;
	return rc ? err_sys(err, rc, "no thread that answers") : 0;
}

int http_server_open(struct http_server **out, uint16_t port, const struct http_answers *answers,
	struct err *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct http_server *s = mem_zalloc(sizeof(*s));
	const union MHD_DaemonInfo *info;
	int rc = open_library(err);

	if (rc == 0)
		rc = make_token(s, err);
	s->answers = *answers;
	s->port = port;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->has_request, NULL);
	if (rc == 0)
		rc = begin_worker(s, err);
	errno = 0;
	if (rc == 0)
		s->daemon = mhd.start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO |
						     MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME,
			port, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
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
	end_worker(s);
	if (s->daemon)
		mhd.stop_daemon(s->daemon);
	pthread_cond_destroy(&s->has_request);
	pthread_mutex_destroy(&s->lock);
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
