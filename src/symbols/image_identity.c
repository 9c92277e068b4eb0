/* SPDX-License-Identifier: MIT */
/* Taking an image's identity from its file, that of the running kernel, and saying one in words. */
#include "symbols/image_identity.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

/* FNV-1a's numbers; the rule is in docs/format/catalog-file.md, "Content hash". */
#define HASH_START	 0xcbf29ce484222325u
#define HASH_PRIME	 0x100000001b3u
#define HASH_BLOCK_BYTES 64 /* whole words that hold the ELF header of either class */

#define BUILD_ID_BYTES_MIN 8 /* shorter ones are counters or tests, not hashes */

/* --- content hash --- */

/* The shift is not FNV's: without it the upper bits of a word never reach the lower bits of the
 * hash. */
static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * HASH_PRIME;
	return hash ^ hash >> 32;
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *p, size_t n)
{
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		hash = hash_word(hash, word);
	}
	if (n) {
		word = 0;
		memcpy(&word, p, n);
		hash = hash_word(hash, word);
	}
	return hash;
}

/* The place and number of the section headers count as 0: stripping changes them, and with some
 * linkers the ELF header lies in the executable segment. */
static void blank_section_fields(uint8_t *block, bool is_64)
{
	if (is_64) {
		memset(block + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
		memset(block + offsetof(Elf64_Ehdr, e_shentsize), 0, 6);
	} else {
		memset(block + offsetof(Elf32_Ehdr, e_shoff), 0, 4);
		memset(block + offsetof(Elf32_Ehdr, e_shentsize), 0, 6);
	}
}

static uint64_t hash_segment(uint64_t hash, const struct elf_file *elf, const struct elf_segment *s)
{
	struct span bytes = span_sub(elf->bytes, s->offset.v, s->file_size);
	uint8_t block[HASH_BLOCK_BYTES] = {0};
	size_t n = 0;

	hash = hash_word(hash, s->addr.v);
	hash = hash_word(hash, s->file_size);
	if (s->offset.v == 0) {
		n = bytes.n < sizeof(block) ? bytes.n : sizeof(block);
		memcpy(block, bytes.p, n);
		blank_section_fields(block, elf->is_64);
		hash = hash_bytes(hash, block, n);
	}
	return hash_bytes(hash, bytes.p + n, bytes.n - n);
}

static bool is_executable(const struct elf_segment *s)
{
	return s->type == PT_LOAD && (s->flags & PF_X) && s->file_size;
}

/* A separate debug file: it has the headers of its program but not the code. */
static bool is_debug_file(const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && s->size)
			return s->type == SHT_NOBITS;
	}
	return false;
}

uint64_t image_content_hash(const struct elf_file *elf)
{
	uint64_t hash = HASH_START;
	uint64_t left = elf->bytes.n;
	bool any = false;

	if (is_debug_file(elf))
		return 0;
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (!is_executable(s))
			continue;
		/* Cut files, and thousands of segments that all claim the whole file. */
		if (s->file_size > left || !span_sub(elf->bytes, s->offset.v, s->file_size).n)
			return 0;
		left -= s->file_size;
		hash = hash_segment(hash, elf, s);
		any = true;
	}
	return !any ? 0 : hash ? hash : 1;
}

/* --- life cycle --- */

static void push_segment(struct image_identity *id, struct image_segment segment)
{
	if (id->n_segments == IMAGE_SEGMENTS_MAX)
		return;
	if (!id->segments)
		id->segments = mem_calloc(IMAGE_SEGMENTS_MAX, sizeof(*id->segments));
	id->segments[id->n_segments++] = segment;
}

/* A relocatable file (a kernel module) has sections only, and they are loaded one by one. */
static void take_sections(struct image_identity *id, const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];
		struct image_segment segment = {.addr = s->addr.v,
			.offset = s->offset.v,
			.file_bytes = s->type == SHT_NOBITS ? 0 : s->size,
			.mem_bytes = s->size};

		if (!(s->flags & SHF_ALLOC) || !s->size)
			continue;
		strncpy(segment.name, s->name, sizeof(segment.name) - 1);
		segment.flags = PF_R | (s->flags & SHF_WRITE ? PF_W : 0) |
				(s->flags & SHF_EXECINSTR ? PF_X : 0);
		push_segment(id, segment);
	}
}

static void take_segments(struct image_identity *id, const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD)
			push_segment(id, (struct image_segment){.addr = s->addr.v,
						 .offset = s->offset.v,
						 .file_bytes = s->file_size,
						 .mem_bytes = s->mem_size,
						 .flags = s->flags});
	}
	if (!id->n_segments && elf->type == ET_REL)
		take_sections(id, elf);
	if (id->n_segments)
		id->segments = mem_realloc(id->segments, id->n_segments * sizeof(*id->segments));
}

void image_identity_init_elf(struct image_identity *id, const struct elf_file *elf,
	const char *path, const struct stat *st, bool with_hash)
{
	struct span build_id = elf_file_build_id(elf);
	const char *link;

	*id = (struct image_identity){.kind = IMAGE_KIND_ELF,
		.path = path ? mem_strdup(path) : NULL,
		.machine = elf->machine,
		.bits = elf->is_64 ? 64 : 32};
	id->build_id_n = (uint8_t)(build_id.n < BUILD_ID_MAX ? build_id.n : BUILD_ID_MAX);
	if (id->build_id_n)
		memcpy(id->build_id, build_id.p, id->build_id_n);
	if (!elf_file_debuglink(elf, &link, &id->debuglink_crc))
		id->debuglink_crc = 0;
	if (st) {
		id->file_bytes = (uint64_t)st->st_size;
		id->mtime_ns =
			(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	}
	take_segments(id, elf);
	if (with_hash && is_debug_file(elf))
		id->file_crc = (uint32_t)crc32_z(0, elf->bytes.p, elf->bytes.n);
	else if (with_hash)
		id->content_hash = image_content_hash(elf);
}

void image_identity_take_traced(struct image_identity *id, const struct trace_image *image)
{
	id->kind = image->kind;
	id->pid = image->pid;
	id->file_bytes = image->file_bytes;
	id->mtime_ns = image->file_mtime_ns;
	if (!id->bits)
		id->bits = image->bits;
	if (image->build_id_n) {
		id->build_id_n = image->build_id_n;
		memcpy(id->build_id, image->build_id, sizeof(id->build_id));
	}
}

void image_identity_copy(struct image_identity *to, const struct image_identity *from)
{
	*to = *from;
	to->path = from->path ? mem_strdup(from->path) : NULL;
	to->segments = from->n_segments
			       ? mem_dup(from->segments, from->n_segments * sizeof(*from->segments))
			       : NULL;
}

void image_identity_release(struct image_identity *id)
{
	free(id->path);
	free(id->segments);
	*id = (struct image_identity){0};
}

/* --- names and words --- */

bool image_identity_has_build_id(const struct image_identity *id)
{
	if (id->build_id_n < BUILD_ID_BYTES_MIN)
		return false;
	for (size_t i = 1; i < id->build_id_n; i++)
		if (id->build_id[i] != id->build_id[0])
			return true;
	return false;
}

bool image_identity_address(const struct image_identity *id, uint64_t offset, uint64_t *addr)
{
	for (size_t i = 0; i < id->n_segments; i++) {
		const struct image_segment *s = &id->segments[i];

		if (offset >= s->offset && offset - s->offset < s->file_bytes) {
			*addr = offset - s->offset + s->addr;
			return true;
		}
	}
	return false;
}

const char *image_base_name(const char *path, struct buf *to)
{
	const char *name = path, *dot;
	size_t n = path_plain_bytes(path);

	for (const char *p = path; p < path + n; p++)
		if (*p == '/')
			name = p + 1;
	n -= (size_t)(name - path);
	dot = n > 1 ? memchr(name + 1, '.', n - 1) : NULL;
	buf_reset(to);
	buf_put(to, name, dot ? (size_t)(dot - name) : n);
	return buf_text(to);
}

static void put_time(struct buf *to, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000u);
	char text[64];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		buf_printf(to, ", time %s", text);
}

const char *image_identity_text(const struct image_identity *id, struct buf *to)
{
	buf_reset(to);
	if (image_identity_has_build_id(id)) {
		buf_put_cstr(to, "build-id ");
		buf_put_hex(to, (struct span){id->build_id, id->build_id_n});
	} else if (id->content_hash) {
		buf_printf(to, "content hash 0x%016" PRIx64, id->content_hash);
	} else if (id->file_crc) {
		buf_printf(to, "CRC 0x%08" PRIx32, id->file_crc);
	} else if (id->debuglink_crc) {
		buf_printf(to, "debuglink CRC 0x%08" PRIx32, id->debuglink_crc);
	} else if (id->file_bytes) {
		buf_printf(to, "size %" PRIu64, id->file_bytes);
		if (id->mtime_ns)
			put_time(to, id->mtime_ns);
	} else if (id->pid) {
		buf_printf(to, "process %" PRIu32, id->pid);
	} else {
		buf_put_cstr(to, "no identity");
	}
	return buf_text(to);
}

bool image_identity_same_build_id(const struct image_identity *a, const struct image_identity *b)
{
	return a->build_id_n && a->build_id_n == b->build_id_n &&
	       !memcmp(a->build_id, b->build_id, a->build_id_n);
}

/* --- the running kernel --- */

#define NOTES_PATH	   "/sys/kernel/notes"
#define NOTES_BYTES_MAX	   65536
#define KALLSYMS_PATH	   "/proc/kallsyms"
#define KALLSYMS_LINES_MAX 4096

uint64_t kernel_content_hash(uint64_t address)
{
	return address ? map_hash(address) | 1 : 0;
}

/* "ffffffff81000000 T _text" is among the first lines; the address is 0 for those who may not know
 * it. */
uint64_t kallsyms_content_hash(const char *path)
{
	char line[256], name[128];
	FILE *f = fopen(path, "re");
	uint64_t found = 0;
	unsigned long addr;

	for (int i = 0; f && !found && i < KALLSYMS_LINES_MAX && fgets(line, sizeof(line), f); i++)
		if (sscanf(line, "%lx %*c %127s", &addr, name) == 2 &&
			(!strcmp(name, "_text") || !strcmp(name, "_stext")))
			found = addr;
	if (f)
		fclose(f);
	return kernel_content_hash(found);
}

void kernel_identity(struct image_identity *id)
{
	struct buf notes = {0};
	struct span build_id;

	memset(id, 0, sizeof(*id));
	id->kind = IMAGE_KIND_KERNEL;
	id->path = mem_strdup("[kernel]");
	id->bits = 64;
	id->machine = EM_X86_64;
	id->content_hash = kallsyms_content_hash(KALLSYMS_PATH);
	if (file_read(&notes, NOTES_PATH, NOTES_BYTES_MAX, NULL) == 0) {
		build_id = elf_notes_build_id(buf_span(&notes), 4);
		if (build_id.n && build_id.n <= BUILD_ID_MAX) {
			id->build_id_n = (uint8_t)build_id.n;
			memcpy(id->build_id, build_id.p, build_id.n);
		}
	}
	buf_release(&notes);
}
