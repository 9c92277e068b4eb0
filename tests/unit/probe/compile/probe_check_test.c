/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "check.h"
#include "check_world.h"
#include "probe/compile/builtin.h"

/* Declarations that most scripts here begin with. */
#define ITEM                                                                                       \
	"struct item { int a; struct item *next; long l; long long ll; char name[8];"              \
	" unsigned b : 3; double d; };\n"                                                          \
	"enum color { RED, GREEN = 5 };\n"                                                         \
	"int target(int a, unsigned long b, const char *s, struct item *it, double d);\n"          \
	"long long wide(long long x);\n"                                                           \
	"extern struct item first_item;\n"

static char *answer;

static const char *keep(struct buf *b)
{
	free(answer);
	answer = mem_strdup(buf_text(b));
	buf_release(b);
	return answer;
}

/* The value of the last statement of the last clause: $r = VALUE; */
static struct expr *last_value(struct check_world *w)
{
	struct clause *c = w->script->clauses;
	struct stmt *s;

	while (c->next)
		c = c->next;
	for (s = c->body; s->next;)
		s = s->next;
	return s->a->b;
}

/* "TYPE" or "TYPE = VALUE" of an expression at a point in a mode, or the tags of what is wrong. */
static const char *at(const char *point, enum mode mode, const char *value)
{
	char *text = mem_printf("%s%s { $r = %s; }", ITEM, point, value);
	struct check_world w;
	struct buf b = {0};

	check_world_init(&w, text);
	if (check_world_run(&w)) {
		const struct expr *e = last_value(&w);

		type_print(e->type[mode], &b);
		if (e->is_constant[mode])
			buf_printf(&b, " = %lld", (long long)e->constant[mode]);
	} else {
		for (size_t i = 0; i < w.diags.v.n; i++)
			buf_printf(&b, "%s%s", i ? " " : "", w.diags.v.v[i].tag);
	}
	check_world_release(&w);
	free(text);
	return keep(&b);
}

#define U "uprobe:./fixture:target"

static const char *begin(const char *value)
{
	return at("begin", MODE_64, value);
}

/* All messages of a script: "TAG LINE:COLUMN ...". */
static const char *tags(const char *script)
{
	struct check_world w;
	struct buf b = {0};

	check_world_init(&w, script);
	check_world_run(&w);
	buf_put_cstr(&b, check_world_tags(&w));
	check_world_release(&w);
	return keep(&b);
}

/* Shapes of a map's key and value: "KEY -> VALUE". */
static const char *map_of(const char *script)
{
	struct check_world w;
	struct buf b = {0};

	check_world_init(&w, script);
	if (check_world_run(&w)) {
		shape_print(w.s.stream->maps.v[0].key, &b);
		buf_put_cstr(&b, " -> ");
		shape_print(w.s.stream->maps.v[0].value, &b);
		buf_put_cstr(&b, w.s.stream->maps.v[0].value->is_signed ? " signed" : "");
	} else {
		buf_put_cstr(&b, check_world_tags(&w));
	}
	check_world_release(&w);
	return keep(&b);
}

static void test_constants(void)
{
	CHECK_STR(begin("1 + 2 * 3"), "int64 = 7");
	CHECK_STR(begin("-7 / 2"), "int64 = -3");
	CHECK_STR(begin("-7 % 3"), "int64 = -1");
	CHECK_STR(begin("-8 >> 1"), "int64 = -4");
	CHECK_STR(begin("(uint8)300"), "uint8 = 44");
	CHECK_STR(begin("(int8)200"), "int8 = -56");
	CHECK_STR(begin("(uint64)-1 > 0"), "bool = 1");
	CHECK_STR(begin("-1 > 0"), "bool = 0");
	CHECK_STR(begin("~0"), "uint64 = -1");
	CHECK_STR(begin("!5"), "bool = 0");
	CHECK_STR(begin("1 ? 2 : 3"), "int64 = 2");
	CHECK_STR(begin("GREEN + RED"), "int64 = 5");
	CHECK_STR(begin("bits"), "int64 = 64");
	CHECK_STR(begin("0 && nonsense"), "bool = 0");
	CHECK_STR(begin("1 || nonsense"), "bool = 1");
	CHECK_STR(begin("(1 << 63) / -1"), "int64 = -9223372036854775808");
}

static void test_sizes(void)
{
	CHECK_STR(at(U, MODE_32, "sizeof(struct item)"), "uint64 = 40");
	CHECK_STR(at(U, MODE_64, "sizeof(struct item)"), "uint64 = 56");
	CHECK_STR(at(U, MODE_32, "sizeof(long)"), "uint64 = 4");
	CHECK_STR(at(U, MODE_64, "sizeof(long)"), "uint64 = 8");
	CHECK_STR(at(U, MODE_32, "offsetof(struct item, ll)"), "uint64 = 12");
	CHECK_STR(at(U, MODE_64, "offsetof(struct item, ll)"), "uint64 = 24");
	CHECK_STR(at(U, MODE_32, "sizeof(args.it->next)"), "uint64 = 4");
	CHECK_STR(at(U, MODE_32, "bits == 32 ? 1 : nonsense"), "unknown-name"); /* in 64-bit mode */
}

static void test_types_by_mode(void)
{
	CHECK_STR(at(U, MODE_32, "arg0"), "unsigned long");
	CHECK_STR(at(U, MODE_32, "args.it"), "struct item *");
	CHECK_STR(at(U, MODE_64, "args.it->next->l"), "long");
	CHECK_STR(at(U, MODE_64, "args.it.next.a"), "int");
	CHECK_STR(at(U, MODE_64, "args.it->name"), "char[8]");
	CHECK_STR(at(U, MODE_64, "args.it->b"), "unsigned int");
	CHECK_STR(at(U, MODE_64, "*args.s"), "char");
	CHECK_STR(at(U, MODE_64, "args.s[3]"), "char");
	CHECK_STR(at(U, MODE_64, "&args.it->ll"), "long long *");
	CHECK_STR(at(U, MODE_64, "args.it + 1"), "struct item *");
	CHECK_STR(at(U, MODE_64, "args.it - args.it"), "int64");
	CHECK_STR(at(U, MODE_64, "args.a + 1"), "int64");
	CHECK_STR(at(U, MODE_64, "args.b + 1"), "uint64");
	CHECK_STR(at(U, MODE_32, "args.b + 1"), "int64"); /* 32 bits fit */
	CHECK_STR(at(U, MODE_64, "first_item.a"), "unknown-name"); /* declared, but nowhere */
	CHECK_STR(at(U, MODE_64, "str(args.s)"), "string[128]");
	CHECK_STR(at(U, MODE_64, "str(args.s, 7)"), "string[7]");
	CHECK_STR(at(U, MODE_64, "(args.a, comm, args.it->name)"), "(int, string[16], string[8])");
	CHECK_STR(at(U, MODE_64, "(args.a, comm).1"), "string[16]");
	CHECK_STR(at(U, MODE_64, "args.a ? \"abc\" : comm"), "string[16]");
	CHECK_STR(at(U, MODE_64, "retval"), "not-here");
	CHECK_STR(at("uretprobe:./fixture:wide", MODE_32, "retval"), "long long");
	CHECK_STR(at("uretprobe:./fixture:unknown", MODE_32, "retval"), "unsigned long");
	CHECK_STR(at("uretprobe:./fixture:wide", MODE_64, "arg0"), "not-here");
	CHECK_STR(at("uprobe:./fixture:unknown", MODE_64, "args.x"), "unknown-field");
	CHECK_STR(at("syscall:openat:entry", MODE_32, "args.filename"), "char *");
	CHECK_STR(at("syscall:openat:entry", MODE_64, "arg5"), "unsigned long");
	CHECK_STR(at("syscall:openat:return", MODE_64, "args.ret"), "long");
	CHECK_STR(at("error", MODE_64, "errno"), "int");
}

/* Where the code finds a value. */
static void test_places(void)
{
	static const char script[] = ITEM U " { printf(\"%d %d %f\", args.it, arg2, args.d); }";
	const struct value_use *u[N_MODES][3];
	struct check_world w;
	struct expr *e;

	check_world_init(&w, script);
	CHECK(check_world_run(&w));
	e = w.script->clauses->body->a->args->next;
	for (int i = 0; i < 3; i++, e = e->next) {
		for (int mode = 0; mode < N_MODES; mode++)
			u[mode][i] = ((const struct meaning *)e->meaning[mode])->value;
	}
	CHECK_EQ(u[MODE_32][0]->place.kind, VALUE_ON_STACK);
	CHECK_EQ(u[MODE_32][0]->place.offset, 16);
	CHECK_EQ(u[MODE_64][0]->place.reg[0], PT_CX);
	CHECK_EQ(u[MODE_32][1]->place.offset, 12);
	CHECK_EQ(u[MODE_64][1]->place.reg[0], PT_DX);
	CHECK_EQ(u[MODE_32][2]->kind, USE_PLACE); /* a double on the stack */
	CHECK_EQ(u[MODE_64][2]->kind, USE_UNREADABLE);
	CHECK_EQ(w.diags.v.n, 1);
	CHECK_STR(w.diags.v.v[0].tag, "unreadable");
	CHECK(strstr(w.diags.v.v[0].text, "64-bit") != NULL);
	check_world_release(&w);
}

static void test_usdt(void)
{
	static const struct usdt_operand operands[] = {
		{.kind = USDT_REGISTER, .bytes = 4, .is_signed = true, .reg = PT_DI},
		{.kind = USDT_CONSTANT, .bytes = 8, .value = 5},
	};
	struct check_world w;

	check_world_init(&w, "usdt:./fixture:p:n { printf(\"%d %d\", arg0, arg1); @ = arg1; }");
	w.operands = operands;
	w.n_operands = 2;
	CHECK(check_world_run(&w));
	CHECK_EQ(w.script->clauses->body->a->args->next->type[MODE_64]->size, 4);
	CHECK(w.script->clauses->body->a->args->next->type[MODE_64]->is_signed);
	check_world_release(&w);
	check_world_init(&w, "usdt:./fixture:p:n { print(arg2); }");
	w.operands = operands;
	w.n_operands = 2;
	CHECK(!check_world_run(&w));
	CHECK_STR(check_world_tags(&w), "range 1:28");
	check_world_release(&w);
}

/* struct record { int pid; char comm[16]; __data_loc char[] name; } */
static void give_fields(struct check_world *w)
{
	for (int mode = 0; mode < N_MODES; mode++) {
		struct types *t = w->s.types[mode];
		struct type *s = types_new_struct(t, "record", false);
		struct type_field fields[] = {
			{.name = "pid", .type = types_int(t, 4, true), .offset = 8},
			{.name = "comm", .type = types_array(t, types_char(t), 16), .offset = 12},
			{.name = "name",
				.type = types_named_int(t, "__data_loc char[]", 4, false),
				.offset = 28},
		};

		types_fill_struct(t, s, fields, 3, 32, 4);
		w->fields[mode] = s;
	}
}

static void test_tracepoints(void)
{
	struct check_world w;
	const struct meaning *m;

	check_world_init(&w, "tracepoint:a:b { @[args.comm, args.pid] = args.name; }");
	give_fields(&w);
	CHECK(check_world_run(&w));
	m = w.script->clauses->body->a->b->meaning[MODE_64];
	CHECK_EQ(m->value->kind, USE_CONTEXT_DATA);
	CHECK_EQ(m->value->offset, 28);
	CHECK_EQ(w.s.stream->maps.v[0].value->n, 128);
	CHECK_EQ(w.s.stream->maps.v[0].key->fields[0].shape->n, 16);
	check_world_release(&w);
	check_world_init(&w, "tracepoint:a:b { print(args.cmm); }");
	give_fields(&w);
	CHECK(!check_world_run(&w));
	CHECK_STR(w.diags.v.v[0].hint, "did you mean 'comm'?");
	check_world_release(&w);
}

static void test_dead_branches(void)
{
	CHECK_STR(tags("begin { if (bits == 32) { print(nonsense); } else { print(1); } }"), "");
	CHECK_STR(tags("begin { if (bits == 64) { print(nonsense); } }"), "unknown-name 1:33");
	CHECK_STR(tags("begin { while (0) { print(nonsense); } }"), "");
	CHECK_STR(tags("syscall:fadvise64:entry { if (bits == 64) { print(args.offset); }"
		       " else { print(args.offset_lo); } }"),
		"");
}

static void test_locals(void)
{
	CHECK_STR(tags("begin { $x = \"a\"; print($x); $x = \"abcdef\"; }"), "");
	CHECK_STR(tags("begin { $x = 0; $x = nsecs; print($x); }"), "");
	CHECK_STR(tags("begin { $p = 0; $p = (int *)8; print(*$p); }"), "");
	CHECK_STR(tags("begin { $x = 1; }"), "unused 1:9");
	CHECK_STR(tags("begin { if (1) { let $x = 1; print($x); } if (1) { let $x = \"a\";"
		       " print($x); } }"),
		"");
	CHECK_STR(tags("begin { let $x : uint8 = 300; print($x); $x = 5; }"), "");
	CHECK_STR(tags("begin { for ($i : 0..3) { print($i); } for ($i : 0..3) { print($i); } }"),
		"");
	CHECK_STR(tags("begin { $x = (1, \"a\"); print($x.1); $x = (2, \"abc\"); }"), "");
}

/* A longer text further down makes every earlier use longer. */
static void test_growing_local(void)
{
	struct check_world w;
	struct stmt *s;

	check_world_init(&w, "begin { $x = \"a\"; printf(\"%s\", $x); $x = \"abcdef\"; }");
	CHECK(check_world_run(&w));
	s = w.script->clauses->body->next;
	CHECK_EQ(s->a->args->next->type[MODE_64]->n, 6);
	CHECK_EQ(w.s.stream->formats.n, 1);
	CHECK_EQ(w.s.stream->formats.v[0].args[0]->n, 6);
	check_world_release(&w);
}

static void test_maps(void)
{
	CHECK_STR(map_of("begin { @x = 1; }"), "nothing -> int signed");
	CHECK_STR(map_of("begin { @x = nsecs; @x = 0; }"), "nothing -> int");
	CHECK_STR(map_of("begin { @x[1, \"a\"] = 1; @x[nsecs, comm] = pid; }"),
		"(int, string[16]) -> int");
	CHECK_STR(map_of("begin { @x = count(); }"), "nothing -> count()");
	CHECK_STR(map_of("begin { @x++; }"), "nothing -> int signed");
	CHECK_STR(map_of("begin { @x += 5; }"), "nothing -> int signed");
	CHECK_STR(map_of("begin { @x[pid] = (comm, 5); print(@x[3].0); }"),
		"int -> (string[16], int)");
	CHECK_STR(map_of("profile:hz:99 { @x[ustack, kstack(3)] = count(); }"),
		"(ustack, kstack) -> count()");
	CHECK_STR(map_of("struct s { int a; char n[4]; };\nbegin { @x = *(struct s *)0; "
			 "print(@x.a); }"),
		"nothing -> struct");
	CHECK_STR(map_of("begin { @x[1] = 1; delete(@x, 1); delete(@x[2]);"
			 " if (has_key(@x, 3)) { exit(); } }"),
		"int -> int signed");
}

/* A clause may read what a later one assigns, over several steps. */
static void test_learning(void)
{
	CHECK_STR(map_of("begin { @a = @b; }\ninterval:s:1 { @b = @c; }\nend { @c = \"abc\"; }"),
		"nothing -> string[3]");
	CHECK_STR(map_of("begin { @a = @b; @b = @a; }"), "type 1:14 type 1:9");
	CHECK_STR(tags("syscall:openat:return { print(self->x); }\n"
		       "syscall:openat:entry { self->x = \"abc\"; }"),
		"");
}

static void test_self(void)
{
	struct check_world w;

	check_world_init(&w,
		"syscall:read:entry { self->a = arg0; self->s = \"abcdefghij\"; "
		"self->z = nsecs; self->n++; }\n"
		"syscall:read:return /self->a/ { printf(\"%s %d %d\", self->s, self->z,"
		" self->n); }");
	CHECK(check_world_run(&w));
	CHECK_EQ(w.s.stream->self_bytes, 8 + 16 + 8 + 8);
	CHECK_STR(w.s.selfs->name, "a");
	CHECK_EQ(w.s.selfs->type[MODE_32]->size, 4);
	CHECK_EQ(w.s.selfs->type[MODE_64]->size, 8);
	CHECK_EQ(w.s.selfs->next->next->offset, 24);
	check_world_release(&w);
}

/* A mode that no file on this machine has is compiled for others (-o): it was not learned from. */
static void test_modes_not_seen(void)
{
	static const char script[] = ITEM U
		" { self->p = args.it; self->b = args.b; @m[tid] = args.it; @k[args.it->name] = 1; }\n"
		"uretprobe:./fixture:target { print(self->p->a); print(self->b); print(@m[tid]->a); }";
	struct check_world w;

	check_world_init(&w, script);
	w.skips_32 = true;
	CHECK(check_world_learn(&w));
	w.skips_32 = false;
	w.s.pass = CHECK_FINAL;
	CHECK(check_world_pass(&w));
	CHECK_EQ(w.s.selfs->type[MODE_32]->size, 4);
	CHECK_EQ(w.s.stream->self_bytes, 16);
	CHECK_STR(check_world_tags(&w), "");
	check_world_release(&w);
	/* One that would need more room is refused, and changes nothing. */
	check_world_init(&w, ITEM U " { if (bits == 64) { @k = \"a\"; self->s = \"a\"; }"
				    " else { @k = \"abcdefghijk\"; self->s = \"abcdefghijk\"; } }"
				    "end { print(@k); print(self->s); }");
	w.skips_32 = true;
	CHECK(check_world_learn(&w));
	w.skips_32 = false;
	w.s.pass = CHECK_FINAL;
	CHECK(!check_world_pass(&w));
	CHECK_EQ(w.s.stream->maps.v[0].value->n, 1);
	CHECK(w.s.selfs->type[MODE_32] == NULL);
	check_world_release(&w);
}

static void test_formats(void)
{
	static const char script[] =
		"syscall:read:entry, syscall:write:entry { printf(\"%d %s\\n\", pid, comm); }\n"
		"begin { @x[1] = 1; print(@x, 3); print((1, \"a\")); clear(@x); exit(); time(); }";
	struct check_world w;
	struct stream *s;

	check_world_init(&w, script);
	s = w.s.stream;
	CHECK(check_world_run(&w));
	CHECK_EQ(s->formats.n, 6);
	CHECK_EQ(s->formats.v[0].kind, FORMAT_PRINTF); /* once for two points in two modes */
	CHECK_STR(s->formats.v[0].text, "%d %s\n");
	CHECK_EQ(s->formats.v[0].n_args, 2);
	CHECK_EQ(s->formats.v[1].kind, FORMAT_PRINT_MAP);
	CHECK_EQ(s->formats.v[1].n_args, 1);
	CHECK_EQ(s->formats.v[2].args[0]->kind, SHAPE_TUPLE);
	CHECK_EQ(s->formats.v[3].kind, FORMAT_CLEAR_MAP);
	CHECK_EQ(s->formats.v[4].kind, FORMAT_EXIT);
	CHECK_EQ(s->formats.v[4].n_args, 1);
	CHECK_STR(s->formats.v[5].text, "%H:%M:%S\n");
	CHECK_EQ(((const struct meaning *)w.script->clauses->body->a->meaning[MODE_32])->format, 0);
	check_world_release(&w);
	/* An argument has 32 bits in one mode and 64 in the other, and is shown with as many. */
	check_world_init(&w, "syscall:read:entry, syscall:write:entry { printf(\"%x\\n\", arg0); }");
	CHECK(check_world_run(&w));
	CHECK_EQ(w.s.stream->formats.n, 2);
	check_world_release(&w);
}

/* A structure that is printed keeps the layout of its mode. */
static void test_printed_structures(void)
{
	struct check_world w;
	const struct shape *a, *b;

	check_world_init(&w, ITEM U " { print(*args.it); }");
	CHECK(check_world_run(&w));
	CHECK_EQ(w.s.stream->formats.n, 2);
	a = w.s.stream->formats.v[0].args[0];
	b = w.s.stream->formats.v[1].args[0];
	CHECK_EQ(a->n, 40);
	CHECK_EQ(b->n, 56);
	CHECK_STR(a->fields[1].name, "next");
	CHECK_EQ(a->fields[1].bytes, 4);
	CHECK_EQ(b->fields[1].offset, 8);
	CHECK_EQ(b->fields[4].shape->kind, SHAPE_STRING);
	CHECK_EQ(b->fields[5].bit_size, 3);
	check_world_release(&w);
}

static void test_layout_message(void)
{
	struct check_world w;

	check_world_init(&w, ITEM "begin { @x = *(struct item *)0; }");
	CHECK(!check_world_run(&w));
	CHECK_STR(w.diags.v.v[0].tag, "layout");
	CHECK(strstr(w.diags.v.v[0].text, "'next'") || strstr(w.diags.v.v[0].text, "next"));
	CHECK(strstr(w.diags.v.v[0].text, "is at 4 in 32-bit and at 8 in 64-bit") != NULL);
	check_world_release(&w);
}

static void test_poison(void)
{
	CHECK_STR(tags("begin { $x = nonsense; print($x + 1); @y = $x; printf(\"%d\", $x); }"),
		"unknown-name 1:14");
	CHECK_STR(tags("begin { print(a); print(b); }"), "unknown-name 1:15 unknown-name 1:25");
}

static void test_depth(void)
{
	struct buf b = {0};

	buf_put_cstr(&b, "begin { print(1");
	for (int i = 0; i < 5000; i++)
		buf_put_cstr(&b, "+pid");
	buf_put_cstr(&b, "); }");
	CHECK(strstr(tags(buf_text(&b)), "nesting") != NULL);
	buf_release(&b);
}

static void test_tables(void)
{
	size_t at, rest;

	for (const struct builtin *b = builtin_next(NULL, &at); b; b = builtin_next(b, &at)) {
		rest = at;
		for (const struct builtin *o = builtin_next(b, &rest); o; o = builtin_next(o, &rest))
			CHECK(!b->form != !o->form || strcmp(b->name, o->name) != 0);
		if (!b->form) {
			CHECK(b->help != NULL);
			continue;
		}
		CHECK(!strncmp(b->form, b->name, strlen(b->name)));
		CHECK(b->min_args <= b->max_args);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"constants are calculated in 64 bits as C does", test_constants},
		{"sizes and offsets are those of the mode", test_sizes},
		{"expressions have the types of their mode", test_types_by_mode},
		{"arguments are found where the mode puts them", test_places},
		{"USDT arguments have the size and sign of their operands", test_usdt},
		{"fields of tracepoints are found, texts among them", test_tracepoints},
		{"a branch that is never taken is not checked", test_dead_branches},
		{"locals take types from assignments and blocks hide them", test_locals},
		{"a longer text makes all uses of a local longer", test_growing_local},
		{"maps have one canonical shape", test_maps},
		{"types are learned from clauses further down", test_learning},
		{"thread-locals have a type for each mode and one offset", test_self},
		{"a mode that was not learned from fits in, or is refused", test_modes_not_seen},
		{"a format is made once for all points and modes that agree", test_formats},
		{"a printed structure has the layout of its mode", test_printed_structures},
		{"the message about layouts names the field and its places", test_layout_message},
		{"one mistake gives one message", test_poison},
		{"deep nesting is refused", test_depth},
		{"names of builtins and functions are unique", test_tables},
	};
	int rc = RUN_TESTS(tests);

	free(answer);
	return rc;
}
