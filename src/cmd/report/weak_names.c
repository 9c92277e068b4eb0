/* SPDX-License-Identifier: MIT */
/*
 * How much of a profile is named by symbols that are not sure to be its own: their image stands on a rung of the
 * verification ladder (symbols/catalog/match.h) below checksum. Code made at run time is left out: its names
 * come from the process itself.
 */
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "calltree/frame_names.h"
#include "cmd/report/summary.h"
#include "symbols/catalog/match.h"

static bool is_weak(const struct report *report, uint32_t image)
{
	const struct trace_match *match = trace_reader_match(report->reader, image);

	return match && match->rung > MATCH_NONE && match->rung < MATCH_CHECKSUM &&
	       trace_reader_image(report->reader, image)->kind == IMAGE_KIND_ELF;
}

/* A routine is one function of one image. */
static const char *key_of(struct buf *to, const char *name, const char *image)
{
	buf_reset(to);
	buf_printf(to, "%s\n%s", image, name);
	return buf_text(to);
}

struct weak_routines {
	struct intern keys;
	VEC(uint32_t) images; /* by the number of a key; 0: its name is not weak */
	struct buf key;
};

static void add_frame(struct weak_routines *w, const struct report *report, uint32_t frame)
{
	struct frame_levels levels;
	uint32_t image = trace_reader_frame(report->reader, frame)->image;

	frame_names_get(report->reader, frame, &levels);
	for (size_t i = 0; i < levels.n; i++) {
		uint32_t number =
			intern_text(&w->keys, key_of(&w->key, levels.v[i].name, levels.v[i].image));

		vec_ensure_zero(&w->images, number + (size_t)1);
		w->images.v[number] = image;
	}
}

static void find_routines(struct weak_routines *w, const struct report *report)
{
	for (uint32_t id = 1; id < trace_reader_n_frames(report->reader); id++) {
		uint32_t image = trace_reader_frame(report->reader, id)->image;

		if (image && is_weak(report, image) &&
			!frame_names_unresolved_reason(report->reader, id))
			add_frame(w, report, id);
	}
}

void weak_names_count(
	struct weak_names *names, const struct report *report, const struct flat *flat)
{
	struct weak_routines w = {0};
	uint64_t largest = 0;

	memset(names, 0, sizeof(*names));
	find_routines(&w, report);
	for (size_t i = 0; w.images.n && i < flat->n_rows; i++) {
		const struct flat_row *row = &flat->rows[i];
		const struct calltree_routine *r =
			calltree_get_routine(report->profile->tree, row->routine);
		uint32_t number = intern_text(&w.keys, key_of(&w.key, r->name, r->image));

		if (number >= w.images.n || !w.images.v[number])
			continue;
		names->base += row->base;
		if (row->base <= largest)
			continue;
		largest = row->base;
		names->image = w.images.v[number];
	}
	intern_release(&w.keys);
	vec_release(&w.images);
	buf_release(&w.key);
}

bool weak_names_are_told(const struct weak_names *names, const struct report *report)
{
	return names->base > report->profile->total / 100 * WEAK_NAMES_PERCENT;
}

const char *weak_names_rung(const struct weak_names *names, const struct report *report)
{
	return match_rung_name(
		(enum match_rung)trace_reader_match(report->reader, names->image)->rung);
}
