/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "check.h"
#include "probe/points/tracepoint_format.h"

#define COMMON                                                                                     \
	"ID: 316\nformat:\n"                                                                       \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char sched[] =
	"name: sched_thing\n" COMMON "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n"
	"\tfield:__data_loc char[] filename;\toffset:88;\tsize:4;\tsigned:0;\n"
	"\tfield:__rel_loc char[] rel;\toffset:92;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc u64[] numbers;\toffset:96;\tsize:4;\tsigned:0;\n"
	"\tfield:const char * name;\toffset:104;\tsize:8;\tsigned:0;\n"
	"\tfield:struct mm_struct * mm;\toffset:112;\tsize:8;\tsigned:0;\n"
	"\tfield:bool success;\toffset:120;\tsize:1;\tsigned:0;\n"
	"\tfield:__u8 saddr[4];\toffset:121;\tsize:4;\tsigned:0;\n"
	"\tfield:struct timespec when;\toffset:128;\tsize:16;\tsigned:0;\n"
	"\tfield:enum zone_type idx;\toffset:144;\tsize:4;\tsigned:0;\n"
	"\tfield:char old[TASK_COMM_LEN];\toffset:148;\tsize:12;\tsigned:0;\n"
	"\nprint fmt: \"field: %d; offset:1; size:2;\", REC->prev_pid\n";

static const char openat[] = "name: sys_enter_openat\n" COMMON
			     "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
			     "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
			     "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n"
			     "\tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n";

static const struct type *parse(struct types *t, const char *text)
{
	const struct type *s = NULL;
	struct err err = {0};
	uint32_t id = 0;

	if (tracepoint_format_parse(
		    t, (struct span){(const uint8_t *)text, strlen(text)}, &s, &id, &err) < 0) {
		check_failures++;
		printf("%s\n", err.text);
		abort();
	}
	CHECK_EQ(id, 316);
	return s;
}

static void check_field(const struct type *s, const char *name, uint64_t offset, const char *type)
{
	struct type_field f = {0};
	struct buf b = {0};

	CHECK(type_find_field(s, name, &f));
	if (!f.type)
		return;
	type_print(f.type, &b);
	CHECK_EQ(f.offset, offset);
	CHECK_STR(buf_text(&b), type);
	buf_release(&b);
}

static void test_fields(void)
{
	/* A record is the kernel's, whatever the program that caused it. */
	for (int mode = 0; mode < N_MODES; mode++) {
		struct types *t = types_new(mode);
		const struct type *s = parse(t, sched);
		struct type_field f = {0};

		CHECK_EQ(s->n_fields, 18);
		CHECK_EQ(s->size, 160);
		check_field(s, "common_pid", 4, "int");
		check_field(s, "prev_comm", 8, "char[16]");
		check_field(s, "prev_pid", 24, "int");
		check_field(s, "prev_state", 32, "int64");
		check_field(s, "args", 40, "uint64[6]");
		check_field(s, "filename", 88, "__data_loc char[]");
		check_field(s, "rel", 92, "__rel_loc char[]");
		check_field(s, "numbers", 96, "__data_loc u64[]");
		check_field(s, "name", 104, "char *");
		check_field(s, "mm", 112, "void *");
		check_field(s, "success", 120, "bool");
		check_field(s, "saddr", 121, "uint8[4]");
		check_field(s, "when", 128, "uint8[16]");
		check_field(s, "idx", 144, "unsigned int");
		check_field(s, "old", 148, "char[12]");
		CHECK(type_find_field(s, "name", &f) && f.type->space == SPACE_KERNEL);
		CHECK_EQ(f.type->size, 8);
		CHECK(type_find_field(s, "filename", &f) && f.type->size == 4);
		CHECK(type_find_field(s, "prev_comm", &f) && f.type->of->is_char);
		CHECK(type_find_field(s, "saddr", &f) && !f.type->of->is_char);
		types_free(t);
	}
}

static void test_system_calls(void)
{
	struct types *t = types_new(MODE_64);
	const struct type *s = parse(t, openat);
	struct type_field f = {0};

	check_field(s, "dfd", 16, "int"); /* 8 bytes of which 4 are meant */
	check_field(s, "filename", 24, "char *");
	check_field(s, "mode", 40, "uint64");
	CHECK(type_find_field(s, "filename", &f) && f.type->space == SPACE_USER);
	types_free(t);
}

static void test_refused(void)
{
	static const char *const texts[] = {"", "name: x\n", "name: x\n" COMMON "\tfield:int;\n",
		"ID: 5\n", "name: x\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n",
		"ID: 5\n\tfield:int;\toffset:0;\tsize:4;\tsigned:1;\n",
		"ID: 5\n\tfield:int a;\toffset:9999999;\tsize:4;\tsigned:1;\n",
		"ID: 5\n\tfield:int a;\toffset:0;\tsize:4294967295;\tsigned:1;\n"};
	struct types *t = types_new(MODE_64);
	const struct type *s = NULL;
	uint32_t id;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct err err = {0};
		struct span text = {(const uint8_t *)texts[i], strlen(texts[i])};

		CHECK(tracepoint_format_parse(t, text, &s, &id, &err) < 0);
		CHECK(err.text[0]);
		CHECK(!s);
	}
	types_free(t);
}

static void test_machine(void)
{
	struct types *t = types_new(MODE_32);
	const struct type *s = NULL;
	struct err err = {0};
	uint32_t id = 0;
	int rc = tracepoint_format_read(t, "sched", "sched_switch", &s, &id, &err);

	if (rc == ERR_PERMISSION) {
		printf("skip the machine's own tracepoints: %s\n", err.text);
	} else {
		CHECK_EQ(rc, 0);
		CHECK(id != 0);
		if (s)
			CHECK(type_find_field(s, "next_pid", &(struct type_field){0}));
		CHECK_EQ(
			tracepoint_format_read(t, "sched", "nosuch", &s, &id, &err), ERR_NOT_FOUND);
		CHECK_STR(err.text, "this kernel has no tracepoint 'sched:nosuch'");
		CHECK_EQ(tracepoint_format_read(t, "..", "x", &s, &id, &err), ERR_NOT_FOUND);
	}
	types_free(t);
}

int main(void)
{
	static const struct test tests[] = {
		{"fields have the kernel's sizes in both modes", test_fields},
		{"arguments of system calls are those of the program", test_system_calls},
		{"texts that are no format are refused", test_refused},
		{"reads a format of this machine", test_machine},
	};

	return RUN_TESTS(tests);
}
