/* SPDX-License-Identifier: MIT */
/* What holds for every reader of foreign files: any bytes are refused with a sentence, or made into a sound trace,
 * of which a profile can be built. */
#ifndef WEIR_TESTS_FOREIGN_CHECK_H
#define WEIR_TESTS_FOREIGN_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calltree/build.h"
#include "formats/foreign/foreign_format.h"

static void foreign_check_trace(int fd)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	struct trace_reader *r;
	struct profile *p;
	struct err err = {0};
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (trace_reader_open(&r, path, &err) < 0)
		abort();
	if (profile_build(&p, r, &o, &err) < 0)
		abort();
	if (p->loss.records_unknown)
		abort();
	for (size_t i = 0; i < p->loss.n_reasons; i++)
		if (strstr(p->loss.reasons[i].phrase, "record is damaged"))
			abort();
	profile_free(p);
	trace_reader_close(r);
}

static inline int foreign_check(const uint8_t *data, size_t n, bool (*is)(struct span first),
	int (*read)(struct foreign_input *in, const char *path,
		const struct foreign_options *options, struct trace_writer *w, struct err *err))
{
	static const struct foreign_options options;
	struct foreign_input *in = foreign_input_of_bytes((struct span){data, n}, "fuzz");
	int fd = memfd_create("foreign_fuzz", MFD_CLOEXEC), copy = dup(fd), rc;
	struct trace_writer *w;
	struct err err = {0};

	if (fd < 0 || copy < 0 || trace_writer_open_fd(&w, copy, "fuzz", &err) < 0)
		abort();
	is(foreign_input_peek(in, FOREIGN_FIRST_BYTES));
	rc = read(in, NULL, &options, w, &err);
	if (trace_writer_close(w, NULL) < 0 || (rc < 0) != (err.text[0] != 0))
		abort();
	if (rc == 0)
		foreign_check_trace(fd);
	foreign_input_close(in);
	close(fd);
	return 0;
}

#endif
