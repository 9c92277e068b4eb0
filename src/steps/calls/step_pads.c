/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame (LSB Core, "Exception Frames") gives each function its language-specific data area; the
 * call sites in it (dwarf/lsda.h) have landing pads. Files are not trusted: what does not fit is
 * not known.
 */
#include "steps/calls/step_pads.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "dwarf/cfi_entries.h"
#include "dwarf/eh_number.h"
#include "dwarf/lsda.h"
#include "formats/ran_file.h"

#define SITES_MAX (1u << 16) /* of one function */

struct pad_image {
	bool is_looked_at, is_there;
	struct ran_file file;
	struct step_pad_table table;
};

struct step_pads {
	const struct steps *steps;
	const struct trace_reader *r;
	struct pad_image *images; /* by id */
};

/* ---- .eh_frame ---- */

ORDER_BY(compare_functions, struct step_pad_function, start)

void step_pad_table_init(struct step_pad_table *t, const struct elf_file *elf)
{
	const struct elf_section *section = elf_file_find_section(elf, ".eh_frame");
	struct cfi_source source = {.is_eh = true, .is_64 = elf->is_64, .is_386 = !elf->is_64};
	struct cfi_entries entries = {0};

	if (!section)
		return;
	source.bytes = elf_file_section_bytes(elf, section);
	source.addr = section->addr.v;
	cfi_entries_read(&entries, &source);
	for (size_t i = 0; i < entries.fdes.n; i++) {
		const struct cfi_fde *fde = &entries.fdes.v[i];
		struct step_pad_function f = {fde->start, fde->start + fde->size, fde->lsda};

		if (f.end > f.start && f.lsda != CFI_LSDA_UNKNOWN)
			vec_push(&t->functions, f);
	}
	cfi_entries_release(&entries);
	vec_sort(&t->functions, compare_functions);
}

void step_pad_table_release(struct step_pad_table *t)
{
	vec_release(&t->functions);
}

/* ---- call sites ---- */

static const struct step_pad_function *function_at(const struct step_pad_table *t, uint64_t addr)
{
	size_t low = SEARCH(0, t->functions.n, middle, t->functions.v[middle].start <= addr);

	return low && addr < t->functions.v[low - 1].end ? &t->functions.v[low - 1] : NULL;
}

/* What landing pads are distances from. */
static bool pad_base_of(
	const struct step_pad_function *f, struct span bytes, const struct lsda *l, uint64_t *base)
{
	struct cursor c = cursor_of(span_sub(bytes, l->pad_base_at, bytes.n - l->pad_base_at));
	struct cfi_pointer_base at = {
		.addr = f->lsda + l->pad_base_at, .absptr_bytes = l->pointer_bytes};

	*base = f->start;
	return l->pad_base_encoding == EH_OMIT ||
	       cfi_pointer_read(&c, l->pad_base_encoding, &at, base);
}

static bool pad_of(
	const struct elf_file *elf, const struct step_pad_function *f, uint64_t addr, uint64_t *pad)
{
	struct span bytes = elf_file_bytes_at(elf, (struct iaddr){f->lsda});
	struct lsda_site site;
	struct lsda l;
	uint64_t base, at;

	if (lsda_read(&l, bytes, 0, elf->is_64 ? 8 : 4) || !pad_base_of(f, bytes, &l, &base))
		return false;
	at = l.sites_at;
	for (uint32_t n = 0; n < SITES_MAX && at < l.sites_end; n++, at = site.end) {
		if (!lsda_site_read(&site, bytes, &l, at))
			return false;
		if (addr - f->start >= site.start && addr - f->start - site.start < site.size) {
			*pad = site.pad ? base + site.pad : 0;
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
		ran_file_close(&p->images[i].file);
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
		image->is_there = ran_file_open_image(&image->file, p->r, frame->image, &why);
		if (image->is_there)
			step_pad_table_init(&image->table, &image->file.elf);
	}
	if (!image->is_there || !step_pad_table_find(&image->table, &image->file.elf,
					ret - insn->addr + frame->addr - 1, &pad))
		return -1;
	return pad == frame->addr;
}
