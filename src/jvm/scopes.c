/* SPDX-License-Identifier: MIT */
#include "jvm/scopes.h"

#include "base/search.h"
#include "jvm/unsigned5.h"

static int32_t descriptor_get(
	const struct scopes *s, const struct vm_layout *l, size_t i, struct vm_field field)
{
	return (int32_t)vm_get(span_sub(s->pcs, i * l->pc_desc_bytes, l->pc_desc_bytes), field);
}

/* The method with this index, counted from 1; 0 when there is none. */
static uint64_t method_at(const struct scopes *s, uint32_t index)
{
	struct span word = span_sub(s->metadata, 8 * ((uint64_t)index - 1), 8);
	uint64_t method;

	if (!index || !word.p)
		return 0;
	memcpy(&method, word.p, 8);
	return vm_is_pointer(method) ? method : 0;
}

static bool scope_read(const struct scopes *s, int32_t invocation_bci, uint32_t at,
	struct scope *scope, uint32_t *outer)
{
	struct cursor c;

	if (at >= s->data.n)
		return false;
	c = cursor_of(span_sub(s->data, at, s->data.n - at));
	*outer = unsigned5_read(&c, s->least);
	scope->method = method_at(s, unsigned5_read(&c, s->least));
	scope->bci = (int32_t)(unsigned5_read(&c, s->least) + (uint32_t)invocation_bci);
	return !c.failed && scope->method && scope->bci <= UINT16_MAX;
}

size_t scopes_find(const struct scopes *s, const struct vm_layout *l, uint32_t offset,
	struct scope *to, size_t max)
{
	size_t n = l->pc_desc_bytes ? s->pcs.n / l->pc_desc_bytes : 0, found = 0;
	size_t i = SEARCH(0, n, k, descriptor_get(s, l, k, l->pc_desc_pc) < (int64_t)offset);
	uint32_t at, outer;

	if (n < 3)
		return 0;
	/* The first one and the last one only mark the ends. Behind all others (the end of a loop whose safepoint
	 * is at its begin) the nearest one is the one before. */
	if (i + 1 >= n)
		i = n - 2;
	for (at = (uint32_t)descriptor_get(s, l, i, l->pc_desc_scope); at; at = outer) {
		if (found == max || !scope_read(s, l->invocation_bci.v, at, &to[found], &outer) ||
			outer >= at)
			return 0;
		found++;
	}
	return found;
}
