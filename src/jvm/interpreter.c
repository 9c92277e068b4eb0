/* SPDX-License-Identifier: MIT */
/* The interpreter's pieces: one behind the other in a queue, each with a header that names it. */
#include <string.h>

#include "base/search.h"
#include "jvm/jvm_internal.h"

#define QUEUE_BYTES	   256
#define INTERPRETER_MAX	   (8u << 20)
#define CODELETS_MAX	   4096
#define CODELET_HEAD_BYTES 64

static bool add_codelet(struct jvm *jvm, uint64_t start, uint64_t limit, uint64_t *next)
{
	const struct vm_layout *l = &jvm->layout;
	uint8_t bytes[CODELET_HEAD_BYTES];
	struct span head = {bytes, sizeof(bytes)};
	char name[128];
	uint64_t size;

	if (!vm_read(&jvm->memory, start, bytes, sizeof(bytes)))
		return false;
	size = vm_get(head, l->codelet_size);
	if (size < 16 || size > limit - start || size & 7 ||
		!vm_read_text(
			&jvm->memory, vm_get(head, l->codelet_description), name, sizeof(name)))
		return false;
	vec_push(&jvm->codelets, ((struct codelet){start, start + size, jvm_text(jvm, name),
					 strstr(name, "method entry point") != NULL}));
	*next = start + size;
	return true;
}

bool interpreter_begin(struct jvm *jvm)
{
	const struct vm_layout *l = &jvm->layout;
	uint8_t bytes[QUEUE_BYTES];
	struct span queue = {bytes, sizeof(bytes)};
	uint64_t addr, at, end, limit;

	jvm->codelets.n = 0;
	if (!vm_read_u64(&jvm->memory, l->interpreter, &addr) || !vm_is_pointer(addr) ||
		!vm_read(&jvm->memory, addr, bytes, sizeof(bytes)))
		return false;
	jvm->interpreter_low = vm_get(queue, l->queue_buffer);
	limit = vm_get(queue, l->queue_limit);
	at = jvm->interpreter_low + vm_get(queue, l->queue_begin);
	end = jvm->interpreter_low + vm_get(queue, l->queue_end);
	jvm->interpreter_high = jvm->interpreter_low + limit;
	if (!vm_is_pointer(jvm->interpreter_low) || limit > INTERPRETER_MAX || at >= end ||
		end > jvm->interpreter_high)
		return false;
	while (at < end && jvm->codelets.n < CODELETS_MAX)
		if (!add_codelet(jvm, at, end, &at))
			return false;
	return true;
}

const struct codelet *codelet_find(const struct jvm *jvm, uint64_t pc)
{
	size_t i = SEARCH(0, jvm->codelets.n, k, jvm->codelets.v[k].end <= pc);

	if (i < jvm->codelets.n && jvm->codelets.v[i].start <= pc)
		return &jvm->codelets.v[i];
	return NULL;
}
