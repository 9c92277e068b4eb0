/* SPDX-License-Identifier: MIT */
/* Where the CFI of an image is found. */
#include <zlib.h>

#include "cfi_maker.h"
#include "check.h"
#include "dwarf/cfi_rule.h"

static int32_t cfa_value_at(const struct cfi_table *t, uint64_t addr)
{
	const struct cfi_rule *rule = cfi_table_find(t, (struct iaddr){addr});

	return rule ? rule->cfa_value : -1;
}

static void debug_frame_alone(void)
{
	for (int is_64 = 0; is_64 < 2; is_64++) {
		for (int wide = 0; wide < 2; wide++) {
			struct cfi_maker m = cfi_maker_debug(is_64);
			struct cfi_table *t;

			m.wide = wide;
			cfi_maker_fde(&m, cfi_maker_usual_cie(&m, ""), CODE_ADDR, 0x10,
				PROGRAM(ADVANCE(1), DEF_CFA_OFFSET(24)), false);
			t = cfi_maker_table(&m);
			CHECK_EQ(cfa_value_at(t, CODE_ADDR), is_64 ? 8 : 4);
			CHECK_EQ(cfa_value_at(t, CODE_ADDR + 1), 24);
			CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x10), -1);
			cfi_table_free(t);
		}
	}
}

/* eh: [0x10, 0x20) and [0x40, 0x50); debug: [0x00, 0x60) in three pieces. */
static void debug_frame_fills_holes(void)
{
	struct cfi_maker eh = cfi_maker_eh(true), debug = cfi_maker_debug(true);
	size_t cie = cfi_maker_usual_cie(&eh, "zR");
	struct cfi_image image;
	struct cfi_table *t;
	struct iaddr start;
	uint64_t size;

	cfi_maker_fde(&eh, cie, CODE_ADDR + 0x10, 0x10, PROGRAM(DEF_CFA_OFFSET(16)), true);
	cfi_maker_fde(&eh, cie, CODE_ADDR + 0x40, 0x10, PROGRAM(DEF_CFA_OFFSET(16)), true);
	cie = cfi_maker_usual_cie(&debug, "");
	cfi_maker_fde(&debug, cie, CODE_ADDR, 0x18, PROGRAM(DEF_CFA_OFFSET(32)), false);
	cfi_maker_fde(&debug, cie, CODE_ADDR + 0x18, 0x10, PROGRAM(DEF_CFA_OFFSET(40)), false);
	cfi_maker_fde(&debug, cie, CODE_ADDR + 0x28, 0x38, PROGRAM(DEF_CFA_OFFSET(48)), false);
	cfi_image_init(&image, true, buf_span(&eh.bytes), buf_span(&debug.bytes));
	CHECK_EQ(cfi_image_finish(&image), 0);
	t = cfi_table_new(&image.elf);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR), 32);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x0f), 32);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x10), 16);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x1f), 16);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x20), -1); /* its FDE begins inside another */
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x28), 48);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x40), 16);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x4f), 16);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x50), 48);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x5f), 48);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x60), -1);
	CHECK(cfi_table_function_at(t, (struct iaddr){CODE_ADDR + 0x45}, &start, &size));
	CHECK_EQ(start.v, CODE_ADDR + 0x40);
	CHECK_EQ(size, 0x10);
	cfi_table_free(t);
	cfi_image_release(&image);
	buf_release(&eh.bytes);
	buf_release(&debug.bytes);
}

/* The section as `objcopy --compress-debug-sections` makes it. */
static void put_compressed(struct buf *to, struct span bytes)
{
	uLongf n = compressBound(bytes.n);
	uint8_t *packed = malloc(n);

	CHECK_EQ(compress(packed, &n, bytes.p, bytes.n), Z_OK);
	buf_put_u32(to, ELFCOMPRESS_ZLIB);
	buf_put_u32(to, 0);
	buf_put_u64(to, bytes.n);
	buf_put_u64(to, 8);
	buf_put(to, packed, n);
	free(packed);
}

static void debug_frame_of_a_debug_file(void)
{
	for (int compressed = 0; compressed < 2; compressed++) {
		struct cfi_maker eh = cfi_maker_eh(true), debug = cfi_maker_debug(true);
		struct cfi_image image, debug_image;
		struct buf section = {0};
		struct cfi_table *t;

		cfi_maker_fde(&eh, cfi_maker_usual_cie(&eh, "zR"), CODE_ADDR + 0x10, 0x10,
			PROGRAM(DEF_CFA_OFFSET(16)), true);
		cfi_maker_fde(&debug, cfi_maker_usual_cie(&debug, ""), CODE_ADDR + 0x20, 0x10,
			PROGRAM(DEF_CFA_OFFSET(32)), false);
		if (compressed)
			put_compressed(&section, buf_span(&debug.bytes));
		else
			buf_put(&section, debug.bytes.p, debug.bytes.n);
		cfi_image_init(&image, true, buf_span(&eh.bytes), (struct span){NULL, 0});
		cfi_image_init(&debug_image, true, (struct span){NULL, 0}, buf_span(&section));
		if (compressed)
			debug_image.maker.sections[2].flags = SHF_COMPRESSED;
		CHECK_EQ(cfi_image_finish(&image), 0);
		CHECK_EQ(cfi_image_finish(&debug_image), 0);
		t = cfi_table_new(&image.elf);
		CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x20), -1);
		cfi_table_add_debug_frame(t, &debug_image.elf);
		CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x10), 16);
		CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x20), 32);
		CHECK_EQ(cfi_table_stats(t).n_fdes, 2);
		CHECK_EQ(cfi_table_stats(t).n_sections_unreadable, 0);
		cfi_table_free(t);
		cfi_image_release(&image);
		cfi_image_release(&debug_image);
		buf_release(&eh.bytes);
		buf_release(&debug.bytes);
		buf_release(&section);
	}
}

static void damaged_compressed_section(void)
{
	struct cfi_image image;
	struct cfi_table *t;

	cfi_image_init(&image, true, (struct span){NULL, 0},
		PROGRAM(1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 77,
			77));
	image.maker.sections[2].flags = SHF_COMPRESSED;
	CHECK_EQ(cfi_image_finish(&image), 0);
	t = cfi_table_new(&image.elf);
	CHECK_EQ(cfi_table_stats(t).n_sections_unreadable, 1);
	CHECK_EQ(cfi_table_stats(t).n_rows, 0);
	cfi_table_free(t);
	cfi_image_release(&image);
}

/* Behind the terminator the segment goes on with bytes that only look like frames. */
static void without_section_headers(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	struct cfi_image image;
	struct buf header = {0};
	struct cfi_table *t;
	size_t cie;
	uint32_t i;

	cie = cfi_maker_usual_cie(&m, "zR");
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x10, 0x10, PROGRAM(DEF_CFA_OFFSET(16)), true);
	buf_put_u32(&m.bytes, 0);
	cfi_maker_fde(&m, cie, CODE_ADDR + 0x40, 0x10, PROGRAM(0), true);
	buf_put(&m.bytes, "these are other bytes of the segment", 36);
	cfi_image_init(&image, true, buf_span(&m.bytes), (struct span){NULL, 0});
	buf_put(&header, (uint8_t[]){1, 0x1b, 0x03, 0x3b}, 4);
	buf_put_u32(&header, (uint32_t)(FRAMES_ADDR - (FRAMES_ADDR + 0x10000 + 4)));
	i = elf_maker_section(
		&image.maker, ".hdr", SHT_PROGBITS, FRAMES_ADDR + 0x10000, buf_span(&header));
	for (int type = 0; type < 2; type++)
		elf_maker_segment(
			&image.maker, (struct elf_segment){.type = type ? PT_GNU_EH_FRAME : PT_LOAD,
					      .flags = PF_R,
					      .addr = {FRAMES_ADDR + 0x10000},
					      .offset = image.maker.sections[i].offset,
					      .mem_size = header.n,
					      .file_size = header.n});
	image.maker.no_sections = true;
	CHECK_EQ(cfi_image_finish(&image), 0);
	CHECK_EQ(image.elf.n_sections, 0);
	t = cfi_table_new(&image.elf);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x10), 16);
	CHECK_EQ(cfa_value_at(t, CODE_ADDR + 0x40), -1);
	CHECK_EQ(cfi_table_stats(t).n_fdes, 1);
	CHECK_EQ(cfi_table_stats(t).n_fdes_skipped, 0);
	cfi_table_free(t);
	cfi_image_release(&image);
	buf_release(&header);
	buf_release(&m.bytes);
}

static void other_machines(void)
{
	struct cfi_maker m = cfi_maker_eh(true);
	struct cfi_image image;
	struct cfi_table *t;

	cfi_maker_fde(&m, cfi_maker_usual_cie(&m, "zR"), CODE_ADDR, 0x10, PROGRAM(0), true);
	cfi_image_init(&image, true, buf_span(&m.bytes), (struct span){NULL, 0});
	image.maker.machine = EM_AARCH64;
	if (cfi_image_finish(&image) == 0) {
		t = cfi_table_new(&image.elf);
		CHECK_EQ(cfa_value_at(t, CODE_ADDR), -1);
		CHECK_EQ(cfi_table_stats(t).n_rows, 0);
		cfi_table_free(t);
	}
	cfi_image_release(&image);
	buf_release(&m.bytes);
	cfi_table_free(NULL);
}

static const struct test tests[] = {
	{"reads .debug_frame of both widths and both length formats", debug_frame_alone},
	{".debug_frame fills only what .eh_frame leaves free", debug_frame_fills_holes},
	{"adds .debug_frame of a separate file, compressed or not", debug_frame_of_a_debug_file},
	{"a compressed section that cannot be read is counted", damaged_compressed_section},
	{"finds .eh_frame through its header when there are no sections", without_section_headers},
	{"gives an empty table for other machines", other_machines},
};

int main(void)
{
	return RUN_TESTS(tests);
}
