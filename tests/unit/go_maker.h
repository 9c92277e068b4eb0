/* SPDX-License-Identifier: MIT */
/*
 * Makes Go's table of functions in each of its layouts, and an image around it:
 *
 *	header | index | functions | units: none, and the one file | texts and values
 */
#ifndef WEIR_TESTS_GO_MAKER_H
#define WEIR_TESTS_GO_MAKER_H

#include "cfi_maker.h"

#define GO_TABLE_ADDR 0x80000u

struct go_maker_function {
	uint32_t start; /* from CODE_ADDR; it ends where the next one starts */
	const char *name;
	uint8_t flags;
	const char *frames, *files, *lines; /* runs, without the 0 that ends them */
};

struct go_maker {
	unsigned version; /* 102, 116, 118, 120 */
	bool is_64;
	struct buf pool, bodies, out;
	uint32_t pool_at;
};

static inline void go_maker_word(const struct go_maker *m, struct buf *b, uint64_t v)
{
	if (m->is_64)
		buf_put_u64(b, v);
	else
		buf_put_u32(b, (uint32_t)v);
}

/* An address of the index or of a function. */
static inline void go_maker_addr(const struct go_maker *m, struct buf *b, uint32_t offset)
{
	if (m->version < 118)
		go_maker_word(m, b, CODE_ADDR + offset);
	else
		buf_put_u32(b, offset);
}

/* Puts a text into the pool and says where, as functions refer to it. */
static inline uint32_t go_maker_text(struct go_maker *m, const char *text)
{
	uint32_t at = (uint32_t)m->pool.n;

	buf_put(&m->pool, text, strlen(text) + 1);
	return m->version == 102 ? m->pool_at + at : at;
}

static inline void go_maker_body(struct go_maker *m, const struct go_maker_function *f)
{
	struct buf *b = &m->bodies;

	go_maker_addr(m, b, f->start);
	buf_put_u32(b, go_maker_text(m, f->name));
	buf_put_u64(b, 0);
	buf_put_u32(b, go_maker_text(m, f->frames));
	buf_put_u32(b, go_maker_text(m, f->files));
	buf_put_u32(b, go_maker_text(m, f->lines));
	buf_put_u32(b, 0);
	if (m->version >= 116)
		buf_put_u32(b, 0);
	if (m->version >= 120)
		buf_put_u32(b, 77);
	buf_put_u8(b, 0);
	buf_put_u8(b, f->flags);
	buf_put_u16(b, 0);
}

static inline void go_maker_header(
	struct go_maker *m, size_t n, uint64_t index_at, uint64_t units_at)
{
	uint32_t magic = m->version == 102   ? 0xfffffffb
			 : m->version == 116 ? 0xfffffffa
			 : m->version == 118 ? 0xfffffff0
					     : 0xfffffff1;

	buf_put_u32(&m->out, magic);
	buf_put_u16(&m->out, 0);
	buf_put_u8(&m->out, 1);
	buf_put_u8(&m->out, m->is_64 ? 8 : 4);
	go_maker_word(m, &m->out, n);
	if (m->version == 102)
		return;
	go_maker_word(m, &m->out, 1); /* files */
	if (m->version >= 118)
		go_maker_word(m, &m->out, CODE_ADDR);
	go_maker_word(m, &m->out, m->pool_at); /* names */
	go_maker_word(m, &m->out, units_at);
	go_maker_word(m, &m->out, m->pool_at); /* files */
	go_maker_word(m, &m->out, m->pool_at); /* values */
	go_maker_word(m, &m->out, index_at);
}

/* The table of n functions, of which the last one ends at `end`. */
static inline struct span go_maker_table(
	struct go_maker *m, const struct go_maker_function *f, size_t n, uint32_t end)
{
	size_t word = m->is_64 ? 8 : 4, entry = m->version < 118 ? word : 4;
	size_t index_at = 8 + word * (m->version == 102 ? 1 : m->version == 116 ? 7 : 8);
	size_t bodies_at = index_at + (2 * n + 1) * entry + (m->version == 102 ? 4 : 0);
	size_t body = entry + 28 + 4 + (m->version >= 116 ? 4 : 0) + (m->version >= 120 ? 4 : 0);
	size_t units_at = bodies_at + n * body;
	uint32_t file;

	m->pool_at = (uint32_t)units_at + 8;
	buf_put_u8(&m->pool, 0);
	file = go_maker_text(m, "/src/made.go");
	go_maker_header(m, n, index_at, units_at);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = bodies_at + i * body - (m->version == 102 ? 0 : index_at);

		go_maker_addr(m, &m->out, f[i].start);
		if (m->version < 118)
			go_maker_word(m, &m->out, at);
		else
			buf_put_u32(&m->out, (uint32_t)at);
		go_maker_body(m, &f[i]);
	}
	go_maker_addr(m, &m->out, end);
	if (m->version == 102)
		buf_put_u32(&m->out, (uint32_t)units_at);
	buf_put(&m->out, m->bodies.p, m->bodies.n);
	buf_put_u32(&m->out, UINT32_MAX);
	buf_put_u32(&m->out, file);
	buf_put(&m->out, m->pool.p, m->pool.n);
	return buf_span(&m->out);
}

static inline void go_maker_release(struct go_maker *m)
{
	buf_release(&m->pool);
	buf_release(&m->bodies);
	buf_release(&m->out);
}

/* An image with code and the table in a section of this name, or in a segment only. */
static inline int go_image_make(
	struct cfi_image *image, bool is_64, struct span table, const char *section)
{
	struct span none = {NULL, 0};
	uint32_t i;

	cfi_image_init(image, is_64, none, none);
	i = elf_maker_section(
		&image->maker, section ? section : "", SHT_PROGBITS, GO_TABLE_ADDR, table);
	elf_maker_segment(&image->maker, (struct elf_segment){.type = PT_LOAD,
						 .flags = PF_R,
						 .addr = {GO_TABLE_ADDR},
						 .mem_size = table.n,
						 .offset = image->maker.sections[i].offset,
						 .file_size = table.n});
	image->maker.no_sections = !section;
	return cfi_image_finish(image);
}

#endif
