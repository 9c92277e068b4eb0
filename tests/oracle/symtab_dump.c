/* SPDX-License-Identifier: MIT */
/*
 * Prints what the symbol table says, for comparison with nm and objdump:
 *   symtab_dump list FILE		every symbol: START SIZE SOURCE LINKAGE-NAME
 *   symtab_dump find FILE		reads hexadecimal addresses from standard input, prints for each
 *					ADDRESS LINKAGE-NAME, or ADDRESS - when there is none
 *   symtab_dump sources FILE		where the names came from
 *   symtab_dump debug FILE		the separate debug file, or why there is none
 *   symtab_dump time FILE		nanoseconds of CPU to make the table, and its symbols
 *   symtab_dump map FILE OFFSET		the linker address of a mapping at this file offset
 *   symtab_dump kallsyms|perf-map FILE	as list, with nanoseconds of CPU first
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "symbols/debug_file.h"
#include "symbols/symtab.h"

static void print_all(const struct symtab *t)
{
	for (size_t i = 0; i < symtab_n(t); i++) {
		const struct symbol *s = symtab_get(t, i);

		printf("%" PRIx64 " %" PRIx64 " %d %s\n", s->start, s->size, s->source,
			s->linkage_name);
	}
}

static void answer_addresses(const struct symtab *t)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);
		const struct symbol *s = symtab_find(t, addr);

		printf("%" PRIx64 " %s\n", addr, s ? s->linkage_name : "-");
	}
}

static int dump_elf(const char *verb, const struct elf_file *elf, char **argv)
{
	const char *path = argv[2];
	uint64_t start = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct symtab *t = symtab_new_elf(elf, path);
	uint64_t spent = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
	struct err err = {0};
	int rc = 0;

	if (!strcmp(verb, "list")) {
		print_all(t);
	} else if (!strcmp(verb, "find")) {
		answer_addresses(t);
	} else if (!strcmp(verb, "sources")) {
		puts(symtab_sources(t));
	} else if (!strcmp(verb, "time")) {
		printf("%" PRIu64 " %zu\n", spent, symtab_n(t));
	} else if (!strcmp(verb, "debug")) {
		char *debug = NULL;

		rc = debug_file_find(elf, path, &debug, &err);
		puts(rc == 0 ? debug : err.text);
		free(debug);
	} else if (!strcmp(verb, "map") && argv[3]) {
		struct iaddr addr;

		if (elf_file_offset_to_iaddr(
			    elf, (struct foff){strtoull(argv[3], NULL, 16)}, &addr))
			printf("%" PRIx64 "\n", addr.v);
		else
			puts("-");
	} else {
		rc = 2;
	}
	symtab_free(t);
	return rc ? 1 : 0;
}

static int dump_text(const char *verb, const char *path)
{
	uint64_t start = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct symtab *t;
	struct err err;
	int rc = !strcmp(verb, "kallsyms") ? symtab_new_kallsyms(&t, path, &err)
					   : symtab_new_perf_map(&t, path, &err);

	if (rc < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("%" PRIu64 "\n", clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - start);
	print_all(t);
	symtab_free(t);
	return 0;
}

int main(int argc, char **argv)
{
	struct file_map map;
	struct elf_file elf;
	struct err err;
	int rc;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "kallsyms") || !strcmp(argv[1], "perf-map"))
		return dump_text(argv[1], argv[2]);
	if (file_map_open(&map, argv[2], &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (elf_file_init(&elf, map.bytes, &err) < 0) {
		fprintf(stderr, "%s %s\n", argv[2], err.text);
		file_map_release(&map);
		return 1;
	}
	rc = dump_elf(argv[1], &elf, argv);
	elf_file_release(&elf);
	file_map_release(&map);
	return rc;
}
