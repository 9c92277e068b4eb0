/* SPDX-License-Identifier: MIT */
/*
 * Methods: Method -> ConstMethod (bytecodes, lines) -> ConstantPool (names) -> InstanceKlass. They are
 * read once, kept by their address, and compared before they are used in a later batch: a class may be
 * unloaded and another be where it was. What is compared are the pointers on the way to the names, and
 * the hashes and lengths of these.
 */
#include <string.h>

#include "classfile/java_name.h"
#include "jvm/jvm_internal.h"
#include "jvm/bytecode_lines.h"

#define METHOD_COPY_MAX	  256
#define POOL_COPY_MAX	  256
#define CONST_BYTES_MAX	  (1u << 20) /* a method's bytecodes are at most 64 KiB */
#define METHODS_MAX	  (1u << 17) /* beyond, all are forgotten */
#define ACC_NATIVE	  0x0100u    /* JVMS 4.6 */
#define SYMBOL_HEAD_BYTES 8
#define HASH_SHIFT	  16 /* the hash is in the upper half, references are counted in the lower */

/* What tells one method from another that had its place before. */
struct method_identity {
	uint64_t const_method, pool, holder;
	struct symbol_identity name, signature, class_name;
	uint16_t name_index, signature_index, code_size;
};

struct method {
	uint32_t number;
	uint32_t batch; /* in which it was last compared with memory, */
	uint32_t used;	/* and in which it was last asked for */
	uint64_t addr;
	struct method_identity identity;
	uint64_t code; /* address of its bytecodes */
	bool is_native;
	const char *name, *signature, *file; /* interned */
	struct line_entries lines;
};

struct methods {
	struct map by_addr, by_number; /* to struct method *; owned by by_number */
	VEC(struct method *) all;
};

struct methods *methods_new(void)
{
	return mem_zalloc(sizeof(struct methods));
}

static void forget_all(struct methods *methods)
{
	for (size_t i = 0; i < methods->all.n; i++)
		vec_release(&methods->all.v[i]->lines);
	vec_release_all(&methods->all);
	map_reset(&methods->by_addr);
	map_reset(&methods->by_number);
}

void methods_free(struct methods *methods)
{
	if (!methods)
		return;
	forget_all(methods);
	map_release(&methods->by_addr);
	map_release(&methods->by_number);
	free(methods);
}

/* --- comparing --- */

#define N_IDENTITY_PARTS 9
#define COMPARED_MAX	 32 /* methods compared by one call */

/* Where the identity is read from, and into what. */
struct identity_bytes {
	uint64_t const_method, holder, name, signature, class_name;
	uint8_t const_copy[METHOD_COPY_MAX];
	uint8_t symbols[3][SYMBOL_HEAD_BYTES];
};

static void identity_parts(const struct jvm *jvm, const struct method *m, struct identity_bytes *b,
	struct proc_part parts[N_IDENTITY_PARTS])
{
	const struct vm_layout *l = &jvm->layout;
	const struct method_identity *id = &m->identity;
	uint64_t slots = id->pool + l->pool_bytes;

	parts[0] = (struct proc_part){m->addr + l->method_const.offset, &b->const_method, 8, false};
	parts[1] = (struct proc_part){id->const_method, b->const_copy, l->const_bytes, false};
	parts[2] = (struct proc_part){id->pool + l->pool_holder.offset, &b->holder, 8, false};
	parts[3] = (struct proc_part){slots + 8ull * id->name_index, &b->name, 8, false};
	parts[4] = (struct proc_part){slots + 8ull * id->signature_index, &b->signature, 8, false};
	parts[5] = (struct proc_part){id->holder + l->klass_name.offset, &b->class_name, 8, false};
	parts[6] = (struct proc_part){id->name.addr, b->symbols[0], SYMBOL_HEAD_BYTES, false};
	parts[7] = (struct proc_part){id->signature.addr, b->symbols[1], SYMBOL_HEAD_BYTES, false};
	parts[8] = (struct proc_part){id->class_name.addr, b->symbols[2], SYMBOL_HEAD_BYTES, false};
}

static bool is_same_symbol(const struct jvm *jvm, const struct symbol_identity *id,
	const uint8_t head[SYMBOL_HEAD_BYTES])
{
	struct span copy = {head, SYMBOL_HEAD_BYTES};

	return (uint32_t)vm_get(copy, jvm->layout.symbol_hash) >> HASH_SHIFT == id->hash &&
	       (uint16_t)vm_get(copy, jvm->layout.symbol_length) == id->length;
}

static bool is_same(const struct jvm *jvm, const struct method *m, const struct identity_bytes *b)
{
	const struct vm_layout *l = &jvm->layout;
	const struct method_identity *id = &m->identity;
	struct span copy = {b->const_copy, l->const_bytes};

	return b->const_method == id->const_method && vm_get(copy, l->const_pool) == id->pool &&
	       vm_get(copy, l->const_code_size) == id->code_size &&
	       vm_get(copy, l->const_name) == id->name_index &&
	       vm_get(copy, l->const_signature) == id->signature_index && b->holder == id->holder &&
	       b->name == id->name.addr && b->signature == id->signature.addr &&
	       b->class_name == id->class_name.addr &&
	       is_same_symbol(jvm, &id->name, b->symbols[0]) &&
	       is_same_symbol(jvm, &id->signature, b->symbols[1]) &&
	       is_same_symbol(jvm, &id->class_name, b->symbols[2]);
}

/* Of `n` methods at once; sets is_same of each. False when the JVM is gone. */
static bool compare_some(struct jvm *jvm, struct method *const *methods, size_t n, bool *same)
{
	struct identity_bytes b[COMPARED_MAX];
	struct proc_part parts[COMPARED_MAX * N_IDENTITY_PARTS];

	for (size_t i = 0; i < n; i++)
		identity_parts(jvm, methods[i], &b[i], parts + i * N_IDENTITY_PARTS);
	if (!vm_read_parts(&jvm->memory, parts, n * N_IDENTITY_PARTS)) {
		jvm->is_gone = true;
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		same[i] = is_same(jvm, methods[i], &b[i]);
		for (size_t k = 0; k < N_IDENTITY_PARTS; k++)
			same[i] = same[i] && parts[i * N_IDENTITY_PARTS + k].is_read;
	}
	return true;
}

static bool compare(struct jvm *jvm, struct method *m)
{
	bool same;

	return !compare_some(jvm, &m, 1, &same) || same;
}

void methods_compare(struct jvm *jvm)
{
	struct methods *methods = jvm->methods;
	struct method *some[COMPARED_MAX];
	bool same[COMPARED_MAX];
	size_t n = 0;

	for (size_t i = 0; i < methods->all.n && !jvm->is_gone; i++) {
		if (methods->all.v[i]->used + 1 == jvm->batch)
			some[n++] = methods->all.v[i];
		if (!n || (n < COMPARED_MAX && i + 1 < methods->all.n))
			continue;
		if (compare_some(jvm, some, n, same))
			for (size_t k = 0; k < n; k++)
				if (same[k])
					some[k]->batch = jvm->batch;
		n = 0;
	}
}

/* --- reading a new one --- */

struct pool_copy {
	uint64_t addr, tags;
	uint32_t length;
	uint8_t bytes[POOL_COPY_MAX];
	struct span span;
};

static bool read_pool(struct jvm *jvm, uint64_t addr, struct pool_copy *pool)
{
	const struct vm_layout *l = &jvm->layout;

	pool->addr = addr;
	pool->span = (struct span){pool->bytes, l->pool_bytes};
	if (!vm_is_pointer(addr) || l->pool_bytes > sizeof(pool->bytes) ||
		!vm_read(&jvm->memory, addr, pool->bytes, l->pool_bytes))
		return false;
	pool->tags = vm_get(pool->span, l->pool_tags);
	pool->length = (uint32_t)vm_get(pool->span, l->pool_length);
	return vm_is_pointer(pool->tags) && pool->length > 0 && pool->length <= 1u << 16;
}

/* The text in a slot of the constant pool. */
static bool read_pool_text(struct jvm *jvm, const struct pool_copy *pool, uint32_t index,
	enum java_name_kind kind, struct symbol_identity *id, struct buf *to)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t symbol;
	uint8_t tag;

	return index > 0 && index < pool->length &&
	       vm_read(&jvm->memory, pool->tags + l->bytes_data.offset + index, &tag, 1) &&
	       tag == l->tag_utf8.v &&
	       vm_read_u64(&jvm->memory, pool->addr + l->pool_bytes + 8ull * index, &symbol) &&
	       symbol_identify(jvm, symbol, kind, id, to);
}

static bool read_names(
	struct jvm *jvm, struct method *m, const struct pool_copy *pool, uint64_t class_name)
{
	struct method_identity *id = &m->identity;
	struct buf symbol = {0}, name = {0}, signature = {0};
	bool is_read = false;

	if (symbol_identify(jvm, class_name, JAVA_CLASS, &id->class_name, &symbol)) {
		java_class_put(&name, buf_span(&symbol));
		buf_put_u8(&name, '.');
		is_read = name.n > 1 && read_pool_text(jvm, pool, id->name_index, JAVA_METHOD,
						&id->name, &symbol);
	}
	if (is_read) {
		java_text_put(&name, buf_span(&symbol));
		is_read = read_pool_text(jvm, pool, id->signature_index, JAVA_SIGNATURE,
				  &id->signature, &symbol) &&
			  java_parameters_put(&name, buf_span(&symbol));
	}
	if (is_read) {
		java_text_put(&signature, buf_span(&symbol));
		m->name = jvm_text(jvm, buf_text(&name));
		m->signature = jvm_text(jvm, buf_text(&signature));
	}
	buf_release(&symbol);
	buf_release(&name);
	buf_release(&signature);
	return is_read;
}

static void read_file(struct jvm *jvm, struct method *m, const struct pool_copy *pool)
{
	const struct vm_layout *l = &jvm->layout;
	struct symbol_identity unused;
	uint32_t index = (uint32_t)vm_get(pool->span, l->pool_source_file);
	struct buf symbol = {0}, file = {0};

	if (read_pool_text(jvm, pool, index, JAVA_FILE, &unused, &symbol)) {
		java_text_put(&file, buf_span(&symbol));
		m->file = jvm_text(jvm, buf_text(&file));
	}
	buf_release(&symbol);
	buf_release(&file);
}

/* Bytecodes and what stands behind them: the line table is the first of that. */
static bool read_const_method(struct jvm *jvm, struct method *m, struct span copy)
{
	const struct vm_layout *l = &jvm->layout;
	struct method_identity *id = &m->identity;
	uint64_t bytes = 8 * vm_get(copy, l->const_size);
	uint64_t lines_at;
	struct buf whole = {0};
	bool is_read;

	id->code_size = (uint16_t)vm_get(copy, l->const_code_size);
	id->name_index = (uint16_t)vm_get(copy, l->const_name);
	id->signature_index = (uint16_t)vm_get(copy, l->const_signature);
	m->code = id->const_method + l->const_bytes;
	lines_at = l->const_bytes + id->code_size;
	if (bytes < lines_at || bytes > CONST_BYTES_MAX)
		return false;
	if (!l->const_has_lines.is_known ||
		!(vm_get(copy, l->const_flags) & (uint64_t)l->const_has_lines.v))
		return true;
	is_read = vm_read(&jvm->memory, id->const_method + lines_at,
		buf_put_zeros(&whole, bytes - lines_at), bytes - lines_at);
	if (is_read)
		line_entries_read(&m->lines, buf_span(&whole), jvm->least_byte);
	buf_release(&whole);
	return is_read;
}

/* A class leads to a constant pool that leads back to it; to another than the method's when the class
 * was redefined. */
static bool is_class(struct jvm *jvm, uint64_t klass)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t pool, holder;

	return vm_is_pointer(klass) &&
	       vm_read_u64(&jvm->memory, klass + l->klass_constants.offset, &pool) &&
	       vm_is_pointer(pool) &&
	       vm_read_u64(&jvm->memory, pool + l->pool_holder.offset, &holder) && holder == klass;
}

static bool read_method(struct jvm *jvm, struct method *m)
{
	const struct vm_layout *l = &jvm->layout;
	struct method_identity *id = &m->identity;
	uint8_t bytes[METHOD_COPY_MAX];
	struct span copy = {bytes, l->method_bytes};
	struct pool_copy pool;
	uint64_t class_name;

	if (!vm_is_pointer(m->addr) || !vm_read(&jvm->memory, m->addr, bytes, copy.n))
		return false;
	id->const_method = vm_get(copy, l->method_const);
	m->is_native = vm_get(copy, l->method_access) & ACC_NATIVE;
	copy.n = l->const_bytes;
	if (!vm_is_pointer(id->const_method) ||
		!vm_read(&jvm->memory, id->const_method, bytes, copy.n))
		return false;
	id->pool = vm_get(copy, l->const_pool);
	if (!read_pool(jvm, id->pool, &pool) || !read_const_method(jvm, m, copy))
		return false;
	id->holder = vm_get(pool.span, l->pool_holder);
	if (!is_class(jvm, id->holder) ||
		!vm_read_u64(&jvm->memory, id->holder + l->klass_name.offset, &class_name) ||
		!read_names(jvm, m, &pool, class_name))
		return false;
	read_file(jvm, m, &pool);
	return compare(jvm, m); /* it was that all the time */
}

static void method_free(struct method *m)
{
	vec_release(&m->lines);
	free(m);
}

static const struct method *read_new(struct jvm *jvm, uint64_t addr)
{
	struct methods *methods = jvm->methods;
	struct method *m = mem_zalloc(sizeof(*m));

	m->addr = addr;
	if (!read_method(jvm, m)) {
		method_free(m);
		return NULL;
	}
	if (methods->all.n >= METHODS_MAX)
		forget_all(methods);
	m->number = ++jvm->next_number;
	m->batch = m->used = jvm->batch;
	vec_push(&methods->all, m);
	*map_ensure(&methods->by_addr, addr, NULL) = (uint64_t)(uintptr_t)m;
	*map_ensure(&methods->by_number, m->number, NULL) = (uint64_t)(uintptr_t)m;
	return m;
}

const struct method *method_find(struct jvm *jvm, uint64_t addr)
{
	uint64_t *found = map_find(&jvm->methods->by_addr, addr);
	struct method *m = found ? (struct method *)(uintptr_t)*found : NULL;

	if (!m)
		return read_new(jvm, addr);
	m->used = jvm->batch;
	if (m->batch == jvm->batch || jvm->is_gone)
		return m;
	if (!compare(jvm, m))
		return read_new(jvm, addr);
	m->batch = jvm->batch;
	return m;
}

const struct method *method_by_number(struct jvm *jvm, uint32_t number)
{
	uint64_t *found = map_find(&jvm->methods->by_number, number);

	return found ? (const struct method *)(uintptr_t)*found : NULL;
}

uint32_t method_number(const struct method *method)
{
	return method->number;
}

bool method_is_native(const struct method *method)
{
	return method->is_native;
}

int32_t method_bytecode_index(const struct method *method, uint64_t bcp)
{
	uint64_t at = bcp - method->code;

	return at < method->identity.code_size ? (int32_t)at : -1;
}

void method_describe(const struct method *method, int32_t bci, struct jvm_level *level)
{
	*level = (struct jvm_level){.name = method->name,
		.signature = method->signature,
		.file = method->file,
		.line = bci < 0 ? 0 : line_entries_find(&method->lines, (uint32_t)bci)};
}
