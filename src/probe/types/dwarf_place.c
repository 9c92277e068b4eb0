/* SPDX-License-Identifier: MIT */
/*
 * Without optimisation a parameter has one place for the whole function: a slot of its frame, into
 * which the first instructions put it. In front of these it is where the caller has put it, which
 * debug information does not say; what the instructions store there does.
 */
#include "probe/types/dwarf_place.h"

#include <elf.h>
#include <string.h>

#include "dwarf/cfi_rule.h"

static const char optimized_out[] = "was optimized out";
static const char not_here[] = "is not known at this address";
static const char in_part[] = "is known only in part";
static const char damaged[] = "has damaged debug information";
static const char computed[] = "is computed in a way that is not understood";
static const char stored_later[] =
	"is in the frame of the function further on, and where it comes from is not clear";
static const char no_frame[] = "is in the frame of the function, which is not known here";
static const char too_many[] = "is in too many pieces";

void place_source_release(struct place_source *s)
{
	location_lists_release(&s->lists);
	cfi_table_free(s->cfi);
}

static struct value_place unknown(const char *why)
{
	return (struct value_place){.kind = VALUE_UNKNOWN, .why = why};
}

bool dwarf_place_is_gone(const struct value_place *place)
{
	return place->kind == VALUE_UNKNOWN && place->why != not_here &&
	       place->why != stored_later && place->why != no_frame;
}

/* --- registers ---------------------------------------------------------------------------------- */

static int64_t word_bytes(const struct place_finder *f)
{
	return f->mode == MODE_32 ? 4 : 8;
}

/* A DWARF number as that in encodings of instructions; -1: no general register. */
static int encoded_number(enum mode mode, uint8_t reg)
{
	static const uint8_t of_64[] = {0, 2, 1, 3, 6, 7, 5, 4}; /* psABI figure 3.36 */

	if (mode == MODE_32)
		return reg < 8 ? reg : -1;
	return reg < 8 ? of_64[reg] : reg < 16 ? reg : -1;
}

static uint16_t pt_of_encoded(int number)
{
	static const uint16_t of[] = {PT_AX, PT_CX, PT_DX, PT_BX, PT_SP, PT_BP, PT_SI, PT_DI, PT_R8,
		PT_R9, PT_R10, PT_R11, PT_R12, PT_R13, PT_R14, PT_R15};

	return of[number & 15];
}

static bool is_vector_register(enum mode mode, uint8_t reg)
{
	if (mode == MODE_32)
		return (reg >= 11 && reg <= 18) || (reg >= 21 && reg <= 36);
	return (reg >= 17 && reg <= 48) || (reg >= 67 && reg <= 82);
}

/* --- the frame ---------------------------------------------------------------------------------- */

/* The bytes of the segment that holds the function, and where it is in them. */
static struct span code_of(const struct place_finder *f, uint64_t *at)
{
	const struct elf_file *elf = f->source->elf;

	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || f->entry < s->addr.v ||
			f->entry - s->addr.v >= s->file_size)
			continue;
		*at = f->entry - s->addr.v;
		return elf_file_bytes_at(elf, s->addr);
	}
	return (struct span){NULL, 0};
}

void dwarf_place_follow(struct place_finder *f)
{
	uint64_t at = 0, into = f->addr - f->entry;
	struct span code;

	if (f->is_followed)
		return;
	f->is_followed = true;
	code = code_of(f, &at);
	x86_entry_follow(&f->settled, code, at, f->mode == MODE_64, UINT32_MAX);
	x86_entry_follow(&f->here, code, at, f->mode == MODE_64,
		into > UINT32_MAX ? UINT32_MAX : (uint32_t)into);
}

/* Whether the instructions in front of the address are the function's first ones, in a straight
 * line. */
static bool is_in_line(struct place_finder *f)
{
	dwarf_place_follow(f);
	return f->here.n_bytes == f->addr - f->entry;
}

bool dwarf_frame_base(struct place_finder *f, struct term *out)
{
	struct expression_result result;
	struct span expression;
	int number;

	switch (location_find(
		&f->source->lists, &f->function, DIE_FRAME_BASE, f->addr, &expression)) {
	case LOCATION_EVERYWHERE:
	case LOCATION_HERE:
		break;
	default:
		return false;
	}
	/* An expression that asks for the frame base itself would never end. */
	if (!expression.n || memchr(expression.p, 0x91, expression.n))
		return false;
	dwarf_expression_read(f, expression, &result);
	if (result.why || result.n != 1)
		return false;
	*out = result.pieces[0].term;
	if (result.pieces[0].kind == PIECE_MEMORY)
		return out->kind == TERM_FRAME || out->kind == TERM_REGISTER;
	if (result.pieces[0].kind != PIECE_REGISTER)
		return false;
	/* A register that the function sets up: what counts is what it is then. */
	number = encoded_number(f->mode, result.pieces[0].reg);
	dwarf_place_follow(f);
	*out = (struct term){.kind = TERM_FRAME};
	f->is_guess = number == X86_ENTRY_SP && !f->settled.has_sp;
	if (number == X86_ENTRY_FP && f->settled.has_fp)
		out->offset = f->settled.fp;
	else if (number == X86_ENTRY_SP && (f->settled.has_sp || f->addr == f->entry))
		out->offset = f->settled.sp;
	else if (!is_in_line(f))
		*out = (struct term){.kind = TERM_REGISTER, .reg = result.pieces[0].reg};
	else
		return false;
	return true;
}

static const struct cfi_rule *find_rule(struct place_source *s, uint64_t addr)
{
	if (!s->cfi) {
		s->cfi = cfi_table_new(s->elf);
		if (s->debug)
			cfi_table_add_debug_frame(s->cfi, s->debug);
	}
	return cfi_table_find(s->cfi, (struct iaddr){addr});
}

/* The frame address as a register and a distance, where the instruction is about to run. */
static bool frame_address(struct place_finder *f, uint16_t *reg, int64_t *distance)
{
	const struct x86_entry_value *sp = &f->here.regs[X86_ENTRY_SP];
	const struct cfi_rule *rule;

	*reg = PT_SP;
	*distance = word_bytes(f);
	if (f->addr == f->entry)
		return true;
	if (is_in_line(f) && sp->kind == X86_ENTRY_ADDRESS) {
		*distance = -sp->offset;
		return true;
	}
	rule = find_rule(f->source, f->addr);
	if (!rule || rule->cfa_reg >= CPU_REG_RIP)
		return false;
	*reg = pt_of_encoded(encoded_number(MODE_64, rule->cfa_reg));
	*distance = rule->cfa_value;
	return true;
}

/* --- terms -------------------------------------------------------------------------------------- */

static bool fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX;
}

/* The register that a sum begins with, the frame address expressed by one. */
static const char *base_of(
	struct place_finder *f, bool is_frame, uint8_t dwarf_reg, uint16_t *reg, int64_t *offset)
{
	int64_t distance;
	int number;

	if (is_frame) {
		if (!frame_address(f, reg, &distance))
			return no_frame;
		*offset += distance;
	} else {
		number = encoded_number(f->mode, dwarf_reg);
		if (number < 0)
			return computed;
		*reg = pt_of_encoded(number);
	}
	return fits(*offset) ? NULL : damaged;
}

static const char *memory_part(
	struct place_finder *f, const struct term *t, uint64_t bytes, struct value_part *part)
{
	bool is_behind = t->kind == TERM_BEHIND;
	int64_t offset = is_behind ? t->inner : t->offset;
	uint16_t reg = 0;
	const char *why;

	if (t->kind != TERM_REGISTER && t->kind != TERM_FRAME && !is_behind)
		return computed;
	why = base_of(f, is_behind ? t->is_frame : t->kind == TERM_FRAME, t->reg, &reg, &offset);
	if (why || (is_behind && !fits(t->offset)))
		return why ? why : damaged;
	*part = (struct value_part){.kind = PART_MEMORY,
		.reg = reg,
		.is_behind = is_behind,
		.offset = (int32_t)offset,
		.next = is_behind ? (int32_t)t->offset : 0,
		.bytes = (uint32_t)bytes};
	return NULL;
}

static const char *value_part(
	struct place_finder *f, const struct term *t, uint64_t bytes, struct value_part *part)
{
	struct term pointer = *t;
	const char *why;

	*part = (struct value_part){.bytes = (uint32_t)bytes, .value = (uint64_t)t->offset};
	switch (t->kind) {
	case TERM_CONSTANT:
		part->kind = PART_CONSTANT;
		return bytes > 8 ? computed : NULL;
	case TERM_LINKED:
		part->kind = PART_LINKED;
		break;
	case TERM_BEHIND:
		if (t->offset)
			return computed;
		pointer.kind = t->is_frame ? TERM_FRAME : TERM_REGISTER;
		pointer.offset = t->inner;
		why = memory_part(f, &pointer, bytes, part);
		if (why)
			return why;
		break;
	default:
		why = memory_part(f, t, bytes, part);
		if (why)
			return why;
		part->kind = PART_REGISTER;
	}
	return (int64_t)bytes > word_bytes(f) ? computed : NULL;
}

/* --- slots of the frame ------------------------------------------------------------------------- */

static bool is_written(struct place_finder *f, const struct x86_entry_slot *s)
{
	return !is_in_line(f) || s->behind <= f->addr - f->entry;
}

/* What a slot will have, as long as it is where it came from. */
static const char *incoming_part(struct place_finder *f, const struct x86_entry_value *v,
	uint64_t bytes, struct value_part *part, bool *is_vector)
{
	const struct x86_entry_value *now = &f->here.regs[v->reg & 15];
	struct term t = {.kind = TERM_FRAME, .offset = v->offset};

	switch (v->kind) {
	case X86_ENTRY_REGISTER:
		if (now->kind != X86_ENTRY_REGISTER || now->reg != v->reg)
			return stored_later;
		*part = (struct value_part){.kind = PART_REGISTER,
			.reg = pt_of_encoded(v->reg),
			.bytes = (uint32_t)bytes};
		return NULL;
	case X86_ENTRY_CALLER:
		return memory_part(f, &t, bytes, part);
	case X86_ENTRY_VECTOR:
		*is_vector = true;
		return NULL;
	default:
		return stored_later;
	}
}

/* Functions with Microsoft's convention have slots for their first four arguments above the return
 * address, and put them there themselves. */
static bool is_home(const struct place_finder *f, const struct x86_entry_slot *s)
{
	static const uint8_t registers[] = {1, 2, 8, 9};

	return f->mode == MODE_64 && s && s->is_direct && s->offset >= 0 && s->offset < 32 &&
	       s->offset % 8 == 0 && s->value.kind == X86_ENTRY_REGISTER &&
	       s->value.reg == registers[s->offset / 8];
}

/* Of the slot at an offset the next part, of at most so many bytes. */
static const char *slot_part(struct place_finder *f, int64_t offset, uint64_t bytes,
	struct value_part *part, bool *is_vector)
{
	struct term t = {.kind = TERM_FRAME, .offset = offset};
	const struct x86_entry_slot *s;

	dwarf_place_follow(f);
	s = x86_entry_first(&f->settled, offset);
	if (f->is_guess && offset < 0)
		return no_frame;
	if ((offset >= 0 && !is_home(f, s)) || (!s && !is_in_line(f)))
		return memory_part(f, &t, bytes, part);
	if (!s)
		return stored_later;
	if (bytes > s->bytes)
		bytes = s->bytes;
	if (is_written(f, s))
		return memory_part(f, &t, bytes, part);
	return incoming_part(f, &s->value, bytes, part, is_vector);
}

/* --- a whole place ------------------------------------------------------------------------------ */

struct making {
	struct place_finder *f;
	struct value_place place;
	const struct type *type;
	const char *why;
	bool is_vector;
	uint64_t done;
};

static void add_part(struct making *m, struct value_part part)
{
	struct value_place *p = &m->place;
	struct value_part *last = p->n_parts ? &p->parts[p->n_parts - 1] : NULL;

	m->done += part.bytes;
	if (last && last->kind == PART_MEMORY && part.kind == PART_MEMORY &&
		last->reg == part.reg && !last->is_behind && !part.is_behind &&
		part.offset == last->offset + (int64_t)last->bytes)
		last->bytes += part.bytes;
	else if (p->n_parts == VALUE_PARTS_MAX)
		m->why = too_many;
	else
		p->parts[p->n_parts++] = part;
}

/* Whether no member of a type has one of the bytes. */
static bool is_padding(const struct type *type, uint64_t from, uint64_t to, int depth)
{
	if (from >= to)
		return true;
	if (type->kind != TYPE_STRUCT || !type->n_fields || depth > 8)
		return false;
	for (uint32_t i = 0; i < type->n_fields; i++) {
		const struct type_field *f = &type->fields[i];
		uint64_t start = f->offset, end = f->offset + f->type->size;
		uint64_t low = from > start ? from - start : 0;

		if (from < end && to > start &&
			!is_padding(f->type, low, (to < end ? to : end) - start, depth + 1))
			return false;
	}
	return true;
}

/* Bytes that no member has are not stored. */
static bool add_padding(struct making *m, uint64_t end)
{
	uint32_t n = 0;

	while (n < 8 && m->done + n < end && is_padding(m->type, m->done, m->done + n + 1, 0))
		n++;
	if (n)
		add_part(m, (struct value_part){.kind = PART_CONSTANT, .bytes = n});
	return n;
}

/* A slot for the whole function, or a pointer in one. */
static void add_slot(struct making *m, const struct term *t, uint64_t bytes)
{
	struct value_part part = {0};
	uint64_t start = m->done, end = m->done + bytes;

	if (t->kind == TERM_BEHIND) {
		m->why =
			slot_part(m->f, t->inner, (uint64_t)word_bytes(m->f), &part, &m->is_vector);
		if (m->why || m->is_vector)
			return;
		if (part.kind == PART_MEMORY && !part.is_behind) {
			part.is_behind = true;
			part.next = (int32_t)t->offset;
		} else if (part.kind == PART_REGISTER && !part.offset && fits(t->offset)) {
			part.kind = PART_MEMORY;
			part.offset = (int32_t)t->offset;
		} else {
			m->why = computed;
		}
		part.bytes = (uint32_t)bytes;
		add_part(m, part);
		return;
	}
	while (!m->why && !m->is_vector && m->done < end) {
		m->why = slot_part(m->f, t->offset + (int64_t)(m->done - start), end - m->done,
			&part, &m->is_vector);
		if (m->why == stored_later && add_padding(m, end))
			m->why = NULL;
		else if (!m->why && !m->is_vector)
			add_part(m, part);
	}
}

static void add_register(struct making *m, uint8_t reg, uint64_t bytes)
{
	int number = encoded_number(m->f->mode, reg);

	if (is_vector_register(m->f->mode, reg))
		m->is_vector = true;
	else if (number < 0 || (int64_t)bytes > word_bytes(m->f))
		m->why = computed;
	else
		add_part(m, (struct value_part){.kind = PART_REGISTER,
				    .reg = pt_of_encoded(number),
				    .bytes = (uint32_t)bytes});
}

static void add_bytes(struct making *m, struct span bytes, uint64_t n)
{
	struct value_part part = {.kind = PART_CONSTANT};

	if (n > bytes.n)
		n = bytes.n;
	if (!n)
		m->why = damaged;
	for (uint64_t at = 0; at < n && !m->why; at += part.bytes) {
		part.bytes = (uint32_t)(n - at < 8 ? n - at : 8);
		part.value = 0;
		memcpy(&part.value, bytes.p + at, part.bytes);
		add_part(m, part);
	}
}

static void add_hole(struct making *m, const struct type *type, uint64_t bytes)
{
	if (!is_padding(type, m->done, m->done + bytes, 0))
		m->why = m->done || bytes < type->size ? in_part : optimized_out;
	while (bytes && !m->why) {
		uint32_t n = bytes < 8 ? (uint32_t)bytes : 8;

		add_part(m, (struct value_part){.kind = PART_CONSTANT, .bytes = n});
		bytes -= n;
	}
}

/* A place for the whole function that begins with a register: in the function's body, and before it only
 * where the register is one that the caller has set. (gcc's address sanitizer claims such places of
 * registers that calls change.) */
static bool is_register_set(struct place_finder *f, const struct term *t)
{
	int number = encoded_number(f->mode, t->reg);
	uint32_t given =
		f->mode == MODE_32 ? 0x07u : 0x3c6u; /* eax ecx edx; rcx rdx rsi rdi r8 r9 */
	uint32_t changed_by_calls = f->mode == MODE_32 ? 0x01u : 0xc01u;

	if (number < 0 || (changed_by_calls >> number & 1))
		return false;
	if (!is_in_line(f))
		return true;
	return t->kind == TERM_REGISTER && !t->offset && (given >> number & 1) &&
	       f->here.regs[number].kind == X86_ENTRY_REGISTER &&
	       f->here.regs[number].reg == number;
}

static void add_piece(
	struct making *m, const struct piece *p, const struct type *type, bool is_everywhere)
{
	uint64_t left = type->size > m->done ? type->size - m->done : 0;
	uint64_t n = p->n && p->n < left ? p->n : left;
	struct value_part part = {0};

	switch (p->kind) {
	case PIECE_NOWHERE:
		add_hole(m, type, n);
		return;
	case PIECE_REGISTER:
		add_register(m, p->reg, n);
		return;
	case PIECE_BYTES:
		add_bytes(m, p->bytes, n);
		return;
	case PIECE_MEMORY:
		if (is_everywhere && (p->term.kind == TERM_FRAME ||
					     (p->term.kind == TERM_BEHIND && p->term.is_frame))) {
			add_slot(m, &p->term, n);
			return;
		}
		if (is_everywhere && !is_register_set(m->f, &p->term)) {
			m->why = no_frame;
			return;
		}
		m->why = memory_part(m->f, &p->term, n, &part);
		break;
	case PIECE_VALUE:
		m->why = value_part(m->f, &p->term, n, &part);
		break;
	}
	if (!m->why)
		add_part(m, part);
}

static struct value_place place_of_expression(
	struct place_finder *f, struct span expression, const struct type *type, bool is_everywhere)
{
	struct making m = {.f = f,
		.type = type,
		.place = {.kind = VALUE_IN_PARTS, .bytes = (uint32_t)type->size}};
	struct expression_result result;

	dwarf_expression_read(f, expression, &result);
	if (result.why)
		return unknown(result.why);
	if (!result.n)
		return unknown(optimized_out);
	for (uint32_t i = 0; i < result.n && !m.why && !m.is_vector; i++)
		add_piece(&m, &result.pieces[i], type, is_everywhere);
	if (!m.why && !m.is_vector && m.done < type->size)
		add_hole(&m, type, type->size - m.done);
	if (m.why)
		return unknown(m.why);
	if (m.is_vector)
		m.place.kind = VALUE_IN_VECTOR;
	return m.place;
}

static bool constant_place(const struct die *d, const struct type *type, struct value_place *out)
{
	struct making m = {.place = {.kind = VALUE_IN_PARTS, .bytes = (uint32_t)type->size}};
	struct span block;
	uint64_t value;

	if (!die_says(d, DIE_CONST_VALUE))
		return false;
	if (die_number(d, DIE_CONST_VALUE, &value) && type->size <= 8)
		add_part(&m, (struct value_part){.kind = PART_CONSTANT,
				     .value = value,
				     .bytes = (uint32_t)type->size});
	else if (die_block(d, DIE_CONST_VALUE, &block) && block.n == type->size)
		add_bytes(&m, block, block.n);
	else
		m.why = computed;
	*out = m.why ? unknown(m.why) : m.place;
	return true;
}

struct value_place dwarf_place(
	struct place_finder *f, const struct die *parameter, const struct type *type)
{
	struct value_place place;
	struct span expression;

	f->is_guess = false;
	if (parameter->tag == DIE_TAG_END)
		return unknown(optimized_out);
	if (!type->size || type->size > UINT32_MAX)
		return unknown("has a type of which the size is not known");
	if (constant_place(parameter, type, &place))
		return place;
	switch (location_find(&f->source->lists, parameter, DIE_LOCATION, f->addr, &expression)) {
	case LOCATION_EVERYWHERE:
		return place_of_expression(f, expression, type, true);
	case LOCATION_HERE:
		return place_of_expression(f, expression, type, false);
	case LOCATION_NONE:
		return unknown(optimized_out);
	case LOCATION_NOT_HERE:
		return unknown(not_here);
	default:
		f->is_unreadable = true;
		return unknown(damaged);
	}
}

/* --- from further on ---------------------------------------------------------------------------- */

/* What a piece has where the instructions were followed to. */
static struct x86_entry_value followed_value(
	const struct place_finder *f, const struct x86_entry *there, const struct piece *p)
{
	struct x86_entry_value value = {.kind = X86_ENTRY_UNKNOWN};
	int number;

	if (p->kind == PIECE_REGISTER) {
		number = encoded_number(f->mode, p->reg);
		return number < 0 ? value : there->regs[number];
	}
	if (p->kind != PIECE_MEMORY || p->term.kind != TERM_REGISTER)
		return value;
	number = encoded_number(f->mode, p->term.reg);
	if (number < 0 || there->regs[number].kind != X86_ENTRY_ADDRESS)
		return value;
	value.offset = there->regs[number].offset + p->term.offset;
	if (value.offset >= 0)
		value.kind = X86_ENTRY_CALLER;
	return value;
}

/* Whether the byte at `done` of the usual place is the first one of the value. */
static bool is_from(const struct place_finder *f, const struct x86_entry_value *value,
	const struct value_place *usual, uint64_t done)
{
	if (value->kind == X86_ENTRY_CALLER)
		return usual->kind == VALUE_ON_STACK &&
		       value->offset + word_bytes(f) == usual->offset + (int64_t)done;
	if (value->kind != X86_ENTRY_REGISTER || done % 8 || done / 8 >= usual->n_regs)
		return false;
	return (usual->kind == VALUE_IN_REGISTER || usual->kind == VALUE_IN_REGISTERS) &&
	       usual->reg[done / 8] == pt_of_encoded(value->reg);
}

/* The same for a class that the caller gives the address of. */
static bool is_class_from(const struct place_finder *f, const struct x86_entry *there,
	const struct piece *p, const struct value_part *usual)
{
	const struct x86_entry_value *v;
	int number = encoded_number(f->mode, p->term.reg);

	if (p->kind != PIECE_MEMORY || p->term.kind != TERM_REGISTER || p->term.offset ||
		number < 0)
		return false;
	v = &there->regs[number];
	if (v->kind == X86_ENTRY_CALLER)
		return usual->is_behind && usual->reg == PT_SP &&
		       v->offset + word_bytes(f) == usual->offset;
	return v->kind == X86_ENTRY_REGISTER && !usual->is_behind &&
	       usual->reg == pt_of_encoded(v->reg);
}

bool dwarf_place_comes_from(struct place_finder *f, const struct die *parameter,
	const struct type *type, const struct value_place *usual)
{
	struct expression_result result;
	struct x86_entry there;
	struct span expression, code;
	uint64_t start, at = 0, done = 0;

	if (parameter->tag == DIE_TAG_END ||
		!location_next(
			&f->source->lists, parameter, DIE_LOCATION, f->addr, &start, &expression) ||
		start - f->entry > UINT16_MAX)
		return false;
	code = code_of(f, &at);
	x86_entry_follow(&there, code, at, f->mode == MODE_64, (uint32_t)(start - f->entry));
	dwarf_expression_read(f, expression, &result);
	if (there.n_bytes != start - f->entry || result.why || !result.n)
		return false;
	if (usual->kind == VALUE_IN_PARTS)
		return result.n == 1 &&
		       is_class_from(f, &there, &result.pieces[0], &usual->parts[0]);
	for (uint32_t i = 0; i < result.n; i++) {
		struct x86_entry_value value = followed_value(f, &there, &result.pieces[i]);

		if (!is_from(f, &value, usual, done))
			return false;
		done += result.pieces[i].n;
	}
	return !done || is_padding(type, done, type->size, 0);
}
