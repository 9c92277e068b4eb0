/* SPDX-License-Identifier: MIT */
/*
 * Answers questions about the types of a file, or of the kernel's BTF when the file is "btf":
 *
 *	type_dump FILE <questions >answers
 *
 * A question is a line of parts between bars, and may have the answer behind it already, which is
 * ignored: what a program printed about itself is compared with what comes out here.
 *
 *	size|struct item			|BYTES
 *	offset|struct item|inner.next		|BYTE OFFSET|BYTES
 *	bits|struct item|flag			|BIT OFFSET|BITS|signed or unsigned
 *	type|struct item|next			|the type in words
 *	function|target				|RESULT(NAME TYPE, ...)
 *	variable|count				|LINKER ADDRESS|TYPE
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "elf/elf_file.h"
#include "probe/types/btf_types.h"
#include "probe/types/dwarf_types.h"

#define PARTS_MAX 8

static struct type_source source;

static const struct type *find_type(const char *text)
{
	static const char *const words[] = {"struct", "union", "enum"};

	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);

		if (!strncmp(text, words[i], n) && text[n] == ' ')
			return source.named(source.ctx, words[i], text + n + 1);
	}
	return source.named(source.ctx, "", text);
}

/* "a.b.c", also through pointers and into the first element of arrays. */
static bool find_path(const struct type *s, char *path, struct type_field *out)
{
	uint64_t offset = 0;

	for (char *rest = path, *name; (name = strsep(&rest, "."));) {
		while (s->kind == TYPE_POINTER || s->kind == TYPE_ARRAY) {
			offset = s->kind == TYPE_POINTER ? 0 : offset;
			s = s->of;
		}
		if (s->kind == TYPE_STRUCT && !s->is_complete && s->name)
			s = find_type(s->name);
		if (!s || s->kind != TYPE_STRUCT || !type_find_field(s, name, out))
			return false;
		offset += out->offset;
		out->offset = offset;
		s = out->type;
	}
	return true;
}

static void print_type(const struct type *type)
{
	struct buf text = {0};

	type_print(type, &text);
	printf("%s", buf_text(&text));
	buf_release(&text);
}

static void print_function(const char *name)
{
	const struct type *f = source.function(source.ctx, name);

	if (!f) {
		printf("none");
		return;
	}
	print_type(f->of);
	printf("(");
	for (uint32_t i = 0; i < f->n_fields; i++) {
		printf("%s%s ", i ? ", " : "", f->fields[i].name ? f->fields[i].name : "?");
		print_type(f->fields[i].type);
	}
	printf(f->is_variadic ? ", ...)" : ")");
}

static void print_field(const char *what, const struct type *s, char *path)
{
	struct type_field f;

	if (!s || !find_path(s, path, &f))
		printf("none");
	else if (!strcmp(what, "offset"))
		printf("%llu|%llu", (unsigned long long)f.offset, (unsigned long long)f.type->size);
	else if (!strcmp(what, "bits"))
		printf("%llu|%d|%s", (unsigned long long)f.offset * 8 + f.bit_offset, f.bit_size,
			f.type->is_signed ? "signed" : "unsigned");
	else
		print_type(f.type);
}

static void answer(char *const *parts, size_t n)
{
	const struct type *type;
	uint64_t addr;

	if (n < 2)
		return;
	printf("%s|%s|", parts[0], parts[1]);
	if (!strcmp(parts[0], "size")) {
		type = find_type(parts[1]);
		if (type)
			printf("%llu", (unsigned long long)type->size);
		else
			printf("none");
	} else if (!strcmp(parts[0], "function")) {
		print_function(parts[1]);
	} else if (!strcmp(parts[0], "variable")) {
		if (source.variable(source.ctx, parts[1], &type, &addr)) {
			printf("%llx|", (unsigned long long)addr);
			print_type(type);
		} else {
			printf("none");
		}
	} else if (n > 2) {
		printf("%s|", parts[2]);
		print_field(parts[0], find_type(parts[1]), parts[2]);
	}
	printf("\n");
}

static enum mode mode_of(const char *path)
{
	struct file_map map;
	enum mode mode = MODE_64;

	if (file_map_open(&map, path, NULL) == 0) {
		if (map.bytes.n > EI_CLASS && map.bytes.p[EI_CLASS] == ELFCLASS32)
			mode = MODE_32;
		file_map_release(&map);
	}
	return mode;
}

int main(int argc, char **argv)
{
	struct dwarf_types *dwarf = NULL;
	struct btf_types *btf = NULL;
	struct file_map map = {0};
	struct types *types;
	struct err err;
	char line[1024];
	int rc;

	if (argc != 2)
		return 2;
	types = types_new(strcmp(argv[1], "btf") ? mode_of(argv[1]) : MODE_64);
	if (strcmp(argv[1], "btf")) {
		rc = dwarf_types_open(types, argv[1], &dwarf, &err);
	} else {
		rc = file_map_open(&map, BTF_VMLINUX, &err);
		if (rc == 0)
			rc = btf_types_open(types, map.bytes, &btf, &err);
	}
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	source = dwarf ? dwarf_types_source(dwarf) : btf_types_source(btf);
	while (fgets(line, sizeof(line), stdin)) {
		char *parts[PARTS_MAX], *rest = line;
		size_t n = 0;

		line[strcspn(line, "\n")] = 0;
		while (n < PARTS_MAX && (parts[n] = strsep(&rest, "|")))
			n++;
		answer(parts, n);
	}
	dwarf_types_close(dwarf);
	btf_types_close(btf);
	types_free(types);
	file_map_release(&map);
	return 0;
}
