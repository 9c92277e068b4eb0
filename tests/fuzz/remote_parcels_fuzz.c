/* SPDX-License-Identifier: MIT */
/* What may come over a connection: parcels are the same however they are cut, and an agent takes what is good for it. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/remote_agent.h"
#include "remote/parcel.h"

#define AGENT_BYTES_MAX 4096 /* that a socket takes at once */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A number for all that comes out. */
static uint64_t digest(const uint8_t *data, size_t n, size_t piece)
{
	struct parcels p = {0};
	uint64_t sum = 0;
	int rc = 0;

	for (size_t at = 0; at < n && rc >= 0; at += piece) {
		struct parcel parcel;
		struct err err = {0};

		parcels_add(&p, (struct span){data + at, n - at < piece ? n - at : piece});
		while ((rc = parcels_next(&p, &parcel, &err)) > 0) {
			sum = sum * 31 + (uint64_t)parcel.kind + parcel_number(&parcel);
			for (size_t i = 0; i < parcel.content.n; i++)
				sum = sum * 31 + parcel.content.p[i];
		}
		if (rc < 0 && !err.text[0])
			abort();
	}
	parcels_release(&p);
	return sum * 2 + (rc < 0);
}

static int refuse(void *ctx, int argc, char **argv, const struct agent_child *child, pid_t *pid,
	struct err *err)
{
	(void)ctx, (void)child, (void)pid;
	if (argv[argc])
		abort();
	return err_set(err, ERR_FAILED, "nothing is run here");
}

static void serve(const uint8_t *data, size_t n)
{
	struct agent agent = {.start = refuse};
	struct err err = {0};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || write(ends[1], data, n) != (ssize_t)n)
		abort();
	shutdown(ends[1], SHUT_WR);
	agent.in_fd = agent.out_fd = ends[0];
	if (agent_serve(&agent, &err) >= 0 || !err.text[0])
		abort(); /* nothing was started, so that nothing can have ended well */
	close(ends[0]);
	close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint64_t whole = digest(data, n, n ? n : 1);

	if (digest(data, n, 1) != whole || digest(data, n, 7) != whole)
		abort();
	if (n && n <= AGENT_BYTES_MAX)
		serve(data, n);
	return 0;
}
