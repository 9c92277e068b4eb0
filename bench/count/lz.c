/* SPDX-License-Identifier: MIT */
/* A packer of its own: matches by hash chains, then a Huffman code; packs, unpacks and compares. */
#include "text.h"

#define WINDOW	  65536u
#define HASH_BITS 15
#define MATCH_MIN 4
#define MATCH_MAX 258
#define CHAIN_MAX 48
#define N_SYMBOLS 512 /* 0..255 bytes, 256 + length - MATCH_MIN */

struct token {
	uint16_t symbol;
	uint16_t distance;
};

static unsigned char in[2 << 20], back[2 << 20];
static struct token tokens[2 << 20];
static unsigned char packed[4 << 20];
static int32_t heads[1 << HASH_BITS], chain[2 << 20];

/* ---- matches ---- */

static uint32_t hash_of(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v * 2654435761u >> (32 - HASH_BITS);
}

static uint32_t match_length(const unsigned char *a, const unsigned char *b, size_t max)
{
	uint32_t n = 0;

	while (n < max && n < MATCH_MAX && a[n] == b[n])
		n++;
	return n;
}

static void insert(size_t at, size_t n)
{
	uint32_t h;

	if (at + 4 > n)
		return;
	h = hash_of(in + at);
	chain[at] = heads[h];
	heads[h] = (int32_t)at;
}

static uint32_t find(size_t at, size_t n, size_t *from)
{
	uint32_t best = 0;
	int32_t p;

	if (at + 4 > n)
		return 0;
	p = heads[hash_of(in + at)];
	for (int i = 0; p >= 0 && i < CHAIN_MAX && at - (size_t)p < WINDOW; i++, p = chain[p]) {
		uint32_t length = match_length(in + p, in + at, n - at);

		if (length > best) {
			best = length;
			*from = (size_t)p;
		}
	}
	return best >= MATCH_MIN ? best : 0;
}

static size_t make_tokens(size_t n)
{
	size_t n_tokens = 0, from = 0;

	memset(heads, -1, sizeof(heads));
	for (size_t at = 0; at < n;) {
		uint32_t length = find(at, n, &from);
		struct token *t = &tokens[n_tokens++];

		if (!length) {
			t->symbol = in[at];
			t->distance = 0;
			insert(at++, n);
			continue;
		}
		t->symbol = (uint16_t)(256 + length - MATCH_MIN);
		t->distance = (uint16_t)(at - from);
		for (uint32_t i = 0; i < length; i++)
			insert(at++, n);
	}
	return n_tokens;
}

/* ---- the code ---- */

struct code {
	uint32_t bits[N_SYMBOLS];
	uint8_t length[N_SYMBOLS];
};

struct node {
	uint64_t weight;
	int left, right;
};

static struct node nodes[2 * N_SYMBOLS];

static int heap[2 * N_SYMBOLS], n_heap;

static void sift_down(int i)
{
	for (;;) {
		int least = i, l = 2 * i + 1, r = l + 1, t;

		if (l < n_heap && nodes[heap[l]].weight < nodes[heap[least]].weight)
			least = l;
		if (r < n_heap && nodes[heap[r]].weight < nodes[heap[least]].weight)
			least = r;
		if (least == i)
			return;
		t = heap[i];
		heap[i] = heap[least];
		heap[least] = t;
		i = least;
	}
}

static void heap_add(int node)
{
	int i = n_heap++;

	while (i > 0 && nodes[heap[(i - 1) / 2]].weight > nodes[node].weight) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = node;
}

static int heap_take(void)
{
	int top = heap[0];

	heap[0] = heap[--n_heap];
	sift_down(0);
	return top;
}

static void assign(struct code *c, int node, uint32_t bits, uint8_t length)
{
	if (node < N_SYMBOLS) {
		c->bits[node] = bits;
		c->length[node] = length ? length : 1;
		return;
	}
	assign(c, nodes[node].left, bits << 1, (uint8_t)(length + 1));
	assign(c, nodes[node].right, bits << 1 | 1, (uint8_t)(length + 1));
}

static int make_code(struct code *c, size_t n_tokens)
{
	int n_nodes = N_SYMBOLS;

	memset(c, 0, sizeof(*c));
	memset(nodes, 0, sizeof(nodes));
	for (size_t i = 0; i < n_tokens; i++)
		nodes[tokens[i].symbol].weight++;
	n_heap = 0;
	for (int i = 0; i < N_SYMBOLS; i++)
		if (nodes[i].weight)
			heap_add(i);
	while (n_heap > 1) {
		int a = heap_take(), b = heap_take();

		nodes[n_nodes] = (struct node){nodes[a].weight + nodes[b].weight, a, b};
		heap_add(n_nodes++);
	}
	assign(c, heap[0], 0, 0);
	return heap[0];
}

/* ---- bits ---- */

struct bits {
	size_t at;
	uint64_t word;
	uint32_t n;
};

static void put_bits(struct bits *b, uint32_t value, uint32_t n)
{
	b->word = b->word << n | value;
	b->n += n;
	while (b->n >= 8) {
		b->n -= 8;
		packed[b->at++] = (unsigned char)(b->word >> b->n);
	}
}

static uint32_t get_bits(struct bits *b, uint32_t n)
{
	while (b->n < n) {
		b->word = b->word << 8 | packed[b->at++];
		b->n += 8;
	}
	b->n -= n;
	return (uint32_t)(b->word >> b->n) & ((1u << n) - 1);
}

static size_t pack(const struct code *c, size_t n_tokens)
{
	struct bits b = {0};

	for (size_t i = 0; i < n_tokens; i++) {
		put_bits(&b, c->bits[tokens[i].symbol], c->length[tokens[i].symbol]);
		if (tokens[i].symbol >= 256)
			put_bits(&b, tokens[i].distance, 16);
	}
	put_bits(&b, 0, 7);
	return b.at;
}

static size_t unpack(int root, size_t n_tokens)
{
	struct bits b = {0};
	size_t n = 0;

	for (size_t i = 0; i < n_tokens; i++) {
		int node = root;
		uint32_t length, distance;

		while (node >= N_SYMBOLS)
			node = get_bits(&b, 1) ? nodes[node].right : nodes[node].left;
		if (node < 256) {
			back[n++] = (unsigned char)node;
			continue;
		}
		length = (uint32_t)node - 256 + MATCH_MIN;
		distance = get_bits(&b, 16);
		for (uint32_t k = 0; k < length; k++, n++)
			back[n] = back[n - distance];
	}
	return n;
}

int main(void)
{
	size_t n = make_text(in, sizeof(in));
	static struct code c;

	for (int i = 0; i < 3; i++) {
		size_t n_tokens = make_tokens(n);
		int root = make_code(&c, n_tokens);
		size_t bytes = pack(&c, n_tokens), unpacked = unpack(root, n_tokens);

		printf("%zu %zu %zu %d\n", n, n_tokens, bytes,
			unpacked != n || memcmp(in, back, n));
	}
	return 0;
}
