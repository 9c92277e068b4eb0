/* SPDX-License-Identifier: MIT */
/*
 * The ladder, one function a check. A check answers with a verdict or leaves the question to the
 * next one; the order of the table is the order of the ladder.
 */
#include "symbols/catalog/match.h"

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

_Static_assert(MATCH_N_RUNGS == TRACE_MATCH_N_RUNGS, "verdicts are kept in traces");

/* One comparison at work. */
struct match {
	const struct image_identity *wanted, *candidate;
	const char *where;
	struct match_verdict *verdict;
};

static bool say(const struct match *m, enum match_rung rung, bool is_vetoed, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Gives the verdict; always true, so that checks can return it. */
static bool say(const struct match *m, enum match_rung rung, bool is_vetoed, const char *fmt, ...)
{
	va_list ap;

	m->verdict->rung = rung;
	m->verdict->is_vetoed = is_vetoed;
	va_start(ap, fmt);
	vsnprintf(m->verdict->reason, sizeof(m->verdict->reason), fmt, ap);
	va_end(ap);
	return true;
}

#define HEX_BYTES (2 * BUILD_ID_MAX + 1)

static const char *build_id_hex(const struct image_identity *id, char to[HEX_BYTES])
{
	for (size_t i = 0; i < id->build_id_n && i < BUILD_ID_MAX; i++)
		snprintf(to + 2 * i, 3, "%02x", id->build_id[i]);
	to[2 * id->build_id_n] = 0;
	return to;
}

/* --- segments ---------------------------------------------------------------------------- */

static bool is_executable(const struct image_segment *s)
{
	return (s->flags & PF_X) != 0;
}

static bool has_names(const struct image_identity *id)
{
	for (size_t i = 0; i < id->n_segments; i++)
		if (id->segments[i].name[0])
			return true;
	return false;
}

/* The file size of a debug file's segments says nothing: their bytes are elsewhere. Nor does the
 * address of a section, which may be loaded anywhere. */
static bool is_equal_segment(const struct image_segment *a, const struct image_segment *b)
{
	if (a->name[0] && b->name[0] && strcmp(a->name, b->name) != 0)
		return false;
	if (!a->name[0] && !b->name[0] && a->addr != b->addr)
		return false;
	if (a->file_bytes && b->file_bytes && a->file_bytes != b->file_bytes)
		return false;
	return a->mem_bytes == b->mem_bytes && a->flags == b->flags;
}

static const struct image_segment *next_segment(
	const struct image_identity *id, size_t *i, bool only_executable)
{
	while (*i < id->n_segments) {
		const struct image_segment *s = &id->segments[(*i)++];

		if (!only_executable || is_executable(s))
			return s;
	}
	return NULL;
}

/* How many are equal one by one; 0 when there are none or one pair differs. */
static size_t n_equal_segments(const struct match *m, bool only_executable)
{
	size_t a_i = 0, b_i = 0, n = 0;

	for (;; n++) {
		const struct image_segment *a = next_segment(m->wanted, &a_i, only_executable);
		const struct image_segment *b = next_segment(m->candidate, &b_i, only_executable);

		if (!a && !b)
			return n;
		if (!a || !b || !is_equal_segment(a, b))
			return 0;
	}
}

/* Sections of a map or nm file cannot be compared with program segments one by one. */
static bool can_compare_segments(const struct match *m)
{
	return m->wanted->n_segments && m->candidate->n_segments &&
	       has_names(m->wanted) == has_names(m->candidate);
}

static bool is_inside(const struct image_segment *section, const struct image_identity *id)
{
	for (size_t i = 0; i < id->n_segments; i++) {
		const struct image_segment *s = &id->segments[i];

		if (is_executable(s) && section->addr >= s->addr &&
			section->addr - s->addr <= s->mem_bytes &&
			section->mem_bytes <= s->mem_bytes - (section->addr - s->addr))
			return true;
	}
	return false;
}

/* --- vetoes ------------------------------------------------------------------------------ */

static bool veto_machine(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;

	if (a->machine && b->machine && a->machine != b->machine)
		return say(m, MATCH_NONE, true, "machine %u wanted, machine %u in %s", a->machine,
			b->machine, m->where);
	if (a->bits && b->bits && a->bits != b->bits)
		return say(m, MATCH_NONE, true, "%u-bit wanted, %u-bit in %s", a->bits, b->bits,
			m->where);
	return false;
}

static bool veto_process(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;

	if (a->kind != IMAGE_KIND_JIT || b->kind != IMAGE_KIND_JIT || !a->pid || !b->pid ||
		a->pid == b->pid)
		return false;
	return say(m, MATCH_NONE, true,
		"run-time code of process %" PRIu32 " wanted, of process %" PRIu32 " in %s", a->pid,
		b->pid, m->where);
}

static bool have_build_ids(const struct image_identity *a, const struct image_identity *b)
{
	return image_identity_has_build_id(a) && image_identity_has_build_id(b);
}

static bool veto_build_id(const struct match *m)
{
	char a[HEX_BYTES], b[HEX_BYTES];

	if (!have_build_ids(m->wanted, m->candidate) ||
		image_identity_same_build_id(m->wanted, m->candidate))
		return false;
	return say(m, MATCH_NONE, true, "build-id %s wanted, %s in %s", build_id_hex(m->wanted, a),
		build_id_hex(m->candidate, b), m->where);
}

/* Tools that rewrite code after linking keep the build-id. */
static bool veto_content(const struct match *m)
{
	uint64_t a = m->wanted->content_hash, b = m->candidate->content_hash;
	bool is_rewritten = have_build_ids(m->wanted, m->candidate);

	if (!a || !b || a == b)
		return false;
	if (m->wanted->kind == IMAGE_KIND_KERNEL && m->candidate->kind == IMAGE_KIND_KERNEL)
		return say(m, MATCH_NONE, true,
			"the same kernel, perhaps, but at another address since the machine was "
			"started again: %s",
			m->where);
	return say(m, MATCH_NONE, true,
		"%scontent hash 0x%016" PRIx64 " wanted, 0x%016" PRIx64 " in %s",
		is_rewritten ? "same build-id, but rewritten after linking: " : "", a, b, m->where);
}

static bool veto_sections(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;

	if (!a->n_segments || has_names(a) || !has_names(b))
		return false;
	for (size_t i = 0; i < b->n_segments; i++) {
		const struct image_segment *s = &b->segments[i];

		if (!is_executable(s) || !s->mem_bytes || is_inside(s, a))
			continue;
		return say(m, MATCH_NONE, true,
			"section %s (%" PRIu64 " bytes at 0x%" PRIx64
			") of %s is in no executable segment of the module",
			s->name[0] ? s->name : "without a name", s->mem_bytes, s->addr, m->where);
	}
	return false;
}

/* --- rungs ------------------------------------------------------------------------------- */

static bool rung_build_id(const struct match *m)
{
	char hex[HEX_BYTES];

	if (!have_build_ids(m->wanted, m->candidate))
		return false;
	return say(m, MATCH_BUILD_ID, false, "build-id %s, as in %s", build_id_hex(m->wanted, hex),
		m->where);
}

static bool rung_content(const struct match *m)
{
	if (!m->wanted->content_hash || !m->candidate->content_hash)
		return false;
	return say(m, MATCH_BUILD_ID, false, "content hash 0x%016" PRIx64 ", as in %s",
		m->wanted->content_hash, m->where);
}

/* The debug file that the other side names, by its CRC. */
static bool rung_debuglink(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;
	uint32_t link = a->debuglink_crc, file = b->file_crc;

	if (!link || !file) {
		link = b->debuglink_crc;
		file = a->file_crc;
	}
	if (!link || !file)
		return false;
	if (link != file)
		return say(m, MATCH_NONE, true,
			"debuglink CRC 0x%08" PRIx32
			" is wanted, but the debug file has 0x%08" PRIx32 " (%s)",
			link, file, m->where);
	return say(m, MATCH_BUILD_ID, false, "debuglink CRC 0x%08" PRIx32 ", as in %s", link,
		m->where);
}

static bool has_equal_time(const struct match *m)
{
	return m->wanted->mtime_ns && m->wanted->mtime_ns == m->candidate->mtime_ns;
}

static bool has_equal_segments(const struct match *m)
{
	return can_compare_segments(m) && n_equal_segments(m, false);
}

/* Two stripped files that name debug files. */
static bool rung_same_debuglink(const struct match *m)
{
	uint32_t a = m->wanted->debuglink_crc, b = m->candidate->debuglink_crc;

	if (!a || !b)
		return false;
	if (a != b)
		return say(m, MATCH_NONE, true,
			"debuglink CRC 0x%08" PRIx32 " wanted, 0x%08" PRIx32 " in %s", a, b,
			m->where);
	if (!has_equal_time(m) && !has_equal_segments(m))
		return false;
	return say(m, MATCH_CHECKSUM, false, "debuglink CRC 0x%08" PRIx32 " and %s equal in %s", a,
		has_equal_time(m) ? "time stamp" : "segments", m->where);
}

static bool rung_size_and_time(const struct match *m)
{
	if (!m->wanted->file_bytes || m->wanted->file_bytes != m->candidate->file_bytes ||
		!has_equal_time(m) || !has_equal_segments(m))
		return false;
	return say(m, MATCH_CHECKSUM, false,
		"size %" PRIu64 ", time stamp and %zu segments equal in %s", m->wanted->file_bytes,
		n_equal_segments(m, false), m->where);
}

static bool has_equal_path(const struct match *m)
{
	const char *a = m->wanted->path, *b = m->candidate->path;

	return a && b && a[0] == '/' && path_plain_bytes(a) == path_plain_bytes(b) &&
	       !memcmp(a, b, path_plain_bytes(a));
}

/* Both identities, in words, for a rung that does not rest on them. */
static bool say_weak(const struct match *m, enum match_rung rung, const char *what)
{
	struct buf a = {0}, b = {0};

	say(m, rung, false, "%s: %s wanted, %s in %s", what, image_identity_text(m->wanted, &a),
		image_identity_text(m->candidate, &b), m->where);
	buf_release(&a);
	buf_release(&b);
	return true;
}

static bool rung_run_time_code(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;

	if (a->kind != IMAGE_KIND_JIT && b->kind != IMAGE_KIND_JIT)
		return false;
	if (a->kind == b->kind && a->pid && a->pid == b->pid)
		return say(m, MATCH_SEGMENTS, false,
			"run-time code of process %" PRIu32 ", which may not be the same one: %s",
			a->pid, m->where);
	return say_weak(m, MATCH_NONE, "run-time code has no identity that could be compared");
}

/* A file at the same path that says itself that it is not the one that ran. */
static bool rung_path_replaced(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;

	if (can_compare_segments(m) && !n_equal_segments(m, false))
		return say(m, MATCH_NONE, true,
			"same path, but its segments differ: the file was replaced (%zu segments "
			"wanted, %zu in %s)",
			a->n_segments, b->n_segments, m->where);
	if (a->file_bytes && b->file_bytes && a->file_bytes != b->file_bytes)
		return say(m, MATCH_NONE, true,
			"same path, but size %" PRIu64 " wanted, %" PRIu64
			" in %s: the file was replaced",
			a->file_bytes, b->file_bytes, m->where);
	if (a->mtime_ns && b->mtime_ns && a->mtime_ns != b->mtime_ns && !can_compare_segments(m))
		return say(m, MATCH_NONE, true,
			"same path, but another time stamp, and nothing else to tell in %s: the "
			"file may have been replaced",
			m->where);
	return false;
}

static bool rung_path(const struct match *m)
{
	const struct image_identity *a = m->wanted, *b = m->candidate;
	bool is_retouched = a->mtime_ns && b->mtime_ns && a->mtime_ns != b->mtime_ns;
	char what[96];

	if (!has_equal_path(m) || a->kind != IMAGE_KIND_ELF || b->kind != IMAGE_KIND_ELF)
		return false;
	if (path_is_deleted(a->path))
		return say(m, MATCH_NONE, true,
			"same path, but the file was deleted or replaced while it ran: %s",
			m->where);
	if (rung_path_replaced(m))
		return true;
	if (!can_compare_segments(m))
		return say_weak(m, MATCH_PATH, "nothing but the path is equal");
	snprintf(what, sizeof(what), "path and %zu segments equal%s", n_equal_segments(m, false),
		is_retouched ? ", but another time stamp" : "");
	return say_weak(m, MATCH_PATH, what);
}

static bool has_equal_base_name(const struct image_identity *a, const struct image_identity *b)
{
	struct buf x = {0}, y = {0};
	bool is_equal = a->path && b->path &&
			!strcmp(image_base_name(a->path, &x), image_base_name(b->path, &y));

	buf_release(&x);
	buf_release(&y);
	return is_equal;
}

/* Small programs of other names are too often alike in their code's size. */
static bool rung_segments(const struct match *m)
{
	bool is_named;
	char what[96];
	size_t n;

	if (!can_compare_segments(m))
		return false;
	is_named = has_equal_base_name(m->wanted, m->candidate);
	n = n_equal_segments(m, is_named);
	if (!n)
		return false;
	snprintf(what, sizeof(what), "%zu %ssegment%s equal in size and flags%s", n,
		is_named ? "executable " : "", n == 1 ? "" : "s",
		is_named ? "" : ", under another name");
	return say_weak(m, MATCH_SEGMENTS, what);
}

void match_judge(const struct image_identity *wanted, const struct image_identity *candidate,
	const char *where, struct match_verdict *verdict)
{
	static bool (*const checks[])(const struct match *m) = {veto_machine, veto_process,
		veto_build_id, veto_content, veto_sections, rung_build_id, rung_content,
		rung_debuglink, rung_same_debuglink, rung_run_time_code, rung_size_and_time,
		rung_path, rung_segments};
	const struct match m = {wanted, candidate, where, verdict};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i](&m))
			return;
	say_weak(&m, MATCH_NONE, "nothing in common");
}

/* --- the best ---------------------------------------------------------------------------- */

/* Two candidates of one rung that are certainly copies of one version. */
static bool is_same_version(
	const struct image_identity *a, const struct image_identity *b, enum match_rung rung)
{
	const struct match m = {a, b, "", NULL};

	if (have_build_ids(a, b))
		return image_identity_same_build_id(a, b);
	if (rung == MATCH_BUILD_ID) /* both are exactly what is wanted */
		return true;
	if (a->content_hash && b->content_hash)
		return a->content_hash == b->content_hash;
	if (a->file_crc && b->file_crc)
		return a->file_crc == b->file_crc;
	return a->file_bytes && a->file_bytes == b->file_bytes && has_equal_time(&m) &&
	       has_equal_segments(&m);
}

/* Higher is better among candidates of one rung. */
static int closeness(const struct image_identity *wanted, const struct image_identity *c)
{
	return wanted->path && c->path && !strcmp(wanted->path, c->path) ? 2 : has_equal_base_name(wanted, c);
}

size_t match_best(const struct image_identity *wanted,
	const struct image_identity *const *candidates, size_t n, struct match_verdict *verdicts,
	size_t *n_tied)
{
	size_t best = SIZE_MAX;
	int best_closeness = 0;

	*n_tied = 0;
	for (size_t i = 0; i < n; i++) {
		const struct image_identity *c = candidates[i];
		int near = closeness(wanted, c);

		match_judge(
			wanted, c, c->path && c->path[0] ? c->path : "the candidate", &verdicts[i]);
		if (!verdicts[i].rung)
			continue;
		if (best != SIZE_MAX && (verdicts[i].rung < verdicts[best].rung ||
						(verdicts[i].rung == verdicts[best].rung &&
							near <= best_closeness)))
			continue;
		best = i;
		best_closeness = near;
	}
	for (size_t i = 0; best != SIZE_MAX && i < n; i++)
		*n_tied += i != best && verdicts[i].rung == verdicts[best].rung &&
			   !is_same_version(candidates[i], candidates[best], verdicts[best].rung);
	return best;
}
