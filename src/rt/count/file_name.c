/* SPDX-License-Identifier: MIT */
/*
 * Where the count file goes: $WEIR_OUT, or NAME.weir in the working directory; where that is a link,
 * to what it names. It is made under a name of its own and moved when its first lines are written, so
 * that whoever finds it can read it.
 *
 * A file that is there already is never written to: a process that still runs may have it mapped.
 * Then it keeps its name, and this process' file is NAME.PID.weir; that of a process that has
 * ended becomes NAME.weir.old. Nothing but count files is ever moved or removed: what else has
 * the name keeps it, and if that is a file, this process' file is NAME.PID.weir. Should that be
 * taken as well (another pid namespace has the same numbers), it is NAME.PID.1.weir, and so on.
 *
 * Whoever counts into a file has it locked (count_file.c). That is true for processes which cannot be
 * seen from here, too.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "../base/proc_text.h"
#include "runtime.h"

#define TRIES	     32 /* against others who start at the same time */
#define LINKS_MAX    16
#define TAKEN	     1 /* by a process that still runs */
#define NOT_OURS     2 /* by something that is no count file */
#define OLD_NOT_OURS 3 /* so is the name with .old */

static const char *base_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/' && path[1])
			name = path + 1;
	return name;
}

void count_name_set(const char *wanted, const char *exe)
{
	struct text t = {count_library.wanted, 0, sizeof(count_library.wanted)};
	struct stat st;
	long n = 0;

	if (raw_call(SYS_fstat, 2, &st) == 0) {
		count_library.stderr_device = st.st_dev;
		count_library.stderr_inode = st.st_ino;
	}
	if (!wanted || wanted[0] != '/')
		n = raw_call(SYS_getcwd, t.at, t.max - 1);
	if (n > 0 && t.at[0] == '/') {
		t.n = (size_t)n - 1;
		if (t.n > 1)
			text_add_char(&t, '/');
	}
	count_library.wanted_from = t.n;
	text_add(&t, wanted ? wanted : base_name(exe));
	if (!wanted) {
		count_library.wanted_from = t.n; /* a program may be called %p */
		text_add(&t, ".weir");
	}
}

/* The last link is followed, so that its target is made or replaced and not the link itself. */
static void follow_links(struct text *t)
{
	char target[COUNT_PATH_BYTES];

	for (int i = 0; i < LINKS_MAX; i++) {
		long n = raw_call(SYS_readlink, t->at, target, sizeof(target) - 1);

		if (n <= 0 || n == sizeof(target) - 1)
			return;
		target[n] = 0;
		if (target[0] == '/')
			t->n = 0;
		else
			while (t->n && t->at[t->n - 1] != '/')
				t->n--;
		text_add(t, target);
	}
}

/* The name with its %p replaced. `own` 1: this process' own, .PID is put in where %p was not there;
 * N more: the Nth of that name. */
static void expand(struct text *t, uint32_t own)
{
	const char *w = count_library.wanted;
	bool has_pid = false;

	for (size_t i = 0; w[i]; i++) {
		bool is_escape = i >= count_library.wanted_from && w[i] == '%';

		if (is_escape && w[i + 1] == 'p') {
			text_add_number(t, count_library.pid);
			has_pid = true;
			i++;
		} else {
			text_add_char(t, w[i]);
			i += is_escape && w[i + 1] == '%';
		}
	}
	follow_links(t);
	if (own < (has_pid ? 2 : 1))
		return;
	if (text_ends_with(t->at, t->n, ".weir"))
		t->n -= 5;
	if (!has_pid) {
		text_add_char(t, '.');
		text_add_number(t, count_library.pid);
	}
	if (own > 1) {
		text_add_char(t, '.');
		text_add_number(t, own - 1);
	}
	text_add(t, ".weir");
}

long count_name_create(void)
{
	long rc = -EEXIST;

	/* One may be left by a process that was killed, or be another's of the same number. */
	for (uint32_t i = 0; i < TRIES && rc == -EEXIST; i++) {
		struct text t = {count_library.path, 0, sizeof(count_library.path)};

		expand(&t, 0);
		text_add(&t, ".tmp.");
		text_add_number(&t, count_library.pid);
		if (i) {
			text_add_char(&t, '.');
			text_add_number(&t, i);
		}
		rc = count_file_create();
	}
	return rc;
}

/* By number or path: numbers may differ between the layers of a file system. */
static bool maps_have(uint32_t pid, const char *path, uint64_t inode)
{
	char maps[40], mapped[COUNT_PATH_BYTES];
	struct text t = {maps, 0, sizeof(maps)};
	struct maps_line line = {.path = mapped, .path_bytes = sizeof(mapped)};
	struct proc_text r;
	bool has = false;

	text_add(&t, "/proc/");
	text_add_number(&t, pid);
	text_add(&t, "/maps");
	if (!proc_text_open(&r, maps))
		return true; /* not to be known: the other one's, to be safe */
	while (!has && maps_next(&r, &line))
		has = line.inode == inode || text_equals(line.path, path);
	proc_text_close(&r);
	return has;
}

/* The first lines of a count file. */
struct beginning {
	char magic[8];
	uint32_t version, header_bytes;
	uint32_t pid, parent;
	uint32_t flags;
};
_Static_assert(
	offsetof(struct beginning, flags) == offsetof(struct count_header, flags), "the same");

static bool read_beginning(const char *path, struct beginning *b)
{
	int fd = raw_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	long n;

	if (fd < 0)
		return false;
	n = raw_call(SYS_pread64, fd, b, sizeof(*b), 0);
	raw_close(fd);
	return n == sizeof(*b) && bytes_equal(b->magic, COUNT_FILE_MAGIC, sizeof(b->magic));
}

static bool is_locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = raw_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	long rc;

	if (fd < 0)
		return false;
	rc = raw_call(SYS_fcntl, fd, F_OFD_GETLK, &lock);
	raw_close(fd);
	return rc == 0 && lock.l_type != F_UNLCK;
}

/* Does a process that runs count into this file? After exec, that process is this one, which has no
 * lock any more. Where there are no locks, the number of the process has to do. */
static bool is_in_use(const char *path, uint64_t inode, const struct beginning *b)
{
	if (b->flags & COUNT_FILE_ENDED)
		return false;
	if (is_locked(path))
		return true;
	if (b->pid == count_library.pid || raw_call(SYS_kill, b->pid, 0) == -ESRCH)
		return false;
	return maps_have(b->pid, path, inode);
}

/* 0: there is a count file of this name, which `b` is the beginning of. */
static long look(const char *path, struct stat *st, struct beginning *b)
{
	long rc = raw_call(SYS_lstat, path, st);

	if (rc < 0)
		return rc;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (S_ISREG(st->st_mode))
		return read_beginning(path, b) ? 0 : NOT_OURS;
	return S_ISLNK(st->st_mode) ? NOT_OURS : -EEXIST;
}

static long move_new(const char *from, const char *to)
{
	long rc = raw_call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
	struct stat st;

	if (rc != -EINVAL && rc != -ENOSYS)
		return rc;
	rc = raw_call(SYS_link, from, to);
	if (rc == 0)
		raw_call(SYS_unlink, from);
	else if (rc != -EEXIST && raw_call(SYS_lstat, to, &st) == -ENOENT)
		rc = raw_call(SYS_rename, from, to);
	return rc;
}

/* An older file gets out of the way. Should it be another one by now, it comes back. */
static long move_old(const char *path, const struct stat *st)
{
	char old[COUNT_PATH_BYTES];
	struct text t = {old, 0, sizeof(old)};
	struct stat now;
	struct beginning b;
	long rc;

	text_add(&t, path);
	text_add(&t, ".old");
	rc = look(old, &now, &b);
	if (rc && rc != -ENOENT)
		return OLD_NOT_OURS;
	/* Onto a name that is taken, ext4 would first write the whole file out. */
	if (rc == 0)
		raw_call(SYS_unlink, old);
	rc = move_new(path, old);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	if (raw_call(SYS_lstat, old, &now) == 0 && now.st_ino != st->st_ino)
		move_new(old, path);
	return 0;
}

/* 0: the name is free, as far as can be seen. TAKEN and the like: it is not, and stays as it is. */
static long clear(const char *path)
{
	struct stat st;
	struct beginning b;
	long rc = look(path, &st, &b);

	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	return is_in_use(path, st.st_ino, &b) ? TAKEN : move_old(path, &st);
}

long count_name_look(void)
{
	char path[COUNT_PATH_BYTES];
	struct text t = {path, 0, sizeof(path)};
	struct stat st;
	struct beginning b;
	long rc;

	expand(&t, 0);
	rc = look(path, &st, &b);
	return rc == -EISDIR || rc == -EEXIST ? rc : 0;
}

/* A pipe that nobody reads: the signal, which is blocked here, is taken back. */
static void write_unharmed(const struct text *line)
{
	uint64_t before = 0, pipe = 1ull << (SIGPIPE - 1);
	struct timespec now = {0};

	raw_call(SYS_rt_sigpending, &before, sizeof(before));
	if (raw_call(SYS_write, 2, line->at, line->n) == -EPIPE && !(before & pipe))
		raw_call(SYS_rt_sigtimedwait, &pipe, 0, &now, sizeof(pipe));
}

/* Where the program has closed it, the number may be another file's by now. Where nothing can be
 * written at once, the program is not made to wait. */
static void say(const struct text *line)
{
	struct stat st;
	struct pollfd ready = {2, POLLOUT, 0};

	if (raw_call(SYS_fstat, 2, &st) == 0 && st.st_ino == count_library.stderr_inode &&
		st.st_dev == count_library.stderr_device &&
		raw_call(SYS_poll, &ready, 1, 0) == 1 && (ready.revents & POLLOUT))
		write_unharmed(line);
}

/* "weir: FILE": the one that was asked for, or that there is. */
static void begin_line(struct text *line, bool is_wanted)
{
	char path[COUNT_PATH_BYTES];
	struct text t = {path, 0, sizeof(path)};

	if (is_wanted)
		expand(&t, 0);
	text_add(line, "weir: ");
	text_add(line, is_wanted ? path : count_library.path);
}

static void tell_besides(long why)
{
	char line[2 * COUNT_PATH_BYTES + 128];
	struct text t = {line, 0, sizeof(line)};

	begin_line(&t, true);
	if (why == OLD_NOT_OURS)
		text_add(&t, ".old");
	text_add(&t, ": not a count file, and left as it is; counts go to ");
	text_add(&t, count_library.path);
	text_add_char(&t, '\n');
	say(&t);
}

long count_name_take(bool is_child)
{
	char path[COUNT_PATH_BYTES];
	uint32_t own = is_child;
	long rc = -EEXIST, why = 0;

	for (int i = 0; i < TRIES && rc == -EEXIST; i++) {
		struct text t = {path, 0, sizeof(path)};

		expand(&t, own);
		rc = clear(path);
		if (rc == 0) {
			rc = move_new(count_library.path, path);
		} else if (rc > 0) {
			why = rc > why ? rc : why;
			own++;
			rc = -EEXIST;
		}
	}
	if (rc < 0) {
		raw_call(SYS_unlink, count_library.path);
		return rc;
	}
	bytes_copy(count_library.path, path, sizeof(path));
	if (why > TAKEN)
		tell_besides(why);
	return 0;
}

/* Texts in the rows themselves: nothing has to be relocated. */
static const struct {
	int error;
	char text[40];
} reasons[] = {
	{EACCES, "permission denied"},
	{EPERM, "permission denied"},
	{ENOENT, "no such directory"},
	{ENOTDIR, "not a directory"},
	{EISDIR, "there is a directory of that name"},
	{EEXIST, "what has that name is no count file"},
	{EROFS, "read-only file system"},
	{ENOSPC, "no space left"},
	{EDQUOT, "no space left"},
	{EFBIG, "larger than the limit (ulimit -f)"},
	{EMFILE, "too many open files"},
	{ENAMETOOLONG, "the name is too long"},
	{ENOSYS, "the gs register cannot be set here"},
};

static void add_reason(struct text *t, long error)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].error == -error) {
			text_add(t, reasons[i].text);
			return;
		}
	text_add(t, "error ");
	text_add_number(t, (uint64_t)-error);
}

void count_name_complain_growth(long error)
{
	char line[COUNT_PATH_BYTES + 128];
	struct text t = {line, 0, sizeof(line)};

	begin_line(&t, false);
	text_add(&t, ": cannot grow: ");
	if (error == -ENOENT)
		text_add(&t, "it is not there any more");
	else
		add_reason(&t, error);
	text_add(&t, "; counts are not complete\n");
	say(&t);
}

void count_name_complain(long error)
{
	char line[COUNT_PATH_BYTES + 128];
	struct text t = {line, 0, sizeof(line)};

	begin_line(&t, true);
	text_add(&t, ": cannot be created: ");
	add_reason(&t, error);
	text_add(&t, "; nothing is recorded\n");
	say(&t);
}
