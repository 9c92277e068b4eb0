/* SPDX-License-Identifier: MIT */
#include "cmd/trace_input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/temporary_folder.h"
#include "cmd/foreign_formats.h"
#include "formats/import_counts.h"
#include "trace/layout.h"

#define BLOCK_BYTES (64 << 10)
#define BYTES_MAX   (UINT64_C(1) << 38) /* 256 GiB: whoever sends more does not send a trace */

/* As many bytes as there are, up to a block: a pipe gives few at a time. Negative: failed. */
static ssize_t read_block(uint8_t *to)
{
	size_t n = 0;

	while (n < BLOCK_BYTES) {
		ssize_t k = read(STDIN_FILENO, to + n, BLOCK_BYTES - n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		n += (size_t)k;
	}
	return (ssize_t)n;
}

static bool begins_well(struct span first)
{
	return (first.n >= TRACE_MAGIC_BYTES && !memcmp(first.p, TRACE_MAGIC, TRACE_MAGIC_BYTES)) ||
	       import_counts_is(first) || foreign_format_of_bytes(first);
}

static int copy_input(int fd, struct err *err)
{
	uint8_t *block = mem_alloc(BLOCK_BYTES);
	uint64_t n_bytes = 0;
	ssize_t n;
	int rc = 0;

	do {
		n = read_block(block);
		if (n < 0)
			rc = err_sys(err, errno, "standard input: cannot be read");
		else if (!n_bytes && !n)
			rc = err_set(err, ERR_FORMAT, "standard input: is empty");
		else if (!n_bytes && !begins_well((struct span){block, (size_t)n}))
			rc = err_set(err, ERR_FORMAT, "standard input: is not a trace");
		else if (n_bytes > BYTES_MAX)
			rc = err_set(err, ERR_LIMIT, "standard input: is longer than any trace");
		else if (fd_write_all(fd, (struct span){block, (size_t)n}) < 0)
			rc = err_sys(err, errno,
				"standard input: cannot be kept in '%s' ($TMPDIR names another place)",
				temporary_place());
		n_bytes += n > 0 ? (uint64_t)n : 0;
	} while (rc == 0 && n == BLOCK_BYTES);
	free(block);
	return rc;
}

static void let_pass(int number)
{
	(void)number;
}

int trace_input_open(struct trace_input *in, const char *path, struct err *err)
{
	struct sigaction once = {.sa_handler = let_pass, .sa_flags = (int)SA_RESETHAND}, before;
	int rc;

	*in = (struct trace_input){.path = path, .fd = -1};
	if (strcmp(path, "-") != 0)
		return 0;
	if (fcntl(STDIN_FILENO, F_GETFD) < 0) /* else its number would be that of the next file */
		return err_sys(err, errno, "standard input: cannot be read");
	if (isatty(STDIN_FILENO))
		return err_set(err, ERR_FAILED, "standard input: is a terminal, not a trace");
	in->fd = temporary_file_open();
	if (in->fd < 0)
		return err_sys(err, errno,
			"standard input: cannot be kept in '%s' ($TMPDIR names "
			"another place)",
			temporary_place());
	sigaction(SIGINT, &once, &before);
	rc = copy_input(in->fd, err);
	sigaction(SIGINT, &before, NULL);
	snprintf(in->name, sizeof(in->name), "/proc/self/fd/%d", in->fd);
	in->path = in->name;
	if (rc < 0)
		trace_input_close(in);
	return rc;
}

void trace_input_close(struct trace_input *in)
{
	fd_cleanup(&in->fd);
}
