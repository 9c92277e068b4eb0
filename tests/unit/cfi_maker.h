/* SPDX-License-Identifier: MIT */
/*
 * Makes .eh_frame and .debug_frame sections, and images around them, for tests.
 *
 * The image has its code at CODE_ADDR and the frames at FRAMES_ADDR, so that neither equals its
 * offset in the file.
 */
#ifndef WEIR_TESTS_CFI_MAKER_H
#define WEIR_TESTS_CFI_MAKER_H

#include "base/buf.h"
#include "elf_maker.h"
#include "dwarf/cfi_table.h"

#define CODE_ADDR   0x401000u
#define CODE_BYTES  0x10000u
#define FRAMES_ADDR 0x500000u

/* DW_CFA_* as bytes of a program. */
#define ADVANCE(n)	       0x40 | (n)
#define OFFSET(reg, factored)  0x80 | (reg), factored
#define RESTORE(reg)	       0xc0 | (reg)
#define DEF_CFA(reg, offset)   0x0c, reg, offset
#define DEF_CFA_REGISTER(reg)  0x0d, reg
#define DEF_CFA_OFFSET(offset) 0x0e, offset
#define UNDEFINED(reg)	       0x07, reg

#define PROGRAM(...)                                                                               \
	(struct span)                                                                              \
	{                                                                                          \
		(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})             \
	}

struct cfi_maker {
	struct buf bytes;
	bool is_64;
	bool is_eh;
	bool wide;	  /* 64-bit lengths */
	uint8_t version;  /* of CIEs */
	uint8_t encoding; /* of pointers in .eh_frame, 0 = none written */
};

static inline struct cfi_maker cfi_maker_eh(bool is_64)
{
	return (struct cfi_maker){.is_64 = is_64, .is_eh = true, .version = 1, .encoding = 0x1b};
}

static inline struct cfi_maker cfi_maker_debug(bool is_64)
{
	return (struct cfi_maker){.is_64 = is_64, .version = 4};
}

/* Leaves room for the length; returns where the body begins. */
static inline size_t cfi_maker_begin(struct cfi_maker *m)
{
	buf_put_u32(&m->bytes, m->wide ? 0xffffffffu : 0);
	if (m->wide)
		buf_put_u64(&m->bytes, 0);
	return m->bytes.n;
}

static inline void cfi_maker_end(struct cfi_maker *m, size_t body)
{
	uint64_t length;

	while ((m->bytes.n - body) % 4)
		buf_put_u8(&m->bytes, 0); /* DW_CFA_nop */
	length = m->bytes.n - body;
	memcpy(m->bytes.p + body - (m->wide ? 8 : 4), &length, m->wide ? 8 : 4);
}

static inline void cfi_maker_augmentation(struct cfi_maker *m, const char *letters)
{
	struct buf data = {0};

	for (const char *l = letters; *l; l++) {
		if (*l == 'R')
			buf_put_u8(&data, m->encoding);
		else if (*l == 'L')
			buf_put_u8(&data, 0x1b);
		else if (*l == 'P') {
			buf_put_u8(&data, 0x9b); /* indirect, pc-relative, sdata4 */
			buf_put_u32(&data, 0x1234);
		}
	}
	if (letters[0] == 'z') {
		buf_put_uleb(&m->bytes, data.n);
		buf_put(&m->bytes, data.p, data.n);
	}
	buf_release(&data);
}

/* Returns the CIE's offset. The program should define the CFA and the return address. */
static inline size_t cfi_maker_cie(struct cfi_maker *m, const char *letters, struct span program)
{
	size_t at = m->bytes.n, body = cfi_maker_begin(m);

	if (m->is_eh)
		buf_put_u32(&m->bytes, 0);
	else if (m->wide)
		buf_put_u64(&m->bytes, UINT64_MAX);
	else
		buf_put_u32(&m->bytes, UINT32_MAX);
	buf_put_u8(&m->bytes, m->version);
	buf_put(&m->bytes, letters, strlen(letters) + 1);
	if (m->version == 4) {
		buf_put_u8(&m->bytes, m->is_64 ? 8 : 4);
		buf_put_u8(&m->bytes, 0);
	}
	if (!strcmp(letters, "eh"))
		buf_put(&m->bytes, "\0\0\0\0\0\0\0", m->is_64 ? 8 : 4);
	buf_put_uleb(&m->bytes, 1);
	buf_put_sleb(&m->bytes, m->is_64 ? -8 : -4);
	buf_put_u8(&m->bytes, m->is_64 ? 16 : 8);
	cfi_maker_augmentation(m, letters);
	buf_put(&m->bytes, program.p, program.n);
	cfi_maker_end(m, body);
	return at;
}

/* The CIE that every compiler writes: CFA = sp + word, the return address at CFA - word. */
static inline size_t cfi_maker_usual_cie(struct cfi_maker *m, const char *letters)
{
	if (m->is_64)
		return cfi_maker_cie(m, letters, PROGRAM(DEF_CFA(7, 8), OFFSET(16, 1)));
	return cfi_maker_cie(m, letters, PROGRAM(DEF_CFA(4, 4), OFFSET(8, 1)));
}

static inline void cfi_maker_pointer(struct cfi_maker *m, uint8_t encoding, uint64_t value)
{
	if ((encoding & 0x70) == 0x10)
		value -= FRAMES_ADDR + m->bytes.n;
	switch (encoding & 0x0f) {
	case 0x02:
	case 0x0a:
		buf_put_u16(&m->bytes, (uint16_t)value);
		break;
	case 0x03:
	case 0x0b:
		buf_put_u32(&m->bytes, (uint32_t)value);
		break;
	case 0x04:
	case 0x0c:
		buf_put_u64(&m->bytes, value);
		break;
	default:
		buf_put(&m->bytes, &value, m->is_64 ? 8 : 4);
	}
}

static inline void cfi_maker_fde(struct cfi_maker *m, size_t cie, uint64_t start, uint64_t size,
	struct span program, bool has_data_length)
{
	size_t body = cfi_maker_begin(m);
	uint8_t encoding = m->is_eh && has_data_length ? m->encoding : 0;

	if (m->is_eh)
		buf_put_u32(&m->bytes, (uint32_t)(m->bytes.n - cie));
	else if (m->wide)
		buf_put_u64(&m->bytes, cie);
	else
		buf_put_u32(&m->bytes, (uint32_t)cie);
	cfi_maker_pointer(m, encoding, start);
	cfi_maker_pointer(m, encoding & 0x0f, size);
	if (has_data_length)
		buf_put_u8(&m->bytes, 0);
	if (program.n)
		buf_put(&m->bytes, program.p, program.n);
	cfi_maker_end(m, body);
}

struct cfi_image {
	struct elf_maker maker;
	struct elf_file elf;
};

/* Puts the sections into an image; any of them may be empty. */
static inline void cfi_image_init(
	struct cfi_image *image, bool is_64, struct span eh_frame, struct span debug_frame)
{
	struct elf_maker *m = &image->maker;
	uint32_t code, frames;

	elf_maker_init(m, is_64);
	code = elf_maker_code(m, ".text", CODE_ADDR, 64);
	elf_maker_segment(m, (struct elf_segment){.type = PT_LOAD,
				     .flags = PF_R | PF_X,
				     .addr = {CODE_ADDR},
				     .offset = m->sections[code].offset,
				     .mem_size = CODE_BYTES,
				     .file_size = 64});
	if (eh_frame.n) {
		frames = elf_maker_section(m, ".eh_frame", SHT_PROGBITS, FRAMES_ADDR, eh_frame);
		elf_maker_segment(m, (struct elf_segment){.type = PT_LOAD,
					     .flags = PF_R,
					     .addr = {FRAMES_ADDR},
					     .offset = m->sections[frames].offset,
					     .mem_size = eh_frame.n,
					     .file_size = eh_frame.n});
	}
	if (debug_frame.n)
		elf_maker_section(m, ".debug_frame", SHT_PROGBITS, 0, debug_frame);
}

static inline int cfi_image_finish(struct cfi_image *image)
{
	return elf_file_init(&image->elf, elf_maker_finish(&image->maker), NULL);
}

static inline void cfi_image_release(struct cfi_image *image)
{
	elf_file_release(&image->elf);
	elf_maker_release(&image->maker);
}

/* The table of an image with these frames; releases the maker. */
static inline struct cfi_table *cfi_maker_table(struct cfi_maker *m)
{
	struct span none = {NULL, 0}, frames = buf_span(&m->bytes);
	struct cfi_image image;
	struct cfi_table *t;

	cfi_image_init(&image, m->is_64, m->is_eh ? frames : none, m->is_eh ? none : frames);
	if (cfi_image_finish(&image) < 0)
		abort();
	t = cfi_table_new(&image.elf);
	cfi_image_release(&image);
	buf_release(&m->bytes);
	return t;
}

#endif
