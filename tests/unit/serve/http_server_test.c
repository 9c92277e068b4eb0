/* SPDX-License-Identifier: MIT */
/* weir-test: tsan: the library's thread, the one that makes answers, and the one that ends the server */
/* Answers that take time, and what is said meanwhile. tests/cli/view_server.sh has who may ask. */
#include "check.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/http_server.h"

static struct http_server *server;
static sem_t has_begun, may_end;
static atomic_uint n_begun, n_unwanted;

/* "slow" takes until it may end, or until nobody wants it. */
static void in_turn(void *ctx, const char *path, struct http_answer *a)
{
	(void)ctx;
	atomic_fetch_add(&n_begun, 1);
	sem_post(&has_begun);
	while (!strncmp(path, "slow", 4) && sem_trywait(&may_end) < 0) {
		if (atomic_load(&a->is_unwanted)) {
			atomic_fetch_add(&n_unwanted, 1);
			break;
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	buf_printf(&a->body, "made: %s\n", path);
}

static bool at_once(void *ctx, const char *path, struct http_answer *a)
{
	(void)ctx;
	if (strcmp(path, "quick") != 0)
		return false;
	buf_put_cstr(&a->body, "at once\n");
	return true;
}

static void begin(void)
{
	static const struct http_answers answers = {.at_once = at_once, .in_turn = in_turn};
	struct err err = {0};

	sem_init(&has_begun, 0, 0);
	sem_init(&may_end, 0, 0);
	n_begun = n_unwanted = 0;
	CHECK_EQ(http_server_open(&server, 0, &answers, &err), 0);
}

static int ask(const char *path)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(http_server_port(server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval patience = {.tv_sec = 20};
	char request[200];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int n = snprintf(request, sizeof(request),
		"GET /%s/%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n",
		http_server_token(server), path, http_server_port(server));

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	CHECK_EQ(write(fd, request, (size_t)n), n);
	return fd;
}

/* The whole answer, with its head. */
static const char *answer_of(int fd)
{
	static char text[4096];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(text) - 1 && (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fd);
	return text;
}

static void test_meanwhile(void)
{
	int slow, next;

	begin();
	slow = ask("slow");
	sem_wait(&has_begun);
	next = ask("next");
	CHECK(strstr(answer_of(ask("quick")), "at once") != NULL);
	CHECK_EQ(n_begun, 1);
	sem_post(&may_end);
	CHECK(strstr(answer_of(slow), "made: slow") != NULL);
	CHECK(strstr(answer_of(next), "made: next") != NULL);
	CHECK_EQ(n_unwanted, 0);
	http_server_close(server);
}

static void test_gone(void)
{
	int slow, next;

	begin();
	slow = ask("slow");
	sem_wait(&has_begun);
	close(slow);
	next = ask("next"); /* any request looks who has gone */
	CHECK(strstr(answer_of(next), "made: next") != NULL);
	CHECK_EQ(n_unwanted, 1);
	http_server_close(server);
}

static void test_end(void)
{
	int slow, next;

	begin();
	slow = ask("slow");
	sem_wait(&has_begun);
	next = ask("next");
	CHECK(strstr(answer_of(ask("quick")), "at once") != NULL); /* `next` is in the queue */
	http_server_close(server);
	CHECK_EQ(n_unwanted, 1);
	CHECK_EQ(n_begun, 1);
	CHECK(strstr(answer_of(next), "made") == NULL);
	close(slow);
}

int main(void)
{
	static const struct test tests[] = {
		{"while an answer is made, what is at once is answered, and the next one waits its turn",
			test_meanwhile},
		{"an answer is given up when who asked has gone", test_gone},
		{"a server that ends gives up the answer that is made, and makes no other",
			test_end},
	};

	return RUN_TESTS(tests);
}
