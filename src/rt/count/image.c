/* SPDX-License-Identifier: MIT */
/*
 * The program's own file: where it is, where it was loaded, its build-id, and where the units are.
 * The units' section may not be asked for by __start_ and __stop_: those would keep every unit from
 * --gc-sections. The file may have been replaced since the start: what it says is checked against
 * the program headers in memory.
 */
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../base/proc_text.h"
#include "runtime.h"

#define SECTIONS_MAX 65536u
#define NOTE_GNU     0x00554e47u /* "GNU" */

extern const Elf64_Ehdr __ehdr_start __attribute__((weak));

/* The kernel's mark on the path of a file that is no longer there. */
static void cut_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = text_length(path);

	if (text_ends_with(path, n, mark))
		path[n - (sizeof(mark) - 1)] = 0;
}

/* By the mapping that this code is in: /proc/self/exe is the loader in `ld.so ./program`. */
static void find_path(struct image *image, const char *execfn)
{
	char path[COUNT_PATH_BYTES];
	struct maps_line line = {.path = path, .path_bytes = sizeof(path)};

	text_copy(image->path, sizeof(image->path), execfn ? execfn : "program");
	if (!maps_find((uintptr_t)weir_count_enter, &line))
		return;
	image->inode = line.inode;
	if (path[0] == '/') {
		text_copy(image->path, sizeof(image->path), path);
		cut_deleted(image->path);
	}
}

static const Elf64_Phdr *program_headers(uint32_t *n)
{
	const Elf64_Ehdr *e = &__ehdr_start;

	*n = 0;
	if (!e)
		return NULL;
	*n = e->e_phnum;
	return (const Elf64_Phdr *)((const uint8_t *)e + e->e_phoff);
}

static void read_build_id(struct image *image, const Elf64_Phdr *p)
{
	const uint8_t *at = (const uint8_t *)(image->base + p->p_vaddr), *end = at + p->p_memsz;

	while ((size_t)(end - at) >= sizeof(Elf64_Nhdr) + 4) {
		const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
		const uint8_t *name = at + sizeof(*n);
		size_t name_bytes = ((size_t)n->n_namesz + 3) & ~(size_t)3;
		size_t bytes = ((size_t)n->n_descsz + 3) & ~(size_t)3;

		if (name_bytes > (size_t)(end - name) || bytes > (size_t)(end - name) - name_bytes)
			return;
		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
			*(const uint32_t *)name == NOTE_GNU &&
			n->n_descsz <= sizeof(image->build_id)) {
			bytes_copy(image->build_id, name + 4, n->n_descsz);
			image->build_id_bytes = (uint8_t)n->n_descsz;
			return;
		}
		at = name + name_bytes + bytes;
	}
}

static void read_memory(struct image *image)
{
	uint32_t n;
	const Elf64_Phdr *p = program_headers(&n);

	for (uint32_t i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset == 0)
			image->base = (uint64_t)&__ehdr_start - p[i].p_vaddr;
	for (uint32_t i = 0; i < n; i++)
		if (p[i].p_type == PT_NOTE && !image->build_id_bytes)
			read_build_id(image, &p[i]);
}

/* Does the program have this in memory, from its file? */
static bool is_loaded(uint64_t address, uint64_t bytes)
{
	uint32_t n;
	const Elf64_Phdr *p = program_headers(&n);

	for (uint32_t i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD && address >= p[i].p_vaddr &&
			address - p[i].p_vaddr <= p[i].p_filesz &&
			bytes <= p[i].p_filesz - (address - p[i].p_vaddr))
			return true;
	return false;
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return raw_call(SYS_pread64, fd, to, bytes, offset) == (long)bytes;
}

static bool is_units(int fd, const Elf64_Shdr *names, const Elf64_Shdr *section)
{
	const char wanted[] = COUNT_SECTION_FUNCTIONS;
	char name[sizeof(wanted)];

	if (section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_ALLOC) ||
		!read_at(fd, name, sizeof(name), names->sh_offset + section->sh_name))
		return false;
	return bytes_equal(name, wanted, sizeof(name));
}

static void find_units(struct image *image, int fd)
{
	Elf64_Ehdr e;
	Elf64_Shdr names, section;

	if (!read_at(fd, &e, sizeof(e), 0) || e.e_shentsize != sizeof(section))
		return;
	/* More sections than the header can say: the first one says it. */
	if (!read_at(fd, &section, sizeof(section), e.e_shoff))
		return;
	uint64_t n = e.e_shnum ? e.e_shnum : section.sh_size;
	uint64_t names_i = e.e_shstrndx == SHN_XINDEX ? section.sh_link : e.e_shstrndx;

	if (n > SECTIONS_MAX || names_i >= n ||
		!read_at(fd, &names, sizeof(names), e.e_shoff + names_i * sizeof(names)))
		return;
	for (uint64_t i = 1; i < n; i++) {
		if (!read_at(fd, &section, sizeof(section), e.e_shoff + i * sizeof(section)))
			return;
		if (!is_units(fd, &names, &section) || !is_loaded(section.sh_addr, section.sh_size))
			continue;
		image->units = image->base + section.sh_addr;
		image->units_bytes = section.sh_size;
		return;
	}
}

/* False: there is no such file, or it has no units. */
static bool read_file(struct image *image, const char *path)
{
	struct stat st;
	int fd = raw_open(path, O_RDONLY);

	if (fd < 0)
		return false;
	if (raw_call(SYS_fstat, fd, &st) == 0) {
		image->size = (uint64_t)st.st_size;
		image->mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		image->inode = st.st_ino;
	}
	find_units(image, fd);
	raw_close(fd);
	return image->units_bytes != 0;
}

static bool is_same_file(const char *path, uint64_t inode)
{
	struct stat st;

	return raw_call(SYS_stat, path, &st) == 0 && st.st_ino == inode;
}

void count_image_read(struct image *image, const char *execfn)
{
	image->base = image->units = image->units_bytes = 0;
	image->size = image->mtime_ns = image->inode = 0;
	image->build_id_bytes = 0;
	find_path(image, execfn);
	read_memory(image);
	/* Another file may have taken its place (and numbers differ between layers of a file
	 * system). */
	if (is_same_file(image->path, image->inode) && read_file(image, image->path))
		return;
	if (!read_file(image, "/proc/self/exe"))
		read_file(image, image->path);
}
