/* SPDX-License-Identifier: MIT */
#include "formats/http_post.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* http://HOST:PORT/PATH, [HOST] for IPv6; owned. */
struct address {
	char *host, *port, *path;
};

static void address_release(struct address *a)
{
	free(a->host);
	free(a->port);
	free(a->path);
}

/* Neither blanks nor control characters, which would end the line of the request. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

static int parse(struct address *a, const char *url, const char *path, struct err *err)
{
	static const char scheme[] = "http://";
	const char *host = url + strlen(scheme), *end, *port;

	if (!is_plain(url))
		return err_set(err, ERR_FAILED, "a URL has no blanks and no control characters");
	if (!strncmp(url, "https://", 8))
		return err_set(err, ERR_FAILED,
			"'%s': only http is spoken here: send to a collector on this machine, or by a tunnel",
			url);
	if (strncmp(url, scheme, strlen(scheme)) != 0 || strchr(url, '@'))
		return err_set(err, ERR_FAILED, "'%s': is not http://HOST[:PORT][/PATH]", url);
	end = host + strcspn(host, "/");
	port = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
	port = port ? memchr(port, ':', (size_t)(end - port)) : NULL;
	a->host = mem_strndup(host, (size_t)((port ? port : end) - host));
	a->port = port ? mem_strndup(port + 1, (size_t)(end - port - 1)) : mem_strdup("80");
	a->path = mem_strdup(end[0] && end[1] ? end : path);
	if (!*a->host || !*a->port)
		return err_set(err, ERR_FAILED, "'%s': is not http://HOST[:PORT][/PATH]", url);
	return 0;
}

/* The host without the brackets of IPv6. */
static char *bare_host(const struct address *a)
{
	size_t n = strlen(a->host);

	return *a->host == '[' && n > 2 ? mem_strndup(a->host + 1, n - 2) : mem_strdup(a->host);
}

static int connect_to(int *fd, const struct address *a, const char *url, struct err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	struct timeval patience = {.tv_sec = HTTP_SECONDS_MAX};
	char *host = bare_host(a);
	int failed = getaddrinfo(host, a->port, &hints, &list);

	free(host);
	if (failed)
		return err_set(err, ERR_FAILED, "'%s': %s", url, gai_strerror(failed));
	*fd = -1;
	for (const struct addrinfo *i = list; i && *fd < 0; i = i->ai_next) {
		*fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC, i->ai_protocol);
		if (*fd < 0)
			continue;
		setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		if (connect(*fd, i->ai_addr, i->ai_addrlen) == 0)
			break;
		failed = errno;
		close(*fd);
		*fd = -1;
	}
	freeaddrinfo(list);
	return *fd < 0 ? err_sys(err, failed, "'%s': cannot connect", url) : 0;
}

static int send_all(int fd, struct span bytes)
{
	while (bytes.n) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

/* Up to the end of the connection, which the request asks for. */
static int receive(int fd, struct buf *to)
{
	char block[4096];

	while (to->n < HTTP_ANSWER_BYTES_MAX) {
		ssize_t n = recv(fd, block, sizeof(block), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		buf_put(to, block, (size_t)n);
	}
	return 0;
}

/* The first line of what a server says, for people. */
static void put_words(char *to, size_t n_max, const char *text)
{
	size_t n = 0;

	for (; *text && *text != '\n' && *text != '\r' && n + 1 < n_max; text++)
		to[n++] = isprint((unsigned char)*text) ? *text : '?';
	to[n] = '\0';
}

int http_answer_take(const char *url, struct buf *all, struct buf *answer, struct err *err)
{
	const char *text = buf_text(all), *body = strstr(text, "\r\n\r\n");
	char words[160];
	int status = 0;

	if (sscanf(text, "HTTP/1.%*1d %d", &status) != 1 || !body)
		return err_set(err, ERR_FAILED, "'%s': does not answer in HTTP", url);
	body += 4;
	if (status < 200 || status > 299) {
		put_words(words, sizeof(words), *body ? body : text);
		return err_set(
			err, ERR_FAILED, "'%s': answers with status %d: %s", url, status, words);
	}
	if (!strcasestr(text, "\r\ntransfer-encoding: chunked"))
		buf_put(answer, body, all->n - (size_t)(body - text));
	return 0;
}

int http_post(const char *url, const char *path, const char *content_type, struct span body,
	struct buf *answer, struct err *err)
{
	struct buf head = {0}, all = {0};
	struct address a = {0};
	FD_AUTO fd = -1;
	int rc = parse(&a, url, path, err);

	if (rc == 0)
		rc = connect_to(&fd, &a, url, err);
	if (rc == 0) {
		buf_printf(&head,
			"POST %s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: weir/%s\r\n"
			"Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			a.path, a.host, a.port, WEIR_VERSION, content_type, body.n);
		/* A server that refuses may answer before it has everything. */
		if (send_all(fd, buf_span(&head)) == 0)
			send_all(fd, body);
		if (receive(fd, &all) < 0 && !all.n)
			rc = err_sys(err, errno, "'%s': does not answer", url);
	}
	if (rc == 0)
		rc = http_answer_take(url, &all, answer, err);
	address_release(&a);
	buf_release(&head);
	buf_release(&all);
	return rc;
}
