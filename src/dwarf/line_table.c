/* SPDX-License-Identifier: MIT */
#include "dwarf/line_table.h"

#include <stdlib.h>

#define FORMATS_MAX 255 /* their count is one byte */
/* Bytes of names in other sections, for a byte of the header: entries of one byte may all name one
 * long text. Files beyond that have no name. */
#define TEXTS_TIMES   128
#define TEXTS_ATLEAST (64 * 1024)

enum { LNCT_PATH = 1, LNCT_DIRECTORY_INDEX = 2 };

struct entry_format {
	uint64_t content; /* DW_LNCT_* */
	uint64_t form;
};

void line_table_release(struct line_table *t)
{
	vec_release(&t->dirs);
	vec_release(&t->files);
}

static struct dwarf_text text_of(const char *s)
{
	return (struct dwarf_text){s, s ? (uint32_t)strnlen(s, DWARF_TEXT_MAX) : 0};
}

/* DWARF 2 to 4: texts up to an empty one. Folder 0 and file 0 are not written. */
static bool read_names_4(struct line_table *t, struct cursor *c)
{
	vec_push(&t->dirs, t->comp_dir);
	vec_push(&t->files, ((struct line_file){{NULL, 0}, 0}));
	for (;;) {
		struct dwarf_text dir = text_of(cursor_cstr(c));

		if (c->failed)
			return false;
		if (!dir.n)
			break;
		vec_push(&t->dirs, dir);
	}
	for (;;) {
		struct line_file file = {.name = text_of(cursor_cstr(c))};

		if (c->failed)
			return false;
		if (!file.name.n)
			return true;
		file.dir = cursor_uleb(c);
		cursor_uleb(c); /* time of change */
		cursor_uleb(c); /* length */
		if (c->failed)
			return false;
		vec_push(&t->files, file);
	}
}

static int read_formats(struct cursor *c, struct entry_format *formats)
{
	int n = cursor_u8(c);

	for (int i = 0; i < n; i++) {
		formats[i].content = cursor_uleb(c);
		formats[i].form = cursor_uleb(c);
	}
	return n;
}

static void read_path(struct line_table *t, const struct debug_unit *u, uint64_t form,
	uint64_t value, struct dwarf_text *out)
{
	if (!t->text_budget)
		return;
	debug_unit_text(u, (uint16_t)form, value, out);
	t->text_budget -= out->n < t->text_budget ? out->n : t->text_budget;
}

static bool read_entry_5(struct line_table *t, const struct debug_unit *u, struct cursor *c,
	const struct entry_format *formats, int n_formats, struct line_file *out)
{
	*out = (struct line_file){{NULL, 0}, 0};
	for (int i = 0; i < n_formats; i++) {
		enum form_how how = form_how(formats[i].form, t->sizes);
		uint64_t value = 0;
		const uint8_t *next;

		if (how == HOW_UNKNOWN || how == HOW_INDIRECT)
			return false;
		next = form_read(c->p, c->end, how, &value);
		if (!next)
			return false;
		c->p = next;
		if (formats[i].content == LNCT_PATH)
			read_path(t, u, formats[i].form, value, &out->name);
		else if (formats[i].content == LNCT_DIRECTORY_INDEX)
			out->dir = value;
	}
	return true;
}

/* DWARF 5: folders or files, in a format that is written in front of them. */
static bool read_names_5(
	struct line_table *t, const struct debug_unit *u, struct cursor *c, bool are_dirs)
{
	struct entry_format formats[FORMATS_MAX];
	int n_formats = read_formats(c, formats);
	uint64_t n = cursor_uleb(c);

	if (c->failed)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *before = c->p;
		struct line_file entry;

		/* An entry of no bytes would let a count of any size through. */
		if (!read_entry_5(t, u, c, formats, n_formats, &entry) || c->p == before)
			return false;
		if (are_dirs)
			vec_push(&t->dirs, entry.name);
		else
			vec_push(&t->files, entry);
	}
	return true;
}

static const char *read_params(struct line_table *t, struct cursor *c)
{
	struct line_params *p = &t->params;

	p->min_instruction = cursor_u8(c);
	p->max_ops = t->sizes.version >= 4 ? cursor_u8(c) : 1;
	cursor_u8(c); /* default_is_stmt */
	p->line_base = (int8_t)cursor_u8(c);
	p->line_range = cursor_u8(c);
	p->opcode_base = cursor_u8(c);
	if (!p->max_ops)
		p->max_ops = 1;
	t->opcode_lengths = cursor_bytes(c, p->opcode_base ? p->opcode_base - 1u : 0).p;
	if (c->failed || !p->opcode_base)
		return "the header is cut short";
	/* Only a program without special opcodes can do without it. */
	return p->line_range ? NULL : "the header's line range is 0";
}

/* What is wrong, or NULL. */
static const char *read_header(struct line_table *t, const struct debug_unit *u, struct cursor *c)
{
	struct span header;
	struct cursor in;
	const char *why;

	t->sizes.version = cursor_u16(c);
	if (t->sizes.version < 2 || t->sizes.version > 5)
		return "the version is not known";
	t->sizes.addr = u->sizes.addr;
	if (t->sizes.version >= 5) {
		t->sizes.addr = cursor_u8(c);
		cursor_u8(c); /* size of segment selectors */
		if (t->sizes.addr != 4 && t->sizes.addr != 8)
			return "the size of addresses is not known";
	}
	header = cursor_bytes(c, t->sizes.offset == 8 ? cursor_u64(c) : cursor_u32(c));
	if (c->failed)
		return "the header is longer than the table";
	t->program = cursor_bytes(c, cursor_left(c));
	in = cursor_of(header);
	t->text_budget = TEXTS_ATLEAST + header.n * TEXTS_TIMES;
	why = read_params(t, &in);
	if (why)
		return why;
	if (t->sizes.version >= 5
			? !read_names_5(t, u, &in, true) || !read_names_5(t, u, &in, false)
			: !read_names_4(t, &in))
		return "the list of files cannot be read";
	return NULL;
}

int line_table_read(struct line_table *t, const struct debug_unit *u, uint64_t offset, uint64_t end,
	struct err *err)
{
	struct span section = u->set->sections.of[DEBUG_LINE];
	struct cursor c;
	uint64_t length;
	const char *why;

	t->dirs.n = t->files.n = 0;
	t->program = (struct span){NULL, 0};
	t->comp_dir = u->comp_dir;
	if (end > section.n)
		end = section.n;
	if (offset >= end)
		return err_set(err, ERR_FORMAT, ".debug_line+0x%llx: lies outside the section",
			(unsigned long long)offset);
	c = cursor_of(span_sub(section, offset, end - offset));
	length = cursor_initial_length(&c, &t->sizes.offset);
	/* A table that is cut may still have its files, which is all that some units need. */
	if (length > cursor_left(&c))
		length = cursor_left(&c);
	c = cursor_of(cursor_bytes(&c, length));
	why = read_header(t, u, &c);
	if (why)
		return err_set(
			err, ERR_FORMAT, ".debug_line+0x%llx: %s", (unsigned long long)offset, why);
	t->n_bytes = length;
	t->program_offset = (uint64_t)(t->program.p - section.p);
	return 0;
}
