/* SPDX-License-Identifier: MIT */
/*
 * Reading of ar archives. Every member is a header of 60 bytes of text and its contents, padded to
 * an even length:
 *
 *	name[16] mtime[12] uid[6] gid[6] mode[8] size[10] "`\n"
 *
 * Names: "foo.o/" (GNU) or "foo.o   " (BSD); "/12" is the text at 12 of the member "//", there
 * ended by "/\n"; "/12:34" in a thin archive is the member whose header lies at 34 of the archive
 * of that name; "#1/20" is at the start of the contents and 20 bytes long.
 */
#include "elf/archive.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "elf/archive_parts.h"

#define ARCHIVE_MEMBERS_MAX (64u << 20)
#define ARCHIVE_NAME_MAX    4096 /* bytes; in a thin archive it is a path */

struct header {
	uint64_t at;			   /* of the header in the file */
	char name[ARCHIVE_NAME_BYTES + 1]; /* without the spaces at the end */
	struct span contents;		   /* empty for a member that lies outside */
	uint64_t size;
	uint64_t mtime;
	uint32_t uid, gid, mode;
};

struct reader {
	struct archive *a;
	struct archive_store *store;
	struct span bytes;
	uint64_t at;
	struct map member_of; /* header's offset -> index into members */
	struct span index;    /* contents of "/" or "/SYM64/" */
	char *names;	      /* copy of "//", every name ended by NUL; owned by the store */
	size_t n_names;
};

bool archive_is(struct span bytes)
{
	return bytes.n >= ARCHIVE_MAGIC_BYTES &&
	       (!memcmp(bytes.p, ARCHIVE_MAGIC, ARCHIVE_MAGIC_BYTES) ||
		       !memcmp(bytes.p, ARCHIVE_MAGIC_THIN, ARCHIVE_MAGIC_BYTES));
}

/* Digits, then only spaces. False when it is anything else; a blank field is 0 and true. */
static bool field_number(const uint8_t *p, size_t n, unsigned base, uint64_t *value)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < n && p[i] >= '0' && p[i] < '0' + base; i++)
		v = v * base + (p[i] - '0');
	for (; i < n; i++)
		if (p[i] != ' ')
			return false;
	*value = v;
	return true;
}

/* A field that means nothing to the linker: what is no number counts as 0. */
static uint64_t field_lenient(const uint8_t *p, size_t n, unsigned base)
{
	uint64_t v = 0;

	return field_number(p, n, base, &v) ? v : 0;
}

static int read_header(struct reader *r, struct header *h, struct err *err)
{
	struct span s = span_sub(r->bytes, r->at, ARCHIVE_HEADER_BYTES);
	size_t n = ARCHIVE_NAME_BYTES;

	if (!s.p)
		return err_set(err, ERR_FORMAT, "offset %#llx: the header of a member is cut off",
			(unsigned long long)r->at);
	if (s.p[58] != '`' || s.p[59] != '\n')
		return err_set(err, ERR_FORMAT, "offset %#llx: there is no header of a member",
			(unsigned long long)r->at);
	*h = (struct header){.at = r->at,
		.mtime = field_lenient(s.p + 16, 12, 10),
		.uid = (uint32_t)field_lenient(s.p + 28, 6, 10),
		.gid = (uint32_t)field_lenient(s.p + 34, 6, 10),
		.mode = (uint32_t)field_lenient(s.p + 40, 8, 8)};
	if (!field_number(s.p + 48, 10, 10, &h->size))
		return err_set(err, ERR_FORMAT, "offset %#llx: the member's size is no number",
			(unsigned long long)r->at);
	while (n && s.p[n - 1] == ' ')
		n--;
	memcpy(h->name, s.p, n);
	r->at += ARCHIVE_HEADER_BYTES;
	return 0;
}

static int take_contents(struct reader *r, struct header *h, struct err *err)
{
	uint64_t left = r->bytes.n - r->at;

	if (h->size > left)
		return err_set(err, ERR_FORMAT,
			"offset %#llx: member '%s' has %llu bytes, but only %llu follow",
			(unsigned long long)h->at, h->name, (unsigned long long)h->size,
			(unsigned long long)left);
	h->contents = (struct span){r->bytes.p + r->at, (size_t)h->size};
	r->at += h->size;
	if (r->at & 1 && r->at < r->bytes.n)
		r->at++;
	return 0;
}

static char *keep_text(struct reader *r, const void *p, size_t n)
{
	char *text = mem_strndup(p, n);

	vec_push(&r->store->texts, text);
	return text;
}

/* "//": the names' ends become NULs, so that members can point into it. */
static void take_names(struct reader *r, struct span contents)
{
	char *names = keep_text(r, contents.p, contents.n);

	for (size_t i = 0; i < contents.n; i++) {
		if (names[i] != '\n')
			continue;
		names[i] = 0;
		if (i && names[i - 1] == '/')
			names[i - 1] = 0;
	}
	r->names = names;
	r->n_names = contents.n;
}

/* "/12" or "/12:34". */
static int long_name(
	struct reader *r, const struct header *h, struct archive_member *m, struct err *err)
{
	char *end;
	unsigned long long offset = strtoull(h->name + 1, &end, 10);

	if (*end == ':' && r->a->is_thin && offset < r->n_names)
		return err_set(err, ERR_UNSUPPORTED,
			"offset %#llx: members of '%s', an archive inside of a thin archive, are "
			"not supported",
			(unsigned long long)h->at, r->names + offset);
	if (*end || offset >= r->n_names)
		return err_set(err, ERR_FORMAT,
			"offset %#llx: the member's name '%s' is not in the table of names",
			(unsigned long long)h->at, h->name);
	m->name = r->names + offset;
	return 0;
}

/* "#1/20": the name lies in front of the contents, padded with NULs. */
static int inner_name(
	struct reader *r, const struct header *h, struct archive_member *m, struct err *err)
{
	uint64_t n;

	if (!field_number((const uint8_t *)h->name + 3, strlen(h->name + 3), 10, &n) ||
		n > h->contents.n)
		return err_set(err, ERR_FORMAT,
			"offset %#llx: the member's name '%s' is longer than the member",
			(unsigned long long)h->at, h->name);
	m->name = keep_text(r, h->contents.p, (size_t)n);
	m->bytes.p += n;
	m->bytes.n -= (size_t)n;
	return 0;
}

static int name_member(
	struct reader *r, const struct header *h, struct archive_member *m, struct err *err)
{
	size_t n = strlen(h->name);

	if (h->name[0] == '/' && h->name[1] >= '0' && h->name[1] <= '9')
		return long_name(r, h, m, err);
	if (!strncmp(h->name, "#1/", 3) && !r->a->is_thin)
		return inner_name(r, h, m, err);
	if (h->name[0] == '/')
		return err_set(err, ERR_UNSUPPORTED,
			"offset %#llx: the special member '%s' is not known",
			(unsigned long long)h->at, h->name);
	if (n && h->name[n - 1] == '/')
		n--;
	m->name = keep_text(r, h->name, n);
	return 0;
}

/* The index of BSD archives; what it says is found out anew. */
static bool is_bsd_index(const char *name)
{
	return !strcmp(name, "__.SYMDEF") || !strcmp(name, "__.SYMDEF SORTED") ||
	       !strcmp(name, "__.SYMDEF_64") || !strcmp(name, "__.SYMDEF_64 SORTED");
}

static int add_member(struct reader *r, const struct header *h, struct err *err)
{
	struct archive_member m = {.bytes = h->contents,
		.mtime = h->mtime,
		.uid = h->uid,
		.gid = h->gid,
		.mode = h->mode,
		.is_outside = r->a->is_thin};
	int rc = name_member(r, h, &m, err);

	if (rc < 0 || is_bsd_index(m.name))
		return rc;
	if (strnlen(m.name, ARCHIVE_NAME_MAX + 1) > ARCHIVE_NAME_MAX)
		return err_set(err, ERR_LIMIT, "offset %#llx: the member's name is too long",
			(unsigned long long)h->at);
	if (r->a->members.n >= ARCHIVE_MEMBERS_MAX)
		return err_set(
			err, ERR_LIMIT, "there are more than %u members", ARCHIVE_MEMBERS_MAX);
	*map_ensure(&r->member_of, h->at, NULL) = r->a->members.n;
	vec_push(&r->a->members, m);
	return 0;
}

static int read_member(struct reader *r, struct err *err)
{
	struct header h;
	bool is_index, is_wide, is_names;
	int rc = read_header(r, &h, err);

	if (rc < 0)
		return rc;
	is_wide = !strcmp(h.name, "/SYM64/");
	is_index = is_wide || !strcmp(h.name, "/");
	is_names = !strcmp(h.name, "//");
	if (!r->a->is_thin || is_index || is_names)
		rc = take_contents(r, &h, err);
	if (rc < 0)
		return rc;
	if (is_names) {
		take_names(r, h.contents);
	} else if (is_index && !r->index.p) {
		r->index = h.contents;
		r->a->has_wide_index = is_wide;
	} else if (!is_index) {
		rc = add_member(r, &h, err);
	}
	return rc;
}

static uint64_t big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

ORDER_BY(by_member, struct archive_symbol, member, name)

/* A count, as many offsets of headers, as many names; entries that fit nothing are left out. */
static void read_index(struct reader *r)
{
	size_t word = r->a->has_wide_index ? 8 : 4;
	struct span s = r->index;
	uint64_t n, name_at;

	if (s.n < word)
		return;
	n = big_endian(s.p, word);
	if (n > (s.n - word) / word)
		return;
	name_at = word + n * word;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t *member = map_find(&r->member_of, big_endian(s.p + word + i * word, word));
		const char *name = span_cstr(s, name_at);

		if (!name)
			break;
		name_at += strlen(name) + 1;
		if (member)
			vec_push(&r->store->symbols,
				((struct archive_symbol){(uint32_t)*member, name}));
	}
	vec_sort(&r->store->symbols, by_member);
}

int archive_open(struct archive *a, struct span bytes, struct err *err)
{
	struct reader r = {.a = a, .bytes = bytes, .at = ARCHIVE_MAGIC_BYTES};
	int rc = 0;

	*a = (struct archive){0};
	if (!archive_is(bytes))
		return err_set(err, ERR_FORMAT, "this is no archive");
	a->is_thin = !memcmp(bytes.p, ARCHIVE_MAGIC_THIN, ARCHIVE_MAGIC_BYTES);
	a->arena = r.store = mem_zalloc(sizeof(*r.store));
	while (!rc && r.at < bytes.n)
		rc = read_member(&r, err);
	if (!rc)
		read_index(&r);
	else
		archive_release(a);
	map_release(&r.member_of);
	return rc;
}

void archive_release(struct archive *a)
{
	struct archive_store *store = a->arena;

	if (store) {
		vec_release_all(&store->texts);
		vec_release(&store->symbols);
	}
	free(store);
	vec_release(&a->members);
	*a = (struct archive){0};
}
