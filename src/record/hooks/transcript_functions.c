/* SPDX-License-Identifier: MIT */
/* The functions that were called, as frames of the trace. */
#include <string.h>

#include "record/hooks/transcript_internal.h"

struct hooked_function *transcript_function(struct transcript *t, uint32_t id)
{
	vec_ensure_zero(&t->functions, (size_t)id + 1);
	return &t->functions.v[id];
}

/* Whether it is this version of the file, as far as both say: a plugin may be replaced, and loaded again. */
static bool is_version(const struct image *image, const struct planned_image *planned)
{
	if (image->kind != IMAGE_KIND_ELF && image->kind != IMAGE_KIND_OTHER)
		return false;
	if (strcmp(image->path, planned->path) != 0)
		return false;
	if (image->build_id_n && planned->build_id_n)
		return image->build_id_n == planned->build_id_n &&
		       !memcmp(image->build_id, planned->build_id, image->build_id_n);
	return !image->inode || !planned->file.inode || image->inode == planned->file.inode;
}

/* The number of an image that may be mapped nowhere any more. */
static uint32_t image_of(struct transcript *t, const struct planned_image *planned)
{
	const struct planned_file *file = &planned->file;

	for (uint32_t i = images_n(t->world.images); i--;)
		if (is_version(images_get(t->world.images, i), planned))
			return i;
	return images_ensure(
		t->world.images, &(struct image_query){.mapping = {.path = planned->path,
							       .major = file->major,
							       .minor = file->minor,
							       .inode = file->inode},
					 .build_id = {planned->build_id, planned->build_id_n}});
}

static uint32_t define_frame(
	struct transcript *t, const struct planned_function *f, uint32_t image_number)
{
	images_get(t->world.images, image_number)->is_hit = true;
	return trace_writer_frame(t->world.w,
		&(struct trace_frame){.kind = FRAME_KIND_NATIVE,
			.image = images_trace_id(t->world.images, image_number, t->world.w),
			.addr = f->function.v});
}

/* A Java method has no address that stays: its number among the functions is that of the frame, by which no
 * code of a JVM goes (docs/format/trace.md). */
static uint32_t define_method(
	struct transcript *t, const struct planned_function *f, const struct planned_image *class)
{
	struct trace_writer *w = t->world.w;
	uint32_t name = trace_writer_string(w, f->name);
	uint32_t image =
		trace_writer_image(w, &(struct trace_image){.kind = IMAGE_KIND_JIT,
					      .path = trace_writer_string(w, JAVA_IMAGE_PATH),
					      .bits = 64});
	uint32_t frame = trace_writer_frame(
		w, &(struct trace_frame){
			   .kind = FRAME_KIND_JITTED, .image = image, .name = name, .addr = f->id});
	struct trace_symbol_level level = {.name = name,
		.file = class->source ? trace_writer_string(w, class->source) : 0,
		.line = f->line};

	trace_writer_symbol(
		w, &(struct trace_symbol){.frame = frame, .n_levels = 1, .levels = &level});
	return frame;
}

uint32_t transcript_frame(struct transcript *t, uint32_t id)
{
	struct hooked_function *function = transcript_function(t, id);
	const struct planned_image *image = NULL;
	const struct planned_function *f;

	if (function->frame)
		return function->frame;
	f = hooks_planned(t->h, id, &image);
	if (f)
		function->frame = image->is_class ? define_method(t, f, image)
						  : define_frame(t, f, image_of(t, image));
	return function->frame;
}

bool transcript_see_function(
	struct transcript *t, struct hooked_thread *thread, uint32_t id, uint64_t time)
{
	const struct planned_image *image = NULL;
	const struct planned_function *f = hooks_planned(t->h, id, &image);
	const struct hook_module_at *at;
	const struct mapping *m = NULL;
	struct hooked_function *function;

	if (!f)
		return false;
	function = transcript_function(t, id);
	function->is_method = image->is_class;
	at = hook_layout_module(thread->view->layout, image);
	if (at)
		m = addrspace_find(
			thread->thread->process->space, (struct vaddr){f->function.v + at->bias});
	if (m && m->bias == at->bias) {
		module_history_use(t->world.modules, thread->thread->process, m, time);
		if (!function->frame)
			function->frame = define_frame(t, f, m->image);
	}
	transcript_frame(t, id);
	vec_ensure_zero(&thread->view->seen, (size_t)id + 1);
	thread->view->seen.v[id] = 1;
	return true;
}
