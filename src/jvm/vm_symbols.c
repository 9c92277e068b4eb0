/* SPDX-License-Identifier: MIT */
/* Symbols of the JVM: texts with a hash, a count of references and a length. */
#include <string.h>

#include "jvm/jvm_internal.h"

#define HEAD_BYTES     8
#define HASH_SHIFT     16 /* the hash is in the upper half, references are counted in the lower */
#define TEXT_BYTES_MAX 8192

bool symbol_identify(struct jvm *jvm, uint64_t addr, enum java_name_kind kind,
	struct symbol_identity *id, struct buf *to)
{
	const struct vm_layout *l = &jvm->layout;
	uint8_t head[HEAD_BYTES];
	struct span copy = {head, sizeof(head)};

	if (!vm_is_pointer(addr) || !vm_read(&jvm->memory, addr, head, sizeof(head)))
		return false;
	id->addr = addr;
	id->hash = (uint32_t)vm_get(copy, l->symbol_hash) >> HASH_SHIFT;
	id->length = (uint16_t)vm_get(copy, l->symbol_length);
	if (!(uint16_t)vm_get(copy, l->symbol_hash) || id->length > TEXT_BYTES_MAX)
		return false;
	buf_reset(to);
	return vm_read(&jvm->memory, addr + l->symbol_body.offset, buf_put_zeros(to, id->length),
		       id->length) &&
	       java_name_is_legal(buf_span(to), kind);
}

bool symbol_read(struct jvm *jvm, uint64_t addr, enum java_name_kind kind, struct buf *to)
{
	struct symbol_identity unused;

	return symbol_identify(jvm, addr, kind, &unused, to);
}

bool symbol_is(struct jvm *jvm, uint64_t addr, const char *text)
{
	struct buf symbol = {0};
	size_t n = strlen(text);
	bool is_it = symbol_read(jvm, addr, JAVA_FILE, &symbol) && symbol.n == n &&
		     !memcmp(symbol.p, text, n);

	buf_release(&symbol);
	return is_it;
}
