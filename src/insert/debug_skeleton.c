/* SPDX-License-Identifier: MIT */
/*
 * Units whose entries are in another file (-gsplit-dwarf). That file speaks of the code as it was, with lengths that
 * are numbers in it, so that its functions and inlined calls would lie in the wrong places. Changing it is not ours:
 * the plain program needs it. So a skeleton becomes a unit of its own, without the name of the file: lines stay right,
 * entries there are none.
 *
 * Both codes are changed within their bytes of .debug_abbrev, so that nothing moves. The header of a unit of DWARF 5
 * keeps its type, which readers do not mind.
 */
#include "dwarf/abbrev.h"
#include "insert/debug_stage.h"

#define NAME_DWO_NAME	  0x76
#define NAME_GNU_DWO_NAME 0x2130
#define NAME_RESERVED	  0x04 /* means nothing in any version */

/* The bytes behind `from` that the cursor has read since. */
static size_t bytes_since(const struct cursor *c, const uint8_t *from)
{
	return (size_t)(c->p - from);
}

static void set_code(
	struct debug_stage *s, const uint8_t *base, const uint8_t *at, size_t n, uint64_t code)
{
	stage_put_leb(s, (size_t)(at - base), n, code);
}

/* The abbreviation whose code has been read. True when it is that of a skeleton. */
static bool detach_abbrev(struct debug_stage *s, const uint8_t *base, struct cursor *c)
{
	const uint8_t *at = c->p;
	uint64_t tag = cursor_uleb(c);
	struct abbrev_attr a;
	bool is_skeleton = false;

	if (!c->failed && tag == TAG_SKELETON_UNIT)
		set_code(s, base, at, bytes_since(c, at), TAG_COMPILE_UNIT);
	cursor_u8(c); /* has children */
	for (at = c->p; abbrev_next_attr(c, &a); at = c->p) {
		struct cursor name = *c;

		name.p = at;
		cursor_uleb(&name);
		if (a.name != NAME_DWO_NAME && a.name != NAME_GNU_DWO_NAME)
			continue;
		set_code(s, base, at, bytes_since(&name, at), NAME_RESERVED);
		is_skeleton = true;
	}
	return is_skeleton;
}

bool debug_skeletons_detach(struct debug_stage *s)
{
	struct cursor c = cursor_of(s->in);
	bool has = false;

	stage_edit(s);
	while (cursor_left(&c) && !c.failed)
		if (cursor_uleb(&c) && !c.failed)
			has |= detach_abbrev(s, s->in.p, &c);
	return has;
}
