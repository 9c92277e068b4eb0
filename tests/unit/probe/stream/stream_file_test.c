/* SPDX-License-Identifier: MIT */
/* Stream files: everything comes back, hostile bytes do not; the printer of BPF code; --dump. */
#include <stdlib.h>

#include "base/crc32c.h"
#include "bpf/print.h"
#include "check.h"
#include "probe/stream/stream_file.h"
#include "probe/stream/stream_layout.h"

#define SCRIPT                                                                                     \
	"uprobe:/bin/x:f /arg0/ {\n"                                                               \
	"  @bytes[comm] = hist(arg0);\n"                                                           \
	"}\n"

#define MAP_LOAD(map)                                                                              \
	{                                                                                          \
		.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD,     \
		.imm = map                                                                         \
	}

/* Jumps over the action to the end of the piece; loads the script's map. */
static const struct bpf_insn sample_code[] = {
	{.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 6, .off = 112},
	{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1, .off = 3},
	MAP_LOAD(STREAM_MAP_FIRST_OF_SCRIPT),
	{0},
	{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
};

static struct shape *new_shape(struct stream *s, enum shape_kind kind, uint32_t n, uint32_t size)
{
	struct shape *shape = arena_zalloc(s->arena, sizeof(*shape));

	*shape = (struct shape){.kind = kind, .n = n, .size = size};
	return shape;
}

static struct shape *struct_shape(struct stream *s)
{
	struct shape *shape = new_shape(s, SHAPE_STRUCT, 12, 16);
	struct shape *number = new_shape(s, SHAPE_INT, 0, 8);

	shape->n_fields = 2;
	shape->fields = arena_zalloc(s->arena, 2 * sizeof(shape->fields[0]));
	shape->fields[0] = (struct shape_field){.name = "id", .shape = number, .bytes = 4};
	shape->fields[1] = (struct shape_field){.name = "flag",
		.shape = number,
		.offset = 11,
		.bytes = 1,
		.bit_offset = 3,
		.bit_size = 2};
	return shape;
}

static void add_points(struct stream *s)
{
	struct stream_point point = {.spec = {.kind = POINT_UPROBE,
					     .text = "uprobe:/bin/x:f",
					     .file = "/bin/x",
					     .name = "f",
					     .offset = 4,
					     .place = {0, 0, 15, 0}}};
	struct stream_point usdt = {.spec = {.kind = POINT_USDT,
					    .text = "usdt:/bin/x:p:q",
					    .file = "/bin/x",
					    .provider = "p",
					    .name = "q",
					    .is_glob = true},
		.operands = "-4@%eax",
		.operands_mode = MODE_32,
		.name = "other"};

	point.pieces[MODE_32] = (struct stream_piece){.why_not = "no such file"};
	point.pieces[MODE_64] = (struct stream_piece){.is_there = true,
		.predicate_n = 2,
		.action_at = 2,
		.action_n = 3,
		.scratch_bytes = 64,
		.uses_site = true};
	vec_push(&s->points, point);
	usdt.pieces[MODE_32] =
		(struct stream_piece){.is_there = true, .action_n = 5, .reads_user = true};
	vec_push(&s->points, usdt);
}

static struct stream *sample(void)
{
	struct stream *s = stream_new();
	struct stream_map_def map = {.name = "@bytes",
		.key = new_shape(s, SHAPE_STRING, 16, 16),
		.value = new_shape(s, SHAPE_HIST, 0, 528),
		.max_entries = 100,
		.place = {0, 27, 33, 0}};
	struct stream_format format = {.kind = FORMAT_PRINTF, .text = "%d\n", .n_args = 1};
	struct stream_clause clause = {.place = {0, 0, 55, 0}, .has_predicate = true};

	sources_add(&s->sources, "x.wr", (struct span){(const uint8_t *)SCRIPT, strlen(SCRIPT)});
	vec_push(&s->maps, map);
	format.args = arena_zalloc(s->arena, sizeof(format.args[0]));
	format.args[0] = struct_shape(s);
	vec_push(&s->formats, format);
	vec_push(&s->formats, ((struct stream_format){.kind = FORMAT_CLEAR_MAP}));
	vec_push(&s->strings, "%H");
	vec_push(&s->clauses, clause);
	add_points(s);
	for (int mode = 0; mode < N_MODES; mode++) {
		for (size_t i = 0; i < 5; i++)
			vec_push(&s->code[mode], sample_code[i]);
		vec_push(&s->lines[mode], ((struct stream_line){0, {0, 17, 21, 0}}));
		vec_push(&s->lines[mode], ((struct stream_line){2, {0, 27, 52, 0}}));
	}
	s->self_bytes = 24;
	s->zero_bytes = 528;
	s->uses_stacks = true;
	return s;
}

/* ---- bytes ---- */

static uint64_t number_at(const struct buf *b, size_t at, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, b->p + at, n);
	return v;
}

static void set_number(struct buf *b, size_t at, uint64_t v, size_t n)
{
	memcpy(b->p + at, &v, n);
}

static size_t row_of(enum stream_section type)
{
	return STREAM_HEADER_BYTES + ((size_t)type - 1) * STREAM_ROW_BYTES;
}

static size_t section_at(const struct buf *b, enum stream_section type)
{
	return (size_t)number_at(b, row_of(type) + 8, 8);
}

/* All checksums right again. */
static void seal(struct buf *b)
{
	for (int type = 1; type <= N_SECTIONS; type++) {
		uint64_t at = number_at(b, row_of(type) + 8, 8);
		uint64_t n = number_at(b, row_of(type) + 16, 8);

		if (at <= b->n && n <= b->n - at)
			set_number(b, row_of(type) + 4, crc32c(0, b->p + at, n), 4);
	}
	set_number(
		b, 24, crc32c(0, b->p + STREAM_HEADER_BYTES, row_of(13) - STREAM_HEADER_BYTES), 4);
	set_number(b, 28, crc32c(0, b->p, 28), 4);
}

static struct buf sample_bytes(void)
{
	struct stream *s = sample();
	struct buf b = {0};

	stream_file_write(s, &b);
	stream_free(s);
	return b;
}

static bool is_accepted(const struct buf *b)
{
	struct stream *s = NULL;
	struct err err = {0};
	int rc = stream_file_read(buf_span(b), &s, &err);

	CHECK(rc < 0 ? !s && err.text[0] : s != NULL);
	stream_free(s);
	return rc >= 0;
}

/* The sample with one number of a section changed and all checksums right. */
static bool accepts_with(enum stream_section type, size_t at, uint64_t value, size_t n)
{
	struct buf b = sample_bytes();
	bool is_good;

	set_number(&b, section_at(&b, type) + at, value, n);
	seal(&b);
	is_good = is_accepted(&b);
	buf_release(&b);
	return is_good;
}

/* ---- tests ---- */

static void test_everything_comes_back(void)
{
	struct buf b = sample_bytes(), again = {0};
	struct stream *s = NULL;
	struct err err = {0};

	CHECK(stream_file_is(buf_span(&b)));
	CHECK_EQ(stream_file_read(buf_span(&b), &s, &err), 0);
	if (!s) {
		printf("%s\n", err.text);
		buf_release(&b);
		return;
	}
	stream_file_write(s, &again);
	CHECK(again.n == b.n && !memcmp(again.p, b.p, b.n));
	CHECK_STR(s->sources.v.v[0].name, "x.wr");
	CHECK_STR(s->sources.v.v[0].text, SCRIPT);
	CHECK_EQ(s->maps.n, 1);
	CHECK_STR(s->maps.v[0].name, "@bytes");
	CHECK_EQ(s->maps.v[0].key->n, 16);
	CHECK_EQ(s->maps.v[0].max_entries, 100);
	CHECK_EQ(s->maps.v[0].place.to, 33);
	CHECK_EQ(s->formats.n, 2);
	CHECK_STR(s->formats.v[0].text, "%d\n");
	CHECK_STR(s->formats.v[0].args[0]->fields[1].name, "flag");
	CHECK_EQ(s->formats.v[0].args[0]->fields[1].bit_size, 2);
	CHECK(!s->formats.v[1].text);
	CHECK_STR(s->strings.v[0], "%H");
	CHECK(s->clauses.v[0].has_predicate && s->uses_stacks);
	CHECK_EQ(s->self_bytes, 24);
	CHECK_EQ(s->points.n, 2);
	CHECK_STR(s->points.v[0].spec.name, "f");
	CHECK_EQ(s->points.v[0].spec.offset, 4);
	CHECK(!s->points.v[0].spec.provider && !s->points.v[0].found);
	CHECK_STR(s->points.v[0].pieces[MODE_32].why_not, "no such file");
	CHECK_EQ(s->points.v[0].pieces[MODE_64].scratch_bytes, 64);
	CHECK(s->points.v[1].spec.is_glob);
	CHECK_STR(s->points.v[1].operands, "-4@%eax");
	CHECK(s->points.v[1].pieces[MODE_32].reads_user);
	CHECK_EQ(s->code[MODE_64].n, 5);
	CHECK(!memcmp(s->code[MODE_64].v, sample_code, sizeof(sample_code)));
	CHECK_EQ(s->lines[MODE_32].v[1].insn_i, 2);
	stream_free(s);
	buf_release(&b);
	buf_release(&again);
}

static void test_every_bit_counts(void)
{
	struct buf b = sample_bytes();
	size_t n_accepted = 0;

	for (size_t i = 0; i < b.n; i++) {
		b.p[i] ^= (uint8_t)(1 << i % 8);
		n_accepted += is_accepted(&b);
		b.p[i] ^= (uint8_t)(1 << i % 8);
	}
	CHECK_EQ(n_accepted, 0);
	for (size_t n = 0; n < b.n; n++) {
		struct buf cut = {b.p, n, n};

		n_accepted += is_accepted(&cut);
	}
	CHECK_EQ(n_accepted, 0);
	buf_release(&b);
}

static void test_frame_rules(void)
{
	static const struct {
		size_t at, n;
		uint64_t value;
	} changes[] = {
		{10, 2, 1},			/* major version */
		{12, 2, 99},			/* minor version */
		{14, 2, 11},			/* sections */
		{16, 8, 1000},			/* length */
		{32, 4, 2},			/* type of the first section */
		{32 + 24, 4, 2},		/* two facts */
		{32 + 28, 4, 1},		/* not 0 */
		{32 + 8, 8, 424},		/* first section not at its place */
		{32 + 32 + 16, 8, UINT64_MAX},	/* length */
		{32 + 2 * 32 + 24, 4, 1 << 30}, /* shapes */
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct buf b = sample_bytes();

		set_number(&b, changes[i].at, changes[i].value, changes[i].n);
		seal(&b);
		CHECK(!is_accepted(&b));
		buf_release(&b);
	}
	CHECK(accepts_with(SECTION_FACTS, 0, 24, 4)); /* sealing alone does no harm */
}

static void test_numbers_are_checked(void)
{
	CHECK(!accepts_with(SECTION_FACTS, 0, 4, 4));
	CHECK(!accepts_with(SECTION_FACTS, 4, 1 << 20, 4));
	CHECK(!accepts_with(SECTION_FACTS, 8, 0x80, 1));
	/* zero_bytes below the longest value of a map */
	CHECK(!accepts_with(SECTION_FACTS, 4, 520, 4));
	/* the first shape: string[16] */
	CHECK(!accepts_with(SECTION_SHAPES, 0, N_SHAPE_KINDS, 1));
	CHECK(!accepts_with(SECTION_SHAPES, 2, 17, 4));
	CHECK(!accepts_with(SECTION_SHAPES, 6, 24, 4));
	/* name, key, value, entries, flags, source */
	CHECK(!accepts_with(SECTION_MAPS, 4, 'b', 1));
	CHECK(!accepts_with(SECTION_MAPS, 10, 1, 4)); /* a histogram as a key */
	CHECK(!accepts_with(SECTION_MAPS, 14, 99, 4));
	CHECK(!accepts_with(SECTION_MAPS, 18, UINT32_MAX, 4));
	CHECK(!accepts_with(SECTION_MAPS, 22, 2, 1));
	CHECK(!accepts_with(SECTION_MAPS, 23, 1, 4));
	CHECK(!accepts_with(SECTION_MAPS, 31, 1000, 4)); /* behind the script */
	/* kind, map of clear() */
	CHECK(!accepts_with(SECTION_FORMATS, 0, N_FORMAT_KINDS, 1));
	CHECK(!accepts_with(SECTION_FORMATS, 0, FORMAT_PRINT_MAP + 20, 1));
	CHECK(!accepts_with(SECTION_FORMATS, 12, UINT32_MAX, 4)); /* arguments */
	CHECK(!accepts_with(SECTION_CLAUSES, 12, 2, 1));
	CHECK(!accepts_with(SECTION_POINTS, 0, 1, 4)); /* clause */
	CHECK(!accepts_with(SECTION_POINTS, 4, N_POINT_KINDS, 1));
	CHECK(!accepts_with(SECTION_POINTS, 5, 4, 1));
	CHECK(!accepts_with(SECTION_POINTS, 4, POINT_INTERVAL, 1));   /* no period */
	CHECK(!accepts_with(SECTION_POINTS, 4, POINT_TRACEPOINT, 1)); /* no category */
	CHECK(!accepts_with(SECTION_LINES_64, 16, 5, 4));
	CHECK(!accepts_with(SECTION_LINES_64, 0, 3, 4)); /* not in order */
}

/* The shape section of a stream with one map whose key is `key`. */
static bool key_is_accepted(struct stream *s, struct shape *key)
{
	struct buf b = {0};
	bool is_good;

	s->maps.v[0].key = key;
	stream_file_write(s, &b);
	is_good = is_accepted(&b);
	buf_release(&b);
	stream_free(s);
	return is_good;
}

static struct shape *pair_of(struct stream *s, struct shape *of, uint32_t offset)
{
	struct shape *pair = new_shape(s, SHAPE_TUPLE, 0, of->size + offset);

	pair->n_fields = 2;
	pair->fields = arena_zalloc(s->arena, 2 * sizeof(pair->fields[0]));
	pair->fields[0].shape = of;
	pair->fields[1] = (struct shape_field){.shape = of, .offset = offset};
	return pair;
}

static bool value_is_accepted(
	enum shape_kind kind, uint32_t n, uint32_t size, int64_t min, int64_t max)
{
	struct stream *s = sample();
	struct shape *shape = new_shape(s, kind, n, size);

	shape->min = min;
	shape->max = max;
	shape->step = 10;
	s->zero_bytes = 65536;
	s->maps.v[0].value = shape;
	return key_is_accepted(s, NULL);
}

static void test_sizes_of_aggregations(void)
{
	CHECK(value_is_accepted(SHAPE_HIST, 2, 8 * (1 + 63 * 4), 0, 0));
	CHECK(!value_is_accepted(SHAPE_HIST, 2, 8 * 66, 0, 0));
	CHECK(!value_is_accepted(SHAPE_HIST, 6, 8 * (1 + 59 * 64), 0, 0));
	CHECK(value_is_accepted(SHAPE_TSERIES, 0, 32 * 20, TSERIES_SUM, 20));
	CHECK(!value_is_accepted(SHAPE_TSERIES, 0, 32 * 20, TSERIES_SUM, 19));
	CHECK(!value_is_accepted(SHAPE_TSERIES, 0, 32 * 20, N_TSERIES_FUNCTIONS, 20));
	CHECK(!value_is_accepted(SHAPE_TSERIES, 0, 32 * 1001, TSERIES_LAST, 1001));
}

static void test_shapes_end(void)
{
	struct stream *s = sample();
	struct shape *shape = new_shape(s, SHAPE_INT, 0, 8);

	/* Each is a pair of the one before: 2^12 nodes can be followed to their ends, 2^20 cannot.
	 */
	for (int i = 0; i < 12; i++)
		shape = pair_of(s, shape, 0);
	CHECK(key_is_accepted(s, shape));
	s = sample();
	shape = new_shape(s, SHAPE_INT, 0, 8);
	for (int i = 0; i < 20; i++)
		shape = pair_of(s, shape, 0);
	CHECK(!key_is_accepted(s, shape));

	s = sample();
	shape = pair_of(s, new_shape(s, SHAPE_INT, 0, 8), 8);
	CHECK(key_is_accepted(s, shape));
	s = sample();
	shape = pair_of(s, new_shape(s, SHAPE_INT, 0, 8), 8);
	shape->fields[1].offset = 9; /* ends behind its tuple */
	CHECK(!key_is_accepted(s, shape));
	s = sample();
	shape = pair_of(s, new_shape(s, SHAPE_COUNT, 0, 8), 8);
	CHECK(!key_is_accepted(s, shape));
	s = sample();
	shape = new_shape(s, SHAPE_LHIST, 0, 8 * 12);
	*shape = (struct shape){.kind = SHAPE_LHIST, .size = 96, .min = 0, .max = 100, .step = 10};
	s->maps.v[0].value = shape;
	CHECK(key_is_accepted(s, NULL));
	s = sample();
	shape = new_shape(s, SHAPE_LHIST, 0, 8 * 13);
	*shape = (struct shape){.kind = SHAPE_LHIST, .size = 104, .min = 0, .max = 100, .step = 10};
	s->maps.v[0].value = shape;
	CHECK(!key_is_accepted(s, NULL));
}

/* A shape that is nested deeper than the format can say is written without its depths. */
static void test_deep_shapes_are_cut(void)
{
	struct stream *s = sample();
	struct shape *shape = new_shape(s, SHAPE_INT, 0, 8);

	for (int i = 0; i < 100; i++) {
		struct shape *outer = pair_of(s, shape, 0);

		outer->n_fields = 1;
		shape = outer;
	}
	CHECK(key_is_accepted(s, shape));
}

/* The sample with an instruction of the 64-bit code changed. */
static bool accepts_insn(size_t i, struct bpf_insn insn)
{
	uint64_t bytes;

	memcpy(&bytes, &insn, sizeof(bytes));
	return accepts_with(SECTION_CODE_64, i * 8, bytes, 8);
}

static void test_code_is_checked(void)
{
	static const struct bpf_insn nop = {.code = BPF_JMP | BPF_JA};

	CHECK(accepts_insn(4, nop));
	CHECK(accepts_insn(1, (struct bpf_insn){.code = BPF_JMP | BPF_JEQ, .off = -2}));
	CHECK(!accepts_insn(1, (struct bpf_insn){.code = BPF_JMP | BPF_JEQ, .off = -3}));
	CHECK(!accepts_insn(1, (struct bpf_insn){.code = BPF_JMP | BPF_JEQ, .off = 4}));
	CHECK(!accepts_insn(1, (struct bpf_insn){.code = BPF_JMP32 | BPF_JEQ, .off = 4}));
	CHECK(!accepts_insn(1, (struct bpf_insn){.code = BPF_JMP32 | BPF_JA, .imm = 4}));
	/* into a constant */
	CHECK(!accepts_insn(1, (struct bpf_insn){.code = BPF_JMP | BPF_JEQ, .off = 1}));
	CHECK(!accepts_insn(4, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT}));
	CHECK(!accepts_insn(
		4, (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL}));
	CHECK(accepts_insn(2, (struct bpf_insn)MAP_LOAD(STREAM_MAP_COPIES)));
	CHECK(!accepts_insn(2, (struct bpf_insn)MAP_LOAD(STREAM_MAP_COPIES + 1)));
	CHECK(!accepts_insn(2, (struct bpf_insn)MAP_LOAD(STREAM_MAP_FIRST_OF_SCRIPT + 1)));
	CHECK(!accepts_insn(2, (struct bpf_insn)MAP_LOAD(-1)));
	CHECK(!accepts_insn(3, nop));			       /* a constant's half */
	CHECK(!accepts_insn(4, (struct bpf_insn)MAP_LOAD(0))); /* no second half */
	CHECK(!accepts_insn(2, (struct bpf_insn){.code = BPF_LD | BPF_DW | BPF_IMM,
				       .src_reg = BPF_PSEUDO_MAP_VALUE}));
}

static bool piece_is_accepted(struct stream_piece piece)
{
	struct stream *s = sample();
	struct buf b = {0};
	bool is_good;

	piece.is_there = true;
	s->points.v[1].pieces[MODE_64] = piece; /* beside that of point 0, which has all the code */
	stream_file_write(s, &b);
	is_good = is_accepted(&b);
	buf_release(&b);
	stream_free(s);
	return is_good;
}

static void test_pieces_are_apart(void)
{
	CHECK(piece_is_accepted((struct stream_piece){.action_n = 5})); /* the same */
	CHECK(piece_is_accepted((struct stream_piece){.action_at = 5}));
	CHECK(!piece_is_accepted((struct stream_piece){.action_n = 4}));
	CHECK(!piece_is_accepted((struct stream_piece){.action_at = 4, .action_n = 1}));
	CHECK(!piece_is_accepted((struct stream_piece){.action_at = 5, .action_n = 1}));
	CHECK(!piece_is_accepted((struct stream_piece){.action_at = UINT32_MAX, .action_n = 2}));
	CHECK(!piece_is_accepted(
		(struct stream_piece){.predicate_n = 2, .action_at = 3, .action_n = 2}));
	CHECK(!piece_is_accepted((struct stream_piece){.action_n = 5, .scratch_bytes = 1 << 20}));
}

static void test_instructions_as_text(void)
{
	static const struct {
		struct bpf_insn insn;
		const char *text;
	} cases[] = {
		{{.code = BPF_LDX | BPF_MEM | BPF_DW, .src_reg = 6, .off = 112},
			"r0 = *(u64 *)(r6 + 112)"},
		{{.code = BPF_LDX | 0x80 | BPF_W, .dst_reg = 2, .src_reg = 3}, "r2 = *(s32 *)(r3)"},
		{{.code = BPF_STX | BPF_MEM | BPF_B, .dst_reg = 10, .src_reg = 1, .off = -8},
			"*(u8 *)(r10 - 8) = r1"},
		{{.code = BPF_ST | BPF_MEM | BPF_H, .dst_reg = 10, .imm = -1},
			"*(u16 *)(r10) = -1"},
		{{.code = BPF_STX | BPF_ATOMIC | BPF_DW, .src_reg = 2, .imm = BPF_ADD},
			"lock *(u64 *)(r0) += r2"},
		{{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = 7}, "r1 += 7"},
		{{.code = BPF_ALU | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 2}, "w1 = w2"},
		{{.code = BPF_ALU64 | BPF_ARSH | BPF_K, .dst_reg = 1, .imm = 32}, "r1 s>>= 32"},
		{{.code = BPF_ALU64 | BPF_DIV | BPF_X, .dst_reg = 1, .src_reg = 2, .off = 1},
			"r1 s/= r2"},
		{{.code = BPF_ALU64 | BPF_NEG, .dst_reg = 4}, "r4 = -r4"},
		{{.code = BPF_ALU | BPF_END | BPF_TO_BE, .dst_reg = 4, .imm = 16}, "r4 = be16 r4"},
		{{.code = BPF_JMP | BPF_JSGT | BPF_K, .dst_reg = 3, .off = 5, .imm = -1},
			"if r3 s> -1 goto +5"},
		{{.code = BPF_JMP32 | BPF_JNE | BPF_X, .dst_reg = 3, .src_reg = 4, .off = -2},
			"if w3 != w4 goto -2"},
		{{.code = BPF_JMP | BPF_JA, .off = 9}, "goto +9"},
		{{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_copy_from_user},
			"call copy_from_user"},
		{{.code = BPF_JMP | BPF_CALL, .imm = 100000}, "call #100000"},
		{{.code = BPF_JMP | BPF_EXIT}, "exit"},
		{{.code = 0x05 | 0xe0}, ".insn 0xe5 r0 r0 0 0"},
	};
	struct bpf_insn wide = {.code = 0x18, .dst_reg = 1, .imm = -1}, high = {.imm = 0x12};
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&b);
		bpf_insn_print(&cases[i].insn, NULL, &b);
		CHECK_STR(buf_text(&b), cases[i].text);
	}
	buf_reset(&b);
	bpf_insn_print(&wide, &high, &b);
	CHECK_STR(buf_text(&b), "r1 = 0x12ffffffff");
	buf_release(&b);
}

static void test_dump(void)
{
	struct stream *s = sample();
	struct buf b = {0};
	const char *text;

	stream_dump(s, &b);
	text = buf_text(&b);
	CHECK(strstr(text, "x.wr:1: uprobe:/bin/x:f /arg0/ {\n"
			   "      -- point 0: uprobe:/bin/x:f\n"));
	/* 64-bit code right, 32-bit code left */
	CHECK(strstr(text, "\n                                                   0: "
			   "r1 = *(u64 *)(r6 + 112)\n"));
	CHECK(strstr(text, "\n     0: r1 = *(u64 *)(r6 + 112)\n"));
	CHECK(strstr(text, "x.wr:2:   @bytes[comm] = hist(arg0);\n"));
	CHECK(strstr(text, "     2: r1 = map @bytes\n"));
	CHECK(strstr(text, "     4: call map_lookup_elem\n"));
	CHECK(!strstr(text, "     3: "));
	CHECK(strstr(text, "map 16: @bytes[string[16]] = hist"));
	CHECK(strstr(text, "format 0: printf \"%d\\n\" (struct"));
	CHECK(strstr(text, "format 1: clear @bytes\n"));
	CHECK(strstr(text, "  32-bit: none: no such file\n"
			   "  64-bit: predicate 0, 2 instructions; action 2, 3 instructions; 64 "
			   "bytes of scratch; wants the site\n"));
	CHECK(strstr(text, "point 1 of clause 0: usdt:/bin/x:p:q, other, 32-bit operands "
			   "\"-4@%eax\"\n"));
	if (check_failures)
		printf("%s", text);
	buf_release(&b);
	stream_free(s);
}

static void test_dump_is_harmless(void)
{
	struct stream *s = sample();
	struct buf b = {0};

	s->sources.v.v[0].text[0] = '\033';
	s->strings.v[0] = "\033[2J";
	stream_dump(s, &b);
	CHECK(!memchr(b.p, '\033', b.n));
	buf_release(&b);
	stream_free(s);
}

int main(void)
{
	static const struct test tests[] = {
		{"what is written to a stream file comes back", test_everything_comes_back},
		{"a stream file with any bit changed or cut anywhere is refused",
			test_every_bit_counts},
		{"header and section table of a stream file are checked", test_frame_rules},
		{"numbers in a stream file are checked", test_numbers_are_checked},
		{"shapes of a stream file have an end and fit", test_shapes_end},
		{"the size of an aggregation is what its arguments say",
			test_sizes_of_aggregations},
		{"a shape nested too deeply is written without its depths",
			test_deep_shapes_are_cut},
		{"jumps, constants, maps and calls in a stream file are checked",
			test_code_is_checked},
		{"pieces of code in a stream file are equal or apart", test_pieces_are_apart},
		{"BPF instructions are printed as text", test_instructions_as_text},
		{"the dump has script, code of both modes, maps, formats and points", test_dump},
		{"the dump has no control characters of a hostile stream", test_dump_is_harmless},
	};

	return RUN_TESTS(tests);
}
