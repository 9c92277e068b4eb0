/* SPDX-License-Identifier: MIT */
/* jitdump files made here, in both byte orders; a real one is in tests/oracle/text_sources.sh. */
#include <stdlib.h>

#include "base/buf.h"
#include "check.h"
#include "symbols/source/jitdump.h"

/* The bytes of a file, in our byte order or the other one. */
struct maker {
	struct buf bytes;
	bool swap;
};

static void put32(struct maker *m, uint32_t v)
{
	buf_put_u32(&m->bytes, m->swap ? __builtin_bswap32(v) : v);
}

static void put64(struct maker *m, uint64_t v)
{
	buf_put_u64(&m->bytes, m->swap ? __builtin_bswap64(v) : v);
}

static void set32(struct maker *m, size_t at, uint32_t v)
{
	if (m->swap)
		v = __builtin_bswap32(v);
	memcpy(m->bytes.p + at, &v, sizeof(v));
}

static void put_header(struct maker *m, uint32_t version, uint32_t bytes, uint64_t flags)
{
	put32(m, 0x4A695444);
	put32(m, version);
	put32(m, bytes);
	put32(m, 62);
	put32(m, 0);
	put32(m, 4711);
	put64(m, 1);
	put64(m, flags);
	while (m->bytes.n < bytes)
		buf_put_u8(&m->bytes, 0);
}

/* Returns where the record begins; end_record sets its length. */
static size_t begin_record(struct maker *m, uint32_t id, uint64_t time)
{
	size_t at = m->bytes.n;

	put32(m, id);
	put32(m, 0);
	put64(m, time);
	return at;
}

static void end_record(struct maker *m, size_t at)
{
	set32(m, at + 4, (uint32_t)(m->bytes.n - at));
}

static void put_load(
	struct maker *m, uint64_t time, uint64_t addr, uint64_t bytes, const char *name)
{
	size_t at = begin_record(m, 0, time);

	put32(m, 4711);
	put32(m, 4712);
	put64(m, addr);
	put64(m, addr);
	put64(m, bytes);
	put64(m, m->bytes.n); /* the compiler's number, some */
	buf_put(&m->bytes, name, strlen(name) + 1);
	for (uint64_t i = 0; i < bytes && bytes < 1000; i++)
		buf_put_u8(&m->bytes, (uint8_t)i);
	end_record(m, at);
}

static void put_move(struct maker *m, uint64_t time, uint64_t from, uint64_t to, uint64_t bytes)
{
	size_t at = begin_record(m, 1, time);

	put32(m, 4711);
	put32(m, 4713);
	put64(m, to);
	put64(m, from);
	put64(m, to);
	put64(m, bytes);
	put64(m, 0);
	end_record(m, at);
}

static void put_debug(struct maker *m, uint64_t addr, const struct jit_line *lines, size_t n)
{
	size_t at = begin_record(m, 2, 1);

	put64(m, addr);
	put64(m, n);
	for (size_t i = 0; i < n; i++) {
		put64(m, lines[i].addr);
		put32(m, lines[i].line);
		put32(m, 0);
		buf_put(&m->bytes, lines[i].file, strlen(lines[i].file) + 1);
	}
	end_record(m, at);
}

static const char *name_at(const struct jitdump *j, uint64_t addr, uint64_t time)
{
	const struct jit_code *c = jitdump_find(j, addr, time);

	return c ? c->name : "-";
}

static void check_loads(bool swap)
{
	struct maker m = {.swap = swap};
	struct jitdump j;
	struct err err;
	size_t at;

	put_header(&m, 1, 48, 1);
	put_load(&m, 100, 0x1000, 0x20, "first");
	put_load(&m, 200, 0x2000, 0x10, "second one");
	at = begin_record(&m, 4, 250); /* unwinding information */
	put64(&m, 0);
	put64(&m, 0);
	put64(&m, 0);
	end_record(&m, at);
	at = begin_record(&m, 77, 260);
	end_record(&m, at);
	put_load(&m, 300, 0x1010, 0x20, "over the first");
	at = begin_record(&m, 3, 400);
	end_record(&m, at);
	CHECK_EQ(jitdump_init(&j, buf_span(&m.bytes), &err), 0);
	CHECK_EQ(j.pid, 4711);
	CHECK_EQ(j.machine, 62);
	CHECK(j.uses_arch_clock);
	CHECK_EQ(j.codes.n, 3);
	CHECK_EQ(j.n_unknown, 1);
	CHECK_EQ(j.n_malformed, 0);
	CHECK_EQ(j.bytes_read, m.bytes.n);
	CHECK_EQ(j.codes.v[0].tid, 4712);
	CHECK_EQ(j.codes.v[0].code.n, 0x20);
	CHECK_EQ(j.codes.v[0].code.p[0x1f], 0x1f);
	CHECK_EQ(j.codes.v[0].to_ns, 300);
	CHECK_EQ(j.codes.v[1].to_ns, UINT64_MAX);
	CHECK_STR(name_at(&j, 0x1000, 99), "-");
	CHECK_STR(name_at(&j, 0x1000, 100), "first");
	CHECK_STR(name_at(&j, 0x101f, 299), "first");
	CHECK_STR(name_at(&j, 0x1020, 299), "-");
	CHECK_STR(name_at(&j, 0x1000, 300), "-"); /* half of it is no function any more */
	CHECK_STR(name_at(&j, 0x1010, 300), "over the first");
	CHECK_STR(name_at(&j, 0x102f, 999), "over the first");
	CHECK_STR(name_at(&j, 0x1000, UINT64_MAX), "first");
	CHECK_STR(name_at(&j, 0x101f, UINT64_MAX), "over the first");
	CHECK_STR(name_at(&j, 0x200f, 200), "second one");
	CHECK_STR(name_at(&j, 0x2010, 200), "-");
	CHECK_STR(name_at(&j, 0, 200), "-");
	CHECK_STR(name_at(&j, UINT64_MAX, 200), "-");
	jitdump_release(&j);
	jitdump_release(&j);
	buf_release(&m.bytes);
}

static void test_loads(void)
{
	check_loads(false);
}

static void test_other_byte_order(void)
{
	check_loads(true);
}

static void test_moves(void)
{
	static const struct jit_line lines[] = {{0x1000, 7, "a.js"}, {0x1008, 9, "\377"}};
	struct maker m = {0};
	struct jitdump j;
	struct err err;

	put_header(&m, 1, 40, 0);
	put_debug(&m, 0x1000, lines, 2);
	put_load(&m, 100, 0x1000, 0x20, "wanderer");
	put_move(&m, 200, 0x1000, 0x1010, 0x20);
	put_move(&m, 300, 0x1010, 0x5000, 0x10);
	put_move(&m, 400, 0x9999, 0x6000, 0x10); /* nothing is there */
	put_move(&m, 500, 0x1000, 0x6000, 0x10); /* was moved before */
	put_load(&m, 600, 0x1000, 0x20, "later");
	CHECK_EQ(jitdump_init(&j, buf_span(&m.bytes), &err), 0);
	CHECK_EQ(j.codes.n, 4);
	CHECK_EQ(j.n_malformed, 2);
	CHECK(jitdump_find(&j, 0x1000, 150) == &j.codes.v[0]);
	CHECK(jitdump_find(&j, 0x1000, 250) == NULL);
	CHECK(jitdump_find(&j, 0x1010, 199) == &j.codes.v[0]);
	CHECK(jitdump_find(&j, 0x1010, 200) == &j.codes.v[1]);
	CHECK(jitdump_find(&j, 0x1010, 300) == NULL);
	CHECK(jitdump_find(&j, 0x500f, 300) == &j.codes.v[2]);
	CHECK(jitdump_find(&j, 0x5010, 300) == NULL);
	CHECK_STR(name_at(&j, 0x5000, 9999), "wanderer");
	CHECK_STR(name_at(&j, 0x1000, 600), "later");
	CHECK_EQ(j.codes.v[2].tid, 4713);
	CHECK_EQ(j.codes.v[2].code.n, 0x10);
	/* Lines move with the code. */
	CHECK_EQ(j.codes.v[2].n_lines, 2);
	CHECK_EQ(j.codes.v[2].lines[1].addr, 0x5008);
	CHECK_EQ(j.codes.v[2].lines[1].line, 9);
	CHECK_EQ(j.codes.v[3].n_lines, 0);
	jitdump_release(&j);
	buf_release(&m.bytes);
}

static void test_lines(void)
{
	static const struct jit_line a[] = {
		{0x1000, 7, "a.js"}, {0x1008, 9, "\377"}, {0x1010, 3, "b.js"}, {0x1018, 4, "\377"}};
	static const struct jit_line b[] = {{0x2000, 70, "\377"}};
	struct maker m = {0};
	struct jitdump j;
	struct err err;
	size_t at;

	put_header(&m, 1, 40, 0);
	put_debug(&m, 0x1000, a, 4);
	put_debug(&m, 0x2000, b, 1); /* of another thread, between the two of the first */
	put_load(&m, 100, 0x1000, 0x20, "one");
	put_load(&m, 100, 0x2000, 0x20, "two");
	put_load(&m, 200, 0x1000, 0x20, "without lines");
	at = begin_record(&m, 2, 300); /* says two and has one */
	put64(&m, 0x3000);
	put64(&m, 2);
	put64(&m, 0x3000);
	put64(&m, 1);
	buf_put(&m.bytes, "c.js", 5);
	end_record(&m, at);
	put_load(&m, 300, 0x3000, 0x20, "three");
	CHECK_EQ(jitdump_init(&j, buf_span(&m.bytes), &err), 0);
	CHECK_EQ(j.codes.n, 4);
	CHECK_EQ(j.n_malformed, 1);
	CHECK_EQ(j.codes.v[0].n_lines, 4);
	CHECK_EQ(j.codes.v[0].lines[1].addr, 0x1008);
	CHECK_STR(j.codes.v[0].lines[1].file, "a.js");
	CHECK_STR(j.codes.v[0].lines[3].file, "b.js");
	CHECK_EQ(j.codes.v[1].n_lines, 1);
	CHECK_EQ(j.codes.v[1].lines[0].line, 70);
	CHECK_STR(j.codes.v[1].lines[0].file, "");
	CHECK_EQ(j.codes.v[2].n_lines, 0);
	CHECK_EQ(j.codes.v[3].n_lines, 0);
	jitdump_release(&j);
	buf_release(&m.bytes);
}

/* Every length of a growing file: no more and no less than its whole records. */
static void test_growing(void)
{
	struct maker m = {0};
	size_t ends[4];
	struct err err;

	put_header(&m, 1, 40, 0);
	ends[0] = m.bytes.n;
	for (size_t i = 1; i < 4; i++) {
		put_load(&m, i * 100, i * 0x1000, 0x10, "code");
		ends[i] = m.bytes.n;
	}
	for (size_t n = 40; n <= m.bytes.n; n++) {
		uint8_t *copy = mem_dup(m.bytes.p, n);
		size_t whole = 0;
		struct jitdump j;

		while (whole < 3 && ends[whole + 1] <= n)
			whole++;
		CHECK_EQ(jitdump_init(&j, (struct span){copy, n}, &err), 0);
		CHECK_EQ(j.codes.n, whole);
		CHECK_EQ(j.bytes_read, ends[whole]);
		CHECK_EQ(j.n_malformed, 0);
		jitdump_release(&j);
		free(copy);
	}
	buf_release(&m.bytes);
}

static void test_malformed(void)
{
	struct maker m = {0};
	struct jitdump j;
	struct err err;
	size_t at;

	put_header(&m, 1, 40, 0);
	put_load(&m, 100, 0x1000, 0, "empty");
	put_load(&m, 100, UINT64_MAX - 3, 8, "wraps");
	put_load(&m, 100, UINT64_MAX, 1, "the last byte");
	put_load(&m, 100, 0x1000, 8, "");
	put_load(&m, 100, 0x1000, 0x100000, "without its bytes");
	at = begin_record(&m, 0, 100); /* a load without a name */
	end_record(&m, at);
	put_load(&m, 100, 0x3000, 8, "good");
	at = m.bytes.n;
	begin_record(&m, 0, 100); /* a length that cannot be */
	set32(&m, at + 4, 15);
	put_load(&m, 100, 0x4000, 8, "never seen");
	CHECK_EQ(jitdump_init(&j, buf_span(&m.bytes), &err), 0);
	CHECK_EQ(j.codes.n, 2);
	CHECK_STR(j.codes.v[0].name, "without its bytes");
	CHECK_EQ(j.codes.v[0].code.n, 0);
	CHECK_STR(j.codes.v[1].name, "good");
	CHECK_EQ(j.n_malformed, 6);
	CHECK_EQ(j.bytes_read, at);
	jitdump_release(&j);
	buf_release(&m.bytes);
}

static void check_refused(struct maker *m, size_t n, int code, const char *part)
{
	struct jitdump j;
	struct err err = {0};

	CHECK_EQ(jitdump_init(&j, (struct span){m->bytes.p, n}, &err), code);
	CHECK(strstr(err.text, part) != NULL);
}

static void test_headers(void)
{
	struct maker m = {0};

	put_header(&m, 1, 40, 0);
	check_refused(&m, 0, ERR_FORMAT, "does not begin");
	check_refused(&m, 39, ERR_FORMAT, "does not begin");
	set32(&m, 4, 2);
	check_refused(&m, 40, ERR_UNSUPPORTED, "version 2");
	set32(&m, 4, 1);
	set32(&m, 8, 39);
	check_refused(&m, 40, ERR_FORMAT, "header of 39 bytes");
	set32(&m, 8, 41);
	check_refused(&m, 40, ERR_FORMAT, "header of 41 bytes");
	m.bytes.p[0] = 'x';
	check_refused(&m, 40, ERR_FORMAT, "does not begin");
	buf_release(&m.bytes);
}

/* What jitdump_find must say, slowly: of the codes that cover the address the last one loaded by
 * then, unless another was loaded over a part of it, or it was moved away. */
static const struct jit_code *find_slowly(const struct jitdump *j, uint64_t addr, uint64_t time)
{
	const struct jit_code *best = NULL;

	for (size_t i = 0; i < j->codes.n; i++) {
		const struct jit_code *c = &j->codes.v[i];

		if (c->addr > addr || addr - c->addr >= c->bytes || c->from_ns > time)
			continue;
		if (!best || c->from_ns >= best->from_ns)
			best = c;
	}
	for (size_t i = 0; best && i < j->codes.n; i++) {
		const struct jit_code *c = &j->codes.v[i];

		if (c->from_ns > time || c->addr >= best->addr + best->bytes ||
			best->addr >= c->addr + c->bytes)
			continue;
		if (c->from_ns > best->from_ns || (c->from_ns == best->from_ns && c > best))
			return NULL;
	}
	return best;
}

static void test_random(void)
{
	struct maker m = {0};
	struct jitdump j;
	struct err err;
	uint64_t seed = 12345;

	put_header(&m, 1, 40, 0);
	for (int i = 0; i < 300; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		put_load(&m, 10 + (seed >> 33) % 200, 0x1000 + (seed >> 20) % 512,
			1 + (seed >> 50) % (i % 10 ? 30 : 300), "code");
	}
	CHECK_EQ(jitdump_init(&j, buf_span(&m.bytes), &err), 0);
	CHECK_EQ(j.codes.n, 300);
	for (uint64_t addr = 0xff0; addr < 0x1400; addr += 3)
		for (uint64_t time = 5; time < 220; time += 2)
			if (jitdump_find(&j, addr, time) != find_slowly(&j, addr, time)) {
				CHECK_EQ(addr, time); /* to see which */
				goto out;
			}
out:
	jitdump_release(&j);
	buf_release(&m.bytes);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads loads, and ends a code when its place is used again", test_loads},
		{"reads the other byte order", test_other_byte_order},
		{"follows moved code, with its lines", test_moves},
		{"gives lines to the next load at their address", test_lines},
		{"reads a growing file up to its last whole record", test_growing},
		{"counts records that contradict themselves", test_malformed},
		{"refuses files that are not jitdump, and other versions", test_headers},
		{"finds what a slow search finds, at any time", test_random},
	};

	return RUN_TESTS(tests);
}
