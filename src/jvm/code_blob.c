/* SPDX-License-Identifier: MIT */
/*
 * CodeBlobs: every piece of code in the code cache has one at its begin. They are read once and kept;
 * in each batch their headers are compared again before they are used, since code is freed and other
 * code put where it was.
 */
#include <string.h>

#include "base/search.h"
#include "jvm/jvm_internal.h"

#define HEADER_BYTES_MAX 1024 /* of a block and the largest kind of blob */
#define FRAME_WORDS_MAX	 (1 << 20)
#define CODE_BYTES_MAX	 (64u << 20)
#define COPY_BYTES_MAX	 (1u << 20) /* of a stub's own bytes */
#define NAME_BYTES_MAX	 128
#define DEBUG_BYTES_MAX                                                                            \
	(64u << 20)	    /* of debug information of all codes; beyond, it is read again */
#define LIVE_MAX (1u << 17) /* codes that are known at once; beyond, all are forgotten */
#define DEAD_MAX 4096	    /* replaced ones whose names can still be asked for */

/* The header as it is now, in a buffer with the block's header in front. */
struct header {
	uint8_t bytes[HEADER_BYTES_MAX];
	struct span block, blob;
};

static size_t header_bytes(const struct jvm *jvm)
{
	const struct vm_layout *l = &jvm->layout;
	size_t blob = l->nmethod_bytes > l->blob_bytes ? l->nmethod_bytes : l->blob_bytes;

	return l->block_bytes + blob;
}

static void header_set_spans(const struct jvm *jvm, struct header *h)
{
	h->block = (struct span){h->bytes, jvm->layout.block_bytes};
	h->blob = (struct span){h->bytes + h->block.n, header_bytes(jvm) - h->block.n};
}

static bool header_read(const struct jvm *jvm, uint64_t start, struct header *h)
{
	header_set_spans(jvm, h);
	return header_bytes(jvm) <= sizeof(h->bytes) &&
	       vm_read(&jvm->memory, start - h->block.n, h->bytes, header_bytes(jvm));
}

static uint64_t code_begin_of(const struct vm_layout *l, const struct header *h, uint64_t start)
{
	return l->blob_code_begin.width ? vm_get(h->blob, l->blob_code_begin)
					: start + vm_get(h->blob, l->blob_code_offset);
}

static struct code_identity identity_of(
	const struct jvm *jvm, const struct header *h, uint64_t start, bool has_method)
{
	const struct vm_layout *l = &jvm->layout;
	struct code_identity id;

	memset(&id, 0, sizeof(id));
	id.name = vm_get(h->blob, l->blob_name);
	id.code_begin = code_begin_of(l, h, start);
	id.size = (uint32_t)vm_get(h->blob, l->blob_size);
	id.data_offset = (uint32_t)vm_get(h->blob, l->blob_data_offset);
	id.frame_size = (int32_t)vm_get(h->blob, l->blob_frame_size);
	if (has_method) {
		id.method = vm_get(h->blob, l->nm_method);
		id.compile_id = (int32_t)vm_get(h->blob, l->nm_compile_id);
		id.entry_bci = (int32_t)vm_get(h->blob, l->nm_entry_bci);
	}
	return id;
}

static bool is_same(const struct jvm *jvm, const struct code *c, const struct header *h)
{
	bool has_method = c->kind == CODE_COMPILED || c->kind == CODE_NATIVE;
	struct code_identity now = identity_of(jvm, h, c->start, has_method);

	return (vm_get(h->block, jvm->layout.block_used) & 1) &&
	       !memcmp(&now, &c->identity, sizeof(now));
}

/* --- reading a new one --- */

static bool is_method_code(const struct jvm *jvm, const struct header *h, const char *name)
{
	const struct vm_layout *l = &jvm->layout;

	if (l->blob_kind.width && l->kind_nmethod.is_known)
		return (int32_t)vm_get(h->blob, l->blob_kind) == l->kind_nmethod.v;
	return !strcmp(name, "nmethod") || !strcmp(name, "native nmethod");
}

static enum code_kind kind_of(
	const struct jvm *jvm, const struct code *c, const struct header *h, const char *name)
{
	if (is_method_code(jvm, h, name))
		return !strcmp(name, "native nmethod") ? CODE_NATIVE : CODE_COMPILED;
	if (jvm->interpreter_low >= c->code_begin && jvm->interpreter_low < c->code_end)
		return CODE_INTERPRETER;
	return c->identity.frame_size > 0 ? CODE_FRAMED : CODE_BARE;
}

/* An address that the header gives itself, or as an offset from the header's start. */
static uint64_t place_in(
	const struct header *h, uint64_t start, struct vm_field address, struct vm_field offset)
{
	int64_t at = (int64_t)vm_get(h->blob, offset);

	if (address.width)
		return vm_get(h->blob, address);
	return offset.width && at > 0 ? start + (uint64_t)at : 0;
}

/* Where debug information is: in the code's own block (to JDK 22), ... */
static void find_own_scopes(const struct jvm *jvm, struct code *c, const struct header *h)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t data = vm_get(h->blob, l->nm_scopes_data_begin);
	uint64_t pcs = c->start + vm_get(h->blob, l->nm_scopes_pcs_offset);
	uint64_t pcs_end = c->start + vm_get(h->blob, l->nm_dependencies_offset);
	uint64_t metadata = c->start + vm_get(h->blob, l->nm_metadata_offset);

	if (!l->nm_dependencies_offset.width || !l->nm_metadata_offset.width ||
		metadata < c->code_begin || metadata > data || data > pcs || pcs > pcs_end ||
		pcs_end > c->end)
		return;
	c->metadata = metadata;
	c->metadata_bytes = (uint32_t)(data - metadata);
	c->scopes_data = data;
	c->scopes_data_bytes = (uint32_t)(pcs - data);
	c->scopes_pcs = pcs;
	c->scopes_pcs_bytes = (uint32_t)(pcs_end - pcs);
}

/* ... or in two blocks of its own (from JDK 25): descriptors and scopes in one, in either order, methods
 * behind the relocations in the other. What is between is refused: it is not told where. */
static void find_separate_scopes(const struct jvm *jvm, struct code *c, const struct header *h)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t immutable = vm_get(h->blob, l->nm_immutable_data);
	uint64_t mutable = vm_get(h->blob, l->blob_mutable_data);
	uint64_t data = vm_get(h->blob, l->nm_scopes_data_offset);
	uint64_t pcs = vm_get(h->blob, l->nm_scopes_pcs_offset);
	uint64_t end = vm_get(h->blob, l->nm_immutable_size);
	uint64_t relocations = vm_get(h->blob, l->blob_relocation_size);
	uint64_t mutable_end = vm_get(h->blob, l->blob_mutable_size);

	if (!l->blob_mutable_data.width || !l->blob_mutable_size.width ||
		!l->blob_relocation_size.width || !vm_is_pointer(immutable) || data > end ||
		pcs > end || end > CODE_BYTES_MAX || relocations > mutable_end ||
		mutable_end > CODE_BYTES_MAX)
		return;
	c->metadata = mutable + relocations;
	c->metadata_bytes = (uint32_t)(mutable_end - relocations);
	c->scopes_data = immutable + data;
	c->scopes_data_bytes = (uint32_t)((data < pcs ? pcs : end) - data);
	c->scopes_pcs = immutable + pcs;
	c->scopes_pcs_bytes = (uint32_t)((pcs < data ? data : end) - pcs);
}

static void read_method_code(const struct jvm *jvm, struct code *c, const struct header *h)
{
	const struct vm_layout *l = &jvm->layout;

	c->method = c->identity.method;
	c->deopt[0] = place_in(h, c->start, l->nm_deopt_begin, l->nm_deopt_offset);
	c->deopt[1] = place_in(h, c->start, l->nm_deopt_mh_begin, l->nm_deopt_mh_offset);
	c->orig_pc_offset = (int32_t)vm_get(h->blob, l->nm_orig_pc_offset);
	c->stubs_begin = c->start + vm_get(h->blob, l->nm_stub_offset);
	if (l->nm_scopes_data_begin.width)
		find_own_scopes(jvm, c, h);
	else if (l->nm_immutable_data.width)
		find_separate_scopes(jvm, c, h);
}

/* False when what is there is no code blob. */
static bool read_blob(struct jvm *jvm, struct code *c, const struct header *h)
{
	const struct vm_layout *l = &jvm->layout;
	struct code_identity *id = &c->identity;
	char name[NAME_BYTES_MAX];

	*id = identity_of(jvm, h, c->start, false);
	c->end = c->start + id->size;
	c->code_begin = id->code_begin;
	c->code_end = c->start + id->data_offset;
	if (l->blob_code_end.width)
		c->code_end = vm_get(h->blob, l->blob_code_end);
	if (!(vm_get(h->block, l->block_used) & 1) || id->size > CODE_BYTES_MAX ||
		c->code_begin < c->start || c->code_begin > c->code_end || c->code_end > c->end ||
		id->frame_size > FRAME_WORDS_MAX ||
		!vm_read_text(&jvm->memory, id->name, name, sizeof(name)))
		return false;
	c->name = jvm_text(jvm, name);
	c->frame_bytes = id->frame_size > 0 ? id->frame_size * 8 : 0; /* -1: none */
	c->frame_complete = (int32_t)vm_get(h->blob, l->blob_frame_complete);
	c->kind = kind_of(jvm, c, h, name);
	if (c->kind == CODE_COMPILED || c->kind == CODE_NATIVE) {
		*id = identity_of(jvm, h, c->start, true);
		if (!vm_is_pointer(id->method))
			return false;
		read_method_code(jvm, c, h);
	}
	return true;
}

/* --- those that are known --- */

static size_t debug_bytes(const struct code *c)
{
	return (size_t)c->scopes_pcs_bytes + c->scopes_data_bytes + c->metadata_bytes;
}

static void drop_copies(struct jvm *jvm, struct code *c)
{
	if (c->debug)
		jvm->debug_bytes -= debug_bytes(c);
	free(c->debug);
	free(c->copy);
	c->debug = c->copy = NULL;
}

static void code_free(struct jvm *jvm, struct code *c)
{
	drop_copies(jvm, c);
	free(c);
}

/* Keeps it for a while: what it was named may still be asked for. */
static void bury(struct jvm *jvm, struct code *c)
{
	c->is_dead = true;
	drop_copies(jvm, c);
	if (jvm->dead.n < DEAD_MAX) {
		vec_push(&jvm->dead, c);
		return;
	}
	*map_ensure(&jvm->by_number, jvm->dead.v[jvm->next_dead]->number, NULL) = 0;
	code_free(jvm, jvm->dead.v[jvm->next_dead]);
	jvm->dead.v[jvm->next_dead] = c;
	jvm->next_dead = (jvm->next_dead + 1) % DEAD_MAX;
}

static void remove_at(struct jvm *jvm, size_t from, size_t to)
{
	if (from == to)
		return;
	for (size_t i = from; i < to; i++)
		bury(jvm, jvm->codes.v[i]);
	memmove(jvm->codes.v + from, jvm->codes.v + to,
		(jvm->codes.n - to) * sizeof(*jvm->codes.v));
	jvm->codes.n -= to - from;
}

static void forget_all(struct jvm *jvm)
{
	for (size_t i = 0; i < jvm->codes.n; i++)
		code_free(jvm, jvm->codes.v[i]);
	for (size_t i = 0; i < jvm->dead.n; i++)
		code_free(jvm, jvm->dead.v[i]);
	jvm->codes.n = jvm->dead.n = jvm->next_dead = 0;
	map_reset(&jvm->by_number);
}

static void insert(struct jvm *jvm, struct code *c)
{
	size_t from, to;

	if (jvm->codes.n >= LIVE_MAX || jvm->by_number.n >= 8 * LIVE_MAX)
		forget_all(jvm);
	from = SEARCH(0, jvm->codes.n, i, jvm->codes.v[i]->end <= c->start);
	to = SEARCH(from, jvm->codes.n, i, jvm->codes.v[i]->start < c->end);
	remove_at(jvm, from, to);
	vec_insert(&jvm->codes, from, c);
	*map_ensure(&jvm->by_number, c->number, NULL) = (uint64_t)(uintptr_t)c;
}

static struct code *read_new(struct jvm *jvm, uint64_t pc)
{
	struct code *c = mem_zalloc(sizeof(*c));
	struct header h;

	if (!code_cache_find_start(jvm, pc, &c->start) || !header_read(jvm, c->start, &h) ||
		!read_blob(jvm, c, &h) || pc < c->code_begin || pc >= c->end) {
		code_free(jvm, c);
		return NULL;
	}
	c->number = ++jvm->next_number;
	c->batch = c->used = jvm->batch;
	insert(jvm, c);
	return c;
}

static struct code *known_at(struct jvm *jvm, uint64_t pc)
{
	size_t i = SEARCH(0, jvm->codes.n, k, jvm->codes.v[k]->end <= pc);

	if (i < jvm->codes.n && jvm->codes.v[i]->start <= pc)
		return jvm->codes.v[i];
	return NULL;
}

struct code *code_find(struct jvm *jvm, uint64_t pc)
{
	struct code *c;
	struct header h;

	if (pc < jvm->code_low || pc >= jvm->code_high)
		return NULL;
	c = known_at(jvm, pc);
	if (!c)
		return read_new(jvm, pc);
	c->used = jvm->batch;
	if (c->batch == jvm->batch || jvm->is_gone)
		return pc >= c->code_begin ? c : NULL;
	if (!header_read(jvm, c->start, &h))
		return c; /* the JVM is gone: what was read stays */
	if (!is_same(jvm, c, &h))
		return read_new(jvm, pc);
	c->batch = jvm->batch;
	return pc >= c->code_begin ? c : NULL;
}

struct code *code_by_number(struct jvm *jvm, uint32_t number)
{
	uint64_t *found = map_find(&jvm->by_number, number);

	return found ? (struct code *)(uintptr_t)*found : NULL;
}

/* How many are compared by one call at most. */
#define COMPARED_MAX 256

static void compare_some(struct jvm *jvm, struct code **codes, size_t n, struct header *headers)
{
	struct proc_part parts[COMPARED_MAX];

	for (size_t i = 0; i < n; i++) {
		header_set_spans(jvm, &headers[i]);
		parts[i] = (struct proc_part){codes[i]->start - jvm->layout.block_bytes,
			headers[i].bytes, header_bytes(jvm), false};
	}
	if (!vm_read_parts(&jvm->memory, parts, n)) {
		jvm->is_gone = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (parts[i].is_read && is_same(jvm, codes[i], &headers[i]))
			codes[i]->batch = jvm->batch;
}

void codes_compare(struct jvm *jvm)
{
	struct code *some[COMPARED_MAX];
	struct header *headers = NULL;
	size_t n = 0;

	for (size_t i = 0; i < jvm->codes.n; i++) {
		if (jvm->codes.v[i]->used + 1 == jvm->batch)
			some[n++] = jvm->codes.v[i];
		if (n < COMPARED_MAX && (i + 1 < jvm->codes.n || !n))
			continue;
		if (!headers)
			headers = mem_alloc(COMPARED_MAX * sizeof(*headers));
		compare_some(jvm, some, n, headers);
		n = 0;
	}
	free(headers);
}

struct span code_bytes(struct jvm *jvm, struct code *code)
{
	size_t n = (size_t)(code->code_end - code->code_begin);

	if (n > COPY_BYTES_MAX)
		n = COPY_BYTES_MAX;
	if (!code->copy) {
		code->copy = mem_alloc(n + 1);
		if (!vm_read(&jvm->memory, code->code_begin, code->copy, n)) {
			free(code->copy);
			code->copy = NULL;
			return (struct span){NULL, 0};
		}
	}
	return (struct span){code->copy, n};
}

static bool is_still(struct jvm *jvm, const struct code *c)
{
	struct header h;

	return header_read(jvm, c->start, &h) && is_same(jvm, c, &h);
}

static bool read_debug(struct jvm *jvm, struct code *c)
{
	struct proc_part parts[3];

	if (!c->scopes_pcs || c->is_dead || debug_bytes(c) > DEBUG_BYTES_MAX)
		return false;
	if (jvm->debug_bytes + debug_bytes(c) > DEBUG_BYTES_MAX)
		for (size_t i = 0; i < jvm->codes.n; i++)
			drop_copies(jvm, jvm->codes.v[i]);
	c->debug = mem_alloc(debug_bytes(c) + 1);
	jvm->debug_bytes += debug_bytes(c);
	parts[0] = (struct proc_part){c->scopes_pcs, c->debug, c->scopes_pcs_bytes, false};
	parts[1] = (struct proc_part){
		c->scopes_data, c->debug + c->scopes_pcs_bytes, c->scopes_data_bytes, false};
	parts[2] = (struct proc_part){c->metadata,
		c->debug + c->scopes_pcs_bytes + c->scopes_data_bytes, c->metadata_bytes, false};
	return vm_read_parts(&jvm->memory, parts, 3) && parts[0].is_read && parts[1].is_read &&
	       parts[2].is_read && is_still(jvm, c);
}

bool code_scopes(struct jvm *jvm, struct code *code, struct scopes *scopes)
{
	const uint8_t *p;

	if (!code->debug && !read_debug(jvm, code)) {
		drop_copies(jvm, code);
		return false;
	}
	p = code->debug;
	scopes->pcs = (struct span){p, code->scopes_pcs_bytes};
	scopes->data = (struct span){p + scopes->pcs.n, code->scopes_data_bytes};
	scopes->metadata = (struct span){p + scopes->pcs.n + scopes->data.n, code->metadata_bytes};
	scopes->least = jvm->least_byte;
	return true;
}

void codes_release(struct jvm *jvm)
{
	forget_all(jvm);
	vec_release(&jvm->codes);
	vec_release(&jvm->dead);
	map_release(&jvm->by_number);
}
