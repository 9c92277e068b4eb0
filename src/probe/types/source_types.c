/* SPDX-License-Identifier: MIT */
#include "probe/types/source_types.h"

#include <string.h>

static const struct {
	const char *of_gcc, *plain;
} int_names[] = {
	{"char", "char"},
	{"signed char", "signed char"},
	{"unsigned char", "unsigned char"},
	{"bool", "bool"},
	{"_Bool", "bool"},
	{"long", "long"},
	{"long int", "long"},
	{"unsigned long", "unsigned long"},
	{"long unsigned int", "unsigned long"},
	{"long long", "long long"},
	{"long long int", "long long"},
	{"unsigned long long", "unsigned long long"},
	{"long long unsigned int", "unsigned long long"},
};

const struct type *source_bytes(struct types *t, uint64_t n)
{
	return types_array(t, types_int(t, 1, false), n);
}

const struct type *source_int(
	struct types *t, const char *name, size_t n, uint64_t bytes, bool is_signed)
{
	if (bytes == 16) /* __int128 */
		return types_array(t, types_int(t, 8, is_signed), 2);
	if (!type_is_int_size(bytes))
		return source_bytes(t, bytes);
	for (size_t i = 0; i < sizeof(int_names) / sizeof(int_names[0]); i++)
		if (strlen(int_names[i].of_gcc) == n && !memcmp(int_names[i].of_gcc, name, n))
			return types_named_int(t, int_names[i].plain, (uint32_t)bytes, is_signed);
	return types_int(t, (uint32_t)bytes, is_signed);
}

bool source_is_whole(const struct type *type)
{
	while (type->kind == TYPE_ARRAY)
		type = type->of;
	return type->kind != TYPE_STRUCT || type->is_complete;
}

static uint32_t align_at(const struct type_field *f)
{
	uint32_t align = f->type->align ? f->type->align : 1;

	if (f->bit_size)
		return align;
	while (align > 1 && f->offset % align)
		align /= 2;
	return align;
}

uint32_t source_fields_align(const struct type_field *fields, size_t n, uint64_t size)
{
	uint32_t align = 1;

	for (size_t i = 0; i < n; i++)
		if (align_at(&fields[i]) > align)
			align = align_at(&fields[i]);
	while (align > 1 && size % align)
		align /= 2;
	return align;
}
