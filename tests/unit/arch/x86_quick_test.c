/* SPDX-License-Identifier: MIT */
/*
 * The table of frequent instructions says what Zydis says: over every prefix that it takes, every
 * opcode, every ModRM byte and those SIB bytes that are special.
 */
#include "arch/x86_effects.h"

#include <stdlib.h>

#include "arch/x86_zydis.h"
#include "check.h"

#define AT 0x401000u

static unsigned n_quick, n_wrong;

static void complain(const uint8_t *bytes, const char *what, const struct x86_effects *q,
	const struct x86_effects *z)
{
	if (n_wrong++ >= 20)
		return;
	for (int i = 0; i < 8; i++)
		printf("%02x ", bytes[i]);
	printf("%s: reads %x %x writes %x %x kills %x %x flags %x %x %x, %x %x %x\n", what,
		q->reads, z->reads, q->writes, z->writes, q->kills, z->kills, q->flags_read,
		q->flags_written, q->flags_killed, z->flags_read, z->flags_written,
		z->flags_killed);
}

static bool is_same_insn(const struct x86_insn *a, const struct x86_insn *b)
{
	return a->length == b->length && a->flow == b->flow && a->has_target == b->has_target &&
	       a->target == b->target && a->is_nop == b->is_nop && a->is_endbr == b->is_endbr &&
	       a->is_padding == b->is_padding && a->disp_at == b->disp_at &&
	       a->disp_target == b->disp_target && a->rel_at == b->rel_at &&
	       a->rel_bytes == b->rel_bytes && a->opcode == b->opcode &&
	       a->modrm_at == b->modrm_at && a->is_bound == b->is_bound;
}

static bool is_same_effects(const struct x86_effects *a, const struct x86_effects *b)
{
	return a->reads == b->reads && a->writes == b->writes && a->kills == b->kills &&
	       a->flags_read == b->flags_read && a->flags_written == b->flags_written &&
	       a->flags_killed == b->flags_killed && a->uses_gs == b->uses_gs &&
	       a->is_rep == b->is_rep && a->is_transaction == b->is_transaction &&
	       a->is_privileged == b->is_privileged;
}

static void compare(const uint8_t *bytes)
{
	struct span code = {bytes, 24};
	struct x86_insn q, z;
	struct x86_effects eq = {0}, ez = {0};

	if (!x86_quick_decode(&q, &eq, code, AT))
		return;
	n_quick++;
	if (!x86_zydis_decode(&z, &ez, code, AT))
		complain(bytes, "is no instruction", &eq, &ez);
	else if (!is_same_insn(&q, &z))
		complain(bytes, "is another instruction", &eq, &ez);
	else if (!is_same_effects(&eq, &ez))
		complain(bytes, "has other effects", &eq, &ez);
}

/* Every ModRM byte behind an opcode, and what may follow: a SIB byte or the first of an immediate.
 */
static void try_operands(uint8_t *bytes, size_t n)
{
	static const uint8_t next[] = {0x00, 0x24, 0x25, 0x0d, 0x65, 0xe0, 0x9b};

	for (unsigned modrm = 0; modrm < 256; modrm++) {
		bool has_sib = modrm < 0xc0 && (modrm & 7) == 4;

		bytes[n] = (uint8_t)modrm;
		for (size_t i = 0; i < (has_sib ? sizeof(next) : 2); i++) {
			bytes[n + 1] = next[i];
			compare(bytes);
		}
	}
}

static void try_opcodes(const uint8_t *prefix, size_t n_prefix)
{
	uint8_t bytes[24];

	for (unsigned map = 0; map < 2; map++) {
		for (unsigned opcode = 0; opcode < 256; opcode++) {
			size_t n = n_prefix;

			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)(0x81 + 0x11 * i);
			memcpy(bytes, prefix, n_prefix);
			if (map)
				bytes[n++] = 0x0f;
			bytes[n++] = (uint8_t)opcode;
			try_operands(bytes, n);
		}
	}
}

static void test_all(void)
{
	static const uint8_t mandatory[] = {0, 0x66, 0xf3, 0xf2};
	static const uint8_t rexes[] = {0, 0x40, 0x48, 0x41, 0x44, 0x42, 0x4f};

	for (unsigned fs = 0; fs < 2; fs++) {
		for (unsigned m = 0; m < sizeof(mandatory); m++) {
			for (unsigned r = 0; r < sizeof(rexes); r++) {
				uint8_t prefix[3];
				size_t n = 0;

				if (fs)
					prefix[n++] = 0x64;
				if (mandatory[m])
					prefix[n++] = mandatory[m];
				if (rexes[r])
					prefix[n++] = rexes[r];
				try_opcodes(prefix, n);
			}
		}
	}
	printf("# %u encodings compared\n", n_quick);
	CHECK_EQ(n_wrong, 0);
	CHECK(n_quick > 500000);
}

/* The end of the code is left to Zydis: nothing is read behind it. */
static void test_end(void)
{
	struct x86_insn insn;
	struct x86_effects e;
	uint8_t *code = malloc(20);

	memset(code, 0x90, 20);
	CHECK(x86_quick_decode(&insn, &e, (struct span){code, 20}, AT));
	for (size_t n = 0; n < 16; n++)
		CHECK(!x86_quick_decode(&insn, &e, (struct span){code + 20 - n, n}, AT));
	free(code);
}

int main(void)
{
	static const struct test tests[] = {
		{"says of every encoding what Zydis says", test_all},
		{"leaves the end of the code to Zydis", test_end},
	};

	return RUN_TESTS(tests);
}
