/* SPDX-License-Identifier: MIT */
/*
 * The input is debug sections: a byte of flags, then again and again the number of a section (enum
 * maker_section, and 16 when it is one of the package of split units), two bytes of length and so
 * many bytes. They are wrapped in an image and every unit of it is read. What comes out must keep
 * the promises of the header.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit/dwarf_maker.h"

enum { FLAG_32 = 1 };
#define SECTION_IS_PACKAGE 16

static char folder[] = "/tmp/dwarf_info_fuzz.XXXXXX";
static char image_path[64], package_path[64];

static void remove_folder(void)
{
	unlink(package_path);
	rmdir(folder);
}

static void make_folder(void)
{
	if (image_path[0])
		return;
	if (!mkdtemp(folder))
		abort();
	snprintf(image_path, sizeof(image_path), "%s/image", folder);
	snprintf(package_path, sizeof(package_path), "%s/image.dwp", folder);
	atexit(remove_folder);
}

static void write_package(struct dwarf_maker *package)
{
	struct span bytes = dwarf_maker_bytes(package);
	int fd = open(package_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, bytes.p, bytes.n) != (ssize_t)bytes.n)
		abort();
	close(fd);
}

static void check_text(struct dwarf_text t)
{
	static volatile uint8_t sum;

	for (uint32_t i = 0; i < t.n; i++)
		sum = (uint8_t)(sum + t.p[i]);
}

static void check_map(const struct dwarf_unit_map *m)
{
	for (size_t i = 0; i < m->names.n; i++)
		check_text(m->names.v[i]);
	for (size_t i = 0; i < m->files.n; i++)
		check_text(m->files.v[i]);
	for (size_t i = 0; i < m->functions.n; i++) {
		const struct dwarf_function *f = &m->functions.v[i];

		if (f->start >= f->end || f->name >= m->names.n || f->start < CODE_ADDR ||
			f->end > CODE_ADDR + CODE_BYTES)
			abort();
	}
	for (size_t i = 1; i < m->sites.n; i++) {
		const struct dwarf_site *s = &m->sites.v[i];

		if (s->parent >= i || s->name >= m->names.n || s->call_file >= m->files.n)
			abort();
	}
	for (size_t i = 0; i < m->rows.n; i++) {
		const struct dwarf_row *r = &m->rows.v[i];

		if ((i && r[-1].addr >= r->addr) || r->file >= m->files.n || r->site >= m->sites.n)
			abort();
		if (r->addr < CODE_ADDR || r->addr > CODE_ADDR + CODE_BYTES)
			abort();
		if (r->is_hole && (r->file || r->line || r->site))
			abort();
	}
	if (m->rows.n && !m->rows.v[m->rows.n - 1].is_hole)
		abort();
}

static void read_units(struct dwarf_debug *d)
{
	size_t n = dwarf_debug_n_units(d);
	uint64_t addrs[] = {CODE_ADDR, CODE_ADDR + 0x20, CODE_ADDR + 0x123};
	bool *wanted = malloc(n + 1);

	dwarf_debug_units_at(d, addrs, 3, wanted);
	for (size_t i = 0; i < n; i++) {
		struct dwarf_unit_map m = {0};
		struct err err = {0};

		if (dwarf_unit_map_init(&m, d, i, &err) == 0)
			check_map(&m);
		else if (!err.text[0])
			abort();
		dwarf_unit_map_release(&m);
	}
	check_text(
		(struct dwarf_text){dwarf_debug_notes(d), (uint32_t)strlen(dwarf_debug_notes(d))});
	free(wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cursor c = cursor_of((struct span){data, n});
	struct dwarf_maker image = {.is_32 = cursor_u8(&c) & FLAG_32}, package = {.is_split = true};
	struct err err;

	make_folder();
	while (cursor_left(&c) && !c.failed) {
		uint8_t section = cursor_u8(&c);
		uint16_t length = cursor_u16(&c);
		size_t left = cursor_left(&c);
		struct span bytes = cursor_bytes(&c, length < left ? length : left);
		struct dwarf_maker *to = section & SECTION_IS_PACKAGE ? &package : &image;

		buf_put(&to->of[(section & 15) % MAKER_N_SECTIONS], bytes.p, bytes.n);
	}
	if (package.of[MAKER_CU_INDEX].n)
		write_package(&package);
	else
		unlink(package_path);
	if (dwarf_maker_open(&image, image_path, &err) == 0)
		read_units(image.debug);
	dwarf_maker_release(&image);
	dwarf_maker_release(&package);
	return 0;
}
