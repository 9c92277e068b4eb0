/* SPDX-License-Identifier: MIT */
/* Names: builtins, enumerators, globals of the probed program. */
#include <ctype.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "probe/compile/checker.h"
#include "probe/points/point_kind.h"

#define COMM_BYTES 16

bool check_is_at(const struct check_clause *c, uint32_t points)
{
	return !points || point_has(c->point->spec.kind, points);
}

const char *check_point_text(const struct check_clause *c)
{
	return c->point->spec.text ? c->point->spec.text : "this trace point";
}

static const struct builtin *builtin_find(const char *name)
{
	for (const struct builtin *b = builtins; b->name; b++) {
		if (!strcmp(b->name, name))
			return b;
	}
	return NULL;
}

static const struct type *not_here(struct check_clause *c, struct expr *e, const struct builtin *b)
{
	enum point_kind kind = c->point->spec.kind;

	check_error(
		c, e->place, "not-here", "'%s' does not exist at %s", e->name, check_point_text(c));
	if ((b->id == BUILTIN_ARG || b->id == BUILTIN_ARGS) && kind == POINT_URETPROBE)
		check_hint(c, "save it when the function is entered: self->x = %s",
			b->id == BUILTIN_ARG ? e->name : "args.NAME");
	else if (b->id == BUILTIN_ARG && kind == POINT_TRACEPOINT)
		check_hint(c, "a tracepoint has fields: args.NAME");
	else if (b->id == BUILTIN_ARG && kind == POINT_SYSCALL_RETURN)
		check_hint(c, "save it at syscall:NAME:entry: self->x = %s", e->name);
	else if (b->id == BUILTIN_ARGS && kind == POINT_USDT)
		check_hint(c, "the arguments of USDT probes have no names: arg0, arg1, ...");
	else if (b->id == BUILTIN_ARGS)
		check_hint(c,
			"args exists where functions and system calls are entered, and at tracepoints");
	else if (b->id == BUILTIN_RETVAL)
		check_hint(c, "retval exists at uretprobe, syscall:NAME:return, kretprobe, fexit");
	else if (b->id >= BUILTIN_ERRNO)
		check_hint(c, "it exists in error { } only");
	return check_bad(c);
}

static const struct type *curtask_type(struct check_clause *c)
{
	const struct type *task = check_struct_named(check_types(c), "struct", "task_struct");

	if (!task)
		task = types_void(check_types(c));
	return types_pointer(check_types(c), task, SPACE_KERNEL);
}

static const struct type *builtin_type(
	struct check_clause *c, struct expr *e, const struct builtin *b)
{
	struct types *t = check_types(c);

	switch (b->id) {
	case BUILTIN_PID:
	case BUILTIN_TID:
	case BUILTIN_UID:
	case BUILTIN_GID:
	case BUILTIN_PPID:
	case BUILTIN_CPU:
	case BUILTIN_RAND:
	case BUILTIN_ERRLINE:
		return types_int(t, 4, false);
	case BUILTIN_ERRNO:
		return types_int(t, 4, true);
	case BUILTIN_NSECS:
	case BUILTIN_ELAPSED:
	case BUILTIN_CGROUP:
	case BUILTIN_ERRADDR:
	case BUILTIN_CTX:
		return types_int(t, 8, false);
	case BUILTIN_COMM:
		return types_string(t, COMM_BYTES);
	case BUILTIN_PROBE:
		return types_special(t, TYPE_PROBE);
	case BUILTIN_FUNC:
		return types_special(t, TYPE_FUNC);
	case BUILTIN_USTACK:
		c->session->stream->uses_stacks = true;
		return types_special(t, TYPE_USTACK);
	case BUILTIN_KSTACK:
		c->session->stream->uses_stacks = true;
		return types_special(t, TYPE_KSTACK);
	case BUILTIN_BITS:
		check_set_constant(c, e, types_int(t, 8, true), c->mode == MODE_32 ? 32 : 64);
		return e->type[c->mode];
	case BUILTIN_NCPUS: /* a stream that is run elsewhere has the number of this machine */
		check_set_constant(c, e, types_int(t, 8, true), (uint64_t)get_nprocs_conf());
		return e->type[c->mode];
	case BUILTIN_CURTASK:
		return curtask_type(c);
	default:
		return check_bad(c);
	}
}

static const struct type *check_builtin(
	struct check_clause *c, struct expr *e, const struct builtin *b)
{
	if (!check_is_at(c, b->points))
		return not_here(c, e, b);
	switch (b->id) {
	case BUILTIN_ARG:
		return check_argument(c, e, (uint32_t)(b->name[3] - '0'));
	case BUILTIN_SARG:
		return check_stack_word(c, e, (uint32_t)(b->name[4] - '0'));
	case BUILTIN_RETVAL:
		return check_retval(c, e);
	case BUILTIN_ARGS:
		check_error(c, e->place, "type", "'args' needs the name of an argument");
		check_hint(c, "write args.NAME");
		return check_bad(c);
	default:
		check_mean(c, e, MEANING_BUILTIN)->builtin = b;
		return builtin_type(c, e, b);
	}
}

/* --- globals ---------------------------------------------------------------------------------- */

static bool has_globals(const struct check_clause *c)
{
	return point_has(c->point->spec.kind, POINT_IN_FILES);
}

static const struct type *check_global(struct check_clause *c, struct expr *e)
{
	struct global_use *g;
	const struct type *type;
	uint64_t iaddr;

	if (!has_globals(c) || !types_variable(check_types(c), e->name, &type, &iaddr) || !iaddr)
		return NULL;
	type = types_completed(check_types(c), type);
	g = arena_zalloc(c->session->arena, sizeof(*g));
	*g = (struct global_use){.name = e->name, .iaddr = iaddr, .type = type};
	check_mean(c, e, MEANING_GLOBAL)->global = g;
	if (type->kind == TYPE_STRUCT && !type->is_complete) {
		check_error(c, e->place, "incomplete", "'%s' is a %s, whose fields are not known",
			e->name, check_type_text(c->session, type));
		return check_bad(c);
	}
	return type;
}

static const struct type *unknown_name(struct check_clause *c, struct expr *e)
{
	struct nearest n = {.name = e->name};

	check_error(c, e->place, "unknown-name", "'%s' is not known", e->name);
	for (const struct builtin *b = builtins; b->name; b++)
		nearest_offer(&n, b->name);
	for (const struct function_def *f = function_defs; f->name; f++) {
		if (!strcmp(f->name, e->name)) {
			check_hint(c, "it is a function: %s", f->form);
			return check_bad(c);
		}
	}
	if (n.best)
		check_hint(c, "did you mean '%s'?", n.best);
	else if (!has_globals(c))
		check_hint(c,
			"variables are written $%s (of the clause), self->%s (of the thread) or @%s",
			e->name, e->name, e->name);
	return check_bad(c);
}

static const struct type *enumerator(struct check_clause *c, struct expr *e, int64_t value)
{
	check_mean(c, e, MEANING_CONSTANT);
	check_set_constant(c, e, types_int(check_types(c), 8, true), (uint64_t)value);
	return e->type[c->mode];
}

const struct type *check_name(struct check_clause *c, struct expr *e)
{
	const struct builtin *b = builtin_find(e->name);
	const struct type *type;
	int64_t value;

	if (b)
		return check_builtin(c, e, b);
	if (types_enumerator(check_types(c), e->name, &value))
		return enumerator(c, e, value);
	type = check_global(c, e);
	if (type)
		return type;
	if (types_source_enumerator(check_types(c), e->name, &value))
		return enumerator(c, e, value);
	return unknown_name(c, e);
}

/* --- C types in tables ------------------------------------------------------------------------ */

const struct type *check_struct_named(struct types *types, const char *word, const char *tag)
{
	struct sources none = {0};
	struct diags ignored;
	struct decl_type decl = {.kind = DECL_STRUCT, .name = tag};
	const struct type *type;

	decl.is_union = !strcmp(word, "union");
	if (!*word)
		decl.kind = DECL_NAMED;
	diags_init(&ignored, &none);
	type = types_of_decl(types, &decl, SPACE_USER, &ignored);
	diags_release(&ignored);
	return type->kind == TYPE_BAD ? NULL : type;
}

struct c_word {
	const char *name;
	uint8_t bytes; /* 0: a long of the mode */
	bool is_signed;
};

static const struct c_word c_words[] = {
	{"size_t", 0, false},
	{"ssize_t", 0, true},
	{"off_t", 0, true},
	{"aio_context_t", 0, false},
	{"__kernel_old_time_t", 0, true},
	{"loff_t", 8, true},
	{"u64", 8, false},
	{"__u64", 8, false},
	{"uint64_t", 8, false},
	{"s64", 8, true},
	{"__s64", 8, true},
	{"int64_t", 8, true},
	{"u32", 4, false},
	{"__u32", 4, false},
	{"uint32_t", 4, false},
	{"s32", 4, true},
	{"__s32", 4, true},
	{"int32_t", 4, true},
	{"pid_t", 4, true},
	{"key_t", 4, true},
	{"key_serial_t", 4, true},
	{"clockid_t", 4, true},
	{"timer_t", 4, true},
	{"mqd_t", 4, true},
	{"rwf_t", 4, true},
	{"uid_t", 4, false},
	{"gid_t", 4, false},
	{"qid_t", 4, false},
	{"dev_t", 4, false},
	{"mode_t", 4, false},
	{"u16", 2, false},
	{"umode_t", 2, false},
	{"old_uid_t", 2, false},
	{"old_gid_t", 2, false},
	{"u8", 1, false},
	{"bool", 1, false},
};

struct c_base {
	bool is_unsigned, is_char, is_short, is_void, is_struct;
	uint32_t n_longs;
	const struct c_word *word;
	char tag[64];
};

static void take_word(struct c_base *b, const char *p, size_t n)
{
	char word[64];

	if (n >= sizeof(word))
		return;
	memcpy(word, p, n);
	word[n] = '\0';
	if (b->is_struct && !b->tag[0])
		memcpy(b->tag, word, n + 1);
	b->is_unsigned |= !strcmp(word, "unsigned");
	b->is_char |= !strcmp(word, "char");
	b->is_short |= !strcmp(word, "short");
	b->is_void |= !strcmp(word, "void");
	b->is_struct |= !strcmp(word, "struct") || !strcmp(word, "union");
	b->n_longs += !strcmp(word, "long");
	for (size_t i = 0; i < sizeof(c_words) / sizeof(c_words[0]); i++) {
		if (!strcmp(word, c_words[i].name))
			b->word = &c_words[i];
	}
}

static const struct type *base_type(struct types *t, const struct c_base *b)
{
	const struct type *type = NULL;

	if (b->is_struct && b->tag[0])
		type = check_struct_named(t, "struct", b->tag);
	if (type)
		return type;
	if (b->is_void || b->is_struct)
		return types_void(t);
	if (b->is_char)
		return b->is_unsigned ? types_int(t, 1, false) : types_char(t);
	if (b->word && b->word->bytes)
		return types_int(t, b->word->bytes, b->word->is_signed);
	if (b->word)
		return types_long(t, b->word->is_signed);
	if (b->n_longs > 1)
		return types_int(t, 8, !b->is_unsigned);
	if (b->n_longs)
		return types_long(t, !b->is_unsigned);
	return types_int(t, b->is_short ? 2 : 4, !b->is_unsigned);
}

const struct type *check_c_type(struct types *types, const char *text)
{
	struct c_base base = {0};
	const struct type *type;
	uint32_t n_stars = 0;

	for (const char *p = text; *p;) {
		size_t n = 0;

		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
		if (n)
			take_word(&base, p, n);
		else
			n_stars += *p == '*';
		p += n ? n : 1;
	}
	type = base_type(types, &base);
	if (type->kind == TYPE_STRUCT && !n_stars)
		type = types_long(types, false);
	for (uint32_t i = 0; i < n_stars; i++)
		type = types_pointer(types, type, SPACE_USER);
	return type;
}
