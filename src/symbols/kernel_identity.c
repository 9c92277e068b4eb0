/* SPDX-License-Identifier: MIT */
#include "symbols/image_identity.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

#define NOTES_PATH	   "/sys/kernel/notes"
#define NOTES_BYTES_MAX	   65536
#define KALLSYMS_PATH	   "/proc/kallsyms"
#define KALLSYMS_LINES_MAX 4096

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
	struct span build_id;
	uint64_t address = load_address();

	memset(id, 0, sizeof(*id));
	id->kind = IMAGE_KIND_KERNEL;
	id->path = mem_strdup("[kernel]");
	id->bits = 64;
	id->machine = EM_X86_64;
	id->content_hash = address ? map_hash(address) | 1 : 0;
	if (file_read(&notes, NOTES_PATH, NOTES_BYTES_MAX, NULL) == 0) {
		build_id = elf_notes_build_id(buf_span(&notes), 4);
		if (build_id.n && build_id.n <= BUILD_ID_MAX) {
			id->build_id_n = (uint8_t)build_id.n;
			memcpy(id->build_id, build_id.p, build_id.n);
		}
	}
	buf_release(&notes);
}
