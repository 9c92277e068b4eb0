/* SPDX-License-Identifier: MIT */
/* Folders of uftrace with files of any bytes: the input is task.txt, a map, symbols and records, with lines "==" between. */
#include <fcntl.h>

#include "foreign_check.h"
#include "formats/foreign/uftrace_read.h"

static char folder[] = "/tmp/uftrace_fuzz.XXXXXX";
static const char *const names[] = {"task.txt", "sid-1.map", "a.sym", "7.dat"};

static void remove_folder(void)
{
	char path[64];

	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* A part of the input; the last one is all that is left. */
static void put_file(struct span *input, size_t i)
{
	const uint8_t *end = i < 3 ? memmem(input->p, input->n, "==\n", 3) : NULL;
	size_t n = end ? (size_t)(end - input->p) : input->n;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, input->p, n) != (ssize_t)n)
		abort();
	close(fd);
	n += end ? 3 : 0;
	input->p += n;
	input->n -= n;
}

static bool is_none(struct span first)
{
	(void)first;
	return false;
}

static int read_folder(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err)
{
	(void)in;
	(void)path;
	return uftrace_read(NULL, folder, options, w, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t nothing[1];
	static bool is_made;
	struct span input = {n ? data : nothing, n};

	if (!is_made && (!mkdtemp(folder) || atexit(remove_folder) != 0))
		abort();
	is_made = true;
	for (size_t i = 0; i < 4; i++)
		put_file(&input, i);
	return foreign_check(data, n, is_none, read_folder);
}
