/* SPDX-License-Identifier: MIT */
/* Files in a folder of their own that we, or a child with another root, have mapped. */
#include "process/mapped_file.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "elf_maker.h"

static char folder[] = "/tmp/weir-mapped-XXXXXX";

/* Absolute, since mappings have such paths; the last four stay valid. */
static const char *path_of(const char *name)
{
	static char paths[4][256];
	static size_t i;

	i = (i + 1) % 4;
	snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, name);
	return paths[i];
}

static void put_file(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void *map_file(const char *name)
{
	int fd = open(path_of(name), O_RDONLY);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

/* --- our own mappings ------------------------------------------------------------------------- */

struct finding {
	uint64_t addr;
	struct proc_mapping found;
	char path[512];
};

static void take(void *ctx, const struct proc_mapping *m)
{
	struct finding *f = ctx;

	if (m->start != f->addr)
		return;
	f->found = *m;
	snprintf(f->path, sizeof(f->path), "%s", m->path);
	f->found.path = f->path;
}

/* What /proc says of the mapping now. */
static struct proc_mapping *mapping_at(struct finding *f, const void *addr)
{
	*f = (struct finding){.addr = (uintptr_t)addr};
	CHECK_EQ(proc_each_mapping(getpid(), take, f, NULL), 0);
	CHECK_EQ(f->found.start, f->addr);
	return &f->found;
}

static void check_text(const struct mapped_file *f, const char *text)
{
	char got[64] = "";

	CHECK_EQ(pread(f->fd, got, sizeof(got) - 1, 0), strlen(text));
	CHECK_STR(got, text);
	CHECK_EQ(f->st.st_size, strlen(text));
}

static int open_it(struct mapped_file *f, const struct proc_mapping *m, struct err *err)
{
	*err = (struct err){0};
	return mapped_file_open(f, getpid(), m, (struct span){0}, err);
}

/* By the mapping itself; whoever has no right to that gets the reason of the path. */
static void check_by_mapping(const struct proc_mapping *m, const char *text, const char *reason)
{
	struct mapped_file f;
	struct err err;
	int rc = open_it(&f, m, &err);

	if (geteuid() == 0)
		CHECK_EQ(rc, 0);
	if (rc == 0) {
		CHECK(strstr(f.path, "/map_files/") != NULL);
		check_text(&f, text);
	} else {
		CHECK_EQ(rc, ERR_NOT_FOUND);
		CHECK_STR(err.text, reason);
		CHECK_EQ(f.fd, -1);
	}
	mapped_file_close(&f);
}

static void opens_by_path(void)
{
	struct finding at;
	struct mapped_file f;
	struct err err;
	void *p;

	put_file("plain", "first");
	p = map_file("plain");
	CHECK_EQ(open_it(&f, mapping_at(&at, p), &err), 0);
	CHECK_STR(f.path, path_of("plain"));
	check_text(&f, "first");
	mapped_file_close(&f);
	munmap(p, 4096);
}

/* A memfd with the bytes of our own program, or with others; mapped as code from `offset`. */
static void *map_memory_file(bool is_elf, off_t offset, int *fd)
{
	int from = open("/proc/self/exe", O_RDONLY);
	char bytes[65536] = "no image";
	void *at;

	*fd = memfd_create("weir-mapped", 0);
	CHECK(*fd >= 0);
	if (is_elf)
		for (ssize_t n; (n = read(from, bytes, sizeof(bytes))) > 0;)
			CHECK_EQ(write(*fd, bytes, (size_t)n), n);
	else
		CHECK_EQ(write(*fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(from);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, *fd, offset);
	CHECK(at != MAP_FAILED);
	return at;
}

static void looks_into_files_in_memory(void)
{
	static const struct {
		bool is_elf;
		off_t offset;
		bool expected;
	} cases[] = {{true, 0, true}, {true, 4096, true}, {false, 0, false}, {false, 4096, false}};

	CHECK(path_is_in_memory("/memfd:x (deleted)") && path_is_in_memory("/dev/shm/x"));
	CHECK(!path_is_in_memory("/usr/bin/x") && !path_is_in_memory(""));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct finding at;
		struct mapped_file f;
		struct err err;
		int fd;
		void *p = map_memory_file(cases[i].is_elf, cases[i].offset, &fd);
		const struct proc_mapping *m = mapping_at(&at, p);

		CHECK_STR(m->path, "/memfd:weir-mapped (deleted)");
		CHECK_EQ(open_it(&f, m, &err), 0);
		mapped_file_close(&f);
		CHECK_EQ(mapped_file_is_elf(getpid(), m, (struct span){0}), cases[i].expected);
		munmap(p, 4096);
		close(fd);
	}
}

static void opens_what_was_replaced(void)
{
	struct finding at;
	void *p;

	put_file("replaced", "old");
	p = map_file("replaced");
	put_file("new", "the new one");
	CHECK_EQ(rename(path_of("new"), path_of("replaced")), 0);
	CHECK(path_is_deleted(mapping_at(&at, p)->path));
	check_by_mapping(&at.found, "old", "the file has been deleted");
	/* Records of the kernel have the path of the moment of the mapping, without a mark. */
	at.found.path = path_of("replaced");
	check_by_mapping(&at.found, "old", "the file there now is another one (inode differs)");
	munmap(p, 4096);
}

static void finds_its_name_again(void)
{
	struct finding at;
	struct mapped_file f;
	struct err err;
	void *p;

	put_file("lost", "lost");
	p = map_file("lost");
	CHECK_EQ(link(path_of("lost"), path_of("kept")), 0);
	CHECK_EQ(unlink(path_of("lost")), 0);
	CHECK_EQ(link(path_of("kept"), path_of("lost")), 0);
	CHECK(path_is_deleted(mapping_at(&at, p)->path));
	CHECK_EQ(open_it(&f, &at.found, &err), 0);
	CHECK_STR(f.path, path_of("lost"));
	mapped_file_close(&f);
	munmap(p, 4096);
}

static void takes_marks_for_names(void)
{
	struct finding at;
	struct mapped_file f;
	struct err err;
	void *p;

	put_file("odd (deleted)", "odd");
	put_file("odd", "other");
	p = map_file("odd (deleted)");
	CHECK_EQ(open_it(&f, mapping_at(&at, p), &err), 0);
	CHECK_STR(f.path, path_of("odd (deleted)"));
	check_text(&f, "odd");
	mapped_file_close(&f);
	munmap(p, 4096);
}

/* --- mappings of nobody ----------------------------------------------------------------------- */

#define NO_PID 0x7fffffff

static struct proc_mapping made(const char *name)
{
	struct proc_mapping m = {.start = 0x1000, .end = 0x2000, .path = path_of(name)};
	struct stat st;

	if (stat(m.path, &st) == 0) {
		m.inode = st.st_ino;
		m.major = major(st.st_dev);
		m.minor = minor(st.st_dev);
	}
	return m;
}

static void check_refused(const struct proc_mapping *m, struct span build_id, const char *reason)
{
	struct mapped_file f;
	struct err err = {0};

	CHECK(mapped_file_open(&f, NO_PID, m, build_id, &err) < 0);
	CHECK_STR(err.text, reason);
	CHECK(f.fd == -1 && !f.path);
	mapped_file_close(&f);
}

static void tells_why_not(void)
{
	struct span none = {0};
	struct proc_mapping m;
	char absent[512];

	put_file("file", "file");
	m = made("file");
	m.inode++;
	check_refused(&m, none, "the file there now is another one (inode differs)");
	m = made("absent");
	snprintf(absent, sizeof(absent), "'%s': cannot open: No such file or directory", m.path);
	check_refused(&m, none, absent);
	m.path = path_of("absent (deleted)");
	check_refused(&m, none, "the file has been deleted");
	m.path = path_of("file (deleted)"); /* nothing is known of it that could be compared */
	check_refused(&m, none, "the file has been deleted");
	m = made("file"); /* a file that is gone and not mapped has lost its inode, too */
	m.path = path_of("file (deleted)");
	check_refused(&m, none, "the file has been deleted");
	m.path = "[stack]";
	check_refused(&m, none, "no file is mapped at 0x1000");
	CHECK_EQ(mkfifo(path_of("pipe"), 0600), 0);
	m = made("pipe");
	snprintf(absent, sizeof(absent), "'%s': is not a regular file", m.path);
	check_refused(&m, none, absent);
}

static void needs_no_more_than_is_known(void)
{
	struct proc_mapping m;
	struct mapped_file f;
	struct err err;

	put_file("known", "known");
	m = made("known");
	m.major = m.minor = 0;
	CHECK_EQ(mapped_file_open(&f, NO_PID, &m, (struct span){0}, &err), 0);
	mapped_file_close(&f);
	m = made("known");
	m.inode = 0;
	CHECK_EQ(mapped_file_open(&f, NO_PID, &m, (struct span){0}, &err), 0);
	mapped_file_close(&f);
}

static void put_elf(const char *name, const char *build_id)
{
	struct buf note = {0};
	struct elf_maker m;
	struct span bytes;
	int fd;

	buf_put_u32(&note, 4);
	buf_put_u32(&note, 8);
	buf_put_u32(&note, NT_GNU_BUILD_ID);
	buf_put(&note, "GNU", 4);
	buf_put(&note, build_id, 8);
	elf_maker_init(&m, true);
	elf_maker_section(&m, ".note.gnu.build-id", SHT_NOTE, 0, buf_span(&note));
	bytes = elf_maker_finish(&m);
	fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK_EQ(write(fd, bytes.p, bytes.n), bytes.n);
	close(fd);
	elf_maker_release(&m);
	buf_release(&note);
}

static void lets_the_build_id_decide(void)
{
	struct span id = {(const uint8_t *)"12345678", 8};
	struct mapped_file f;
	struct proc_mapping m;
	struct err err;

	put_elf("elf", "12345678");
	m = made("elf");
	m.inode++; /* an equal copy has another one */
	CHECK_EQ(mapped_file_open(&f, NO_PID, &m, id, &err), 0);
	mapped_file_close(&f);
	m.path = path_of("elf (deleted)");
	CHECK_EQ(mapped_file_open(&f, NO_PID, &m, id, &err), 0);
	CHECK_STR(f.path, path_of("elf"));
	mapped_file_close(&f);
	put_elf("elf", "1234567x");
	m = made("elf");
	check_refused(&m, id, "the file there now is another version (build-id differs)");
	put_file("elf", "no ELF file, and long enough to hold the header of one, 64 bytes.");
	m = made("elf");
	CHECK(mapped_file_open(&f, NO_PID, &m, id, &err) < 0);
}

/* --- another root ----------------------------------------------------------------------------- */

static void looks_below_the_root_of_the_process(void)
{
	struct proc_mapping m;
	struct mapped_file f;
	struct err err;
	char expected[64];
	int ready[2];
	char byte;
	pid_t pid;

	put_file("inside", "inside");
	m = made("inside");
	m.path = "/inside"; /* as the child sees it */
	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = chroot(folder) == 0;
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	if (byte) { /* else it takes a privilege */
		CHECK_EQ(mapped_file_open(&f, pid, &m, (struct span){0}, &err), 0);
		snprintf(expected, sizeof(expected), "/proc/%d/root/inside", pid);
		CHECK_STR(f.path, expected);
		check_text(&f, "inside");
		mapped_file_close(&f);
		m.inode++;
		CHECK(mapped_file_open(&f, pid, &m, (struct span){0}, &err) < 0);
		CHECK_STR(err.text, "'/inside': cannot open: No such file or directory");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

static void remove_folder(void)
{
	static const char *const names[] = {"plain", "replaced", "lost", "kept", "odd (deleted)",
		"odd", "file", "pipe", "known", "elf", "inside"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_of(names[i]));
	rmdir(folder);
}

int main(void)
{
	static const struct test tests[] = {
		{"a file is opened by its path", opens_by_path},
		{"a file that was replaced is opened by its mapping", opens_what_was_replaced},
		{"a file that was deleted and has its name again is opened by it",
			finds_its_name_again},
		{"a name may end like the kernel's mark of a deleted file", takes_marks_for_names},
		{"what cannot be opened, or is another file, is told", tells_why_not},
		{"what is not known of a file is not compared", needs_no_more_than_is_known},
		{"where a build-id is known, it decides", lets_the_build_id_decide},
		{"what is in a file in memory tells what it is", looks_into_files_in_memory},
		{"a process with another root has its own paths",
			looks_below_the_root_of_the_process},
	};
	int rc;

	if (!mkdtemp(folder))
		return 1;
	rc = RUN_TESTS(tests);
	remove_folder();
	return rc;
}
