/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an object that code is inserted into. What is taken for an object comes out as one.
 *
 *	byte 0	bits 0-1 the mode, bit 2 cycles too, bit 3 some undefined functions are foreign
 *	then	the object
 */
#include <stdlib.h>
#include <string.h>

#include "elf/elf_object.h"
#include "insert/insert.h"

#define OBJECT_BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
/* Of libFuzzer; the replay program has none. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);

static bool is_foreign(void *context, const char *name)
{
	(void)context;
	return name[0] & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct insert_options options = {.cpu = "skylake"};
	struct insert_report report = {0};
	struct buf out = {0};
	struct err err = {0};
	struct elf_object again;

	if (!n || n > OBJECT_BYTES_MAX)
		return 0;
	options.mode = (enum insert_mode)(data[0] & 3);
	options.with_cycles = data[0] & 4 && options.mode == INSERT_MODE_TREE;
	options.is_foreign = data[0] & 8 ? is_foreign : NULL;
	if (insert_object((struct span){data + 1, n - 1}, &options, &out, &report, &err)) {
		if (!err.text[0])
			abort();
	} else {
		if (elf_object_open(&again, buf_span(&out), &err))
			abort();
		elf_object_release(&again);
	}
	insert_report_release(&report);
	buf_release(&out);
	return 0;
}

static uint32_t draw(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* Objects are full of offsets: most changes must not move bytes, or nothing opens. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
	uint32_t n_changes = 1 + draw(&seed) % 4;

	if (n < 64 || (LLVMFuzzerMutate && draw(&seed) % 8 == 0))
		return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, n, max) : n;
	if (draw(&seed) % 8 == 0)
		data[0] = (uint8_t)draw(&seed);
	for (uint32_t i = 0; i < n_changes; i++) {
		size_t at = 1 + draw(&seed) % (n - 1);
		size_t from = draw(&seed) % n, length = 1 + draw(&seed) % 15;

		if (at + length > n || from + length > n)
			continue;
		switch (draw(&seed) % 4) {
		case 0:
			data[at] = (uint8_t)draw(&seed);
			break;
		case 1:
			data[at] ^= (uint8_t)(1u << draw(&seed) % 8);
			break;
		case 2:
			data[at] = (uint8_t)(data[at] + draw(&seed) % 17 - 8);
			break;
		default:
			memmove(data + at, data + from, length);
			break;
		}
	}
	return n;
}
