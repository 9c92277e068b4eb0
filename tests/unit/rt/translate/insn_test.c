/* SPDX-License-Identifier: MIT */
/*
 * The translator's decoder says what Zydis says: over every opcode with every ModRM byte and the prefixes that
 * change something, over random bytes, and over the code of this machine's programs. Everything random is seeded.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "insn_compare.h"

#define AT 0x7f1234567000u

static struct {
	unsigned n[VERDICT_WRONG + 1];
} seen;

static void show(const struct insn_comparison *c, const uint8_t *bytes, const char *what)
{
	printf("#");
	for (int i = 0; i < INSN_BYTES_MAX; i++)
		printf(" %02x", bytes[i]);
	printf(": %s: %s; length %u, kind %u, registers %x, flags %x %x\n",
		ZydisMnemonicGetString(c->zydis.d.mnemonic), what, c->insn.length, c->insn.kind,
		c->insn.registers, c->insn.flags_read, c->insn.flags_written);
}

static enum insn_verdict try_bytes(const uint8_t *bytes, size_t n)
{
	struct insn_comparison c;

	insn_compare(&c, bytes, n, AT);
	if (seen.n[c.verdict]++ < 20 && c.verdict == VERDICT_WRONG)
		show(&c, bytes, c.why);
	return c.verdict;
}

static void end(unsigned at_least)
{
	printf("# %u the same, %u exotic and not known, %u more than Zydis\n", seen.n[VERDICT_SAME],
		seen.n[VERDICT_UNKNOWN], seen.n[VERDICT_MORE]);
	CHECK_EQ(seen.n[VERDICT_WRONG], 0);
	CHECK(seen.n[VERDICT_SAME] >= at_least);
	memset(&seen, 0, sizeof(seen));
}

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_fill(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(random_next() >> 40);
}

/* Every ModRM byte behind the n bytes, and SIB bytes that are special. */
static void try_operands(uint8_t *bytes, size_t n)
{
	static const uint8_t sibs[] = {0x00, 0x24, 0x25, 0x0d, 0xe3};

	for (unsigned modrm = 0; modrm < 256; modrm++) {
		bool has_sib = modrm < 0xc0 && (modrm & 7) == 4;

		bytes[n] = (uint8_t)modrm;
		for (size_t i = 0; i < (has_sib ? sizeof(sibs) : 1); i++) {
			bytes[n + 1] = has_sib ? sibs[i] : 0x9b;
			try_bytes(bytes, 24);
		}
	}
}

static void test_legacy(void)
{
	static const struct {
		uint8_t n, bytes[3];
	} prefixes[] = {
		{0, {0}},
		{1, {0x66}},
		{1, {0xf3}},
		{1, {0xf2}},
		{1, {0x40}},
		{1, {0x48}},
		{1, {0x4f}},
		{2, {0x66, 0x48}},
		{2, {0xf3, 0x48}},
		{2, {0xf2, 0x48}},
		{2, {0x66, 0xf2}},
		{1, {0x65}},
		{1, {0x67}},
		{1, {0xf0}},
		{3, {0x64, 0x67, 0x45}},
		{2, {0x48, 0x66}},
	};
	static const struct {
		uint8_t n, bytes[2];
	} maps[] = {{0, {0}}, {1, {0x0f}}, {2, {0x0f, 0x38}}, {2, {0x0f, 0x3a}}};
	uint8_t bytes[24];

	for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
		for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++) {
			size_t n = prefixes[p].n + maps[m].n;

			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)(0x81 + 0x11 * i);
			memcpy(bytes, prefixes[p].bytes, prefixes[p].n);
			memcpy(bytes + prefixes[p].n, maps[m].bytes, maps[m].n);
			for (unsigned opcode = 0; opcode < 256; opcode++) {
				bytes[n] = (uint8_t)opcode;
				try_operands(bytes, n + 1);
			}
		}
	}
	end(1500000);
}

/* What stands in front of an opcode with VEX, XOP or EVEX. */
struct vector_prefix {
	uint8_t first;	    /* 62, 8f, c4, c5 */
	uint8_t map, pp, w, l;
	uint8_t variant;    /* 0: no third operand, no mask; 1: with both; 2: anything */
};

/* The rest is random; the length of it. */
static size_t vector_bytes(uint8_t *bytes, const struct vector_prefix *v)
{
	static const uint8_t fixed[3] = {0x78, 0x00, 0x00}; /* of the byte with vvvv: ones */

	random_fill(bytes, 24);
	bytes[0] = v->first;
	if (v->first == 0xc5) {
		bytes[1] = (uint8_t)((bytes[1] & 0xf8) | fixed[v->variant] | v->l << 2 | v->pp);
		return 2;
	}
	bytes[2] = (uint8_t)((bytes[2] & 0x78) | fixed[v->variant] | v->w << 7 | v->pp);
	if (v->first != 0x62) {
		bytes[1] = (uint8_t)((bytes[1] & 0xe0) | v->map);
		bytes[2] |= (uint8_t)(v->l << 2);
		return 3;
	}
	bytes[1] = (uint8_t)((bytes[1] & 0xf0) | v->map);
	bytes[2] |= 0x04;
	if (v->variant == 0)
		bytes[3] = (uint8_t)(0x08 | v->l << 5);
	else if (v->variant == 1)
		bytes[3] = (uint8_t)((bytes[3] & 0x0f) | v->l << 5 | 1);
	return 4;
}

static void try_vector(struct vector_prefix v)
{
	uint8_t bytes[24];

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		for (unsigned i = 0; i < 32; i++) {
			size_t n = vector_bytes(bytes, &v);

			bytes[n] = (uint8_t)opcode;
			if (i & 1)
				bytes[n + 1] |= 0xc0;
			try_bytes(bytes, sizeof(bytes));
		}
	}
}

static void test_vectors(void)
{
	static const struct {
		uint8_t first, map;
	} maps[] = {{0xc4, 1}, {0xc4, 2}, {0xc4, 3}, {0xc5, 1}, {0x8f, 8}, {0x8f, 9}, {0x8f, 10}, {0x62, 1},
		{0x62, 2}, {0x62, 3}, {0x62, 5}, {0x62, 6}};

	random_state = 0x9e3779b97f4a7c15;
	for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++)
		for (unsigned i = 0; i < 4 * 2 * 3 * 3; i++)
			if (i % 9 / 3 < 2 || maps[m].first == 0x62)
				try_vector((struct vector_prefix){.first = maps[m].first,
					.map = maps[m].map,
					.pp = i / 18,
					.w = i / 9 % 2,
					.l = i % 9 / 3,
					.variant = i % 3});
	end(250000);
}

static void test_random(void)
{
	static const uint8_t starts[] = {0x66, 0xf2, 0xf3, 0x65, 0x67, 0xf0, 0x48, 0x41, 0x0f, 0x2e};
	uint8_t bytes[24];

	random_state = 0x2545f4914f6cdd1d;
	for (unsigned i = 0; i < 1500000; i++) {
		uint64_t choice = random_next();

		random_fill(bytes, sizeof(bytes));
		for (unsigned k = 0; k < (choice & 3); k++)
			bytes[k] = starts[(choice >> (8 + 8 * k)) % sizeof(starts)];
		try_bytes(bytes, sizeof(bytes));
	}
	end(700000);
}

/* --- the code of this machine ------------------------------------------------------------- */

static void walk_code(const uint8_t *code, size_t n)
{
	struct insn_comparison c;
	unsigned n_shown = 0;

	for (size_t at = 0; at < n;) {
		insn_compare(&c, code + at, n - at, AT + at);
		seen.n[c.verdict]++;
		if (c.verdict == VERDICT_WRONG && n_shown++ < 5 && n - at >= INSN_BYTES_MAX)
			show(&c, code + at, c.why);
		at += c.verdict == VERDICT_NONE || c.verdict == VERDICT_MORE ? 1 : c.zydis.d.length;
	}
}

static void walk_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const uint8_t *file;

	if (fd < 0)
		return;
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		close(fd);
		return;
	}
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)file;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(file + e->e_shoff);

	for (int i = 0; !memcmp(file, ELFMAG, SELFMAG) && i < e->e_shnum; i++)
		if (s[i].sh_flags & SHF_EXECINSTR && s[i].sh_type == SHT_PROGBITS)
			walk_code(file + s[i].sh_offset, s[i].sh_size);
	munmap((void *)file, (size_t)st.st_size);
}

static void test_programs(void)
{
	static const char *const paths[] = {"/bin/bash", "/usr/bin/perl", "/usr/bin/python3",
		"/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libgmp.so.10",
		"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		unsigned n_exotic = seen.n[VERDICT_UNKNOWN], n_none = seen.n[VERDICT_NONE];

		walk_file(paths[i]);
		n_exotic = seen.n[VERDICT_UNKNOWN] - n_exotic;
		n_none = seen.n[VERDICT_NONE] - n_none;
		/* Tables between functions, as libcrypto has them, look like anything. */
		if (n_exotic * 4 > n_none)
			printf("# %s has %u instructions that are not known\n", paths[i], n_exotic);
		CHECK(n_exotic * 4 <= n_none);
	}
	end(10000);
}

/* --- more than Zydis tells ---------------------------------------------------------------- */

/* Where the translator gains by it, flags are told to the bit. */
static void test_flags(void)
{
	const uint16_t all = INSN_FLAGS, cf = INSN_FLAG_CF, of = INSN_FLAG_OF, zf = INSN_FLAG_ZF;
	const struct {
		uint8_t bytes[8];
		uint16_t read, written;
	} cases[] = {
		{{0x01, 0xc8}, 0, all},			     /* add */
		{{0x48, 0x83, 0xd0, 0x01}, cf, all},	     /* adc */
		{{0x1b, 0x07}, cf, all},		     /* sbb */
		{{0x48, 0x81, 0xfb, 1, 2, 3, 4}, 0, all},    /* cmp */
		{{0x85, 0xc0}, 0, all},			     /* test */
		{{0x48, 0xff, 0xc0}, 0, all & ~cf},	     /* inc */
		{{0xf7, 0xd8}, 0, all},			     /* neg */
		{{0xf7, 0xd0}, 0, 0},			     /* not */
		{{0x48, 0x0f, 0xaf, 0xc1}, 0, all},	     /* imul */
		{{0xc1, 0xe0, 0x04}, 0, all},		     /* shl 4 */
		{{0xc1, 0xe0, 0x20}, 0, 0},		     /* shl 32 of 32 bits */
		{{0x48, 0xc1, 0xe0, 0x20}, 0, all},	     /* shl 32 of 64 bits */
		{{0xd3, 0xe0}, 0, 0},			     /* shl cl */
		{{0xd1, 0xc0}, 0, cf | of},		     /* rol 1 */
		{{0xc0, 0xd0, 0x09}, cf, 0},		     /* rcl 9 of 8 bits */
		{{0x75, 0x00}, zf, 0},			     /* jne */
		{{0x0f, 0x97, 0xc0}, cf | zf, 0},	     /* seta */
		{{0x0f, 0x4c, 0xc1}, INSN_FLAG_SF | of, 0},  /* cmovl */
		{{0x66, 0x0f, 0x2e, 0xc1}, 0, all},	     /* ucomisd */
		{{0xf3, 0x0f, 0xb8, 0xc1}, 0, all},	     /* popcnt */
		{{0xc4, 0xe2, 0x79, 0x17, 0xc0}, 0, all},    /* vptest */
		{{0xc5, 0xf8, 0x98, 0xc0}, 0, all},	     /* kortestw */
		{{0x66, 0x0f, 0x38, 0xf6, 0xc1}, cf, cf},    /* adcx */
		{{0xa6}, 0, all},			     /* cmpsb */
		{{0xf3, 0xa6}, zf, 0},			     /* repe cmpsb */
		{{0x9d}, 0, all},			     /* popf */
		{{0x0f, 0x05}, all, 0},			     /* syscall */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct insn insn;

		CHECK(insn_decode(&insn, cases[i].bytes, sizeof(cases[i].bytes), AT));
		CHECK_EQ(insn.flags_read, cases[i].read);
		CHECK_EQ(insn.flags_written, cases[i].written);
	}
}

/* What compilers, linkers and libraries write that newer CPUs know than Zydis, or that has odd prefixes. */
static void test_lengths(void)
{
	static const struct {
		uint8_t bytes[12];
		uint8_t length, kind;
	} cases[] = {
		{{0x66, 0x66, 0x48, 0xe8, 1, 2, 3, 4}, 8, INSN_CALL},	       /* __tls_get_addr */
		{{0x66, 0x48, 0xff, 0x15, 1, 2, 3, 4}, 8, INSN_CALL_INDIRECT}, /* the same with -fno-plt */
		{{0x67, 0xe8, 1, 2, 3, 4}, 6, INSN_CALL},		       /* a relaxed call */
		{{0x66, 0xe8, 1, 2, 3, 4}, 0, INSN_UNKNOWN},
		{{0xf2, 0xc3}, 2, INSN_RETURN},
		{{0x3e, 0xff, 0xe0}, 3, INSN_JUMP_INDIRECT}, /* notrack */
		{{0x67, 0x8b, 0x05, 1, 2, 3, 4}, 0, INSN_UNKNOWN},
		{{0xc4, 0xe2, 0xf5, 0xb4, 0xc2}, 5, INSN_PLAIN}, /* vpmadd52luq with VEX */
		{{0xc4, 0xe2, 0x71, 0xe2, 0x17}, 5, INSN_PLAIN}, /* cmpbxadd */
		{{0xc4, 0xe2, 0x77, 0x50, 0xc2}, 5, INSN_PLAIN}, /* vpdpbssd */
		{{0xc4, 0xe2, 0x7f, 0xcc, 0xc1}, 5, INSN_PLAIN}, /* vsha512msg1 */
		{{0xd5, 0x10, 0x8b, 0x00}, 0, INSN_UNKNOWN},	 /* APX */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct insn insn;

		insn_decode(&insn, cases[i].bytes, sizeof(cases[i].bytes), AT);
		CHECK_EQ(insn.length, cases[i].length);
		CHECK_EQ(insn.kind, cases[i].kind);
	}
}

/* What is not whole is not known, and nothing is read behind its end. */
static void test_end(void)
{
	uint8_t bytes[24];

	random_state = 0x853c49e6748fea9b;
	for (unsigned i = 0; i < 20000; i++) {
		struct insn insn;
		unsigned length;

		random_fill(bytes, sizeof(bytes));
		if (!insn_decode(&insn, bytes, sizeof(bytes), AT))
			continue;
		length = insn.length;
		CHECK(length && length <= INSN_BYTES_MAX);
		for (unsigned n = 0; n <= length; n++) {
			uint8_t *copy = malloc(n ? n : 1);

			memcpy(copy, bytes, n);
			CHECK_EQ(insn_decode(&insn, copy, n, AT), n == length);
			free(copy);
		}
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"says of every opcode and operand what Zydis says", test_legacy},
		{"says of VEX, EVEX and XOP what Zydis says", test_vectors},
		{"says of random bytes what Zydis says", test_random},
		{"knows every instruction of this machine's programs", test_programs},
		{"says to the bit which flags ordinary instructions use", test_flags},
		{"knows what linkers write, and what is newer than Zydis", test_lengths},
		{"reads nothing behind the end", test_end},
	};

	return RUN_TESTS(tests);
}
