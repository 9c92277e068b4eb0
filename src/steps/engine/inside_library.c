/* SPDX-License-Identifier: MIT */
/* The stepping library as it is to lie in a program's memory. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/elf_file.h"
#include "steps/engine/inside_engine.h"

#define LIBRARY_FILE "lib/x86_64-linux-gnu/libweirsteps.so"

/* Beside the program, or where `make install` puts it; tests are two folders further down. */
static char *find_library(void)
{
	static const char *const places[] = {"", "/../lib/weir", "/../.."};
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[n > 0 ? n : 0] = 0;
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char *path = mem_printf("%s%s/%s", exe, places[i], LIBRARY_FILE);

		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static int load(struct inside_library *library, const struct elf_file *elf, struct err *err)
{
	uint64_t bytes = 0;

	if (!elf->is_64 || elf->machine != EM_X86_64)
		return err_set(err, ERR_FORMAT, "it is not for this processor");
	/* Nobody would apply them. */
	if (elf_file_dynamic(elf, DT_RELASZ, &bytes) && bytes)
		return err_set(err, ERR_FORMAT, "it has relocations");
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD)
			continue;
		if (s->addr.v > STEPS_IMAGE_BYTES || s->mem_size > STEPS_IMAGE_BYTES - s->addr.v ||
			s->file_size > s->mem_size || s->offset.v > elf->bytes.n ||
			s->file_size > elf->bytes.n - s->offset.v)
			return err_set(err, ERR_FORMAT, "it does not fit");
		memcpy(library->image + s->addr.v, elf->bytes.p + s->offset.v, s->file_size);
	}
	library->entry = elf->entry.v;
	if (library->entry > STEPS_IMAGE_BYTES - 2 * STEPS_RESTORER_AT)
		return err_set(err, ERR_FORMAT, "it has no entry");
	return 0;
}

int inside_library_read(struct inside_library *library, struct err *err)
{
	struct file_map map;
	struct elf_file elf;
	char *path = find_library();
	int rc;

	memset(library, 0, sizeof(*library));
	if (!path)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': the library that steps programs from inside is not there (make builds it)",
			LIBRARY_FILE);
	rc = file_map_open(&map, path, err);
	if (rc < 0) {
		free(path);
		return rc;
	}
	rc = elf_file_init(&elf, map.bytes, err);
	if (rc == 0) {
		rc = load(library, &elf, err);
		elf_file_release(&elf);
	}
	if (rc < 0)
		err_prefix(err, "'%s'", path);
	file_map_release(&map);
	free(path);
	return rc;
}
