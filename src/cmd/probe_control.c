/* SPDX-License-Identifier: MIT */
#include "cmd/probe_control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define LINE_MAX_BYTES 256

int probe_control_open(struct probe_control *c, const char *path, struct err *err)
{
	struct stat st;

	*c = (struct probe_control){.fd = -1, .path = path};
	if (!path)
		return 0;
	if (mkfifo(path, 0600) == 0)
		c->is_ours = true;
	else if (errno != EEXIST)
		return err_sys(err, errno, "'%s': cannot be made", path);
	/* Open for writing, too: so there is no end of file between two writers. */
	c->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->fd < 0)
		return err_sys(err, errno, "'%s': cannot open", path);
	if (fstat(c->fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return err_set(err, ERR_FAILED, "'%s': is no FIFO ('mkfifo' makes one)", path);
	return 0;
}

/* Not what somebody has put there since. */
static bool is_still_there(const struct probe_control *c)
{
	struct stat named, open_one;

	return c->fd >= 0 && fstat(c->fd, &open_one) == 0 && lstat(c->path, &named) == 0 &&
	       named.st_dev == open_one.st_dev && named.st_ino == open_one.st_ino;
}

void probe_control_close(struct probe_control *c)
{
	if (c->is_ours && is_still_there(c))
		unlink(c->path);
	fd_cleanup(&c->fd);
	c->is_ours = false;
	buf_release(&c->line);
}

/* "enable N" and "disable N": clauses count from 1. */
static bool switch_clause(const char *text, bool is_on, struct probe_output *o)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || !n || n > o->stream->clauses.n)
		return false;
	return probe_session_enable(o->session, (uint32_t)n - 1, is_on) >= 0;
}

static bool do_line(struct probe_control *c, const char *line, struct probe_output *o)
{
	bool is_good = true;

	if (!strcmp(line, "end"))
		return false;
	if (!strncmp(line, "enable ", 7))
		is_good = switch_clause(line + 7, true, o);
	else if (!strncmp(line, "disable ", 8))
		is_good = switch_clause(line + 8, false, o);
	else if (*line)
		is_good = false;
	if (!is_good)
		fprintf(stderr,
			"weir: '%s': '%s' is none of enable N, disable N (N from 1 to %zu), end\n",
			c->path, line, o->stream->clauses.n);
	return true;
}

bool probe_control_work(struct probe_control *c, struct probe_output *o)
{
	uint8_t bytes[LINE_MAX_BYTES];
	ssize_t n;

	while (c->fd >= 0 && (n = read(c->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			bool goes_on = true;

			if (bytes[i] != '\n') {
				if (c->line.n < LINE_MAX_BYTES && bytes[i] >= ' ')
					buf_put_u8(&c->line, bytes[i]);
				continue;
			}
			goes_on = do_line(c, buf_text(&c->line), o);
			buf_reset(&c->line);
			if (!goes_on)
				return false;
		}
	}
	return true;
}
