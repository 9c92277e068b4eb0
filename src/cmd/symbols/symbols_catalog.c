/* SPDX-License-Identifier: MIT */
/* What the verbs share: opening the catalog, choosing an image of it, printing its facts. */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/symbols/symbols_verbs.h"

#define ID_DIGITS	16
#define PREFIX_MIN	4  /* digits of an id that may stand for it */
#define SHORT_HEX_BYTES 6  /* of a build-id in a table */
#define LISTED_MAX	12 /* images named in a sentence */

int symbols_catalog_path(const struct symbols_call *call, const char **path, struct err *err)
{
	if (!call->catalog_path)
		return err_set(err, ERR_NOT_FOUND,
			"symbols: there is no home folder for a merged symbol file (--catalog FILE names one)");
	*path = call->catalog_path;
	return 0;
}

void symbols_say_notes(const struct catalog *c, const char *path)
{
	const char *note = catalog_notes(c);

	while (*note) {
		int n = (int)strcspn(note, "\n");

		fprintf(stderr, "weir: '%s': %.*s\n", path, n, note);
		note += n + (note[n] == '\n');
	}
}

int symbols_catalog_open(const struct symbols_call *call, struct catalog **out, struct err *err)
{
	const char *path = NULL;
	int rc = symbols_catalog_path(call, &path, err);

	if (rc < 0)
		return rc;
	rc = catalog_open(out, path, err);
	if (rc == 0)
		symbols_say_notes(*out, path);
	if (rc != ERR_NOT_FOUND)
		return rc;
	return err_set(err, ERR_NOT_FOUND,
		"'%s': there is no merged symbol file ('weir symbols add %s%s%sPATH...' makes it)",
		path, call->args->catalog ? "--catalog " : "", call->args->catalog ? path : "",
		call->args->catalog ? " " : "");
}

int symbols_catalog_open_if_any(
	const struct symbols_call *call, struct catalog **out, struct err *err)
{
	int rc;

	*out = NULL;
	if (!call->catalog_path)
		return 0;
	rc = symbols_catalog_open(call, out, err);
	return rc == ERR_NOT_FOUND && !call->args->catalog ? 0 : rc;
}

size_t symbols_catalog_find_id(const struct catalog *c, const char *id)
{
	for (size_t i = 0; i < catalog_n(c); i++)
		if (!strcmp(catalog_get(c, i).id, id))
			return i;
	return SIZE_MAX;
}

/* The first digits, enough to tell images apart; "." when it is empty. */
static const char *short_hex(struct span bytes, struct buf *to)
{
	if (!bytes.n)
		return ".";
	if (bytes.n > SHORT_HEX_BYTES)
		bytes.n = SHORT_HEX_BYTES;
	return symbols_hex(bytes, to);
}

/* --- choosing --- */

static bool has_path(const struct catalog_entry *e, const char *text)
{
	return !strcmp(e->path, text);
}

static bool has_prefix(const struct catalog_entry *e, const char *text)
{
	size_t n = strlen(text);

	return n >= PREFIX_MIN && n <= ID_DIGITS && !strncmp(e->id, text, n);
}

static bool has_file_name(const struct catalog_entry *e, const char *text)
{
	return !strcmp(path_base_name(e->path), text);
}

/* 1: *image is the only one; 0: there is none; negative: there are several. */
static int choose_by(const struct catalog *c, const char *text,
	bool (*matches)(const struct catalog_entry *e, const char *text), size_t *image,
	struct err *err)
{
	struct buf list = {0}, hex = {0};
	size_t n = 0, found = 0;
	int rc;

	for (size_t i = 0; i < catalog_n(c); i++) {
		struct catalog_entry e = catalog_get(c, i);

		if (!matches(&e, text))
			continue;
		found = i;
		if (++n > LISTED_MAX)
			continue;
		buf_printf(&list, "%s%s", n > 1 ? ", " : "", e.id);
		if (e.build_id.n)
			buf_printf(&list, " (build-id %s)", short_hex(e.build_id, &hex));
	}
	if (n > LISTED_MAX)
		buf_printf(&list, ", ...");
	if (n > 1)
		rc = err_set(err, ERR_FAILED, "'%s': is %zu images; name one by its id: %s", text,
			n, buf_text(&list));
	else
		rc = (int)n;
	if (n == 1)
		*image = found;
	buf_release(&list);
	buf_release(&hex);
	return rc;
}

/* As the catalog has paths: absolute, without links. Also of a file that is gone by now, as long as
 * its folder is there. The caller frees it; NULL when there is none. */
static char *full_path(const char *text)
{
	const char *slash = strrchr(text, '/');
	char *real = realpath(text, NULL), *folder, *path;

	if (real)
		return real;
	folder = slash ? mem_strndup(text, slash > text ? (size_t)(slash - text) : 1)
		       : mem_strdup(".");
	real = realpath(folder, NULL);
	free(folder);
	if (!real)
		return NULL;
	path = mem_printf("%s/%s", strcmp(real, "/") ? real : "", slash ? slash + 1 : text);
	free(real);
	return path;
}

int symbols_catalog_choose(
	const struct catalog *c, const char *text, size_t *image, struct err *err)
{
	size_t i = symbols_catalog_find_id(c, text);
	char *full;
	int rc;

	if (i != SIZE_MAX) {
		*image = i;
		return 0;
	}
	rc = choose_by(c, text, has_path, image, err);
	if (rc == 0 && (full = full_path(text))) {
		rc = choose_by(c, full, has_path, image, err);
		free(full);
	}
	if (rc == 0)
		rc = choose_by(c, text, has_prefix, image, err);
	if (rc == 0)
		rc = choose_by(c, text, has_file_name, image, err);
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': the merged symbol file has no image with this id, path or name ('weir symbols list' lists them)",
			text);
	return rc < 0 ? rc : 0;
}

/* --- printing --- */

unsigned symbols_n_threads(const struct symbols_call *call)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (call->args->threads != SYMBOLS_NUMBER_ABSENT)
		return (unsigned)call->args->threads;
	return n > 0 ? (unsigned)n : 1;
}

const char *symbols_hex(struct span bytes, struct buf *to)
{
	buf_reset(to);
	buf_put_hex(to, bytes);
	return buf_text(to);
}

const char *symbols_machine(uint16_t machine, struct buf *to)
{
	static const struct {
		uint16_t machine;
		const char *name;
	} names[] = {{EM_X86_64, "x86-64"}, {EM_386, "i386"}, {EM_AARCH64, "aarch64"},
		{EM_ARM, "arm"}, {EM_RISCV, "riscv"}, {EM_PPC64, "ppc64"}, {EM_S390, "s390"}};

	buf_reset(to);
	if (!machine)
		return ".";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].machine == machine)
			return names[i].name;
	buf_printf(to, "machine %u", machine);
	return buf_text(to);
}

const char *symbols_source_kinds(struct catalog_image *image, struct buf *to)
{
	uint32_t seen = 0;

	buf_reset(to);
	for (size_t i = 0; i < catalog_image_n_sources(image); i++) {
		enum symbol_source kind = catalog_image_source(image, i).kind;

		if ((unsigned)kind >= SYMBOL_N_SOURCES || seen & 1u << kind)
			continue;
		seen |= 1u << kind;
		buf_printf(to, "%s%s", to->n ? "+" : "", symbol_source_name(kind));
	}
	return to->n ? buf_text(to) : ".";
}

void symbols_json_begin(struct json *j, const struct symbols_call *call)
{
	json_init(j, stdout);
	json_object_begin(j, NULL);
	json_u64(j, "weir", 1);
	json_string(j, "kind", "symbols");
	json_string(j, "verb", call->verb);
}

void symbols_rows_begin(struct rows *r, const struct symbols_call *call, const char *catalog)
{
	rows_init(r, stdout, call->args->json);
	if (!r->is_json)
		return;
	symbols_json_begin(&r->json, call);
	json_string(&r->json, "catalog", catalog);
}

void symbols_json_address(struct json *j, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		json_address(j, key, value);
	else
		json_null(j, key);
}

void symbols_json_hex(struct json *j, const char *key, struct span bytes)
{
	struct buf hex = {0};

	json_string(j, key, bytes.n ? symbols_hex(bytes, &hex) : NULL);
	buf_release(&hex);
}

void symbols_put_sources(struct rows *r, struct catalog_image *image)
{
	for (size_t i = 0; i < catalog_image_n_sources(image); i++) {
		struct catalog_source s = catalog_image_source(image, i);

		row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
		row_string(r, "kind", symbol_source_name(s.kind));
		row_text(r, "path", s.path);
		row_text(r, "identity", s.identity);
		row_text(r, "verdict", s.verdict);
		row_string(r, "match", match_rung_name(s.rung));
		row_number(r, "offered", s.n_offered);
		row_number(r, "accepted", s.n_accepted);
		row_end(r);
	}
}

void symbols_put_entry(struct rows *r, const struct catalog_entry *e)
{
	struct buf b = {0};

	row_string(r, "id", e->id);
	row_text(r, "path", e->path);
	row_show(r, "Path", e->path);
	if (e->base_name)
		row_text(r, "base_name", e->base_name);
	row_count(r, "bits", e->bits, e->bits);
	row_string(r, "machine", e->machine ? symbols_machine(e->machine, &b) : NULL);
	row_text(r, "build_id", symbols_hex(e->build_id, &b));
	row_show(r, "Build-id", short_hex(e->build_id, &b));
	row_number(r, "symbols", e->n_symbols);
	row_number(r, "lines", e->n_rows);
	if (e->base_name)
		row_number(r, "bytes", e->bytes);
	buf_release(&b);
}
