/* SPDX-License-Identifier: MIT */
/*
 * The count file and its areas. No descriptor is kept: programs close what they do not know, and
 * one of a folder would be a way out of a root directory that the program has changed. To
 * grow, the file is opened again, and has to be the same one. All of its space is reserved before
 * it is mapped: on a disk that is full, a store would end the program.
 *
 * The header is mapped by a descriptor that has the file locked. The lock is the open file's, which
 * lives as long as that mapping: up to the process' end, or its exec.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime.h"

#define ZEROS_BYTES 4096

/* A descriptor, or a negative errno. */
static long file_open(void)
{
	int fd = raw_open(count_library.path, O_RDWR | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return fd;
	if (raw_call(SYS_fstat, fd, &st) == 0 && st.st_ino == count_library.inode &&
		st.st_dev == count_library.device)
		return fd;
	raw_close(fd);
	return -ENOENT;
}

/* For file systems without fallocate. */
static long write_zeros(int fd, uint64_t offset, uint64_t bytes)
{
	static char zeros[ZEROS_BYTES];

	while (bytes) {
		uint64_t n = bytes < ZEROS_BYTES ? bytes : ZEROS_BYTES;
		long done = raw_call(SYS_pwrite64, fd, zeros, n, offset);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return done ? done : -ENOSPC;
		offset += (uint64_t)done;
		bytes -= (uint64_t)done;
	}
	return 0;
}

static long reserve(int fd, uint64_t offset, uint64_t bytes)
{
	uint64_t limit[2] = {UINT64_MAX, 0};
	long rc;

	/* Beyond it comes a signal, not an error. */
	raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, limit);
	if (offset + bytes > limit[0])
		return -EFBIG;
	do {
		rc = raw_call(SYS_fallocate, fd, 0, offset, bytes);
	} while (rc == -EINTR);
	if (rc == -EOPNOTSUPP || rc == -ENOSYS)
		rc = write_zeros(fd, offset, bytes);
	return rc;
}

/* Told once. While the file is made, whoever makes it tells. */
static void cannot_grow(long error)
{
	if (!count_library.header->magic[0] || count_library.is_full)
		return;
	count_library.is_full = true;
	count_name_complain_growth(error);
}

static bool map_part(void *at, uint64_t bytes, long fd, uint64_t offset)
{
	return !raw_failed((void *)raw_call(
		SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset));
}

bool count_file_extend(void *at, uint64_t bytes, uint64_t *offset)
{
	long fd = file_open(), rc = fd;
	bool is_mapped = false;

	if (fd >= 0)
		rc = reserve((int)fd, count_library.file_bytes, bytes);
	if (rc < 0) {
		cannot_grow(rc);
	} else {
		*offset = count_library.file_bytes;
		count_library.file_bytes += bytes;
		is_mapped = map_part(at, bytes, fd, *offset);
	}
	if (fd >= 0)
		raw_close((int)fd);
	return is_mapped;
}

bool count_file_map(void *at, uint64_t bytes, uint64_t offset)
{
	long fd = file_open();
	bool is_mapped = fd >= 0 && map_part(at, bytes, fd, offset);

	if (fd >= 0)
		raw_close((int)fd);
	return is_mapped;
}

bool count_file_add_area(
	enum count_area_kind kind, uint32_t slot, uint64_t offset, uint64_t bytes, uint64_t first)
{
	struct count_area *a = count_library.header->areas;
	uint32_t i = count_library.n_areas;

	if (i == COUNT_FILE_AREAS)
		return false;
	a[i].thread = slot;
	a[i].offset = offset;
	a[i].bytes = bytes;
	a[i].first = first;
	__atomic_store_n(&a[i].kind, (uint32_t)kind, __ATOMIC_RELEASE);
	count_library.n_areas = i + 1;
	return true;
}

/* Of slot 0: the first ones of their kind. */
const struct count_area *count_file_find_area(enum count_area_kind kind, uint32_t slot)
{
	const struct count_area *a = count_library.header->areas;

	for (uint32_t i = 0; i < count_library.n_areas; i++)
		if (a[i].kind == (uint32_t)kind && a[i].thread == slot)
			return &a[i];
	return NULL;
}

static bool map_header(int fd)
{
	void *p = raw_mmap(NULL, COUNT_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	if (raw_failed(p))
		return false;
	count_library.header = p;
	count_library.file_bytes = COUNT_HEADER_BYTES;
	count_library.n_areas = 0;
	return true;
}

/* A new file at the path; 0 or a negative errno. */
long count_file_create(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat st;
	int fd = raw_open(count_library.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
	long rc = fd;

	if (fd < 0)
		return rc;
	rc = raw_call(SYS_fstat, fd, &st);
	if (rc == 0)
		rc = reserve(fd, 0, COUNT_HEADER_BYTES);
	if (rc == 0 && !map_header(fd))
		rc = -ENOSPC;
	if (rc == 0) /* not all file systems have locks */
		raw_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);
	raw_close(fd);
	if (rc < 0) {
		raw_call(SYS_unlink, count_library.path);
		return rc;
	}
	count_library.device = st.st_dev;
	count_library.inode = st.st_ino;
	return 0;
}
