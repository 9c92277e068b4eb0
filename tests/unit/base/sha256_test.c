/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include "base/buf.h"
#include "check.h"

static const char *sum_of(struct span bytes)
{
	static char text[SHA256_HEX_CHARS + 1];

	sha256_hex(bytes, text);
	return text;
}

static struct span text_span(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

/* Of FIPS 180-2, appendix B, and what sha256sum says of nothing. */
static void known_sums(void)
{
	struct buf many = {0};

	CHECK_STR(sum_of(text_span("")),
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	CHECK_STR(sum_of(text_span("abc")),
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	CHECK_STR(sum_of(text_span("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(buf_put_zeros(&many, 1000000), 'a', 1000000);
	CHECK_STR(sum_of(buf_span(&many)),
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	buf_release(&many);
}

/* The sum of the sums of 0 to 129 bytes 'x', as
 * `for n in $(seq 0 129); do printf "%${n}s" | tr ' ' x | sha256sum | cut -c 1-64; done | tr -d '\n' | sha256sum` says. */
static void every_length_around_blocks(void)
{
	struct buf xs = {0}, sums = {0};

	for (int n = 0; n < 130; n++) {
		buf_printf(&sums, "%s", sum_of(buf_span(&xs)));
		buf_put_u8(&xs, 'x');
	}
	CHECK_STR(sum_of(buf_span(&sums)),
		"199af942eba7fa5d1e16d475169eb24018b14e69339c93d26a9ea6d873b4ace6");
	buf_release(&xs);
	buf_release(&sums);
}

static const struct test tests[] = {
	{"SHA-256 of the standard's examples", known_sums},
	{"SHA-256 of every length around one and two blocks", every_length_around_blocks},
};

int main(void)
{
	return RUN_TESTS(tests);
}
