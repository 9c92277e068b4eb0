/* SPDX-License-Identifier: MIT */
/*
 * Java objects, as far as the names of threads need them: references as they are kept in handles and
 * in fields, the class of an object, and where the fields are. The collector moves objects while they
 * are read; whoever reads compares what it began with afterwards.
 */
#include <string.h>

#include "jvm/jvm_internal.h"
#include "jvm/unsigned5.h"

#define FLAGS_MAX	 4096
#define FLAG_BYTES_MAX	 64
#define SUPERS_MAX	 64
#define FIELDS_MAX	 256
#define FIELD_STREAM_MAX 8192
#define FIELD_WORDS	 6 /* u2: flags, name, signature, value, offset (2) << 2 | 1 */
#define FIELD_IS_OFFSET	 1
#define FIELD_TAG_BITS	 2
/* Bits of a field's flags in streams: what follows for it. */
#define FIELD_HAS_VALUE	  0x01
#define FIELD_IS_INJECTED 0x02 /* its name is no constant of the class */
#define FIELD_HAS_GENERIC 0x04
#define FIELD_HAS_GROUP	  0x10

static bool read_flag(struct jvm *jvm, const uint8_t *flag, struct oop_format *format)
{
	static const struct {
		const char *name;
		size_t member;
	} wanted[] = {
		{"UseCompressedOops", offsetof(struct oop_format, has_narrow_oops)},
		{"UseCompressedClassPointers", offsetof(struct oop_format, has_narrow_klass)},
		{"UseCompactObjectHeaders", offsetof(struct oop_format, has_compact_headers)},
		{"UseZGC", offsetof(struct oop_format, is_z)},
	};
	const struct vm_layout *l = &jvm->layout;
	struct span copy = {flag, l->flag_bytes};
	char name[64];
	uint8_t value;

	if (!vm_read_text(&jvm->memory, vm_get(copy, l->flag_name), name, sizeof(name)))
		return false;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (strcmp(name, wanted[i].name))
			continue;
		/* The field has no type in the tables: it is a pointer. */
		if (!vm_read(&jvm->memory, *(const uint64_t *)(flag + l->flag_addr.offset), &value,
			    1))
			return false;
		*(bool *)((char *)format + wanted[i].member) = value;
	}
	return true;
}

static bool read_flags(struct jvm *jvm, struct oop_format *format)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t flags, n;
	uint8_t *all;
	bool is_read;

	if (!l->flags || !l->n_flags || !l->flag_addr.width ||
		l->flag_addr.offset + 8u > l->flag_bytes || l->flag_bytes > FLAG_BYTES_MAX ||
		l->flag_addr.offset % 8 || l->flag_bytes % 8 ||
		!vm_read_u64(&jvm->memory, l->flags, &flags) ||
		!vm_read_u64(&jvm->memory, l->n_flags, &n) || n < 2 || n > FLAGS_MAX)
		return false;
	all = mem_alloc(n * l->flag_bytes);
	is_read = vm_read(&jvm->memory, flags, all, n * l->flag_bytes);
	/* The last one only marks the end. */
	for (size_t i = 0; is_read && i + 1 < n; i++)
		is_read = read_flag(jvm, all + i * l->flag_bytes, format);
	free(all);
	return is_read;
}

bool oop_format_begin(struct jvm *jvm)
{
	const struct vm_layout *l = &jvm->layout;
	struct oop_format f = {.is_known = true};
	uint32_t shift;

	if (jvm->oops.is_known)
		return true;
	if (!read_flags(jvm, &f) || !l->oop_base || !l->oop_shift || !l->narrow_klass_base ||
		!l->narrow_klass_shift || !l->klass_layout.width ||
		!vm_read_u64(&jvm->memory, l->oop_base, &f.oop_base) ||
		!vm_read_u64(&jvm->memory, l->narrow_klass_base, &f.klass_base) ||
		!vm_read_u32(&jvm->memory, l->narrow_klass_shift, &shift))
		return false;
	f.klass_shift = shift & 31;
	if (!vm_read_u32(&jvm->memory, l->oop_shift, &shift))
		return false;
	f.oop_shift = shift & 31;
	if (f.is_z && (!l->z_globals || !l->z_bad.width))
		return false;
	if (f.has_compact_headers && !l->mark_klass_shift.is_known)
		return false;
	jvm->oops = f;
	return true;
}

/* ZGC keeps the state of a reference in some of its bits. One that is to be mended before use leads
 * anywhere: it is refused. */
static bool z_uncolour(struct jvm *jvm, uint64_t coloured, uint64_t *oop)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t globals, at, bad, shift = 0;

	if (!vm_read_u64(&jvm->memory, l->z_globals, &globals) ||
		!vm_read_u64(&jvm->memory, globals + l->z_bad.offset, &at) ||
		!vm_read_u64(&jvm->memory, at, &bad) || coloured & bad)
		return false;
	if (l->z_shift.width && (!vm_read_u64(&jvm->memory, globals + l->z_shift.offset, &at) ||
					!vm_read_u64(&jvm->memory, at, &shift)))
		return false;
	*oop = coloured >> (shift & 63);
	return true;
}

/* A reference as words of 64 bits have it. */
static bool decode_wide(struct jvm *jvm, uint64_t v, uint64_t *oop)
{
	*oop = v;
	return v && (!jvm->oops.is_z || z_uncolour(jvm, v, oop)) && vm_is_pointer(*oop);
}

bool oop_read_handle(struct jvm *jvm, uint64_t handle, uint64_t *oop)
{
	uint64_t v;

	return vm_is_pointer(handle) && vm_read_u64(&jvm->memory, handle, &v) &&
	       decode_wide(jvm, v, oop);
}

bool oop_read_field(struct jvm *jvm, uint64_t object, uint32_t offset, uint64_t *oop)
{
	const struct oop_format *f = &jvm->oops;
	uint64_t wide;
	uint32_t narrow;

	if (!f->has_narrow_oops)
		return vm_read_u64(&jvm->memory, object + offset, &wide) &&
		       decode_wide(jvm, wide, oop);
	if (!vm_read_u32(&jvm->memory, object + offset, &narrow) || !narrow)
		return false;
	*oop = f->oop_base + ((uint64_t)narrow << f->oop_shift);
	return vm_is_pointer(*oop);
}

bool oop_klass(struct jvm *jvm, uint64_t object, uint64_t *klass)
{
	const struct oop_format *f = &jvm->oops;
	uint32_t narrow;

	if (f->has_compact_headers) {
		if (!vm_read_u64(&jvm->memory, object, klass))
			return false;
		*klass = f->klass_base +
			 ((*klass >> jvm->layout.mark_klass_shift.v) << f->klass_shift);
	} else if (f->has_narrow_klass) {
		if (!vm_read_u32(&jvm->memory, object + jvm->layout.oop_klass.offset, &narrow))
			return false;
		*klass = f->klass_base + ((uint64_t)narrow << f->klass_shift);
	} else if (!vm_read_u64(&jvm->memory, object + jvm->layout.oop_klass.offset, klass)) {
		return false;
	}
	return vm_is_pointer(*klass);
}

/* --- fields --- */

/* Whether slot `index` of the constant pool is this text. */
static bool is_pool_text(struct jvm *jvm, uint64_t pool, uint32_t index, const char *text)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t symbol;

	return index && vm_read_u64(&jvm->memory, pool + l->pool_bytes + 8ull * index, &symbol) &&
	       symbol_is(jvm, symbol, text);
}

/* Up to JDK 20: rows of six u2. */
static int32_t find_in_rows(struct jvm *jvm, uint64_t klass, uint64_t pool, const char *name)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t fields;
	uint16_t n = 0, row[FIELD_WORDS];

	if (!vm_read_u64(&jvm->memory, klass + l->klass_fields.offset, &fields) ||
		!vm_read(&jvm->memory, klass + l->klass_n_fields.offset, &n, sizeof(n)) ||
		n > FIELDS_MAX)
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t packed;

		/* Array<u2>: its length, then the words. */
		if (!vm_read(&jvm->memory, fields + 4 + i * sizeof(row), row, sizeof(row)))
			return -1;
		packed = row[4] | (uint32_t)row[5] << 16;
		if ((packed & ((1u << FIELD_TAG_BITS) - 1)) == FIELD_IS_OFFSET &&
			is_pool_text(jvm, pool, row[1], name))
			return (int32_t)(packed >> FIELD_TAG_BITS);
	}
	return -1;
}

/* From JDK 21 on: a compressed stream. */
static int32_t find_in_stream(struct jvm *jvm, uint64_t klass, uint64_t pool, const char *name)
{
	uint8_t bytes[FIELD_STREAM_MAX];
	uint64_t stream;
	uint32_t length, n;
	struct cursor c;

	if (!vm_read_u64(&jvm->memory, klass + jvm->layout.klass_field_stream.offset, &stream) ||
		!vm_read_u32(&jvm->memory, stream, &length) || length > sizeof(bytes) ||
		!vm_read(&jvm->memory, stream + jvm->layout.bytes_data.offset, bytes, length))
		return -1;
	c = cursor_of((struct span){bytes, length});
	n = unsigned5_read(&c, jvm->least_byte);
	unsigned5_read(&c, jvm->least_byte); /* injected ones: they stand behind */
	for (uint32_t i = 0; i < n && i < FIELDS_MAX && !c.failed; i++) {
		uint32_t name_index = unsigned5_read(&c, jvm->least_byte);
		uint32_t offset, flags;

		unsigned5_read(&c, jvm->least_byte); /* signature */
		offset = unsigned5_read(&c, jvm->least_byte);
		unsigned5_read(&c, jvm->least_byte); /* access */
		flags = unsigned5_read(&c, jvm->least_byte);
		if (flags & FIELD_HAS_VALUE)
			unsigned5_read(&c, jvm->least_byte);
		if (flags & FIELD_HAS_GENERIC)
			unsigned5_read(&c, jvm->least_byte);
		if (flags & FIELD_HAS_GROUP)
			unsigned5_read(&c, jvm->least_byte);
		if (!c.failed && !(flags & FIELD_IS_INJECTED) &&
			is_pool_text(jvm, pool, name_index, name))
			return offset < 65536 ? (int32_t)offset : -1;
	}
	return -1;
}

uint64_t klass_find_super(struct jvm *jvm, uint64_t klass, const char *name)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t symbol;

	for (unsigned i = 0; i < SUPERS_MAX && vm_is_pointer(klass); i++) {
		if (vm_read_u64(&jvm->memory, klass + l->klass_name.offset, &symbol) &&
			symbol_is(jvm, symbol, name))
			return klass;
		if (!vm_read_u64(&jvm->memory, klass + l->klass_super.offset, &klass))
			break;
	}
	return 0;
}

int32_t klass_field_offset(struct jvm *jvm, uint64_t klass, const char *name)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t pool;

	if (!vm_read_u64(&jvm->memory, klass + l->klass_constants.offset, &pool) ||
		!vm_is_pointer(pool))
		return -1;
	if (l->klass_field_stream.width)
		return find_in_stream(jvm, klass, pool, name);
	if (l->klass_fields.width && l->klass_n_fields.width)
		return find_in_rows(jvm, klass, pool, name);
	return -1;
}
