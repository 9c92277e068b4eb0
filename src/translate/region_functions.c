/* SPDX-License-Identifier: MIT */
#include "translate/region_functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "dwarf/cfi_entries.h"
#include "symbols/symtab_build.h"

#define COLD ".cold"

/* Of a mapping that is told to a translator. */
#define FUNCTIONS_MAX (1u << 22)
/* Symbols that are looked at for one that has an address. */
#define NESTED_MAX 4096

/* The first instruction of a frame program (DWARF 5 section 6.4.2.1, 6.4.2.3). */
enum {
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
};

struct image_table {
	bool is_read;
	struct symtab *symtab;
	VEC(struct image_function) functions; /* by start */
	VEC(uint64_t) ends; /* by function: of what begins at or before it, the last end */
};

struct function_tables {
	struct images *images;
	VEC(struct image_table) tables; /* by image */
};

struct function_tables *function_tables_new(struct images *images)
{
	struct function_tables *t = mem_zalloc(sizeof(*t));

	t->images = images;
	return t;
}

void function_tables_free(struct function_tables *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->tables.n; i++) {
		symtab_free(t->tables.v[i].symtab);
		vec_release(&t->tables.v[i].functions);
		vec_release(&t->tables.v[i].ends);
	}
	vec_release(&t->tables);
	free(t);
}

/* --- an image ---------------------------------------------------------------------------------- */

/* ".cold" or ".cold.7" at the end. */
static bool is_cold(const char *name)
{
	const char *at = strstr(name, COLD);

	return at && at != name && !at[strlen(COLD) + strspn(at + strlen(COLD), ".0123456789")];
}

static void add_symbols(struct image_table *t)
{
	for (size_t i = 0; i < t->symtab->n; i++) {
		const struct symbol *s = &t->symtab->symbols[i]; /* no need to demangle */

		if (s->size)
			vec_push(&t->functions,
				((struct image_function){s->start, s->size, s->linkage_name, is_cold(s->linkage_name)}));
	}
}

/* Something lies on the stack already, beside the return address. */
static bool begins_in_a_call(const struct cfi_fde *fde)
{
	uint8_t first = fde->program.n ? fde->program.p[0] : 0;

	return (first >= CFA_DEF_CFA && first <= CFA_DEF_CFA_EXPRESSION) || first == CFA_DEF_CFA_SF ||
	       first == CFA_DEF_CFA_OFFSET_SF || (first >= CFA_OFFSET && first < CFA_RESTORE);
}

static bool is_code(const struct elf_file *elf, uint64_t addr, uint64_t bytes)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->flags & 1 && addr >= s->addr.v && addr - s->addr.v < s->mem_size &&
			bytes <= s->mem_size - (addr - s->addr.v))
			return true;
	}
	return false;
}

ORDER_BY(compare_fdes, struct cfi_fde, start, size)

/* Those of .eh_frame that have no symbol in them. */
static void add_ranges(struct image_table *t, const struct elf_file *elf)
{
	const struct elf_section *section = elf_file_find_section(elf, ".eh_frame");
	struct cfi_source source = {.is_eh = true, .is_64 = elf->is_64, .is_386 = !elf->is_64};
	struct cfi_entries entries = {0};
	size_t n_symbols = t->functions.n, next = 0;
	uint64_t end = 0; /* of the symbols and ranges so far */

	if (!section)
		return;
	source.bytes = elf_file_section_bytes(elf, section);
	source.addr = section->addr.v;
	cfi_entries_read(&entries, &source);
	vec_sort(&entries.fdes, compare_fdes);
	for (size_t i = 0; i < entries.fdes.n; i++) {
		const struct cfi_fde *fde = &entries.fdes.v[i];
		uint64_t size = fde->size;

		for (; next < n_symbols && t->functions.v[next].start <= fde->start; next++)
			if (t->functions.v[next].start + t->functions.v[next].bytes > end)
				end = t->functions.v[next].start + t->functions.v[next].bytes;
		if (fde->start < end || !size || !is_code(elf, fde->start, size))
			continue;
		if (next < n_symbols && t->functions.v[next].start - fde->start < size)
			size = t->functions.v[next].start - fde->start;
		end = fde->start + size;
		vec_push(&t->functions, ((struct image_function){.start = fde->start,
						.bytes = size,
						.linkage_name = fde->start == elf->entry.v ? "_start" : NULL,
						.is_part = begins_in_a_call(fde)}));
	}
	cfi_entries_release(&entries);
}

ORDER_BY(compare_functions, struct image_function, start)

static void read_image(struct function_tables *tables, uint32_t image, struct image_table *t)
{
	const struct image *of = images_get(tables->images, image);
	uint64_t end = 0;

	t->is_read = true;
	if (!of->has_elf || of->kind == IMAGE_KIND_JIT)
		return;
	t->symtab = symtab_new_elf(&of->elf, of->kind == IMAGE_KIND_VDSO ? NULL : of->path);
	add_symbols(t);
	add_ranges(t, &of->elf);
	vec_sort(&t->functions, compare_functions);
	for (size_t i = 0; i < t->functions.n; i++) {
		const struct image_function *f = &t->functions.v[i];

		end = f->start + f->bytes > end ? f->start + f->bytes : end;
		vec_push(&t->ends, end);
	}
}

static struct image_table *table_of(struct function_tables *t, uint32_t image)
{
	if (image >= images_n(t->images))
		return NULL;
	vec_ensure_zero(&t->tables, (size_t)image + 1);
	if (!t->tables.v[image].is_read)
		read_image(t, image, &t->tables.v[image]);
	return &t->tables.v[image];
}

const struct image_function *function_tables_find(struct function_tables *t, uint32_t image, uint64_t addr)
{
	const struct image_table *table = table_of(t, image);
	size_t n = table ? table->functions.n : 0;
	size_t i = SEARCH(0, n, k, table->functions.v[k].start <= addr);

	/* An outer one goes on behind those that are in it. */
	for (int steps = 0; i-- > 0 && addr < table->ends.v[i] && steps < NESTED_MAX; steps++)
		if (addr - table->functions.v[i].start < table->functions.v[i].bytes)
			return &table->functions.v[i];
	return NULL;
}

size_t function_tables_get(struct function_tables *t, uint32_t image, const struct image_function **v)
{
	const struct image_table *table = table_of(t, image);

	*v = table ? table->functions.v : NULL;
	return table ? table->functions.n : 0;
}

/* --- a mapping --------------------------------------------------------------------------------- */

void region_functions_find(struct region_functions *f, struct function_tables *t, const struct mapping *m)
{
	const struct image_table *table = table_of(t, m->image);
	uint64_t low = m->start - m->bias, high = m->end - m->bias;
	size_t n = table ? table->functions.n : 0;

	for (size_t i = SEARCH(0, n, k, table->functions.v[k].start < low);
		i < n && table->functions.v[i].start < high && f->n < FUNCTIONS_MAX; i++) {
		const struct image_function *from = &table->functions.v[i];
		struct translate_function to = {.start = from->start + m->bias,
			.bytes = (uint32_t)(from->bytes < UINT32_MAX ? from->bytes : UINT32_MAX)};

		if (!from->is_part)
			vec_push(f, to);
	}
}

void region_functions_release(struct region_functions *f)
{
	vec_release(f);
}
