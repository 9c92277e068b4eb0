/* SPDX-License-Identifier: MIT */
/* libcrypto: digests, ciphers, a power of a large number; much of it is hand-written assembly. */
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <stdio.h>

static unsigned char in[16 << 20], out[(16 << 20) + 64];

static void encrypt(const EVP_CIPHER *cipher)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	unsigned char key[32] = {1}, iv[16] = {2};
	int n;

	EVP_EncryptInit_ex(c, cipher, NULL, key, iv);
	EVP_EncryptUpdate(c, out, &n, in, sizeof(in));
	printf("%d %02x%02x\n", n, out[0], out[n - 1]);
	EVP_CIPHER_CTX_free(c);
}

static void power(void)
{
	BIGNUM *p = BN_new(), *q = BN_new(), *r = BN_new();
	BN_CTX *x = BN_CTX_new();

	BN_set_word(p, 3);
	BN_set_bit(p, 2047);
	BN_set_word(q, 65537);
	BN_set_bit(q, 2040);
	BN_set_word(r, 7);
	BN_set_bit(r, 1900);
	for (int i = 0; i < 8; i++)
		BN_mod_exp(r, r, q, p, x);
	printf("%d\n", BN_num_bits(r));
	BN_free(p);
	BN_free(q);
	BN_free(r);
	BN_CTX_free(x);
}

int main(void)
{
	static const char *const digests[] = {"SHA256", "SHA512", "MD5", "SHA3-256"};
	unsigned char md[64];
	unsigned n;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 2654435761u >> 24);
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
		EVP_Digest(in, sizeof(in), md, &n, EVP_get_digestbyname(digests[i]), NULL);
		printf("%02x%02x\n", md[0], md[n - 1]);
	}
	encrypt(EVP_aes_256_cbc());
	encrypt(EVP_chacha20_poly1305());
	power();
	return 0;
}
