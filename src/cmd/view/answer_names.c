/* SPDX-License-Identifier: MIT */
/* The functions of a selection by number, as trees and graphs refer to them. */
#include "cmd/view/engine.h"
#include "cmd/view/view_arrays.h"

#define FLAG_THREAD 1
#define FLAG_EVENTS 2 /* some call of it was an event */

int view_answer_names(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct buf names = {0}, images = {0};
	struct profile *p;
	uint8_t *kinds, *flags;
	size_t n;

	if (view_profile(e, q, &p, err) < 0)
		return err->code;
	n = calltree_n_routines(p->tree);
	for (uint32_t r = 0; r < n; r++) {
		const struct calltree_routine *routine = calltree_get_routine(p->tree, r);

		buf_put_text(&names, routine->name);
		buf_put_text(&images, routine->image);
	}
	view_arrays_begin(out, 4);
	view_texts(out, "name", &names);
	view_texts(out, "image", &images);
	kinds = view_array(out, "kind", VIEW_U8, n);
	for (uint32_t r = 0; r < n; r++)
		kinds[r] = (uint8_t)calltree_get_routine(p->tree, r)->kind;
	flags = view_array(out, "flags", VIEW_U8, n);
	for (uint32_t r = 0; r < n; r++) {
		const struct calltree_routine *routine = calltree_get_routine(p->tree, r);

		flags[r] = (uint8_t)((routine->is_root ? FLAG_THREAD : 0) |
				     (routine->has_events ? FLAG_EVENTS : 0));
	}
	buf_release(&names);
	buf_release(&images);
	return 0;
}
