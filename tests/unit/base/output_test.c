/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "base/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/staged_file.h"
#include "probe/stream/stream_file.h"
#include "rt/count/count_abi.h"
#include "steps/stream/step_stream.h"
#include "symbols/catalog/catalog_segments.h"
#include "trace/layout.h"

static char folder[] = "/tmp/weir-output-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static void put(const char *path, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static bool has(const char *path, const char *text)
{
	struct buf b = {0};
	struct err err;
	bool is_so = file_read(&b, path, 1000, &err) == 0 && !strcmp(buf_text(&b), text);

	buf_release(&b);
	return is_so;
}

static void knows_formats(void)
{
	static const struct {
		const char *magic;
		size_t n;
	} formats[] = {{TRACE_MAGIC, TRACE_MAGIC_BYTES}, {COUNT_FILE_MAGIC, 8},
		{CATALOG_MAGIC, CATALOG_MAGIC_BYTES}, {STREAM_MAGIC, sizeof(STREAM_MAGIC) - 1},
		{STEP_STREAM_MAGIC, 8}};
	const char *path = in_folder("magic");
	char bytes[64] = {0};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		memcpy(bytes, formats[i].magic, formats[i].n);
		put(path, bytes, sizeof(bytes));
		CHECK_EQ(output_place(path), OUTPUT_PLACE_OURS);
		put(path, bytes, formats[i].n - 1);
		CHECK_EQ(output_place(path), OUTPUT_PLACE_FOREIGN);
	}
	put(path, "", 0);
	CHECK_EQ(output_place(path), OUTPUT_PLACE_EMPTY);
	CHECK_EQ(output_place("/dev/null"), OUTPUT_PLACE_THROUGH);
	CHECK_EQ(output_place(in_folder("nothing")), OUTPUT_PLACE_FREE);
}

static void discards_its_own_only(void)
{
	const char *path = in_folder("made");
	struct output o;
	struct err err;
	int fd;

	CHECK_EQ(output_open(&o, &fd, path, OUTPUT_MODE_OURS, &err), 0);
	close(fd);
	CHECK_EQ(unlink(path), 0);
	put(path, "theirs", 6);
	output_discard(&o);
	output_release(&o);
	CHECK(has(path, "theirs"));
	unlink(path);
	CHECK_EQ(output_open(&o, &fd, path, OUTPUT_MODE_OURS, &err), 0);
	close(fd);
	output_discard(&o);
	output_release(&o);
	CHECK(access(path, F_OK) < 0);
}

static void puts_back_the_older_one(void)
{
	const char *path = in_folder("trace"), *old = in_folder("trace.old");
	struct output o;
	struct err err;
	int fd;

	put(path, "weirprobe\n", 10);
	CHECK_EQ(output_open(&o, &fd, path, OUTPUT_MODE_OURS, &err), 0);
	close(fd);
	CHECK(has(old, "weirprobe\n") && has(path, ""));
	/* Somebody else was faster: neither is lost. */
	unlink(path);
	put(path, "theirs", 6);
	output_discard(&o);
	output_release(&o);
	CHECK(has(path, "theirs") && has(old, "weirprobe\n"));
	CHECK(output_open(&o, &fd, path, OUTPUT_MODE_OURS, &err) < 0);
	CHECK(strstr(err.text, "exists and is no weir file"));
	CHECK(has(path, "theirs"));
}

static void stages_without_a_name(void)
{
	const char *path = in_folder("staged");
	struct staged_file f;
	struct err err;

	CHECK_EQ(staged_file_open(&f, path, 0644, &err), 0);
	CHECK_EQ(write(f.fd, "whole", 5), 5);
	CHECK(access(path, F_OK) < 0);
	CHECK_EQ(staged_file_put(&f, path, false, &err), 0);
	staged_file_close(&f);
	CHECK(has(path, "whole"));
	CHECK_EQ(staged_file_open(&f, path, 0644, &err), 0);
	CHECK(staged_file_put(&f, path, false, &err) < 0);
	CHECK(has(path, "whole"));
	CHECK_EQ(staged_file_put(&f, path, true, &err), 0);
	staged_file_close(&f);
	CHECK(has(path, ""));
}

static unsigned n_in(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

static void leaves_nothing_when_killed(void)
{
	const char *path = in_folder("killed");
	unsigned before = n_in(folder);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct staged_file f;
		struct err err;

		if (staged_file_open(&f, path, 0644, &err) == 0 && write(f.fd, "half", 4) == 4)
			raise(SIGKILL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_EQ(n_in(folder), before);
}

static void follows_links(void)
{
	const char *link_path = in_folder("link"), *next = in_folder("next");
	char *to;

	CHECK_EQ(symlink("next", link_path), 0);
	CHECK_EQ(symlink("end", next), 0);
	to = output_follow(link_path);
	CHECK_STR(to, in_folder("end"));
	free(to);
	CHECK_EQ(symlink("loop", in_folder("loop")), 0);
	to = output_follow(in_folder("loop")); /* ends */
	free(to);
}

int main(void)
{
	static const struct test tests[] = {
		{"the files of every format are known as ours", knows_formats},
		{"a failed output removes the file that it made and no other", discards_its_own_only},
		{"a failed output puts the older file back, over nobody's", puts_back_the_older_one},
		{"a staged file has its name when it is whole", stages_without_a_name},
		{"a writer that is killed leaves nothing of a staged file", leaves_nothing_when_killed},
		{"a chain of links is followed to its end, also to nothing", follows_links},
	};
	int rc;

	if (!mkdtemp(folder))
		return 1;
	rc = RUN_TESTS(tests);
	for (size_t i = 0; i < 8; i++)
		unlink(in_folder(((const char *[]){"magic", "made", "trace", "trace.old", "staged",
			"link", "next", "loop"})[i]));
	rmdir(folder);
	return rc;
}
