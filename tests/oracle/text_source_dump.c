/* SPDX-License-Identifier: MIT */
/*
 * Prints what the readers of symbol sources find, for comparison with nm and others:
 *   text_source_dump ld|lld|nm|perf-map|kallsyms FILE	START SIZE ROOM BIND NAME of every symbol
 *   text_source_dump sections ld|lld FILE		ADDR BYTES NAME of every output section
 *   text_source_dump output ld|nm FILE			the image that the text names
 *   text_source_dump table FILE			as the first, from the text's own kind, after
 *							the table is made: START SIZE NAME
 *   text_source_dump jitdump FILE			START SIZE FROM TO LINES NAME of every code
 *   text_source_dump kind FILE...			the kind of each file
 *   text_source_dump debuginfod debug|executable BUILD-ID [TIMEOUT-S [MAX-MB]]
 *							the path, or the code and the sentence
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "symbols/source/debuginfod.h"
#include "symbols/source/jitdump.h"
#include "symbols/source/source_kind.h"
#include "symbols/source/text_sources.h"

typedef int read_fn(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);

static const struct {
	const char *name;
	read_fn *read;
	enum source_kind kind;
} readers[] = {
	{"ld", ld_map_read, SOURCE_KIND_LD_MAP},
	{"lld", lld_map_read, SOURCE_KIND_LLD_MAP},
	{"nm", nm_text_read, SOURCE_KIND_NM},
	{"perf-map", perf_map_read, SOURCE_KIND_PERF_MAP},
	{"kallsyms", kallsyms_read, SOURCE_KIND_KALLSYMS},
};
#define N_READERS (sizeof(readers) / sizeof(readers[0]))

static void print_candidate(void *ctx, const struct candidate *c)
{
	(void)ctx;
	printf("%" PRIx64 " %" PRIx64 " %" PRIx64 " %d %.*s\n", c->start, c->size, c->room, c->bind,
		(int)c->name_bytes, c->name);
}

static void ignore_candidate(void *ctx, const struct candidate *c)
{
	(void)ctx;
	(void)c;
}

static void build_candidate(void *ctx, const struct candidate *c)
{
	symtab_builder_add(ctx, c);
}

static int fail(const struct err *err, const char *path)
{
	fprintf(stderr, "%d '%s': %s\n", err->code, path, err->text);
	return 1;
}

static read_fn *find_reader(const char *name)
{
	for (size_t i = 0; i < N_READERS; i++)
		if (!strcmp(readers[i].name, name))
			return readers[i].read;
	fprintf(stderr, "no reader is called %s\n", name);
	exit(2);
}

static int open_file(struct file_map *map, const char *path)
{
	struct err err;

	return file_map_open(map, path, &err) < 0 ? fail(&err, path) : 0;
}

static int dump_symbols(const char *reader, const char *path)
{
	const struct symbol_sink sink = {print_candidate, NULL};
	struct text_source source;
	struct file_map map;
	struct err err;
	int rc;

	if (open_file(&map, path))
		return 1;
	rc = find_reader(reader)(map.bytes, &sink, &source, &err);
	if (rc == 0) {
		fprintf(stderr, "%zu symbols, %zu malformed\n", source.n_symbols,
			source.n_malformed);
		text_source_release(&source);
	}
	file_map_release(&map);
	return rc < 0 ? fail(&err, path) : 0;
}

static int dump_facts(const char *verb, const char *reader, const char *path)
{
	const struct symbol_sink sink = {ignore_candidate, NULL};
	struct text_source source;
	struct file_map map;
	struct err err;
	int rc;

	if (open_file(&map, path))
		return 1;
	rc = find_reader(reader)(map.bytes, &sink, &source, &err);
	for (size_t i = 0; rc == 0 && !strcmp(verb, "sections") && i < source.sections.n; i++)
		printf("%" PRIx64 " %" PRIx64 " %s\n", source.sections.v[i].addr,
			source.sections.v[i].mem_bytes, source.sections.v[i].name);
	if (rc == 0 && !strcmp(verb, "output"))
		puts(source.output);
	if (rc == 0)
		text_source_release(&source);
	file_map_release(&map);
	return rc < 0 ? fail(&err, path) : 0;
}

static int dump_table(const char *path)
{
	struct symtab_builder b = {0};
	const struct symbol_sink sink = {build_candidate, &b};
	struct text_source source;
	struct file_map map;
	struct err err = {.code = ERR_UNSUPPORTED, .text = "is no text source"};
	struct symtab *t;
	int rc = ERR_UNSUPPORTED;
	enum source_kind kind;

	if (open_file(&map, path))
		return 1;
	kind = source_kind_of(map.bytes, path);
	b.name_bytes_max = map.bytes.n;
	for (size_t i = 0; i < N_READERS; i++)
		if (readers[i].kind == kind)
			rc = readers[i].read(map.bytes, &sink, &source, &err);
	t = symtab_builder_finish(&b, path);
	for (size_t i = 0; rc == 0 && i < symtab_n(t); i++)
		printf("%" PRIx64 " %" PRIx64 " %s\n", symtab_get(t, i)->start,
			symtab_get(t, i)->size, symtab_get(t, i)->linkage_name);
	symtab_free(t);
	if (rc == 0)
		text_source_release(&source);
	file_map_release(&map);
	return rc < 0 ? fail(&err, path) : 0;
}

static int dump_jitdump(const char *path)
{
	struct jitdump j;
	struct file_map map;
	struct err err;

	if (open_file(&map, path))
		return 1;
	if (jitdump_init(&j, map.bytes, &err) < 0) {
		file_map_release(&map);
		return fail(&err, path);
	}
	for (size_t i = 0; i < j.codes.n; i++) {
		const struct jit_code *c = &j.codes.v[i];
		const struct jit_code *found = jitdump_find(&j, c->addr, c->from_ns);

		printf("%" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %zu %s\n", c->addr,
			c->bytes, c->from_ns, c->to_ns, c->n_lines, c->name);
		if (c->to_ns > c->from_ns && found != c)
			printf("is not found: %s\n", c->name);
	}
	fprintf(stderr,
		"pid %u, machine %u, %zu codes, %zu unknown, %zu malformed, %" PRIu64
		" of %zu bytes\n",
		j.pid, j.machine, j.codes.n, j.n_unknown, j.n_malformed, j.bytes_read, map.bytes.n);
	jitdump_release(&j);
	file_map_release(&map);
	return 0;
}

static int dump_kinds(char **paths)
{
	int rc = 0;

	for (; *paths; paths++) {
		struct file_map map;

		if (open_file(&map, *paths)) {
			rc = 1;
			continue;
		}
		printf("%s: %s\n", *paths, source_kind_name(source_kind_of(map.bytes, *paths)));
		file_map_release(&map);
	}
	return rc;
}

static int ask_debuginfod(char **argv)
{
	struct debuginfod_options options = {0};
	uint8_t id[64];
	size_t n = 0;
	struct err err;
	char *path;

	for (const char *p = argv[3]; p[0] && p[1] && n < sizeof(id); p += 2) {
		char digits[3] = {p[0], p[1], 0};

		id[n++] = (uint8_t)strtoul(digits, NULL, 16);
	}
	if (argv[4])
		options.timeout_s = atol(argv[4]);
	if (argv[4] && argv[5])
		options.max_mb = atol(argv[5]);
	if (debuginfod_find(
		    !strcmp(argv[2], "executable") ? DEBUGINFOD_EXECUTABLE : DEBUGINFOD_DEBUG_FILE,
		    (struct span){id, n}, &options, &path, &err) < 0) {
		printf("%d %s\n", err.code, err.text);
		return 1;
	}
	puts(path);
	free(path);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "kind"))
		return dump_kinds(argv + 2);
	if (!strcmp(argv[1], "table"))
		return dump_table(argv[2]);
	if (!strcmp(argv[1], "jitdump"))
		return dump_jitdump(argv[2]);
	if (!strcmp(argv[1], "debuginfod") && argc >= 4)
		return ask_debuginfod(argv);
	if (argc == 4)
		return dump_facts(argv[1], argv[2], argv[3]);
	return dump_symbols(argv[1], argv[2]);
}
