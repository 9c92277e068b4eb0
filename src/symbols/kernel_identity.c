/* SPDX-License-Identifier: MIT */
#include "symbols/kernel_identity.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"

#define NOTES_PATH	   "/sys/kernel/notes"
#define NOTES_BYTES_MAX	   65536
#define KALLSYMS_PATH	   "/proc/kallsyms"
#define KALLSYMS_LINES_MAX 4096

/* The file has the layout of a note section. */
static void find_build_id(struct image_identity *id, struct span notes)
{
	struct cursor c = cursor_of(notes);

	while (cursor_left(&c) >= 12) {
		uint32_t name_n = cursor_u32(&c), desc_n = cursor_u32(&c), type = cursor_u32(&c);
		struct span name = cursor_bytes(&c, ((uint64_t)name_n + 3) & ~(uint64_t)3);
		struct span desc = cursor_bytes(&c, ((uint64_t)desc_n + 3) & ~(uint64_t)3);

		if (type == NT_GNU_BUILD_ID && name.n >= 4 && !memcmp(name.p, "GNU", 4) &&
			desc_n <= BUILD_ID_MAX && desc.n >= desc_n) {
			id->build_id_n = (uint8_t)desc_n;
			memcpy(id->build_id, desc.p, desc_n);
			return;
		}
	}
}

/* "ffffffff81000000 T _text" is among the first lines; the address is 0 for those who may not know
 * it. */
static uint64_t load_address(void)
{
	char line[256], name[128];
	FILE *f = fopen(KALLSYMS_PATH, "re");
	uint64_t found = 0;
	unsigned long addr;

	for (int i = 0; f && !found && i < KALLSYMS_LINES_MAX && fgets(line, sizeof(line), f); i++)
		if (sscanf(line, "%lx %*c %127s", &addr, name) == 2 &&
			(!strcmp(name, "_text") || !strcmp(name, "_stext")))
			found = addr;
	if (f)
		fclose(f);
	return found;
}

void kernel_identity(struct image_identity *id)
{
	struct buf notes = {0};
	uint64_t address = load_address();

	memset(id, 0, sizeof(*id));
	id->kind = IMAGE_KIND_KERNEL;
	id->path = mem_strdup("[kernel]");
	id->bits = 64;
	id->machine = EM_X86_64;
	id->content_hash = address ? map_hash(address) | 1 : 0;
	if (file_read(&notes, NOTES_PATH, NOTES_BYTES_MAX, NULL) == 0)
		find_build_id(id, buf_span(&notes));
	buf_release(&notes);
}
