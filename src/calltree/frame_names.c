/* SPDX-License-Identifier: MIT */
#include "calltree/frame_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

static const char *image_path(const struct trace_reader *r, const struct trace_frame *frame)
{
	if (!frame->image)
		return "";
	return trace_reader_string(r, trace_reader_image(r, frame->image)->path);
}

/* A name for a frame without a symbol: "[reason]", the given name, "libc.so.6+0x1234". */
static const char *make_up(const struct trace_reader *r, const struct trace_frame *frame, char *to)
{
	const char *name = frame->name ? trace_reader_string(r, frame->name) : "";
	const char *image = path_base_name(image_path(r, frame));

	if (frame->kind == FRAME_KIND_MARKER)
		snprintf(to, FRAME_NAME_BYTES, "[%s]", *name ? name : "the stack ends here");
	else if (*name)
		return name;
	else if (*image)
		snprintf(to, FRAME_NAME_BYTES, "%s+0x%" PRIx64, image, frame->addr);
	else
		snprintf(to, FRAME_NAME_BYTES, "[unknown] 0x%" PRIx64, frame->addr);
	return to;
}

/* The kind of a level that is inlined into another: inlined code of the kernel stays the kernel's, inlined
 * methods are jitted like the one that they are in. */
static enum frame_kind inlined_kind(enum frame_kind kind)
{
	return kind == FRAME_KIND_KERNEL || kind == FRAME_KIND_JITTED ? kind : FRAME_KIND_INLINE;
}

const char *frame_name_bare(const char *name, const char *image)
{
	bool is_marked = name[0] && strchr("IJF", name[0]) && name[1] == ':';

	return is_marked && !strcmp(image, JAVA_IMAGE_PATH) ? name + 2 : name;
}

void frame_names_get(const struct trace_reader *r, uint32_t frame_id, struct frame_levels *levels)
{
	const struct trace_frame *frame = trace_reader_frame(r, frame_id);
	const struct trace_symbol *symbol = trace_reader_symbol(r, frame_id);
	const char *image = image_path(r, frame);

	levels->n = 0;
	for (uint32_t i = 0; symbol && i < symbol->n_levels && i < SYMBOL_LEVELS_MAX; i++) {
		const struct trace_symbol_level *from = &symbol->levels[i];
		bool is_last = i + 1 == symbol->n_levels;

		levels->v[levels->n++] = (struct frame_level){
			.name = trace_reader_string(r, from->name),
			.image = image,
			.kind = is_last ? frame->kind : inlined_kind(frame->kind),
			.file = from->file ? trace_reader_string(r, from->file) : NULL,
			.line = from->line,
			.offset = from->offset,
			.has_offset = is_last, /* an inlined function has no start of its own */
		};
	}
	if (levels->n == 0)
		levels->v[levels->n++] = (struct frame_level){
			.name = make_up(r, frame, levels->made_up),
			.image = image,
			.kind = frame->kind,
		};
}

const char *frame_names_unresolved_reason(const struct trace_reader *r, uint32_t frame_id)
{
	const struct trace_frame *frame = trace_reader_frame(r, frame_id);
	const struct trace_symbol *symbol = trace_reader_symbol(r, frame_id);

	if (frame->kind == FRAME_KIND_MARKER)
		return NULL;
	if (symbol && symbol->reason)
		return trace_reader_string(r, symbol->reason);
	if (symbol && symbol->n_levels)
		return NULL;
	if (frame->name)
		return NULL;
	return frame->image ? "no symbol covers the address" : "the address is in no known module";
}

/* Where a frame's routines are; n = 0 when it has not been looked at. */
struct frame_routine_list {
	uint32_t first;
	uint32_t n;
};

void frame_routines_init(
	struct frame_routines *f, const struct trace_reader *r, struct calltree *tree)
{
	*f = (struct frame_routines){.reader = r, .tree = tree};
	f->lists = mem_calloc(trace_reader_n_frames(r), sizeof(*f->lists));
}

void frame_routines_release(struct frame_routines *f)
{
	free(f->lists);
	vec_release(&f->routines);
	map_release(&f->methods);
}

/* The routine of the events of this method; 0 = it has none. */
static uint32_t method_with_events(const struct frame_routines *f, const struct frame_level *level)
{
	const char *bare = frame_name_bare(level->name, level->image);
	const uint64_t *routine =
		bare == level->name ? NULL
				    : map_find(&f->methods, map_hash_bytes(bare, strlen(bare)));
	const struct calltree_routine *known =
		routine ? calltree_get_routine(f->tree, (uint32_t)*routine) : NULL;

	return known && !strcmp(known->name, bare) ? (uint32_t)*routine : 0;
}

static uint32_t routine_of(const struct frame_routines *f, const struct frame_level *level)
{
	uint32_t routine = f->methods.n ? method_with_events(f, level) : 0;

	return routine ? routine
		       : calltree_routine(f->tree, level->name, level->image, level->kind);
}

static void look_up(struct frame_routines *f, uint32_t frame, struct frame_routine_list *list)
{
	struct frame_levels *levels = &f->levels;

	frame_names_get(f->reader, frame, levels);
	list->first = (uint32_t)f->routines.n;
	list->n = (uint32_t)levels->n;
	for (size_t i = levels->n; i-- > 0;) {
		uint32_t routine = routine_of(f, &levels->v[i]);

		vec_push(&f->routines, routine);
	}
}

void frame_routines_add_hooked(struct frame_routines *f, uint32_t frame)
{
	size_t n;
	uint32_t id = frame_routines_get(f, frame, &n)[0];
	const struct calltree_routine *routine = calltree_get_routine(f->tree, id);

	if (strcmp(routine->image, JAVA_IMAGE_PATH) == 0)
		*map_ensure(&f->methods, map_hash_bytes(routine->name, strlen(routine->name)),
			NULL) = id;
}

const uint32_t *frame_routines_get(struct frame_routines *f, uint32_t frame, size_t *n)
{
	struct frame_routine_list *list = &f->lists[frame];

	if (!list->n)
		look_up(f, frame, list);
	*n = list->n;
	return f->routines.v + list->first;
}
