/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame (LSB Core, "Exception Frames") gives each function its language-specific data area; the
 * call sites in it (Itanium C++ ABI, "Exception Handling Tables") have landing pads. Files are not
 * trusted: what does not fit is not known.
 */
#include "steps/calls/step_pads.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/cfi_entries.h"
#include "steps/calls/step_image.h"

#define ENTRIES_MAX   (8u << 20) /* of one .eh_frame */
#define SITES_MAX     (1u << 16) /* of one function */
#define POINTER_OMIT  0xff
#define POINTER_VALUE 0x0f /* mask: without what it is relative to */
#define LONG_LENGTH   0xffffffffu

struct pad_image {
	bool is_looked_at, is_there;
	struct step_image file;
	struct step_pad_table table;
};

struct step_pads {
	const struct steps *steps;
	const struct trace_reader *r;
	struct pad_image *images; /* by id */
};

/* What FDEs need to know of their CIE. */
struct cie {
	uint8_t code_encoding, lsda_encoding;
	bool has_data;
	bool is_good;
};

struct frame_section {
	struct span bytes;
	uint64_t addr;
	uint8_t pointer_bytes;
};

static struct cfi_pointer_base base_at(const struct frame_section *s, const struct cursor *c)
{
	return (struct cfi_pointer_base){
		.addr = s->addr + (uint64_t)(c->p - s->bytes.p), .absptr_bytes = s->pointer_bytes};
}

/* ---- .eh_frame ---- */

/* The body of an entry, and its id with the place of that. False at the end. */
static bool next_entry(const struct frame_section *s, struct cursor *c, struct cursor *body,
	uint32_t *id, uint64_t *id_at)
{
	uint64_t length = cursor_u32(c);

	if (c->failed || !length)
		return false;
	if (length == LONG_LENGTH)
		length = cursor_u64(c);
	*body = cursor_of(cursor_bytes(c, length));
	*id_at = c->failed ? 0 : (uint64_t)(body->p - s->bytes.p);
	*id = cursor_u32(body);
	return !c->failed && !body->failed;
}

static void read_augmentation(
	const struct frame_section *s, struct cursor *c, const char *letters, struct cie *cie)
{
	struct cfi_pointer_base base;
	uint64_t ignored;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->code_encoding = cursor_u8(c);
			break;
		case 'L':
			cie->lsda_encoding = cursor_u8(c);
			break;
		case 'P':
			encoding = cursor_u8(c);
			base = base_at(s, c);
			/* Indirect or not, it is as long. */
			if (!cfi_pointer_read(c, encoding & POINTER_VALUE, &base, &ignored))
				return;
			break;
		case 'S':
		case 'B':
			break;
		default:
			return;
		}
	}
	cie->is_good = !c->failed;
}

static struct cie read_cie(const struct frame_section *s, uint64_t offset)
{
	struct cursor c = cursor_of(s->bytes), body;
	struct cie cie = {.lsda_encoding = POINTER_OMIT};
	const char *letters;
	uint64_t id_at;
	uint8_t version;
	uint32_t id;

	cursor_skip(&c, offset);
	if (!next_entry(s, &c, &body, &id, &id_at) || id)
		return cie;
	version = cursor_u8(&body);
	letters = cursor_cstr(&body);
	cursor_uleb(&body);
	cursor_sleb(&body);
	if (version == 1)
		cursor_u8(&body);
	else
		cursor_uleb(&body);
	if (body.failed || !letters || (*letters && *letters != 'z'))
		return cie;
	cie.has_data = *letters == 'z';
	if (cie.has_data)
		cursor_uleb(&body);
	read_augmentation(s, &body, cie.has_data ? letters + 1 : letters, &cie);
	return cie;
}

static bool read_fde(const struct frame_section *s, struct cursor *c, const struct cie *cie,
	struct step_pad_function *f)
{
	struct cfi_pointer_base base = base_at(s, c);
	struct cursor value;
	uint64_t size, plain;

	if (!cie->is_good || !cfi_pointer_read(c, cie->code_encoding, &base, &f->start) ||
		!cfi_pointer_read(c, cie->code_encoding & POINTER_VALUE, &base, &size))
		return false;
	f->end = f->start + size;
	f->lsda = 0;
	if (!cie->has_data || cie->lsda_encoding == POINTER_OMIT)
		return size && f->end > f->start;
	cursor_uleb(c);
	base = base_at(s, c);
	value = *c;
	if (!cfi_pointer_read(&value, cie->lsda_encoding & POINTER_VALUE, &base, &plain))
		return false;
	if (plain && !cfi_pointer_read(c, cie->lsda_encoding, &base, &f->lsda))
		return false;
	return size && f->end > f->start;
}

static int compare_functions(const void *a, const void *b)
{
	const struct step_pad_function *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void step_pad_table_init(struct step_pad_table *t, const struct elf_file *elf)
{
	const struct elf_section *section = elf_file_find_section(elf, ".eh_frame");
	struct frame_section s = {.pointer_bytes = elf->is_64 ? 8 : 4};
	struct cie cie = {0};
	uint64_t cie_at = UINT64_MAX, id_at;
	struct cursor c, body;
	uint32_t id;

	if (!section)
		return;
	s.bytes = elf_file_section_bytes(elf, section);
	s.addr = section->addr.v;
	c = cursor_of(s.bytes);
	for (uint32_t n = 0; n < ENTRIES_MAX && next_entry(&s, &c, &body, &id, &id_at); n++) {
		struct step_pad_function f;

		if (!id || id > id_at)
			continue;
		if (id_at - id != cie_at)
			cie = read_cie(&s, id_at - id);
		cie_at = id_at - id;
		if (read_fde(&s, &body, &cie, &f))
			vec_push(&t->functions, f);
	}
	if (t->functions.n)
		qsort(t->functions.v, t->functions.n, sizeof(*t->functions.v), compare_functions);
}

void step_pad_table_release(struct step_pad_table *t)
{
	vec_release(&t->functions);
}

/* ---- call sites ---- */

static const struct step_pad_function *function_at(const struct step_pad_table *t, uint64_t addr)
{
	size_t low = 0, high = t->functions.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->functions.v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr < t->functions.v[low - 1].end ? &t->functions.v[low - 1] : NULL;
}

static bool pad_of(
	const struct elf_file *elf, const struct step_pad_function *f, uint64_t addr, uint64_t *pad)
{
	struct frame_section s = {.bytes = elf_file_bytes_at(elf, (struct iaddr){f->lsda}),
		.addr = f->lsda,
		.pointer_bytes = elf->is_64 ? 8 : 4};
	struct cursor c = cursor_of(s.bytes), sites;
	uint64_t pad_base = f->start, start, size, to;
	uint8_t encoding = cursor_u8(&c);
	struct cfi_pointer_base base = base_at(&s, &c);

	if (encoding != POINTER_OMIT && !cfi_pointer_read(&c, encoding, &base, &pad_base))
		return false;
	if (cursor_u8(&c) != POINTER_OMIT)
		cursor_uleb(&c); /* to the end of the types */
	encoding = cursor_u8(&c) & POINTER_VALUE;
	sites = cursor_of(cursor_bytes(&c, cursor_uleb(&c)));
	if (c.failed)
		return false;
	for (uint32_t n = 0; n < SITES_MAX && cursor_left(&sites); n++) {
		base = base_at(&s, &sites);
		if (!cfi_pointer_read(&sites, encoding, &base, &start) ||
			!cfi_pointer_read(&sites, encoding, &base, &size) ||
			!cfi_pointer_read(&sites, encoding, &base, &to))
			return false;
		cursor_uleb(&sites);
		if (addr - f->start >= start && addr - f->start - start < size) {
			*pad = to ? pad_base + to : 0;
			return true;
		}
	}
	*pad = 0;
	return true;
}

bool step_pad_table_find(
	const struct step_pad_table *t, const struct elf_file *elf, uint64_t addr, uint64_t *pad)
{
	const struct step_pad_function *f = function_at(t, addr);

	*pad = 0;
	return f && (!f->lsda || pad_of(elf, f, addr, pad));
}

/* ---- answers ---- */

struct step_pads *step_pads_new(const struct steps *s, const struct trace_reader *r)
{
	struct step_pads *p = mem_zalloc(sizeof(*p));

	p->steps = s;
	p->r = r;
	p->images = mem_calloc(trace_reader_n_images(r), sizeof(*p->images));
	return p;
}

void step_pads_free(struct step_pads *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < trace_reader_n_images(p->r); i++) {
		step_image_close(&p->images[i].file);
		step_pad_table_release(&p->images[i].table);
	}
	free(p->images);
	free(p);
}

int step_pads_lands(void *pads, uint32_t number, uint64_t ret)
{
	struct step_pads *p = pads;
	const struct step_insn *insn = steps_insn(p->steps, number);
	const struct trace_frame *frame = trace_reader_frame(p->r, insn->frame);
	struct pad_image *image = &p->images[frame->image];
	uint64_t pad;
	const char *why;

	if (!frame->image)
		return -1;
	if (!image->is_looked_at) {
		image->is_looked_at = true;
		image->is_there = step_image_open(&image->file, p->r, frame->image, &why);
		if (image->is_there)
			step_pad_table_init(&image->table, &image->file.elf);
	}
	if (!image->is_there || !step_pad_table_find(&image->table, &image->file.elf,
					ret - insn->addr + frame->addr - 1, &pad))
		return -1;
	return pad == frame->addr;
}
