/* SPDX-License-Identifier: MIT */
/*
 * Frames of Java. A place (jvm/jvm.h) is an address of the JVM's image: the kind of place in the
 * two highest bits, the number of the code in the next 30, the offset or bytecode index in the low
 * 32. So code that was unloaded and other code at the same virtual address are different frames.
 *
 * A frame has the name of its method besides, so that nobody looks for it elsewhere; its symbol has
 * the methods that are inlined there.
 */
#include "record/java_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define KIND_SHIFT 62
#define CODE_SHIFT 32
#define CODE_MASK  0x3fffffffu

/* Of place kinds of the walk: 0 is none there. */
static enum jvm_place_kind kind_of(const struct unwind_place *place)
{
	return (enum jvm_place_kind)(place->kind - 1);
}

enum unwind_generated java_process_step(struct java_process *p, struct cpu_regs *regs,
	bool is_caller, const struct unwind_stack *stack, struct unwind_place *place,
	const char **why)
{
	const struct jvm_stack bytes = {stack->read, stack->ctx};
	struct jvm_place at = {.code = 0};
	enum jvm_step step;

	if (!jvm_has_code(p->jvm, regs->r[CPU_REG_RIP] - is_caller))
		return UNWIND_GENERATED_UNKNOWN;
	step = jvm_step(p->jvm, regs, is_caller, &bytes, &at, why);
	if (at.code) /* numbers begin at 1 */
		*place = (struct unwind_place){(uint32_t)at.kind + 1, at.code, at.at};
	return step == JVM_STEP_DONE	? UNWIND_GENERATED_STEPPED
	       : step == JVM_STEP_SHORT ? UNWIND_GENERATED_SHORT
					: UNWIND_GENERATED_LOST;
}

/* --- names ------------------------------------------------------------------------------ */

static enum frame_kind frame_kind_of(enum jvm_place_kind kind)
{
	return kind == JVM_PLACE_INTERPRETED ? FRAME_KIND_INTERPRETED
	       : kind == JVM_PLACE_COMPILED  ? FRAME_KIND_JITTED
					     : FRAME_KIND_NATIVE;
}

/* As docs/format/trace.md has it. */
static uint32_t name_string(struct trace_writer *w, enum jvm_place_kind kind, const char *name)
{
	static const char *const begin[] = {
		[JVM_PLACE_INTERPRETED] = "I:",
		[JVM_PLACE_COMPILED] = "J:",
		[JVM_PLACE_NATIVE] = "F:",
		[JVM_PLACE_STUB] = "[stub ",
	};
	char *text = mem_printf("%s%s%s", begin[kind], name, kind == JVM_PLACE_STUB ? "]" : "");
	uint32_t id = trace_writer_string(w, text);

	free(text);
	return id;
}

/* `Main.java` of com.example.Main.run(int) is com/example/Main.java: that is where it is below the root
 * of the sources. */
static uint32_t file_string(struct trace_writer *w, const struct jvm_level *level)
{
	size_t n_class = 0, n_package = 0, i = 0;
	struct buf path = {0};
	uint32_t id;

	if (!level->file || !*level->file)
		return 0;
	for (; level->name[i] && level->name[i] != '(' && level->name[i] != '/'; i++)
		if (level->name[i] == '.') {
			n_package = n_class;
			n_class = i;
		}
	if (level->name[i] ==
		'/') /* of a hidden class: its number follows, the method's dot is behind */
		n_package = n_class;
	for (i = 0; i < n_package; i++)
		buf_put_u8(&path, level->name[i] == '.' ? '/' : (uint8_t)level->name[i]);
	if (n_package)
		buf_put_u8(&path, '/');
	buf_put_cstr(&path, level->file);
	id = trace_writer_string(w, buf_text(&path));
	buf_release(&path);
	return id;
}

static uint32_t image_of(struct java_process *p)
{
	struct trace_writer *w = p->world->w;

	if (!p->image)
		p->image = trace_writer_image(w,
			&(struct trace_image){.kind = IMAGE_KIND_JIT,
				.path = trace_writer_string(w, JAVA_IMAGE_PATH),
				.bits = 64,
				.file_mtime_ns = p->began_ns ? p->began_ns + p->since_1970_ns : 0,
				.pid = p->pid});
	return p->image;
}

static uint32_t define_frame(
	struct java_process *p, const struct unwind_place *place, uint64_t addr, bool is_caller)
{
	enum jvm_place_kind kind = kind_of(place);
	const struct jvm_place at = {kind, place->code, place->at};
	struct trace_writer *w = p->world->w;
	struct jvm_level levels[JVM_LEVELS_MAX];
	struct trace_symbol_level named[SYMBOL_LEVELS_MAX] = {0};
	struct trace_symbol symbol = {.levels = named};
	const char *why = "the JVM does not say";
	size_t n = jvm_levels(p->jvm, &at, levels, &why);

	for (size_t i = 0; i < n && i < SYMBOL_LEVELS_MAX; i++)
		named[i] = (struct trace_symbol_level){.name = name_string(w, kind, levels[i].name),
			.file = file_string(w, &levels[i]),
			.line = levels[i].line};
	if (!n) {
		p->n_unnamed++;
		symbol.reason = trace_writer_string(w, why);
		named[n++].name = name_string(w, kind, "[unreadable]");
	}
	symbol.n_levels = (uint32_t)n;
	named[n - 1].offset =
		place->at == UINT32_MAX ? 0 : place->at; /* a bytecode that is not known */
	symbol.frame = trace_writer_frame(w, &(struct trace_frame){.kind = frame_kind_of(kind),
						     .is_caller = is_caller,
						     .image = image_of(p),
						     .name = named[n - 1].name,
						     .addr = addr});
	trace_writer_symbol(w, &symbol);
	return symbol.frame;
}

uint32_t java_process_frame(
	struct java_process *p, const struct unwind_place *place, bool is_caller)
{
	uint64_t addr = (uint64_t)kind_of(place) << KIND_SHIFT |
			(uint64_t)(place->code & CODE_MASK) << CODE_SHIFT | place->at;
	bool created;
	uint64_t *id = map_ensure(&p->frames[is_caller], addr, &created);

	if (created)
		*id = define_frame(p, place, addr, is_caller);
	return (uint32_t)*id;
}
