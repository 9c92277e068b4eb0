/* SPDX-License-Identifier: MIT */
/*
 * /proc/kallsyms: "ADDRESS TYPE NAME[\t[MODULE]]" a line, not sorted across modules. No sizes: a
 * function ends where the next symbol of any kind starts, so data symbols are added as mere ends.
 */
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "symbols/hex.h"
#include "symbols/symtab_build.h"

#define KALLSYMS_BYTES_MAX ((size_t)256 << 20)
/* The last function before a hole (between the kernel and its modules) does not extend over it. */
#define KALLSYMS_FUNCTION_BYTES_MAX ((uint64_t)1 << 20)

struct lines {
	struct symtab_builder b;
	size_t n_functions;
	bool has_address; /* a function whose address is not hidden as zero */
};

static bool parse_line(struct lines *l, struct span line)
{
	struct candidate c = {
		.source = SYMBOL_SOURCE_KALLSYMS, .room = KALLSYMS_FUNCTION_BYTES_MAX};
	struct cursor at = cursor_of(line);
	uint8_t before, type, behind;

	if (!hex_take(&at, &c.start))
		return false;
	before = cursor_u8(&at);
	type = cursor_u8(&at);
	behind = cursor_u8(&at);
	if (before != ' ' || behind != ' ' || !cursor_left(&at) ||
		cursor_left(&at) > SYMTAB_NAME_BYTES_MAX)
		return false;
	if (type == 't' || type == 'T' || type == 'w' || type == 'W') {
		c.name = (const char *)at.p;
		c.name_bytes = (uint32_t)cursor_left(&at);
		c.bind = CANDIDATE_BIND_WEAK;
		if (type == 'T')
			c.bind = CANDIDATE_BIND_GLOBAL;
		else if (type == 't')
			c.bind = CANDIDATE_BIND_LOCAL;
		l->n_functions++;
		l->has_address = l->has_address || c.start;
	}
	symtab_builder_add(&l->b, &c);
	return true;
}

static struct symtab *parse_text(struct lines *l, struct span text)
{
	struct cursor c = cursor_of(text);

	l->b.name_bytes_max = text.n;
	while (cursor_left(&c)) {
		const uint8_t *eol = memchr(c.p, '\n', cursor_left(&c));
		struct span line = {c.p, eol ? (size_t)(eol - c.p) : cursor_left(&c)};

		if (line.n && !parse_line(l, line))
			l->b.n_skipped++;
		c.p = eol ? eol + 1 : c.end;
	}
	if (!l->has_address)
		l->b.all.n = 0; /* names without addresses answer nothing */
	return symtab_builder_finish(&l->b, "kallsyms");
}

struct symtab *symtab_new_kallsyms_bytes(struct span text)
{
	struct lines l = {0};

	return parse_text(&l, text);
}

int symtab_new_kallsyms(struct symtab **out, const char *path, struct err *err)
{
	struct buf text = {0};
	struct lines l = {0};
	struct symtab *t;
	int rc = file_read(&text, path, KALLSYMS_BYTES_MAX, err);

	if (rc < 0) {
		buf_release(&text);
		return rc;
	}
	t = parse_text(&l, buf_span(&text));
	buf_release(&text);
	if (l.has_address) {
		*out = t;
		return 0;
	}
	symtab_free(t);
	if (!l.n_functions)
		return err_set(err, ERR_FORMAT, "'%s': has no kernel function", path);
	return err_set(err, ERR_PERMISSION,
		"'%s': all addresses are zero; run as root, or run 'sysctl kernel.kptr_restrict=0' as root",
		path);
}
