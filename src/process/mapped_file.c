/* SPDX-License-Identifier: MIT */
#include "process/mapped_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

struct search {
	struct mapped_file *f; /* what is looked at, then the result */
	pid_t pid;
	const struct proc_mapping *m;
	struct span build_id;
	bool is_mapping; /* it was opened by the mapping itself */
	bool is_told;	 /* somebody says that it is that file */
};

/* --- whether it is the file ------------------------------------------------------------------- */

/* Where stat gives files other devices than the kernel says of mappings: an inode has to do. */
static bool has_plain_devices(int fd)
{
	static const uint32_t without[] = {
		0x794c7630u /* overlayfs */, 0x9123683eu /* btrfs */, 0xca451a4eu /* bcachefs */};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if ((uint32_t)fs.f_type == without[i])
			return false;
	return true;
}

struct comparison {
	const struct proc_mapping *wanted;
	bool is_there;
};

static void compare_mapping(void *ctx, const struct proc_mapping *m)
{
	struct comparison *c = ctx;
	const struct proc_mapping *wanted = c->wanted;

	c->is_there |= m->start < wanted->end && m->end > wanted->start &&
		       m->inode == wanted->inode && m->major == wanted->major &&
		       m->minor == wanted->minor;
}

/* By the kernel's own numbers. As long as it is, no other file gets its inode. */
static bool is_still_mapped(const struct search *s)
{
	struct comparison c = {.wanted = s->m};

	return proc_each_mapping(s->pid, compare_mapping, &c, NULL) == 0 && c.is_there;
}

static int check_inode(const struct search *s, struct err *err)
{
	const struct proc_mapping *m = s->m;
	const char *differs = NULL;

	if (m->inode && s->f->st.st_ino != m->inode)
		differs = "inode";
	else if (m->inode && (m->major || m->minor) &&
		 s->f->st.st_dev != makedev(m->major, m->minor) && has_plain_devices(s->f->fd))
		differs = "device";
	/* Some file systems have other inodes for stat, too (overlayfs with xino). */
	if (!differs || (s->is_mapping && is_still_mapped(s)))
		return 0;
	return err_set(
		err, ERR_NOT_FOUND, "the file there now is another one (%s differs)", differs);
}

static int check_build_id(const struct search *s, struct err *err)
{
	struct span wanted = s->build_id, id;
	struct file_map map;
	struct elf_file elf;
	int rc = mapped_file_read_elf(s->f, &map, &elf, err);

	if (rc < 0)
		return rc;
	id = elf_file_build_id(&elf);
	if (id.n < wanted.n || memcmp(id.p, wanted.p, wanted.n) != 0)
		rc = err_set(err, ERR_NOT_FOUND,
			"the file there now is another version (build-id differs)");
	elf_file_release(&elf);
	file_map_release(&map);
	return rc;
}

/* --- where it is ------------------------------------------------------------------------------ */

/* Takes over `path`. */
static int try_path(const struct search *s, char *path, struct err *err)
{
	struct mapped_file *f = s->f;
	int rc;

	f->path = path;
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0 || fstat(f->fd, &f->st) < 0)
		rc = err_sys(err, errno, "'%s': cannot open", path);
	else if (!S_ISREG(f->st.st_mode))
		rc = err_set(err, ERR_FAILED, "'%s': is not a regular file", path);
	else
		rc = s->build_id.n ? check_build_id(s, err) : s->is_told ? 0 : check_inode(s, err);
	if (rc < 0)
		mapped_file_close(f);
	return rc;
}

/* A name as we and as the process see it. */
static int try_name(const struct search *s, const char *name, struct err *err)
{
	int rc = try_path(s, mem_strdup(name), err);

	if (rc < 0 &&
		try_path(s, mem_printf("/proc/%d/root%s", proc_number(s->pid), name), NULL) == 0)
		return 0;
	return rc;
}

/* It may have its name again, by a new link, or a copy of the same build-id may be there. But the inode
 * of a file that is gone for good may be another one's by now. */
static int try_deleted(const struct search *s, struct err *err)
{
	char *name = mem_strndup(s->m->path, path_plain_bytes(s->m->path));
	int rc = try_name(s, name, NULL);

	free(name);
	if (rc == 0 && !s->build_id.n && !is_still_mapped(s)) {
		mapped_file_close(s->f);
		rc = ERR_NOT_FOUND;
	}
	return rc < 0 ? err_set(err, ERR_NOT_FOUND, "the file has been deleted") : 0;
}

/* A link of /proc to an open file, taken when the kernel calls the file what the mapping is called: other
 * files are not opened, since that may do something (a terminal, a FIFO). */
static bool try_link(const struct search *s, const char *link)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	struct stat st;

	if (n < 0)
		return false;
	target[n] = 0;
	if (strcmp(target, s->m->path) || stat(link, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	return try_path(s, mem_strdup(link), NULL) == 0;
}

/* Several files in memory may have one name: the mapping's inode or build-id must be known. */
static bool try_open_files(const struct search *s)
{
	char link[64];
	struct dirent *entry;
	bool is_found;
	DIR *folder;

	if (!s->m->inode && !s->build_id.n)
		return false;
	snprintf(link, sizeof(link), "/proc/%d/exe", proc_number(s->pid));
	is_found = try_link(s, link);
	snprintf(link, sizeof(link), "/proc/%d/fd", proc_number(s->pid));
	folder = is_found ? NULL : opendir(link);
	while (folder && !is_found && (entry = readdir(folder))) {
		snprintf(link, sizeof(link), "/proc/%d/fd/%.20s", proc_number(s->pid),
			entry->d_name);
		is_found = entry->d_name[0] != '.' && try_link(s, link);
	}
	if (folder)
		closedir(folder);
	return is_found;
}

int mapped_file_open(struct mapped_file *f, pid_t pid, const struct proc_mapping *m,
	struct span build_id, struct err *err)
{
	struct search s = {.f = f, .pid = pid, .m = m, .build_id = build_id};
	char *path;
	int rc;

	*f = (struct mapped_file){.fd = -1};
	if (m->path[0] != '/')
		return err_set(err, ERR_NOT_FOUND, "no file is mapped at 0x%lx", m->start);
	rc = try_name(&s, m->path, err);
	if (rc < 0 && path_is_deleted(m->path))
		rc = try_deleted(&s, err);
	if (rc == 0)
		return 0;
	s.is_mapping = true;
	path = mem_printf("/proc/%d/map_files/%lx-%lx", proc_number(pid), m->start, m->end);
	if (try_path(&s, path, NULL) == 0)
		return 0;
	s.is_mapping = false;
	return try_open_files(&s) ? 0 : rc;
}

/* ~/.debug/.build-id/12/34567.../elf: what perf has kept of it. */
static bool try_kept(const struct search *s)
{
	const char *home = getenv("HOME");
	struct buf path = {0};
	bool is_found;

	if (!home || s->build_id.n < 2)
		return false;
	buf_printf(&path, "%s/.debug/.build-id/", home);
	buf_put_hex(&path, (struct span){s->build_id.p, 1});
	buf_put_u8(&path, '/');
	buf_put_hex(&path, (struct span){s->build_id.p + 1, s->build_id.n - 1});
	buf_printf(&path, "/elf");
	is_found = try_path(s, mem_strdup(buf_text(&path)), NULL) == 0;
	buf_release(&path);
	return is_found;
}

int mapped_file_open_past(struct mapped_file *f, const struct mapped_file_past *past,
	const struct proc_mapping *m, struct span build_id, struct err *err)
{
	struct search s = {
		.f = f, .pid = -1, .m = m, .build_id = build_id, .is_told = past->root[0] != 0};
	int n = (int)path_plain_bytes(m->path);
	int rc;

	*f = (struct mapped_file){.fd = -1};
	if (m->path[0] != '/')
		return err_set(err, ERR_NOT_FOUND, "no file is mapped at 0x%lx", m->start);
	if (!build_id.n && !s.is_told && path_is_deleted(m->path))
		return err_set(err, ERR_NOT_FOUND, "the file has been deleted");
	if (!build_id.n && !s.is_told && (past->is_elsewhere || !m->inode))
		return err_set(err, ERR_NOT_FOUND,
			"the recording does not say which version of the file it was (no build-id)");
	rc = try_path(&s, mem_printf("%s%.*s", past->root, n, m->path), err);
	return rc == 0 || try_kept(&s) ? 0 : rc;
}

void mapped_file_close(struct mapped_file *f)
{
	fd_cleanup(&f->fd);
	free(f->path);
	f->path = NULL;
}

int mapped_file_read_elf(
	const struct mapped_file *f, struct file_map *map, struct elf_file *elf, struct err *err)
{
	int rc = file_map_open_fd(map, f->fd, f->path, err);

	if (rc < 0)
		return rc;
	rc = elf_file_init(elf, map->bytes, err);
	if (rc < 0)
		file_map_release(map);
	return rc;
}

bool path_is_in_memory(const char *path)
{
	return !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/shm/", 9);
}

bool mapped_file_is_elf(pid_t pid, const struct proc_mapping *m, struct span build_id)
{
	struct mapped_file f;
	struct file_map map;
	struct elf_file elf;
	struct iaddr at;
	bool is_elf;

	if (build_id.n)
		return true;
	if (mapped_file_open(&f, pid, m, build_id, NULL) < 0)
		return false;
	is_elf = mapped_file_read_elf(&f, &map, &elf, NULL) == 0;
	if (is_elf) {
		is_elf = elf_file_offset_to_iaddr(&elf, (struct foff){m->offset}, &at);
		elf_file_release(&elf);
		file_map_release(&map);
	}
	mapped_file_close(&f);
	return is_elf;
}
