/* SPDX-License-Identifier: MIT */
/*
 * /proc/kallsyms: "ADDRESS TYPE NAME[\t[MODULE]]" a line, not sorted across modules. No sizes: a
 * function ends where the next symbol of any kind starts, so data symbols are added as mere ends.
 */
#include "base/buf.h"
#include "base/file.h"
#include "symbols/source/text_scan.h"
#include "symbols/symtab_build.h"

#define KALLSYMS_BYTES_MAX ((size_t)256 << 20)

/* What both makers of tables need to know of a text. */
struct lines {
	size_t n_functions, n_malformed;
	bool has_address; /* a function whose address is not hidden as zero */
};

bool kallsyms_parse_line(struct span line, struct candidate *c)
{
	struct cursor at = cursor_of(line);
	uint8_t before, type, behind;

	*c = (struct candidate){.source = SYMBOL_SOURCE_KALLSYMS, .room = TEXT_FUNCTION_BYTES_MAX};
	if (!text_take_hex(&at, &c->start))
		return false;
	before = cursor_u8(&at);
	type = cursor_u8(&at);
	behind = cursor_u8(&at);
	if (before != ' ' || behind != ' ' || !cursor_left(&at) ||
		cursor_left(&at) > SYMTAB_NAME_BYTES_MAX)
		return false;
	if (type == 't' || type == 'T' || type == 'w' || type == 'W') {
		c->name = (const char *)at.p;
		c->name_bytes = (uint32_t)cursor_left(&at);
		c->bind = CANDIDATE_BIND_WEAK;
		if (type == 'T')
			c->bind = CANDIDATE_BIND_GLOBAL;
		else if (type == 't')
			c->bind = CANDIDATE_BIND_LOCAL;
	}
	return true;
}

/* Hands on all symbols; those that are no functions have no name. */
static struct lines read_lines(struct span text, const struct symbol_sink *sink)
{
	struct cursor rest = cursor_of(text);
	struct lines l = {0};
	struct candidate c;
	struct span line;

	while (text_next_line(&rest, &line)) {
		if (!line.n)
			continue;
		if (!kallsyms_parse_line(line, &c)) {
			l.n_malformed++;
			continue;
		}
		l.n_functions += c.name != NULL;
		l.has_address = l.has_address || (c.name && c.start);
		symbol_sink_add(sink, &c);
	}
	return l;
}

static int check_lines(const struct lines *l, struct err *err)
{
	if (l->has_address)
		return 0;
	if (!l->n_functions)
		return err_set(err, ERR_FORMAT, "has no kernel function");
	return err_set(err, ERR_PERMISSION,
		"all addresses are zero; run as root, or run 'sysctl kernel.kptr_restrict=0' as root");
}

static void add_unsized(void *ctx, const struct candidate *c)
{
	struct text_unsized *u = ctx;

	if (u->starts.n >= SYMTAB_SYMBOLS_MAX)
		return;
	vec_push(&u->starts, c->start);
	if (c->name)
		vec_push(&u->functions, *c);
}

int kallsyms_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err)
{
	struct text_unsized u = {0};
	const struct symbol_sink unsized = {add_unsized, &u};
	struct lines l = read_lines(text, &unsized);
	int rc = check_lines(&l, err);

	*out = (struct text_source){0};
	if (rc < 0)
		u.functions.n = 0; /* names without addresses answer nothing */
	else
		out->n_malformed = l.n_malformed;
	text_unsized_emit(&u, out, sink);
	return rc;
}

/* The builder ends a function at a candidate without a name, so no second sorting is needed. */
static struct symtab *parse_text(struct lines *l, struct span text)
{
	struct symtab_builder b = {.name_bytes_max = text.n};
	const struct symbol_sink sink = symtab_builder_sink(&b);

	*l = read_lines(text, &sink);
	b.n_skipped += l->n_malformed;
	if (!l->has_address)
		b.all.n = 0; /* names without addresses answer nothing */
	return symtab_builder_finish(&b, "kallsyms");
}

struct symtab *symtab_new_kallsyms_bytes(struct span text)
{
	struct lines l;

	return parse_text(&l, text);
}

int symtab_new_kallsyms(struct symtab **out, const char *path, struct err *err)
{
	struct buf text = {0};
	struct lines l;
	struct symtab *t;
	int rc = file_read(&text, path, KALLSYMS_BYTES_MAX, err);

	if (rc < 0) {
		buf_release(&text);
		return rc;
	}
	t = parse_text(&l, buf_span(&text));
	buf_release(&text);
	rc = check_lines(&l, err);
	if (rc == 0) {
		*out = t;
		return 0;
	}
	symtab_free(t);
	return err ? err_prefix(err, "'%s'", path) : rc;
}
