/* SPDX-License-Identifier: MIT */
#include "insert/insert.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "elf/archive.h"
#include "insert/object_code.h"
#include "insert/debug_move.h"

#define MEMBER_BYTES_MAX ((size_t)1 << 31)
#define LEFT_NAME_MAX	 4096 /* bytes: names of a hostile object may share them */

static const char *const reason_texts[INSERT_N_REASONS] = {
	[INSERT_REASON_DONE] = "inserted",
	[INSERT_REASON_NOT_WANTED] = "not asked for",
	[INSERT_REASON_EMPTY] = "it has no code",
	[INSERT_REASON_UNDECODABLE] = "something in its section is no instruction that is known",
	[INSERT_REASON_SECTION_DATA] = "its section holds data, or code that nothing names",
	[INSERT_REASON_MIDDLE] = "something refers to the middle of an instruction in its section",
	[INSERT_REASON_OVERLAP] = "it shares code with another function",
	[INSERT_REASON_INDIRECT] = "it jumps to places that are not known",
	[INSERT_REASON_TABLE] = "a jump table is not understood",
	[INSERT_REASON_NO_REGISTER] =
		"flags are in use where a counter would go, and no register is free",
	[INSERT_REASON_GS] = "it uses the gs segment",
	[INSERT_REASON_TRANSACTION] = "it uses memory transactions",
	[INSERT_REASON_BOUND] = "it depends on where its instructions lie",
	[INSERT_REASON_LTO] = "made for link-time optimisation",
	[INSERT_REASON_SECTION_KIND] = "its section is put together from pieces by the linker",
	[INSERT_REASON_TABLES] = "the exception tables of its object are not understood",
	[INSERT_REASON_OBJECT] = "could not be given counting code",
};

const char *insert_reason_text(enum insert_reason reason)
{
	return reason < INSERT_N_REASONS ? reason_texts[reason] : "not known";
}

bool insert_reason_is_told(enum insert_reason reason)
{
	return reason != INSERT_REASON_DONE && reason != INSERT_REASON_NOT_WANTED &&
	       reason != INSERT_REASON_EMPTY && reason != INSERT_REASON_SECTION_KIND;
}

void insert_report_release(struct insert_report *r)
{
	for (size_t i = 0; i < r->functions.n; i++) {
		free(r->functions.v[i].name);
		free(r->functions.v[i].member);
	}
	vec_release(&r->functions);
	vec_release_all(&r->left_names);
	vec_release_all(&r->notes);
}

static void report_function(const struct code *c, const struct code_section *s,
	const struct code_function *f, struct insert_report *report)
{
	struct insert_function out = {.reason = f->reason,
		.n_blocks = f->n_blocks,
		.n_insns = f->n_insns,
		.old_bytes = f->end - f->start,
		.is_compiled = c->is_compiled};

	out.new_bytes = out.old_bytes;
	if (code_section_is_inserted(s) && f->n_insns)
		out.new_bytes = code_insn_end(&s->insns.v[f->first_insn + f->n_insns - 1]) -
				s->insns.v[f->first_insn].label;
	out.name = f->name[0] ? mem_strdup(f->name) : mem_printf("%s+0x%x", s->name, f->start);
	vec_push(&report->functions, out);
	if (f->reason == INSERT_REASON_DONE)
		report->n_blocks += f->n_blocks;
}

static void report_left_names(const struct code *c, struct insert_report *report)
{
	for (size_t i = 1; i < c->object->symbols.n; i++) {
		const struct object_symbol *sym = &c->object->symbols.v[i];
		const struct code_function *f = code_function_at(c, sym->section, sym->value);

		if (f && sym->bind != STB_LOCAL && sym->value == f->start &&
			insert_reason_is_told(f->reason) && strlen(sym->name) <= LEFT_NAME_MAX)
			vec_push(&report->left_names, mem_strdup(sym->name));
	}
}

static void report_code(const struct code *c, struct insert_report *report)
{
	report_left_names(c, report);
	for (const struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		report->old_text += s->bytes.n;
		report->new_text += code_section_is_inserted(s) ? s->new_bytes : s->bytes.n;
		for (size_t i = 0; i < s->functions.n; i++)
			report_function(c, s, &s->functions.v[i], report);
	}
}

static void note(struct insert_report *report, char *sentence)
{
	vec_push(&report->notes, sentence);
}

/* Is what is linked made of something else than the object's machine code? */
static bool is_lto(const struct elf_object *o, const struct insert_options *options)
{
	bool has_lto = false, has_llvm = false, has_code = false;

	for (size_t i = 1; i < o->sections.n; i++) {
		const struct object_section *s = &o->sections.v[i];

		has_lto |= !strncmp(s->name, ".gnu.lto_", 9);
		has_llvm |= !strcmp(s->name, ".llvm.lto");
		has_code |= (s->flags & SHF_EXECINSTR) && s->size;
	}
	return has_llvm || (has_lto && (options->leaves_lto || !has_code));
}

/* Debug information that cannot be mended is worse than none. */
static void drop_debug(struct elf_object *o)
{
	for (size_t i = 1; i < o->sections.n; i++) {
		struct object_section *s = &o->sections.v[i];

		if (strncmp(s->name, ".debug_", 7))
			continue;
		s->relocs.n = 0;
		s->flags &= ~(uint64_t)SHF_COMPRESSED;
		object_section_set(o, (uint32_t)i, (struct span){(const uint8_t *)"", 0});
	}
}

static bool has_work(const struct code *c)
{
	for (const struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		if (code_section_is_inserted(s))
			return true;
	return false;
}

/* The object is changed in memory; false when nothing was to be done. */
static bool insert_into(struct code *c, struct insert_report *report, struct err *err)
{
	bool is_split = false;

	code_resolve(c);
	code_blocks(c);
	code_live(c);
	code_plan(c);
	code_lay_out(c);
	/* In front of code_emit: ranges are checked against the sections as they were. Padding may go, so
	 * that a section with little code in it becomes smaller. */
	if (has_work(c) && exception_tables_move(c->object, &c->moved, err)) {
		note(report, mem_printf("%s; the object is left alone", err->text));
		code_refuse(c, INSERT_REASON_TABLES);
	}
	report_code(c, report);
	if (!has_work(c))
		return false;
	if (c->options->mode != INSERT_MODE_NOPS)
		code_describe(c);
	code_emit(c);
	if (debug_move(c->object, &c->moved, &is_split, err)) {
		note(report, mem_printf("%s; its debug information is dropped", err->text));
		drop_debug(c->object);
	} else if (is_split) {
		note(report,
			mem_strdup(
				"its split debug information (.dwo) is of the code as it was: lines "
				"stay, inlined calls and variables are not known"));
	}
	code_relocate(c);
	code_keep_units(c);
	return true;
}

static int copy_object(struct span in, struct buf *out)
{
	buf_put(out, in.p, in.n);
	return 0;
}

static bool has_left_alone(const struct code *c)
{
	for (const struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++)
			if (insert_reason_is_told(s->functions.v[i].reason) ||
				s->functions.v[i].reason == INSERT_REASON_NOT_WANTED)
				return true;
	return false;
}

/* The object as it was; but whoever reads the counts of the program has to know what is not in them. */
static int write_left_alone(struct code *c, struct span in, struct buf *out, struct err *err)
{
	if (c->options->mode == INSERT_MODE_NOPS || !has_left_alone(c))
		return copy_object(in, out);
	code_describe(c);
	code_keep_units(c);
	return elf_object_write(c->object, out, err);
}

int insert_object(struct span in, const struct insert_options *options, struct buf *out,
	struct insert_report *report, struct err *err)
{
	struct elf_object o;
	struct code c;
	bool is_readable;
	int rc;

	if (elf_object_open(&o, in, err))
		return err->code;
	report->n_objects++;
	if (is_lto(&o, options)) {
		report->n_left_alone++;
		/* Of a whole link it is known what becomes of them. */
		if (!options->leaves_lto)
			note(report, mem_strdup(insert_reason_text(INSERT_REASON_LTO)));
		elf_object_release(&o);
		return copy_object(in, out);
	}
	if (options->mode == INSERT_MODE_NOTHING) {
		rc = elf_object_write(&o, out, err);
		elf_object_release(&o);
		return rc;
	}
	is_readable = code_read(&c, &o, options, err) == 0;
	if (!is_readable) {
		note(report, mem_printf("%s; the object is left alone", err->text));
		report_code(&c, report);
	}
	if (is_readable && insert_into(&c, report, err)) {
		rc = elf_object_write(&o, out, err);
	} else {
		report->n_left_alone++;
		rc = write_left_alone(&c, in, out, err);
	}
	code_release(&c);
	elf_object_release(&o);
	return rc;
}

/* The bytes of a member, which a thin archive keeps in a file. */
static int member_bytes(const struct archive_member *m, const char *archive, struct span *bytes,
	struct buf *own, struct err *err)
{
	int n_folder = (int)(path_base_name(archive) - archive), rc;
	char *path;

	*bytes = m->bytes;
	if (!m->is_outside)
		return 0;
	path = m->name[0] == '/' ? mem_strdup(m->name)
				 : mem_printf("%.*s/%s", n_folder ? n_folder : 1,
					   n_folder ? archive : ".", m->name);
	rc = file_read(own, path, MEMBER_BYTES_MAX, err);
	free(path);
	*bytes = buf_span(own);
	return rc;
}

static int insert_member(struct archive_member *m, const char *archive,
	const struct insert_options *options, struct buf *out, struct insert_report *report,
	struct err *err)
{
	size_t first = report->functions.n, first_note = report->notes.n;
	struct insert_options named = *options;
	struct span bytes;
	struct buf own = {0};
	int rc = member_bytes(m, archive, &bytes, &own, err);

	named.object_name = m->name;
	if (!rc && elf_object_is(bytes))
		rc = insert_object(bytes, &named, out, report, err);
	else if (!rc) {
		report->n_left_alone++;
		rc = copy_object(bytes, out);
	}
	buf_release(&own);
	if (rc)
		return err_prefix(err, "member '%s'", m->name);
	for (size_t i = first; i < report->functions.n; i++)
		report->functions.v[i].member = mem_strdup(m->name);
	for (size_t i = first_note; i < report->notes.n; i++) {
		char *old = report->notes.v[i];

		report->notes.v[i] = mem_printf("member '%s': %s", m->name, old);
		free(old);
	}
	m->bytes = buf_span(out);
	m->is_outside = false;
	return 0;
}

static int insert_archive(struct span in, const char *path, const struct insert_options *options,
	struct buf *out, struct insert_report *report, struct err *err)
{
	struct archive a;
	struct buf *outs;
	int rc = 0;

	if (archive_open(&a, in, err))
		return err->code;
	outs = mem_calloc(a.members.n + 1, sizeof(*outs));
	for (size_t i = 0; i < a.members.n && !rc; i++)
		rc = insert_member(&a.members.v[i], path, options, &outs[i], report, err);
	if (!rc)
		rc = archive_write(&a, out, err);
	for (size_t i = 0; i < a.members.n; i++)
		buf_release(&outs[i]);
	free(outs);
	archive_release(&a);
	return rc;
}

int insert_file(struct span in, const char *path, const struct insert_options *options,
	struct buf *out, struct insert_report *report, struct err *err)
{
	if (archive_is(in))
		return insert_archive(in, path, options, out, report, err);
	return insert_object(in, options, out, report, err);
}
