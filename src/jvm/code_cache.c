/* SPDX-License-Identifier: MIT */
/*
 * From an address to the block of a code heap that holds it. A heap is a row of segments; blocks are
 * whole segments. The segment map has a byte for each segment: 0 = a block begins here, 255 = free,
 * else how many segments to go back, again and again until a block begins.
 */
#include <string.h>

#include "jvm/jvm_internal.h"

#define LOG2_SEGMENT_MIN 3
#define LOG2_SEGMENT_MAX 20
#define SEGMENT_FREE	 0xff
#define MAP_PIECE	 512 /* bytes of a segment map read at once */
#define HOPS_MAX	 4096
#define HEAP_COPY_BYTES	 512 /* of a CodeHeap, as far as its fields go */

static bool copy_of(
	const struct jvm *jvm, uint64_t addr, uint8_t *copy, size_t bytes, struct span *span)
{
	*span = (struct span){copy, bytes};
	return vm_is_pointer(addr) && vm_read(&jvm->memory, addr, copy, bytes);
}

static uint64_t space_get(struct span heap, struct vm_field space, struct vm_field field)
{
	return vm_get(span_sub(heap, space.offset, heap.n - space.offset), field);
}

static bool read_heap(const struct jvm *jvm, struct code_heap *heap)
{
	const struct vm_layout *l = &jvm->layout;
	uint8_t bytes[HEAP_COPY_BYTES];
	struct span copy;

	if (l->heap_memory.offset >= sizeof(bytes) || l->heap_segmap.offset >= sizeof(bytes) ||
		!copy_of(jvm, heap->descriptor, bytes, sizeof(bytes), &copy))
		return false;
	heap->low = space_get(copy, l->heap_memory, l->space_low);
	heap->high = space_get(copy, l->heap_memory, l->space_high);
	heap->segmap = space_get(copy, l->heap_segmap, l->space_low);
	heap->log2_segment = (unsigned)vm_get(copy, l->heap_log2_segment);
	return vm_is_pointer(heap->low) && heap->low < heap->high && heap->segmap &&
	       heap->log2_segment >= LOG2_SEGMENT_MIN && heap->log2_segment <= LOG2_SEGMENT_MAX;
}

/* GrowableArray<CodeHeap*>*: a length and a pointer to pointers. */
static bool read_heap_list(struct jvm *jvm)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t array, data;
	uint32_t n = 0;

	if (!vm_read_u64(&jvm->memory, l->heaps, &array) || !vm_is_pointer(array) ||
		!vm_read_u32(&jvm->memory, array + l->array_len.offset, &n) ||
		!vm_read_u64(&jvm->memory, array + l->array_data.offset, &data) || !n)
		return false;
	jvm->n_heaps = n < HEAPS_MAX ? n : HEAPS_MAX;
	for (size_t i = 0; i < jvm->n_heaps; i++)
		if (!vm_read_u64(&jvm->memory, data + i * 8, &jvm->heaps[i].descriptor) ||
			!read_heap(jvm, &jvm->heaps[i]))
			return false;
	return true;
}

bool code_cache_begin(struct jvm *jvm)
{
	const struct vm_layout *l = &jvm->layout;

	if (!read_heap_list(jvm) || !vm_read_u64(&jvm->memory, l->low_bound, &jvm->code_low) ||
		!vm_read_u64(&jvm->memory, l->high_bound, &jvm->code_high))
		return false;
	return vm_is_pointer(jvm->code_low) && jvm->code_low < jvm->code_high;
}

static struct code_heap *heap_of(struct jvm *jvm, uint64_t pc)
{
	for (size_t i = 0; i < jvm->n_heaps; i++)
		if (pc >= jvm->heaps[i].low && pc < jvm->heaps[i].high)
			return &jvm->heaps[i];
	/* It may have grown. */
	for (size_t i = 0; i < jvm->n_heaps; i++)
		if (read_heap(jvm, &jvm->heaps[i]) && pc >= jvm->heaps[i].low &&
			pc < jvm->heaps[i].high)
			return &jvm->heaps[i];
	return NULL;
}

/* The segment where the block begins that holds segment `at`. */
static bool block_segment(struct jvm *jvm, const struct code_heap *heap, uint64_t *at)
{
	uint8_t piece[MAP_PIECE];
	uint64_t from = 0, to = 0; /* what is in `piece` */

	for (unsigned hops = 0; hops < HOPS_MAX; hops++) {
		uint8_t back;

		if (*at < from || *at >= to) {
			from = *at >= MAP_PIECE - 1 ? *at - (MAP_PIECE - 1) : 0;
			to = *at + 1;
			if (!vm_read(&jvm->memory, heap->segmap + from, piece, to - from))
				return false;
		}
		back = piece[*at - from];
		if (!back)
			return true;
		if (back == SEGMENT_FREE || back > *at)
			return false;
		*at -= back;
	}
	return false;
}

bool code_cache_find_start(struct jvm *jvm, uint64_t pc, uint64_t *start)
{
	struct code_heap *heap = heap_of(jvm, pc);
	uint64_t segment;

	if (!heap)
		return false;
	segment = (pc - heap->low) >> heap->log2_segment;
	if (!block_segment(jvm, heap, &segment))
		return false;
	*start = heap->low + (segment << heap->log2_segment) + jvm->layout.block_bytes;
	return true;
}
