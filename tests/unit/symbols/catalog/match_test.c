/* SPDX-License-Identifier: MIT */
/* Every veto, every rung and every tie of the verification ladder, each with its sentence. */
#include "check.h"

#include <elf.h>
#include <stdlib.h>

#include "base/mem.h"
#include "symbols/catalog/match.h"

/* Identities whose paths and segments are not owned: never released. */

static struct image_segment program[] = {
	{"", 0x0, 0x0, 0x800, 0x800, PF_R},
	{"", 0x1000, 0x1000, 0x5432, 0x5432, PF_R | PF_X},
	{"", 0x8000, 0x7000, 0x300, 0x900, PF_R | PF_W},
};
static struct image_segment rebuilt[] = {
	{"", 0x0, 0x0, 0x800, 0x800, PF_R},
	{"", 0x1000, 0x1000, 0x5442, 0x5442, PF_R | PF_X},
	{"", 0x8000, 0x7000, 0x300, 0x900, PF_R | PF_W},
};
static struct image_segment other_data[] = {
	{"", 0x0, 0x0, 0x900, 0x900, PF_R},
	{"", 0x1000, 0x1000, 0x5432, 0x5432, PF_R | PF_X},
};

#define PATH  "/usr/lib/libfoo.so.1"
#define WHERE "/cat"

static struct image_identity identity(const char *path)
{
	return (struct image_identity){.kind = IMAGE_KIND_ELF,
		.path = (char *)(uintptr_t)path,
		.machine = EM_X86_64,
		.bits = 64};
}

static struct image_identity with_segments(
	struct image_identity id, struct image_segment *segments, size_t n)
{
	id.segments = segments;
	id.n_segments = n;
	return id;
}

static struct image_identity with_build_id(struct image_identity id, uint8_t first, uint8_t n)
{
	id.build_id_n = n;
	for (uint8_t i = 0; i < n; i++)
		id.build_id[i] = (uint8_t)(first + i);
	return id;
}

static struct match_verdict judge(struct image_identity wanted, struct image_identity candidate)
{
	struct match_verdict v;

	memset(&v, 0xaa, sizeof(v));
	match_judge(&wanted, &candidate, WHERE, &v);
	return v;
}

#define CHECK_VERDICT(v, rung_, vetoed_, reason_)                                                  \
	do {                                                                                       \
		struct match_verdict v_ = (v);                                                     \
		CHECK_STR(match_rung_name(v_.rung), match_rung_name(rung_));                       \
		CHECK_EQ(v_.is_vetoed, vetoed_);                                                   \
		CHECK_STR(v_.reason, reason_);                                                     \
	} while (0)

static void another_machine(void)
{
	struct image_identity a = with_build_id(identity(PATH), 1, 20), b = a;

	b.machine = EM_386;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true, "machine 62 wanted, machine 3 in /cat");
	b.machine = 0;
	b.bits = 32;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true, "64-bit wanted, 32-bit in /cat");
	b.bits = 0;
	CHECK_EQ(judge(a, b).rung, MATCH_BUILD_ID);
}

static void build_ids(void)
{
	struct image_identity a = with_build_id(identity(PATH), 1, 8);
	struct image_identity b = with_build_id(identity("/elsewhere/x"), 1, 8);

	CHECK_VERDICT(
		judge(a, b), MATCH_BUILD_ID, false, "build-id 0102030405060708, as in /cat");
	b = with_build_id(b, 2, 8);
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"build-id 0102030405060708 wanted, 0203040506070809 in /cat");
	b = with_build_id(b, 1, 9); /* a longer one with the same beginning */
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"build-id 0102030405060708 wanted, 010203040506070809 in /cat");
	/* Nothing else makes good for it. */
	b = with_build_id(with_segments(identity(PATH), program, 3), 2, 8);
	a = with_segments(a, program, 3);
	a.content_hash = b.content_hash = 7;
	a.file_bytes = b.file_bytes = 5;
	a.mtime_ns = b.mtime_ns = 6;
	CHECK_EQ(judge(a, b).is_vetoed, true);
	a = with_build_id(identity(PATH), 1, 32);
	CHECK_EQ(judge(a, a).rung, MATCH_BUILD_ID);
	CHECK(strstr(judge(a, a).reason, "1e1f20, as in /cat"));
}

static void weak_build_ids(void)
{
	struct image_identity a = with_build_id(identity("/a/x"), 1, 7);
	struct image_identity b = with_build_id(identity("/b/x"), 1, 7);

	CHECK_EQ(judge(a, b).rung, MATCH_NONE); /* too short to identify */
	b = with_build_id(identity("/b/x"), 2, 7);
	CHECK(!judge(a, b).is_vetoed); /* nor to tell apart */
	a.build_id_n = b.build_id_n = 20;
	memset(a.build_id, 0, sizeof(a.build_id));
	memset(b.build_id, 0, sizeof(b.build_id));
	CHECK_EQ(judge(a, b).rung, MATCH_NONE); /* all alike */
}

static void build_id_on_one_side(void)
{
	struct image_identity a = with_build_id(with_segments(identity(PATH), program, 3), 1, 8);
	struct image_identity b = with_segments(identity(PATH), program, 3);

	CHECK_VERDICT(judge(a, b), MATCH_PATH, false,
		"path and 3 segments equal: build-id 0102030405060708 wanted, no identity in /cat");
	CHECK_VERDICT(judge(b, a), MATCH_PATH, false,
		"path and 3 segments equal: no identity wanted, build-id 0102030405060708 in /cat");
	a.content_hash = b.content_hash = 0xabc;
	CHECK_VERDICT(judge(a, b), MATCH_BUILD_ID, false,
		"content hash 0x0000000000000abc, as in /cat");
}

static void content_hashes(void)
{
	struct image_identity a = identity("/a/x"), b = identity("/b/y");

	a.content_hash = 0x1234;
	b.content_hash = 0x1234;
	CHECK_VERDICT(judge(a, b), MATCH_BUILD_ID, false,
		"content hash 0x0000000000001234, as in /cat");
	b.content_hash = 0x1235;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"content hash 0x0000000000001234 wanted, 0x0000000000001235 in /cat");
	a = with_build_id(a, 1, 8);
	b = with_build_id(b, 1, 8);
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"same build-id, but rewritten after linking: content hash 0x0000000000001234 wanted, "
		"0x0000000000001235 in /cat");
	b.content_hash = 0;
	CHECK_EQ(judge(a, b).rung, MATCH_BUILD_ID);
}

static void debuglinks(void)
{
	struct image_identity a = identity(PATH), b = identity("/usr/lib/debug/libfoo.so.1.debug");

	a.debuglink_crc = 0x12345678;
	b.file_crc = 0x12345678;
	CHECK_VERDICT(
		judge(a, b), MATCH_BUILD_ID, false, "debuglink CRC 0x12345678, as in /cat");
	CHECK_EQ(judge(b, a).rung, MATCH_BUILD_ID);
	b.file_crc++;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"debuglink CRC 0x12345678 is wanted, but the debug file has 0x12345679 (/cat)");
	/* A build-id is stronger: debug files are packed anew. */
	CHECK_EQ(judge(with_build_id(a, 1, 8), with_build_id(b, 1, 8)).rung, MATCH_BUILD_ID);
	/* Two stripped files. */
	b = identity("/b/libfoo.so.1");
	b.debuglink_crc = a.debuglink_crc;
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	a.mtime_ns = b.mtime_ns = 77;
	CHECK_VERDICT(judge(a, b), MATCH_CHECKSUM, false,
		"debuglink CRC 0x12345678 and time stamp equal in /cat");
	b.mtime_ns = 0;
	CHECK_VERDICT(judge(with_segments(a, program, 3), with_segments(b, program, 3)),
		MATCH_CHECKSUM, false,
		"debuglink CRC 0x12345678 and segments equal in /cat");
	b.debuglink_crc = 1;
	CHECK_VERDICT(
		judge(a, b), MATCH_NONE, true, "debuglink CRC 0x12345678 wanted, 0x00000001 in /cat");
}

static void size_and_time(void)
{
	struct image_identity a = identity("/a/x"), b = identity("/b/y");

	a.file_bytes = b.file_bytes = 4711;
	a.mtime_ns = b.mtime_ns = 1700000000000000000;
	CHECK_EQ(judge(a, b).rung, MATCH_NONE); /* alone they identify nothing */
	CHECK(strstr(judge(a, b).reason, "nothing in common: size 4711"));
	CHECK_VERDICT(judge(with_segments(a, program, 3), with_segments(b, program, 3)),
		MATCH_CHECKSUM, false,
		"size 4711, time stamp and 3 segments equal in /cat");
	CHECK_EQ(
		judge(with_segments(a, program, 3), with_segments(b, rebuilt, 3)).rung, MATCH_NONE);
	b.mtime_ns++;
	CHECK_EQ(judge(with_segments(a, program, 3), with_segments(b, program, 3)).rung,
		MATCH_SEGMENTS);
	b.mtime_ns--;
	b.file_bytes++;
	CHECK_EQ(judge(with_segments(a, program, 3), with_segments(b, program, 3)).rung,
		MATCH_SEGMENTS);
}

static void same_path(void)
{
	struct image_identity a = identity(PATH), b = identity(PATH);

	CHECK_VERDICT(judge(a, b), MATCH_PATH, false,
		"nothing but the path is equal: no identity wanted, no identity in /cat");
	b.kind = IMAGE_KIND_OTHER;
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	b.kind = IMAGE_KIND_KERNEL;
	CHECK_EQ(judge(b, b).rung, MATCH_NONE);
	a = b = identity("lib/relative.so");
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	b = identity(NULL);
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	CHECK_EQ(judge(b, b).rung, MATCH_NONE);
}

static void replaced_file(void)
{
	struct image_identity a = with_segments(identity(PATH), program, 3);
	struct image_identity b = with_segments(identity(PATH), rebuilt, 3);

	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"same path, but its segments differ: the file was replaced (3 segments wanted, 3 in "
		"/cat)");
	CHECK_EQ(judge(a, with_segments(b, program, 2)).is_vetoed, true);
	b = with_segments(identity(PATH), program, 3);
	a.file_bytes = 100;
	b.file_bytes = 101;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"same path, but size 100 wanted, 101 in /cat: the file was replaced");
	b.file_bytes = 100;
	a.mtime_ns = 5;
	b.mtime_ns = 6;
	CHECK_EQ(judge(a, b).rung, MATCH_PATH);
	CHECK(strstr(
		judge(a, b).reason, "path and 3 segments equal, but another time stamp: size 100"));
	b.n_segments = 0;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"same path, but another time stamp, and nothing else to tell in /cat: the file may "
		"have been replaced");
	a = identity(PATH " (deleted)");
	CHECK_VERDICT(judge(a, identity(PATH)), MATCH_NONE, true,
		"same path, but the file was deleted or replaced while it ran: /cat");
	CHECK_EQ(judge(with_build_id(a, 1, 8), with_build_id(identity(PATH), 1, 8)).rung,
		MATCH_BUILD_ID);
}

static void segments(void)
{
	struct image_identity a = with_segments(identity("/a/libfoo.so.1"), program, 3);
	struct image_identity b = with_segments(identity("/b/libfoo.so"), program, 3);

	CHECK_VERDICT(judge(a, b), MATCH_SEGMENTS, false,
		"1 executable segment equal in size and flags: no identity wanted, no identity in "
		"/cat");
	CHECK_EQ(judge(a, with_segments(b, other_data, 2)).rung, MATCH_SEGMENTS);
	CHECK_EQ(judge(a, with_segments(b, rebuilt, 3)).rung, MATCH_NONE);
	CHECK(!judge(a, with_segments(b, rebuilt, 3)).is_vetoed);
	CHECK_EQ(judge(a, with_segments(b, program, 1)).rung, MATCH_NONE); /* no code at all */
	CHECK_EQ(
		judge(with_segments(a, program, 1), with_segments(b, program, 1)).rung, MATCH_NONE);
	/* Under another name all of them must be equal. */
	b = with_segments(identity("/b/other"), program, 3);
	CHECK_VERDICT(judge(a, b), MATCH_SEGMENTS, false,
		"3 segments equal in size and flags, under another name: no identity wanted, no "
		"identity in /cat");
	CHECK_EQ(judge(a, with_segments(b, other_data, 2)).rung, MATCH_NONE);
}

static void segment_details(void)
{
	struct image_segment copy[3];
	struct image_identity a = with_segments(identity("/a/x"), program, 3);
	struct image_identity b = with_segments(identity("/b/x"), copy, 3);

	memcpy(copy, program, sizeof(copy));
	copy[1].file_bytes = 0; /* a debug file has the sizes only */
	CHECK_EQ(judge(a, b).rung, MATCH_SEGMENTS);
	copy[1].file_bytes = 0x5431;
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	memcpy(copy, program, sizeof(copy));
	copy[1].flags |= PF_W;
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	memcpy(copy, program, sizeof(copy));
	copy[1].addr += 0x1000;
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
}

static void named_sections(void)
{
	struct image_segment x[] = {{".text", 0x1000, 0, 0, 0x500, PF_R | PF_X},
		{".init", 0x1800, 0, 0, 0x20, PF_R | PF_X}};
	struct image_segment y[] = {{".text", 0x2000, 0, 0, 0x500, PF_R | PF_X},
		{".init", 0x2800, 0, 0, 0x20, PF_R | PF_X}};
	struct image_identity a = with_segments(identity("/a/m.ko"), x, 2);
	struct image_identity b = with_segments(identity("/b/m.ko"), y, 2);

	CHECK_EQ(judge(a, b).rung, MATCH_SEGMENTS); /* wherever they are */
	snprintf(y[1].name, sizeof(y[1].name), ".fini");
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	/* A map's sections against a program's segments: they must fit, and prove nothing. */
	a = with_segments(identity("/a/prog"), program, 3);
	b = with_segments(identity("/b/prog"), x, 2);
	CHECK_EQ(judge(a, b).rung, MATCH_NONE);
	CHECK(!judge(a, b).is_vetoed);
	x[1].addr = 0x6430;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"section .init (32 bytes at 0x6430) of /cat is in no executable segment of the module");
	x[1].addr = UINT64_MAX - 3;
	CHECK(judge(a, b).is_vetoed);
	x[1].mem_bytes = 0;
	CHECK(!judge(a, b).is_vetoed);
}

static void run_time_code(void)
{
	struct image_identity a = {
		.kind = IMAGE_KIND_JIT, .path = (char *)(uintptr_t) "/j", .pid = 7};
	struct image_identity b = a;

	CHECK_VERDICT(judge(a, b), MATCH_SEGMENTS, false,
		"run-time code of process 7, which may not be the same one: /cat");
	b.pid = 8;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, true,
		"run-time code of process 7 wanted, of process 8 in /cat");
	b.pid = 0;
	CHECK_VERDICT(judge(a, b), MATCH_NONE, false,
		"run-time code has no identity that could be compared: process 7 wanted, no identity "
		"in /cat");
	CHECK_EQ(judge(a, identity("/j")).rung, MATCH_NONE); /* a file is no run-time code */
}

static void long_names_are_cut(void)
{
	char *where = mem_zalloc(1000);
	struct image_identity a = with_build_id(identity(PATH), 1, 32);
	struct image_identity b = with_build_id(identity(PATH), 2, 32);
	struct match_verdict v;

	memset(where, 'x', 999);
	match_judge(&a, &b, where, &v);
	CHECK_EQ(strlen(v.reason), sizeof(v.reason) - 1);
	CHECK(strstr(v.reason, "1e1f20 wanted, 0203"));
	CHECK_STR(match_rung_name((enum match_rung)9), "none");
	free(where);
}

/* --- the best of several ------------------------------------------------------------------ */

static size_t best(
	struct image_identity wanted, const struct image_identity *list, size_t n, size_t *n_tied)
{
	const struct image_identity *candidates[8] = {NULL};
	struct match_verdict verdicts[8];
	size_t found;

	for (size_t i = 0; i < n; i++)
		candidates[i] = &list[i];
	found = match_best(&wanted, candidates, n, verdicts, n_tied);
	for (size_t i = 0; i < n; i++)
		CHECK(strlen(verdicts[i].reason) > 10); /* each is judged */
	return found;
}

static void the_best_rung_wins(void)
{
	struct image_identity a = with_build_id(with_segments(identity(PATH), program, 3), 1, 8);
	struct image_identity list[4];
	size_t n_tied = 9;

	list[0] = with_segments(identity("/b/libfoo.so.1"), program, 3);	  /* segments */
	list[1] = with_segments(identity(PATH), program, 3);			  /* path */
	list[2] = with_build_id(identity("/x/y"), 1, 8);			  /* exact */
	list[3] = with_build_id(with_segments(identity(PATH), program, 3), 2, 8); /* vetoed */
	CHECK_EQ(best(a, list, 4, &n_tied), 2);
	CHECK_EQ(n_tied, 0);
	CHECK_EQ(best(a, list, 2, &n_tied), 1);
	CHECK_EQ(best(a, list, 1, &n_tied), 0);
	CHECK_EQ(best(a, &list[3], 1, &n_tied), SIZE_MAX);
	CHECK_EQ(n_tied, 0);
	CHECK_EQ(best(a, list, 0, &n_tied), SIZE_MAX);
}

static void ties(void)
{
	struct image_identity a = with_segments(identity("/a/libfoo.so.1"), program, 3);
	struct image_identity list[4];
	size_t n_tied;

	/* Nobody knows which of two is right: the first, and it is said. */
	list[0] = with_segments(identity("/b/libfoo.so.1"), program, 3);
	list[1] = with_segments(identity("/c/libfoo.so.1"), program, 3);
	CHECK_EQ(best(a, list, 2, &n_tied), 0);
	CHECK_EQ(n_tied, 1);
	/* Copies of one version are no tie. */
	list[0] = with_build_id(list[0], 1, 8);
	list[1] = with_build_id(list[1], 1, 8);
	CHECK_EQ(best(a, list, 2, &n_tied), 0);
	CHECK_EQ(n_tied, 0);
	list[1] = with_build_id(list[1], 2, 8);
	best(a, list, 2, &n_tied);
	CHECK_EQ(n_tied, 1);
	list[0].build_id_n = list[1].build_id_n = 0;
	list[0].content_hash = list[1].content_hash = 5;
	best(a, list, 2, &n_tied);
	CHECK_EQ(n_tied, 0);
	list[1].content_hash = 6;
	best(a, list, 2, &n_tied);
	CHECK_EQ(n_tied, 1);
	list[0].content_hash = list[1].content_hash = 0;
	list[0].file_bytes = list[1].file_bytes = 5;
	best(a, list, 2, &n_tied);
	CHECK_EQ(n_tied, 1); /* the size alone does not tell */
	list[0].mtime_ns = list[1].mtime_ns = 5;
	best(a, list, 2, &n_tied);
	CHECK_EQ(n_tied, 0);
	/* A third on a lower rung is none of them. */
	list[2] = with_segments(identity("/c/q"), rebuilt, 3);
	best(a, list, 3, &n_tied);
	CHECK_EQ(n_tied, 0);
}

/* A program and its debug file are both exactly what is wanted. */
static void exact_ones_do_not_tie(void)
{
	struct image_identity a = identity("/a/x"), list[2];
	size_t n_tied;

	a.content_hash = 5;
	a.debuglink_crc = 6;
	list[0] = identity("/a/x.debug");
	list[0].file_crc = 6;
	list[1] = identity("/a/x");
	list[1].content_hash = 5;
	CHECK_EQ(best(a, list, 2, &n_tied), 1); /* same path first */
	CHECK_EQ(n_tied, 0);
	list[1] = identity("/b/x.so");
	list[1].content_hash = 5;
	list[0] = identity("/a/q");
	list[0].content_hash = 5;
	CHECK_EQ(best(a, list, 2, &n_tied), 1); /* then the same base name */
	list[0] = with_build_id(list[0], 1, 8);
	list[1] = with_build_id(list[1], 2, 8);
	best(a, list, 2, &n_tied);
	CHECK_EQ(n_tied, 1);
}

/* --- anchors ------------------------------------------------------------------------------ */

static void anchors(void)
{
	static const struct anchor_name image[] = {
		{"alpha", 0x100}, {"beta", 0x200}, {"beta", 0x280}, {"gamma", 0x300}};
	static const struct anchor_name right[] = {
		{"gamma", 0x300}, {"local", 0x1}, {"beta", 0x280}, {"alpha", 0x100}};
	static const struct anchor_name wrong[] = {{"gamma", 0x301}, {"beta", 0x999},
		{"beta", 0x200}, {"alpha", 0x100}, {"gamma", 0x302}};
	static const struct anchor_name strange[] = {{"zeta", 0x100}};
	struct anchor_result r;

	anchor_check(image, 4, right, 4, &r);
	CHECK_EQ(r.n_common, 3);
	CHECK_EQ(r.n_agree, 3);
	CHECK(!r.first_wrong);
	anchor_check(image, 4, wrong, 5, &r);
	CHECK_EQ(r.n_common, 3);
	CHECK_EQ(r.n_agree, 2);
	CHECK_STR(r.first_wrong, "gamma");
	CHECK_EQ(r.wrong_in_image, 0x300);
	CHECK_EQ(r.wrong_in_source, 0x301);
	anchor_check(image, 4, strange, 1, &r);
	CHECK_EQ(r.n_common, 0);
	anchor_check(NULL, 0, right, 4, &r);
	CHECK_EQ(r.n_common, 0);
	anchor_check(image, 4, NULL, 0, &r);
	CHECK_EQ(r.n_common, 0);
}

/* --- sections ----------------------------------------------------------------------------- */

static void sections(void)
{
	static const struct image_segment named[] = {
		{".text", 0x1000, 0, 0, 0x500, 0},
		{".init", 0x2000, 0, 0, 0x20, 0},
		{".exit", 0x3000, 0, 0, 0x20, 0},
		{".text", 0x4000, 0, 0, 0x700, 0},
	};
	static const struct image_segment bare[] = {
		{"", 0x1000, 0, 0, 0x500, 0},
		{"", 0x2000, 0, 0, 0x20, 0},
		{"", 0x3000, 0, 0, 0x20, 0},
	};
	static const struct {
		struct image_segment loaded;
		const struct image_segment *sections;
		size_t n, expected;
		const char *how;
	} cases[] = {
		{{".init", 0x9000, 0, 0, 0x7, 0}, named, 4, 1, "name"},
		{{".text", 0x4000, 0, 0, 0x7, 0}, named, 4, 3, "address"}, /* two of one name */
		{{".text", 0x9000, 0, 0, 0x500, 0}, named, 4, 0, "size"},
		{{".text", 0x9000, 0, 0, 0x7, 0}, named, 4, SIZE_MAX, "no section matches"},
		{{".data", 0x2000, 0, 0, 0x20, 0}, named, 4, SIZE_MAX, "no section matches"},
		{{"", 0x2000, 0, 0, 0x99, 0}, named, 4, 1, "address"},
		{{"", 0x9000, 0, 0, 0x500, 0}, named, 4, 0, "size"},
		{{"", 0x9000, 0, 0, 0x20, 0}, named, 4, SIZE_MAX, "no section matches"},
		{{"", 0x9000, 0, 0, 0x7, 0}, bare, 1, 0, "only one"},
		{{".text", 0x9000, 0, 0, 0x7, 0}, bare, 1, SIZE_MAX, "no section matches"},
		{{"", 0x9000, 0, 0, 0x7, 0}, named, 1, SIZE_MAX, "no section matches"},
		{{"", 0x3000, 0, 0, 0x500, 0}, bare, 3, 2, "address"},
		{{"", 0x9000, 0, 0, 0x500, 0}, bare, 3, 0, "size"},
		{{"", 0x9000, 0, 0, 0x20, 0}, bare, 3, SIZE_MAX, "no section matches"},
		{{"", 0x9000, 0, 0, 0, 0}, bare, 3, SIZE_MAX, "no section matches"},
		{{".x", 0x2000, 0, 0, 0x1, 0}, bare, 3, 1, "address"},
		{{"", 0, 0, 0, 0, 0}, NULL, 0, SIZE_MAX, "no section matches"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *how = "";

		CHECK_EQ(segment_match(&cases[i].loaded, cases[i].sections, cases[i].n, &how),
			cases[i].expected);
		CHECK_STR(how, cases[i].how);
	}
	CHECK_EQ(segment_match(&cases[0].loaded, named, 4, NULL), 1);
}

int main(void)
{
	static const struct test tests[] = {
		{"another machine or class is never a match", another_machine},
		{"equal build-ids are exact, different ones a veto", build_ids},
		{"short and constant build-ids say nothing", weak_build_ids},
		{"a build-id on one side only is no veto and no match", build_id_on_one_side},
		{"equal content is exact, different content a veto", content_hashes},
		{"a debug file is known by the CRC in its debuglink", debuglinks},
		{"size and time stamp alone identify nothing", size_and_time},
		{"the same path is a rung for programs and libraries only", same_path},
		{"a file that was replaced is refused, with the reason", replaced_file},
		{"equal code segments are the last rung", segments},
		{"segments are compared in size, flags and place", segment_details},
		{"sections are compared by name, and must fit the segments", named_sections},
		{"run-time code is known by its process only, and weakly", run_time_code},
		{"reasons that are too long are cut at the end", long_names_are_cut},
		{"the candidate on the best rung wins", the_best_rung_wins},
		{"two versions on one rung are a tie, copies are not", ties},
		{"candidates that are both exact do not tie", exact_ones_do_not_tie},
		{"anchors agree when every common name is at its address", anchors},
		{"a loaded section is found by name, place or size", sections},
	};

	return RUN_TESTS(tests);
}
