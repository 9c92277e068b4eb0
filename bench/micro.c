/* SPDX-License-Identifier: MIT */
/* micro TRACE IMAGE...: costs of the parts, in one process. TRACE is written. */
#include "micro.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "symbols/symtab.h"
#include "dwarf/cfi_table.h"

void micro_print(const char *name, double value, const char *unit, const char *remark_fmt, ...)
{
	va_list ap;

	printf("%s\t%.4g\t%s\t", name, value, unit);
	va_start(ap, remark_fmt);
	vprintf(remark_fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

void micro_fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "micro: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

static double keep_min(double least, uint64_t start_ns)
{
	double ms = (double)(clock_mono_ns() - start_ns) / 1e6;

	return least == 0 || ms < least ? ms : least;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void micro_image(const char *path)
{
	double cfi_ms = 0, names_ms = 0;
	struct cfi_stats stats = {0};
	struct file_map file;
	struct elf_file elf;
	char name[300], sources[200] = "";
	size_t n_names = 0;
	struct err err;

	if (file_map_open(&file, path, &err) < 0 || elf_file_init(&elf, file.bytes, &err) < 0)
		micro_fail("%s: %s", path, err.text);
	for (int i = 0; i < MICRO_ROUNDS; i++) {
		uint64_t start = clock_mono_ns();
		struct cfi_table *cfi = cfi_table_new(&elf);
		struct symtab *names;

		cfi_ms = keep_min(cfi_ms, start);
		stats = cfi_table_stats(cfi);
		cfi_table_free(cfi);
		start = clock_mono_ns();
		names = symtab_new_elf(&elf, path);
		names_ms = keep_min(names_ms, start);
		n_names = symtab_n(names);
		snprintf(sources, sizeof(sources), "%s", symtab_sources(names));
		symtab_free(names);
	}
	snprintf(name, sizeof(name), "CFI table of %s", base_name(path));
	micro_print(name, cfi_ms, "ms", "%zu FDEs, %zu rows, %zu rules, %zu bytes, %.0f ns a row",
		stats.n_fdes, stats.n_rows, stats.n_rules, stats.n_bytes,
		cfi_ms * 1e6 / (double)(stats.n_rows ? stats.n_rows : 1));
	snprintf(name, sizeof(name), "symbol table of %s", base_name(path));
	micro_print(name, names_ms, "ms", "%zu symbols from %s", n_names, sources);
	elf_file_release(&elf);
	file_map_release(&file);
}

void micro_kallsyms(const char *path)
{
	struct symtab *names;
	double ms = 0;
	size_t n = 0;
	struct err err;

	for (int i = 0; i < MICRO_ROUNDS; i++) {
		uint64_t start = clock_mono_ns();

		if (symtab_new_kallsyms(&names, path, &err) < 0) {
			fprintf(stderr, "micro: %s: not measured\n", err.text);
			return;
		}
		ms = keep_min(ms, start);
		n = symtab_n(names);
		symtab_free(names);
	}
	micro_print("symbol table of the kernel", ms, "ms", "%zu symbols", n);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: micro TRACE IMAGE...\n");
		return 2;
	}
	micro_unwind();
	micro_trace(argv[1]);
	for (int i = 2; i < argc; i++)
		micro_image(argv[i]);
	micro_kallsyms("/proc/kallsyms");
	return 0;
}
