/* SPDX-License-Identifier: MIT */
#include "formats/foreign/jfr_stacks.h"

#include <string.h>

#include "classfile/java_name.h"
#include "formats/text_lines.h"

#define VIRTUAL_THREAD UINT32_C(0x80000000) /* no number of a thread of Linux has this bit */

void jfr_stacks_init(struct jfr_stacks *s, struct foreign_trace *trace)
{
	*s = (struct jfr_stacks){.trace = trace};
	intern_text(&s->names, "");
}

void jfr_stacks_next_chunk(struct jfr_stacks *s)
{
	map_reset(&s->stacks);
	map_reset(&s->threads);
	map_reset(&s->kinds);
	for (size_t i = 0; i < JFR_N_MARKS; i++)
		map_reset(&s->methods[i]);
	s->known.n = 0;
}

void jfr_stacks_release(struct jfr_stacks *s)
{
	intern_release(&s->names);
	map_release(&s->stacks);
	map_release(&s->threads);
	map_release(&s->kinds);
	for (size_t i = 0; i < JFR_N_MARKS; i++)
		map_release(&s->methods[i]);
	vec_release(&s->known);
	vec_release(&s->frames);
	buf_release(&s->text);
	buf_release(&s->part);
}

/* ---- methods ---- */

static void field_text(
	struct jfr_chunk *c, const struct jfr_value *of, const char *name, struct buf *to)
{
	struct jfr_value field;

	buf_reset(to);
	if (jfr_field(c, of, name, &field))
		jfr_value_text(c, &field, to);
}

/* async-profiler gives functions of C and of the kernel the return type of a class without a name. */
static bool is_signature(struct span text)
{
	return text.n && text.p[0] == '(' &&
	       !(text.n >= 3 && !memcmp(text.p + text.n - 3, ")L;", 3));
}

/* What has no signature of Java is a function of C, and its class the library. */
static struct jfr_method read_method(struct jfr_stacks *s, struct jfr_chunk *c,
	const struct jfr_value *method, enum jfr_mark mark)
{
	static const char marks[JFR_N_MARKS] = {'I', 'J', 'F'};
	struct jfr_method known = {.is_java = false};
	struct buf parameters = {0};

	field_text(c, method, "descriptor", &s->part);
	known.is_java = is_signature(buf_span(&s->part)) &&
			java_parameters_put(&parameters, buf_span(&s->part));
	field_text(c, method, "type", &s->part);
	buf_reset(&s->text);
	if (known.is_java) {
		buf_put_u8(&s->text, (uint8_t)marks[mark]);
		buf_put_u8(&s->text, ':');
		java_class_put(&s->text, buf_span(&s->part));
		if (s->part.n)
			buf_put_u8(&s->text, '.');
	} else {
		known.library = intern_bytes(&s->names, s->part.p, s->part.n);
	}
	field_text(c, method, "name", &s->part);
	java_text_put(&s->text, buf_span(&s->part));
	if (known.is_java)
		buf_put(&s->text, parameters.p, parameters.n);
	if (!s->text.n)
		buf_put_cstr(&s->text, "[unknown]");
	known.name = intern_bytes(&s->names, s->text.p, s->text.n);
	buf_release(&parameters);
	return known;
}

static struct jfr_method method_of(struct jfr_stacks *s, struct jfr_chunk *c,
	const struct jfr_value *frame, enum jfr_mark mark)
{
	struct jfr_value method = {.is_there = false};
	bool is_new;
	uint64_t *place;

	if (!jfr_field(c, frame, "method", &method))
		method.is_there = false;
	if (!method.is_there)
		return (struct jfr_method){.name = intern_text(&s->names, "[unknown]")};
	place = map_ensure(&s->methods[mark], method.number, &is_new);
	if (is_new) {
		*place = s->known.n;
		vec_push(&s->known, read_method(s, c, &method, mark));
	}
	return s->known.v[*place];
}

/* ---- frames ---- */

static enum frame_kind kind_of_text(struct span text)
{
	static const struct {
		const char *text;
		enum frame_kind kind;
	} kinds[] = {
		{"Interpreted", FRAME_KIND_INTERPRETED},
		{"JIT compiled", FRAME_KIND_JITTED},
		{"C1 compiled", FRAME_KIND_JITTED},
		{"Inlined", FRAME_KIND_INLINE},
		{"Kernel", FRAME_KIND_KERNEL},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (text_word_is(text, kinds[i].text))
			return kinds[i].kind;
	return FRAME_KIND_NATIVE;
}

static enum frame_kind kind_of(
	struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *frame)
{
	struct jfr_value type;
	bool is_new;
	uint64_t *kind;

	if (!jfr_field(c, frame, "type", &type))
		return FRAME_KIND_NATIVE;
	if (!type.number) { /* written in place */
		jfr_value_text(c, &type, &s->text);
		return kind_of_text(buf_span(&s->text));
	}
	kind = map_ensure(&s->kinds, type.number, &is_new);
	if (is_new) {
		jfr_value_text(c, &type, &s->text);
		*kind = kind_of_text(buf_span(&s->text));
	}
	return (enum frame_kind) * kind;
}

static enum jfr_mark mark_of(enum frame_kind kind)
{
	return kind == FRAME_KIND_INTERPRETED				? JFR_MARK_INTERPRETED
	       : kind == FRAME_KIND_JITTED || kind == FRAME_KIND_INLINE ? JFR_MARK_JITTED
									: JFR_MARK_NATIVE;
}

/* A frame with what is inlined into it: that comes first. */
struct pending {
	struct foreign_level levels[SYMBOL_LEVELS_MAX]; /* innermost first */
	size_t n;
};

static void put_pending(
	struct jfr_stacks *s, struct pending *p, enum frame_kind kind, const struct jfr_method *m)
{
	static const char java[] = JAVA_IMAGE_PATH;
	struct foreign_frame frame = {.kind = kind, .levels = p->levels, .n_levels = p->n};
	const struct intern_item *library = &s->names.items[m->library];

	if (m->is_java)
		frame.image = (struct span){(const uint8_t *)java, sizeof(java) - 1};
	else if (kind != FRAME_KIND_KERNEL)
		frame.image = (struct span){(const uint8_t *)library->p, library->n};
	vec_push(&s->frames, foreign_trace_frame(s->trace, &frame));
	p->n = 0;
}

static struct foreign_level level_of(struct jfr_stacks *s, struct jfr_chunk *c,
	const struct jfr_value *frame, const struct jfr_method *m)
{
	const struct intern_item *name = &s->names.items[m->name];
	struct foreign_level level = {.name = {(const uint8_t *)name->p, name->n}};
	struct jfr_value line;
	uint64_t number = jfr_field(c, frame, "lineNumber", &line) ? jfr_value_number(c, &line) : 0;

	level.line = number <= INT32_MAX ? (uint32_t)number : 0;
	return level;
}

/* Frames come innermost first. What is inlined into a frame that is not there any more, as the stack is cut, is jitted. */
static void read_frames(struct jfr_stacks *s, struct jfr_chunk *c, struct jfr_value frames)
{
	struct pending p = {.n = 0};
	struct jfr_method m = {0};
	uint64_t n = jfr_array_begin(c, &frames);

	s->frames.n = 0;
	for (uint64_t i = 0; i < n; i++) {
		enum frame_kind kind = kind_of(s, c, &frames);
		const uint8_t *from = frames.at.p;
		bool is_inlined;

		m = method_of(s, c, &frames, mark_of(kind));
		p.levels[p.n++] = level_of(s, c, &frames, &m);
		is_inlined = kind == FRAME_KIND_INLINE;
		if (!is_inlined || p.n == SYMBOL_LEVELS_MAX || i + 1 == n)
			put_pending(s, &p, is_inlined ? FRAME_KIND_JITTED : kind, &m);
		jfr_skip(&c->types, frames.type, &frames.at);
		if (frames.at.failed || frames.at.p == from)
			break;
		if (i == JFR_DEPTH_MAX) {
			s->n_deep++;
			break;
		}
	}
	if (p.n)
		put_pending(s, &p, FRAME_KIND_JITTED, &m);
}

/* ---- stacks ---- */

static bool is_truncated(struct jfr_chunk *c, const struct jfr_value *stack)
{
	struct jfr_value truncated;

	return jfr_field(c, stack, "truncated", &truncated) && jfr_value_number(c, &truncated);
}

static uint32_t make_stack(struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *from)
{
	static const char cut[] = "the recording keeps no deeper stacks";
	struct jfr_value frames;
	uint32_t stack = 0;

	if (!jfr_field(c, from, "frames", &frames) || !frames.is_there)
		return 0;
	read_frames(s, c, frames);
	if (is_truncated(c, from))
		stack = foreign_trace_stack(s->trace, 0,
			foreign_trace_name(s->trace, FRAME_KIND_MARKER,
				(struct span){(const uint8_t *)cut, sizeof(cut) - 1}));
	for (size_t i = s->frames.n; i-- > 0;)
		stack = foreign_trace_stack(s->trace, stack, s->frames.v[i]);
	return stack;
}

uint32_t jfr_stack(struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *stack)
{
	bool is_new;
	uint64_t *known;

	if (!stack->is_there) {
		s->n_missing += stack->number != 0;
		return 0;
	}
	if (!stack->number)
		return make_stack(s, c, stack);
	known = map_ensure(&s->stacks, stack->number, &is_new);
	if (is_new)
		*known = make_stack(s, c, stack);
	return (uint32_t)*known;
}

/* ---- threads ---- */

static uint64_t field_number(struct jfr_chunk *c, const struct jfr_value *of, const char *name)
{
	struct jfr_value field;

	return jfr_field(c, of, name, &field) ? jfr_value_number(c, &field) : 0;
}

static uint32_t make_thread(struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *from)
{
	uint32_t tid = (uint32_t)field_number(c, from, "osThreadId");

	/* Virtual threads have no number but that of Java. */
	if (!tid)
		tid = VIRTUAL_THREAD | (uint32_t)field_number(c, from, "javaThreadId");
	field_text(c, from, "javaName", &s->part);
	if (!s->part.n)
		field_text(c, from, "osName", &s->part);
	buf_reset(&s->text);
	java_text_put(&s->text, buf_span(&s->part));
	return foreign_trace_thread(s->trace, 0, tid, buf_span(&s->text));
}

uint32_t jfr_thread(struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *thread)
{
	bool is_new;
	uint64_t *known;

	if (!thread->is_there)
		return foreign_trace_thread(s->trace, 0, 0, (struct span){0});
	known = map_ensure(&s->threads, thread->number, &is_new);
	if (is_new)
		*known = make_thread(s, c, thread);
	return (uint32_t)*known;
}
