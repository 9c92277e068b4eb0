/* SPDX-License-Identifier: MIT */
/* Values, records and maps as text and as JSON lines. */
#include "check.h"
#include "probe_print_world.h"

#define BAR_26 "@@@@@@@@@@@@@@@@@@@@@@@@@@"
#define GAP_26 "                          "

static const char *printed(
	enum printer_format format, const struct shape *s, const void *value, size_t n)
{
	static struct buf out;
	struct printer *p = printer_new(NULL, format, &world_names);

	buf_reset(&out);
	printer_value(p, s, (struct span){value, n}, &out);
	printer_free(p);
	return buf_text(&out);
}

#define TEXT(shape, value) printed(PRINTER_TEXT, shape, &(value), sizeof(value))
#define JSON(shape, value) printed(PRINTER_JSON, shape, &(value), sizeof(value))

static void test_scalars(void)
{
	int64_t i = -3;
	double d = 1.5, nan = 0.0 / 0.0;
	char text[16] = "a \"b\"\n\x80\x01";

	CHECK_STR(TEXT(&shape_of_int, i), "-3");
	CHECK_STR(JSON(&shape_of_int, i), "-3");
	CHECK_STR(TEXT(&shape_of_unsigned, i), "18446744073709551613");
	CHECK_STR(TEXT(&shape_of_pointer, i), "0xfffffffffffffffd");
	i = 50;
	CHECK_STR(JSON(&shape_of_pointer, i), "50");
	CHECK_STR(TEXT(&shape_of_double, d), "1.5");
	CHECK_STR(JSON(&shape_of_double, d), "1.5");
	CHECK_STR(JSON(&shape_of_double, nan), "null");
	CHECK_STR(TEXT(&shape_of_text, text), "a \"b\"\n\x80\x01");
	CHECK_STR(JSON(&shape_of_text, text), "\"a \\\"b\\\"\\n\xef\xbf\xbd\\u0001\"");
}

static void test_utf8(void)
{
	static const struct {
		char in[16];
		const char *out;
	} cases[] = {
		{"\xc3\xa4\xe2\x82\xac", "\"\xc3\xa4\xe2\x82\xac\""},
		{"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
		{"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},		      /* too long a form */
		{"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
		{"x\xe2\x82", "\"x\xef\xbf\xbd\xef\xbf\xbd\""},		      /* cut off */
		{"\xf5\x80\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\\\r\t\x7f", "\"\\\\\\r\\t\\u007f\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(JSON(&shape_of_text, cases[i].in), cases[i].out);
}

static void test_tuples(void)
{
	struct shape_field inner_fields[] = {
		{.shape = &shape_of_int}, {.shape = &shape_of_int, .offset = 8}};
	struct shape inner = {
		.kind = SHAPE_TUPLE, .size = 16, .fields = inner_fields, .n_fields = 2};
	struct shape_field fields[] = {{.shape = &shape_of_int},
		{.shape = &shape_of_text, .offset = 8}, {.shape = &inner, .offset = 24}};
	struct shape tuple = {.kind = SHAPE_TUPLE, .size = 40, .fields = fields, .n_fields = 3};
	struct {
		int64_t a;
		char text[16];
		int64_t b, c;
	} value = {1, "string", 4, 5};

	CHECK_STR(TEXT(&tuple, value), "(1, string, (4, 5))");
	CHECK_STR(JSON(&tuple, value), "[1,\"string\",[4,5]]");
}

/* struct { int16_t m; unsigned lo : 3; int hi : 4; char name[4]; int n[2]; struct { float f; void
 * *p; }; } as a 32-bit program has it */
static void test_structs(void)
{
	struct shape narrow = {.kind = SHAPE_FLOAT, .n = 4, .size = 8};
	struct shape name = {.kind = SHAPE_STRING, .n = 4, .size = 8};
	struct shape_field array_fields[] = {{.shape = &shape_of_int, .bytes = 4},
		{.shape = &shape_of_int, .offset = 4, .bytes = 4}};
	struct shape array = {
		.kind = SHAPE_STRUCT, .n = 8, .size = 8, .fields = array_fields, .n_fields = 2};
	struct shape_field inner_fields[] = {{.name = "f", .shape = &narrow, .bytes = 4},
		{.name = "p", .shape = &shape_of_pointer, .offset = 4, .bytes = 4}};
	struct shape inner = {
		.kind = SHAPE_STRUCT, .n = 8, .size = 8, .fields = inner_fields, .n_fields = 2};
	struct shape_field fields[] = {
		{.name = "m", .shape = &shape_of_int, .bytes = 2},
		{.name = "lo", .shape = &shape_of_unsigned, .offset = 4, .bytes = 4, .bit_size = 3},
		{.name = "hi",
			.shape = &shape_of_int,
			.offset = 4,
			.bytes = 4,
			.bit_offset = 3,
			.bit_size = 4},
		{.name = "name", .shape = &name, .offset = 8},
		{.name = "n", .shape = &array, .offset = 12},
		{.shape = &inner, .offset = 20},
	};
	struct shape outer = {
		.kind = SHAPE_STRUCT, .n = 28, .size = 32, .fields = fields, .n_fields = 6};
	struct __attribute__((packed)) {
		int16_t m;
		uint16_t gap;
		uint32_t bits;
		char name[4];
		int32_t n[2];
		float f;
		uint32_t p, pad;
	} value = {-2, 0, 5 | 0x9 << 3, "abcd", {7, -8}, 0.25f, 0xfffffff0, 0};

	CHECK_STR(TEXT(&outer, value), "{ .m = -2, .lo = 5, .hi = -7, .name = abcd, .n = [7,-8], "
				       ".f = 0.25, .p = 0xfffffff0 }");
	CHECK_STR(JSON(&outer, value),
		"{\"m\": -2, \"lo\": 5, \"hi\": -7, \"name\": \"abcd\", \"n\": [7,-8], "
		"\"f\": 0.25, \"p\": 4294967280}");
	/* Cut in the middle: what is missing is zero. */
	CHECK_STR(printed(PRINTER_TEXT, &outer, &value, 6),
		"{ .m = -2, .lo = 0, .hi = 0, .name = , .n = [0,0], .f = 0, .p = 0x0 }");
}

static void test_deep_shapes(void)
{
	struct shape shapes[64];
	struct shape_field fields[64][2];
	uint64_t value = 1;
	const char *text;

	/* Each has the next one twice: 2^63 parts. */
	for (size_t i = 0; i < 64; i++) {
		struct shape *next = i < 63 ? &shapes[i + 1] : &shape_of_int;

		fields[i][0] = fields[i][1] = (struct shape_field){.shape = next};
		shapes[i] = (struct shape){
			.kind = SHAPE_TUPLE, .size = 8, .fields = fields[i], .n_fields = 2};
	}
	text = TEXT(&shapes[0], value);
	CHECK(strlen(text) > 1000 && strlen(text) < 2 << 20);
	text = JSON(&shapes[0], value);
	CHECK(strlen(text) > 1000 && strlen(text) < 2 << 20);
}

/* --- records ---------------------------------------------------------------------------------- */

static const char *recorded(
	struct stream_format *f, enum printer_format format, const void *args, size_t n)
{
	static struct buf out;
	struct stream s = {.formats = {.v = f, .n = 1}};
	struct stream_record r = {.time_ns = 1};
	struct printer *p = printer_new(&s, format, &world_names);

	buf_reset(&out);
	printer_record(p, &r, (struct span){args, n}, &out);
	r.format = 1; /* no such format: nothing */
	printer_record(p, &r, (struct span){args, n}, &out);
	printer_free(p);
	return buf_text(&out);
}

static void test_records(void)
{
	struct shape *shapes[] = {&shape_of_int};
	struct stream_format f = {
		.kind = FORMAT_PRINTF, .text = "test %d\n", .args = shapes, .n_args = 1};
	int64_t five = 5;

	CHECK_STR(recorded(&f, PRINTER_TEXT, &five, 8), "test 5\n");
	CHECK_STR(recorded(&f, PRINTER_JSON, &five, 8),
		"{\"type\": \"printf\", \"data\": \"test 5\\n\"}\n");
	f.kind = FORMAT_PRINT;
	CHECK_STR(recorded(&f, PRINTER_TEXT, &five, 8), "5\n");
	CHECK_STR(recorded(&f, PRINTER_JSON, &five, 8), "{\"type\": \"value\", \"data\": 5}\n");
	f.kind = FORMAT_EXIT;
	CHECK_STR(recorded(&f, PRINTER_TEXT, &five, 8), "");
}

static void test_time(void)
{
	struct stream_format f = {.kind = FORMAT_TIME, .text = "%Y %%f %f|"};
	const char *text = recorded(&f, PRINTER_TEXT, NULL, 0);
	unsigned year, us;

	CHECK(sscanf(text, "%4u %%f %6u|", &year, &us) == 2 && year >= 1970);
	CHECK_EQ(strlen(text), strlen("2026 %f 123456|"));
	f.text = NULL;
	text = recorded(&f, PRINTER_JSON, NULL, 0);
	CHECK_EQ(strlen(text), strlen("{\"type\": \"time\", \"data\": \"12:34:56\\n\"}\n"));
}

static void test_join(void)
{
	struct shape_field fields[] = {{.shape = &shape_of_text},
		{.shape = &shape_of_text, .offset = 16}, {.shape = &shape_of_text, .offset = 32}};
	struct shape words = {.kind = SHAPE_TUPLE, .size = 48, .fields = fields, .n_fields = 3};
	struct shape *shapes[] = {&words};
	struct stream_format f = {.kind = FORMAT_JOIN, .text = ",", .args = shapes, .n_args = 1};
	char value[3][16] = {"/bin/echo", "A", ""};

	CHECK_STR(recorded(&f, PRINTER_TEXT, value, sizeof(value)), "/bin/echo,A\n");
	f.text = NULL;
	CHECK_STR(recorded(&f, PRINTER_JSON, value, sizeof(value)),
		"{\"type\": \"join\", \"data\": \"/bin/echo A\"}\n");
}

static void test_cat(void)
{
	struct stream_format f = {.kind = FORMAT_CAT, .text = "/proc/self/comm"};

	CHECK_STR(recorded(&f, PRINTER_TEXT, NULL, 0), "probe_printer_t\n");
	CHECK_STR(recorded(&f, PRINTER_JSON, NULL, 0),
		"{\"type\": \"cat\", \"data\": \"probe_printer_t\\n\"}\n");
	f.text = "/nowhere";
	CHECK_STR(recorded(&f, PRINTER_TEXT, NULL, 0),
		"ERROR: cat: '/nowhere': No such file or directory\n");
	f.text = "/dev/zero";
	CHECK_STR(recorded(&f, PRINTER_TEXT, NULL, 0),
		"ERROR: cat: '/dev/zero': is no regular file\n");
}

/* --- maps ------------------------------------------------------------------------------------- */

static struct printer *map_printer;
static struct stream map_stream;
static struct stream_map_def map_def;

static void map_begin(
	enum printer_format format, const char *name, struct shape *key, struct shape *value)
{
	map_def = (struct stream_map_def){.name = name, .key = key, .value = value};
	map_stream.maps.v = &map_def;
	map_stream.maps.n = 1;
	map_printer = printer_new(&map_stream, format, &world_names);
	printer_map_begin(map_printer, 0);
}

static void map_add(const void *key, size_t key_n, const void *value, size_t value_n)
{
	printer_map_add(map_printer, (struct span){key, key_n}, (struct span){value, value_n});
}

static const char *map_end(uint64_t top, uint64_t div)
{
	static struct buf out;

	buf_reset(&out);
	printer_map_end(map_printer, top, div, &out);
	printer_free(map_printer);
	return buf_text(&out);
}

static struct shape shape_of_none = {.kind = SHAPE_NONE};
static struct shape shape_of_count = {.kind = SHAPE_COUNT, .size = 8};

static void test_scalar_maps(void)
{
	int64_t five = 5;

	map_begin(PRINTER_TEXT, "@x", &shape_of_none, &shape_of_int);
	map_add(NULL, 0, &five, 8);
	CHECK_STR(map_end(0, 0), "@x: 5\n");
	map_begin(PRINTER_JSON, "@x", &shape_of_none, &shape_of_int);
	map_add(NULL, 0, &five, 8);
	CHECK_STR(map_end(0, 0), "{\"type\": \"map\", \"data\": {\"@x\": 5}}\n");
	map_begin(PRINTER_TEXT, "@x", &shape_of_none, &shape_of_int);
	CHECK_STR(map_end(0, 0), "\n");
	map_begin(PRINTER_JSON, "@x", &shape_of_none, &shape_of_int);
	CHECK_STR(map_end(0, 0), "");
}

static void add_counts(void)
{
	static const struct {
		char key[16];
		uint64_t n;
	} entries[] = {{"b", 20}, {"d", 5}, {"a", 20}, {"c", 1000}};

	for (size_t i = 0; i < 4; i++)
		map_add(entries[i].key, 16, &entries[i].n, 8);
}

static void test_counts(void)
{
	map_begin(PRINTER_TEXT, "@", &shape_of_text, &shape_of_count);
	add_counts();
	CHECK_STR(map_end(0, 0), "@[d]: 5\n@[a]: 20\n@[b]: 20\n@[c]: 1000\n\n");
	map_begin(PRINTER_TEXT, "@", &shape_of_text, &shape_of_count);
	add_counts();
	CHECK_STR(map_end(2, 10), "@[b]: 2\n@[c]: 100\n\n");
	map_begin(PRINTER_JSON, "@", &shape_of_text, &shape_of_count);
	add_counts();
	CHECK_STR(
		map_end(2, 10), "{\"type\": \"map\", \"data\": {\"@\": {\"b\": 2, \"c\": 100}}}\n");
	map_begin(PRINTER_TEXT, "@", &shape_of_text, &shape_of_count);
	add_counts();
	CHECK(!strncmp(map_end(99, 1), "@[d]: 5\n", 8));
	map_begin(PRINTER_JSON, "@", &shape_of_text, &shape_of_count);
	CHECK_STR(map_end(0, 0), "{\"type\": \"map\", \"data\": {\"@\": {}}}\n");
}

static void test_keys(void)
{
	struct shape_field fields[] = {
		{.shape = &shape_of_text}, {.shape = &shape_of_int, .offset = 16}};
	struct shape tuple = {.kind = SHAPE_TUPLE, .size = 24, .fields = fields, .n_fields = 2};
	struct {
		char text[16];
		int64_t n;
	} a = {"curl", 3}, b = {"curl", -30};
	int64_t one = 1;

	for (int json = 0; json < 2; json++) {
		map_begin(json ? PRINTER_JSON : PRINTER_TEXT, "@c", &tuple, &shape_of_int);
		map_add(&a, 24, &one, 8);
		map_add(&b, 24, &one, 8);
		CHECK_STR(map_end(0, 0),
			json ? "{\"type\": \"map\", \"data\": {\"@c\": {\"curl,-30\": 1, "
			       "\"curl,3\": 1}}}\n"
			     : "@c[curl, -30]: 1\n@c[curl, 3]: 1\n\n");
	}
}

static void test_stack_keys(void)
{
	struct shape_field fields[] = {
		{.shape = &shape_of_ustack}, {.shape = &shape_of_text, .offset = 16}};
	struct shape tuple = {.kind = SHAPE_TUPLE, .size = 32, .fields = fields, .n_fields = 2};
	struct {
		uint64_t id;
		uint32_t pid, bits;
		char comm[16];
	} key = {7, 42, 64, "bash"};
	uint64_t three = 3;

	map_begin(PRINTER_TEXT, "@", &shape_of_ustack, &shape_of_count);
	map_add(&key, 16, &three, 8);
	CHECK_STR(map_end(0, 0), "@[\n    leaf+0\n    main+25\n    0xdead\n]: 3\n\n");
	map_begin(PRINTER_TEXT, "@", &tuple, &shape_of_count);
	map_add(&key, 32, &three, 8);
	CHECK_STR(map_end(0, 0), "@[\n    leaf+0\n    main+25\n    0xdead\n, bash]: 3\n\n");
	map_begin(PRINTER_JSON, "@", &shape_of_ustack, &shape_of_count);
	map_add(&key, 16, &three, 8);
	CHECK_STR(map_end(0, 0), "{\"type\": \"map\", \"data\": {\"@\": "
				 "{\"\\n    leaf+0\\n    main+25\\n    0xdead\\n\": 3}}}\n");
}

static void test_statistics(void)
{
	struct shape avg = {.kind = SHAPE_AVG, .is_signed = true, .size = 16};
	struct shape stats = {.kind = SHAPE_STATS, .is_signed = true, .size = 16};
	struct shape min = {.kind = SHAPE_MIN, .is_signed = true, .size = 16};
	int64_t three[] = {3, 7}, negative[] = {2, -9};

	map_begin(PRINTER_TEXT, "@s", &shape_of_none, &stats);
	map_add(NULL, 0, three, 16);
	CHECK_STR(map_end(0, 0), "@s: { .count = 3, .average = 2, .total = 7 }\n");
	map_begin(PRINTER_JSON, "@s", &shape_of_none, &stats);
	map_add(NULL, 0, negative, 16);
	CHECK_STR(map_end(0, 0), "{\"type\": \"stats\", \"data\": {\"@s\": {\"count\": 2, "
				 "\"average\": -4, \"total\": -9}}}\n");
	map_begin(PRINTER_TEXT, "@a", &shape_of_none, &avg);
	map_add(NULL, 0, negative, 16);
	CHECK_STR(map_end(0, 0), "@a: -4\n");
	map_begin(PRINTER_JSON, "@a", &shape_of_none, &avg);
	map_add(NULL, 0, three, 16);
	CHECK_STR(map_end(0, 0), "{\"type\": \"stats\", \"data\": {\"@a\": 2}}\n");
	map_begin(PRINTER_TEXT, "@m", &shape_of_none, &min);
	map_add(NULL, 0, negative, 16);
	CHECK_STR(map_end(0, 0), "@m: -9\n");
}

static void test_log_histograms(void)
{
	struct shape hist = {.kind = SHAPE_HIST, .size = 66 * 8};
	uint64_t counts[66] = {0};

	counts[0] = 1; /* below 0 */
	counts[3] = 2; /* 2, 3 */
	counts[4] = 1; /* 4 to 7 */
	map_begin(PRINTER_TEXT, "@", &shape_of_none, &hist);
	map_add(NULL, 0, counts, sizeof(counts));
	CHECK_STR(map_end(0, 0), "@:\n"
				 "(..., 0)               1 |" BAR_26 GAP_26 "|\n"
				 "[0]                    0 |" GAP_26 GAP_26 "|\n"
				 "[1]                    0 |" GAP_26 GAP_26 "|\n"
				 "[2, 4)                 2 |" BAR_26 BAR_26 "|\n"
				 "[4, 8)                 1 |" BAR_26 GAP_26 "|\n"
				 "\n");
	memset(counts, 0, sizeof(counts));
	counts[11] = 3;
	counts[12] = 6;
	map_begin(PRINTER_TEXT, "@h", &shape_of_none, &hist);
	map_add(NULL, 0, counts, sizeof(counts));
	CHECK_STR(map_end(0, 3), "@h:\n"
				 "[512, 1K)              1 |" BAR_26 GAP_26 "|\n"
				 "[1K, 2K)               2 |" BAR_26 BAR_26 "|\n"
				 "\n");
	counts[11] = 0;
	counts[12] = 0;
	counts[65] = 1;
	map_begin(PRINTER_TEXT, "@h", &shape_of_none, &hist);
	map_add(NULL, 0, counts, sizeof(counts));
	CHECK_STR(map_end(0, 0), "@h:\n[8E, 16E)              1 |" BAR_26 BAR_26 "|\n\n");
	map_begin(PRINTER_JSON, "@h", &shape_of_none, &hist);
	map_add(NULL, 0, counts, sizeof(counts));
	CHECK_STR(map_end(0, 0), "{\"type\": \"hist\", \"data\": {\"@h\": [{\"min\": "
				 "9223372036854775808, \"max\": 18446744073709551615, "
				 "\"count\": 1}]}}\n");
}

static void test_histogram_json(void)
{
	struct shape hist = {.kind = SHAPE_HIST, .size = 66 * 8};
	uint64_t counts[66] = {1, 2, 0, 1}, none[66] = {0};
	char key[16] = "curl";

	map_begin(PRINTER_JSON, "@", &shape_of_text, &hist);
	map_add(key, 16, counts, sizeof(counts));
	CHECK_STR(map_end(0, 0), "{\"type\": \"hist\", \"data\": {\"@\": {\"curl\": ["
				 "{\"max\": -1, \"count\": 1}, "
				 "{\"min\": 0, \"max\": 0, \"count\": 2}, "
				 "{\"min\": 1, \"max\": 1, \"count\": 0}, "
				 "{\"min\": 2, \"max\": 3, \"count\": 1}]}}}\n");
	map_begin(PRINTER_JSON, "@", &shape_of_none, &hist);
	map_add(NULL, 0, none, sizeof(none));
	CHECK_STR(map_end(0, 0), "{\"type\": \"hist\", \"data\": {\"@\": []}}\n");
}

static void test_linear_histograms(void)
{
	struct shape lhist = {.kind = SHAPE_LHIST, .size = 7 * 8, .min = 0, .max = 10, .step = 2};
	struct shape kilos = {
		.kind = SHAPE_LHIST, .size = 4 * 8, .min = -1024, .max = 3072, .step = 2048};
	uint64_t counts[7] = {1, 0, 2, 0, 1, 0, 1}, few[4] = {0, 1, 1, 0};
	int64_t key = 2;

	map_begin(PRINTER_TEXT, "@", &shape_of_int, &lhist);
	map_add(&key, 8, counts, sizeof(counts));
	CHECK_STR(map_end(0, 0), "@[2]:\n"
				 "(..., 0)               1 |" BAR_26 GAP_26 "|\n"
				 "[0, 2)                 0 |" GAP_26 GAP_26 "|\n"
				 "[2, 4)                 2 |" BAR_26 BAR_26 "|\n"
				 "[4, 6)                 0 |" GAP_26 GAP_26 "|\n"
				 "[6, 8)                 1 |" BAR_26 GAP_26 "|\n"
				 "[8, 10)                0 |" GAP_26 GAP_26 "|\n"
				 "[10, ...)              1 |" BAR_26 GAP_26 "|\n"
				 "\n");
	map_begin(PRINTER_TEXT, "@", &shape_of_none, &kilos);
	map_add(NULL, 0, few, sizeof(few));
	CHECK_STR(map_end(0, 0), "@:\n"
				 "[-1K, 1K)              1 |" BAR_26 BAR_26 "|\n"
				 "[1K, 3K)               1 |" BAR_26 BAR_26 "|\n"
				 "\n");
	counts[1] = counts[2] = counts[3] = counts[4] = 0;
	map_begin(PRINTER_JSON, "@h", &shape_of_none, &lhist);
	map_add(NULL, 0, counts + 4, 8 * 3);
	CHECK_STR(map_end(0, 0), "{\"type\": \"hist\", \"data\": {\"@h\": ["
				 "{\"min\": 2, \"max\": 3, \"count\": 1}]}}\n");
	map_begin(PRINTER_JSON, "@h", &shape_of_none, &lhist);
	counts[0] = 0;
	counts[5] = 4;
	map_add(NULL, 0, counts, sizeof(counts));
	CHECK_STR(map_end(0, 0), "{\"type\": \"hist\", \"data\": {\"@h\": ["
				 "{\"min\": 8, \"max\": 9, \"count\": 4}, "
				 "{\"min\": 10, \"count\": 1}]}}\n");
}

static void test_senseless_maps(void)
{
	struct shape lhist = {.kind = SHAPE_LHIST,
		.size = UINT32_MAX,
		.min = INT64_MIN,
		.max = INT64_MAX,
		.step = INT64_MAX};
	uint64_t counts[3] = {1, UINT64_MAX, 1};
	struct printer *p;
	struct buf out = {0};

	map_begin(PRINTER_TEXT, "@", &shape_of_text, &lhist);
	map_add("x", 1, counts, sizeof(counts));
	map_add(NULL, 0, NULL, 0);
	CHECK(strstr(map_end(0, 0), "@[x]:\n") != NULL);
	p = printer_new(&map_stream, PRINTER_TEXT, NULL);
	printer_map_begin(p, 1); /* there is no such map */
	printer_map_add(p, (struct span){NULL, 0}, (struct span){NULL, 0});
	printer_map_end(p, 0, 0, &out);
	CHECK_EQ(out.n, 0);
	printer_free(p);
	buf_release(&out);
}

int main(void)
{
	const struct test tests[] = {
		{"numbers, pointers, floats and texts have their forms", test_scalars},
		{"JSON texts are valid UTF-8 whatever the program's text was", test_utf8},
		{"tuples are printed with their parts", test_tuples},
		{"structs are read member by member as they are in memory", test_structs},
		{"a shape of endless parts is cut off", test_deep_shapes},
		{"records of printf and print are printed, actions are not", test_records},
		{"time is the wall clock of the record", test_time},
		{"join puts texts together", test_join},
		{"cat shows a file and says when it cannot", test_cat},
		{"a map without keys has one line", test_scalar_maps},
		{"entries are sorted by value, then by key, and cut and divided", test_counts},
		{"keys of several parts are shown side by side", test_keys},
		{"stacks as keys have a line for each function", test_stack_keys},
		{"avg, stats and min are shown as numbers", test_statistics},
		{"histograms of powers of two are drawn", test_log_histograms},
		{"histograms in JSON have bounds and counts", test_histogram_json},
		{"linear histograms are drawn", test_linear_histograms},
		{"a map that makes no sense does no harm", test_senseless_maps},
	};

	return RUN_TESTS(tests);
}
