/* SPDX-License-Identifier: MIT */
/* Iterators of the kernel: whoever reads their descriptor runs their program once for each object. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf/attach.h"
#include "probe/run/run.h"

#define READ_BYTES 4096 /* nothing is ever written there */

int attach_iter(struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	const char *text = p->points.v[0]->spec.text;
	int link = bpf_attach_iterator(p->fd);
	int fd = link < 0 ? link : bpf_open_iterator(link);

	(void)name;
	if (link >= 0)
		attach_keep(s, link, -1);
	if (fd < 0)
		return kernel_refusal(err, -fd, text);
	p->iterator_fd = fd;
	s->facts.n_sites++;
	return 0;
}

static int run_iterator(struct probe_session *s, const struct run_program *p)
{
	char nothing[READ_BYTES];
	ssize_t n;

	/* The kernel pauses now and then, with EAGAIN: time to take out what was found. */
	do {
		n = read(p->iterator_fd, nothing, sizeof(nothing));
		run_rings_drain(s);
	} while (!s->is_exiting && (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))));
	return n < 0 ? -errno : 0;
}

int run_iterators(struct probe_session *s, struct err *err)
{
	for (size_t i = 0; i < s->programs.n && !s->is_exiting; i++) {
		const struct run_program *p = &s->programs.v[i];
		int rc = p->iterator_fd > 0 ? run_iterator(s, p) : 0;

		if (rc < 0)
			return kernel_refusal(err, -rc, p->points.v[0]->spec.text);
	}
	return 0;
}
