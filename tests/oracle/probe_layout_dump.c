/* SPDX-License-Identifier: MIT */
/*
 * Layouts and places of arguments as src/probe/types has them, for declarations in a file, both
 * modes. One line a field:    MODE TYPE.PATH offset bit_offset bit_size
 * one a type:                 MODE TYPE size
 * one an argument or result:  MODE FUNCTION.I KIND REGISTERS offset bytes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "probe/script/parse.h"
#include "probe/types/call_abi.h"
#include "probe/types/type.h"

static void print_fields(int bits, const char *path, const struct type *s, uint64_t base)
{
	for (uint32_t i = 0; i < s->n_fields; i++) {
		const struct type_field *f = &s->fields[i];
		char *name = f->name ? mem_printf("%s.%s", path, f->name) : mem_strdup(path);

		if (f->name)
			printf("%d %s %llu %u %u\n", bits, name,
				(unsigned long long)(base + f->offset), f->bit_offset, f->bit_size);
		if (f->type->kind == TYPE_STRUCT)
			print_fields(bits, name, f->type, base + f->offset);
		free(name);
	}
}

static void print_place(int bits, const char *function, const char *what, struct value_place p)
{
	static const char *const kinds[] = {"register", "registers", "stack", "pointer", "vector"};

	printf("%d %s.%s %s", bits, function, what, kinds[p.kind]);
	for (unsigned i = 0; i < p.n_regs; i++)
		printf("%c%u", i ? ',' : ' ', p.reg[i]);
	printf("%s %d %u\n", p.n_regs ? "" : " -", p.offset, p.bytes);
}

static void print_function(enum mode mode, int bits, const char *name, const struct type *f)
{
	char what[16];

	for (uint32_t i = 0; i < f->n_fields; i++) {
		snprintf(what, sizeof(what), "%u", i);
		print_place(bits, name, what, call_argument(mode, f, i));
	}
	if (f->of->kind != TYPE_VOID)
		print_place(bits, name, "result", call_result(mode, f->of));
}

static void print_mode(const struct script *script, enum mode mode, struct diags *diags)
{
	struct types *types = types_new(mode);
	int bits = mode == MODE_32 ? 32 : 64;

	types_declare(types, script->decls, diags);
	for (const struct decl *d = script->decls; d; d = d->next) {
		const struct type *type;

		if (d->name && !d->is_typedef) {
			type = types_function(types, d->name);
			if (type)
				print_function(mode, bits, d->name, type);
			continue;
		}
		type = types_of_decl(types, d->type, SPACE_USER, diags);
		if (type->kind != TYPE_STRUCT && !type->is_enum)
			continue;
		printf("%d %s %llu\n", bits, d->name ? d->name : d->type->name,
			(unsigned long long)type->size);
		print_fields(bits, d->name ? d->name : d->type->name, type, 0);
	}
	types_free(types);
}

int main(int argc, char **argv)
{
	struct script_parameters none = {0};
	struct sources sources = {0};
	struct buf text = {0};
	struct script *script;
	struct diags diags;
	int rc = 1;

	if (argc != 2 || file_read(&text, argv[1], 1 << 20, NULL) < 0) {
		fprintf(stderr, "usage: probe_layout_dump FILE\n");
		return 2;
	}
	sources_add(&sources, argv[1], buf_span(&text));
	diags_init(&diags, &sources);
	script = script_parse(&sources, &none, &diags);
	for (int mode = 0; mode < N_MODES; mode++)
		print_mode(script, mode, &diags);
	buf_reset(&text);
	diags_text(&diags, &text);
	fputs(buf_text(&text), stderr);
	rc = diags.n_errors != 0;
	script_free(script);
	diags_release(&diags);
	sources_release(&sources);
	buf_release(&text);
	return rc;
}
