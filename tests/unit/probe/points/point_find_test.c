/* SPDX-License-Identifier: MIT */
/* Files are made in a folder of their own; addresses, file offsets and sections all differ. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "check.h"
#include "elf_maker.h"
#include "probe/points/find_kernel.h"
#include "probe/points/point.h"
#include "process/syscall_names.h"

#define FUNC  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LOCAL ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define WEAK  ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define IFUNC ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC)
#define LABEL ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)
#define TEXT  0x401000ull

static struct arena *arena;
static struct sources sources;
static struct diags diags;

static bool find_with(const char *text, const struct find_options *options, struct point *point)
{
	struct point_text point_text = {.text = text, .place = {0, 0, (uint32_t)strlen(text)}};
	struct point_spec spec;

	diags_release(&diags);
	diags_init(&diags, &sources);
	*point = (struct point){0};
	return point_parse(&point_text, arena, &spec, &diags) &&
	       point_find(&spec, options, arena, point, &diags);
}

static bool find(const char *text, struct point *point)
{
	return find_with(text, NULL, point);
}

static const char *tag(void)
{
	return diags.v.n ? diags.v.v[0].tag : "";
}

static const char *hint(void)
{
	return diags.v.n && diags.v.v[0].hint ? diags.v.v[0].hint : "";
}

/* --- files ------------------------------------------------------------------------------------ */

static const uint8_t code[0x60] = {
	[0x00] = 0x55,
	0x48,
	0x89,
	0xe5,
	0x5d,
	0xc3, /* push; mov; pop; ret */
	[0x10] = 0xf0,
	0xff,
	0x00,
	0xc3, /* lock incl */
	[0x20] = 0xf3,
	0x0f,
	0x1e,
	0xfa,
	0x53,
	0xc3, /* endbr64; push; ret */
	[0x30] = 0x31,
	0xc0,
	0xc3,
	[0x40] = 0x90,
	0x90,
	0xc3,
	[0x50] = 0x90,
	0xc3,
};

static const struct {
	const char *name;
	uint64_t at, size;
	uint8_t info;
} symbols[] = {
	{"f", 0x00, 6, FUNC},
	{"__f_alias", 0x00, 6, WEAK},
	{"locked", 0x10, 4, FUNC},
	{"endbr", 0x20, 6, FUNC},
	{"chosen", 0x30, 3, IFUNC},
	{"__chosen_avx2", 0x40, 3, FUNC},
	{"_ZN2ns1fEi", 0x40, 3, FUNC},
	{"copy@@V_2", 0x50, 2, FUNC},
	{"f.cold", 0x50, 2, LOCAL},
	{"a_label", 0x42, 0, LABEL},
};

static void put_file(const char *path, struct span bytes)
{
	CHECK_EQ(file_replace(path, bytes, 0755, NULL), 0);
}

static void add_symbols(struct elf_maker *m, uint32_t text)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		elf_maker_symbol(m, symbols[i].name, TEXT + symbols[i].at, symbols[i].size,
			symbols[i].info, (uint16_t)text);
	elf_maker_symbols(m, ".symtab", SHT_SYMTAB);
}

/* Returns where the code is in the file. */
static uint64_t begin_file(struct elf_maker *m, bool is_64, uint32_t *text)
{
	uint64_t at;

	elf_maker_init(m, is_64);
	elf_maker_section(m, ".pad", SHT_PROGBITS, 0, (struct span){code, 24});
	*text = elf_maker_section(
		m, ".text", SHT_PROGBITS, TEXT, (struct span){code, sizeof(code)});
	m->sections[*text].flags = SHF_ALLOC | SHF_EXECINSTR;
	at = m->sections[*text].offset.v;
	elf_maker_segment(m, (struct elf_segment){.type = PT_LOAD,
				     .flags = PF_R | PF_X,
				     .offset = {at},
				     .addr = {TEXT},
				     .file_size = sizeof(code),
				     .mem_size = sizeof(code)});
	return at;
}

static uint64_t make_file(const char *path, bool is_64, uint16_t machine)
{
	struct elf_maker m;
	uint32_t text;
	uint64_t at = begin_file(&m, is_64, &text);

	m.machine = machine;
	add_symbols(&m, text);
	put_file(path, elf_maker_finish(&m));
	elf_maker_release(&m);
	return at;
}

/* --- functions -------------------------------------------------------------------------------- */

static void test_function(void)
{
	struct point p;
	uint64_t at = make_file("a64", true, EM_X86_64);

	CHECK(find("uprobe:./a64:f", &p));
	CHECK_EQ(p.n_targets, 1);
	CHECK_EQ(p.targets[0].mode, MODE_64);
	CHECK_EQ(p.targets[0].n_sites, 1);
	CHECK_STR(p.targets[0].sites[0].function, "f");
	CHECK_EQ(p.targets[0].sites[0].offset.v, at);
	CHECK_EQ(p.targets[0].sites[0].addr.v, TEXT);
	CHECK_EQ(p.targets[0].sites[0].cost, SITE_EMULATED);
	CHECK(find("uprobe:./a64:__f_alias", &p));
	CHECK_STR(p.targets[0].sites[0].function, "__f_alias");
	CHECK(find("uprobe:./a64:copy", &p));
	CHECK_STR(p.targets[0].sites[0].function, "copy");
	CHECK(find("uprobe:./a64:ns::f(int)", &p) && find("uprobe:./a64:ns::f", &p));
	CHECK_EQ(p.targets[0].sites[0].offset.v, at + 0x40);
	CHECK(find("uprobe:./a64:endbr", &p));
	CHECK_EQ(p.targets[0].sites[0].cost, SITE_SINGLE_STEPPED);
	CHECK_EQ(p.targets[0].sites[0].cheaper.v, at + 0x24);
	at = make_file("a32", false, EM_386);
	CHECK(find("uretprobe:./a32:f", &p));
	CHECK_EQ(p.targets[0].mode, MODE_32);
	CHECK_EQ(p.targets[0].sites[0].offset.v, at);
}

static void test_glob(void)
{
	struct point p;

	make_file("a64", true, EM_X86_64);
	CHECK(find("uprobe:./a64:*", &p));
	CHECK_EQ(p.n_targets, 1);
	CHECK_EQ(p.targets[0].n_sites, 4); /* f, endbr, one at 0x40, copy */
	CHECK_STR(p.targets[0].sites[0].function, "f");
	CHECK_STR(p.targets[0].sites[3].function, "copy");
	CHECK_EQ(p.targets[0].n_left_out, 2);
	CHECK_STR(p.targets[0].left_out[0].function, "locked");
	CHECK(strstr(p.targets[0].left_out[0].why, "lock prefix"));
	CHECK(strstr(p.targets[0].left_out[1].why, "IFUNC"));
	CHECK_EQ(diags.n_errors, 0);
	CHECK(find("uprobe:./a64:zz*", &p));
	CHECK_EQ(p.n_targets, 0);
	CHECK_EQ(diags.n_warnings, 1);
	CHECK_STR(tag(), "no-symbol");
}

static void test_places(void)
{
	struct point p;
	uint64_t at = make_file("a64", true, EM_X86_64);

	CHECK(find("uprobe:./a64:f+4", &p));
	CHECK_EQ(p.targets[0].sites[0].offset.v, at + 4);
	CHECK_EQ(p.targets[0].sites[0].into_function, 4);
	CHECK(!find("uprobe:./a64:f+2", &p));
	CHECK_STR(tag(), "no-sites");
	CHECK(strstr(diags.v.v[0].text, "start of an instruction"));
	CHECK(!find("uprobe:./a64:f+6", &p));
	CHECK(strstr(diags.v.v[0].text, "behind the function"));
	CHECK(find("uprobe:./a64:0x401004", &p));
	CHECK_STR(p.targets[0].sites[0].function, "f");
	CHECK_EQ(p.targets[0].sites[0].into_function, 4);
	CHECK(find("uprobe:./a64:0x401008", &p)); /* between functions, add %al,(%rax) */
	CHECK(!p.targets[0].sites[0].function);
	CHECK(!find("uprobe:./a64:0x1", &p));
	CHECK_STR(tag(), "no-sites");
}

static void test_refusals(void)
{
	struct point p;

	make_file("a64", true, EM_X86_64);
	CHECK(!find("uprobe:./a64:lockd", &p));
	CHECK_STR(tag(), "no-symbol");
	CHECK(strstr(hint(), "'locked'"));
	CHECK(!find("uprobe:./a64:locked", &p));
	CHECK_STR(tag(), "no-sites");
	CHECK(!find("uprobe:./a64:chosen", &p));
	CHECK_STR(tag(), "no-sites");
	CHECK(strstr(hint(), "__chosen_avx2"));
	CHECK(!find("uprobe:./a65:f", &p));
	CHECK_STR(tag(), "not-found");
	CHECK(strstr(hint(), "'a64'"));
	make_file("x32", false, EM_X86_64);
	CHECK(!find("uprobe:./x32:f", &p));
	CHECK_STR(tag(), "x32");
	make_file("arm", true, EM_AARCH64);
	CHECK(!find("uprobe:./arm:f", &p));
	CHECK_STR(tag(), "not-elf");
	put_file("script", (struct span){(const uint8_t *)"#! /bin/sh\nexit 0\nsome more\n", 28});
	CHECK(!find("uprobe:./script:f", &p));
	CHECK_STR(tag(), "not-elf");
	CHECK(strstr(hint(), "/bin/sh"));
	CHECK(!find("uprobe:.:f", &p));
	CHECK(!find("uprobe:libno-such-thing:f", &p));
	CHECK_STR(tag(), "not-found");
	CHECK(!find("uprobe::f", &p));
	CHECK(strstr(hint(), "-c"));
}

/* The names are in another file, whose sections lie elsewhere in it. */
static void test_debug_file(void)
{
	static const uint8_t note[] = {
		4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 0x01};
	struct elf_maker m;
	struct point p;
	uint32_t text, id;
	uint64_t at = begin_file(&m, true, &text);

	id = elf_maker_section(
		&m, ".note.gnu.build-id", SHT_NOTE, 0, (struct span){note, sizeof(note)});
	CHECK(id > 0);
	put_file("stripped", elf_maker_finish(&m));
	elf_maker_release(&m);
	elf_maker_init(&m, true);
	text = elf_maker_section(&m, ".text", SHT_NOBITS, TEXT, (struct span){code, sizeof(code)});
	m.sections[text].flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_maker_section(&m, ".note.gnu.build-id", SHT_NOTE, 0, (struct span){note, sizeof(note)});
	add_symbols(&m, text);
	mkdir("debug", 0755);
	mkdir("debug/.build-id", 0755);
	mkdir("debug/.build-id/ab", 0755);
	put_file("debug/.build-id/ab/cdef01.debug", elf_maker_finish(&m));
	elf_maker_release(&m);
	CHECK(!find("uprobe:./stripped:endbr", &p));
	CHECK(strstr(hint(), "stripped"));
	setenv("WEIR_DEBUG_PATH", "debug", 1);
	CHECK(find("uprobe:./stripped:endbr", &p));
	CHECK_EQ(p.targets[0].sites[0].offset.v, at + 0x20);
	unsetenv("WEIR_DEBUG_PATH");
}

/* --- finding files ---------------------------------------------------------------------------- */

static void test_one_inode(void)
{
	struct point p;

	make_file("lib1.so", true, EM_X86_64);
	make_file("lib2.so", false, EM_386);
	CHECK_EQ(symlink("lib1.so", "lib3.so"), 0);
	put_file("lib4.so", (struct span){(const uint8_t *)"no ELF file", 11});
	CHECK(find("uprobe:./lib*.so:f", &p));
	CHECK_EQ(p.n_targets, 2);
	CHECK(p.targets[0].mode != p.targets[1].mode);
	CHECK(find("uprobe:./nothing*.so:f", &p));
	CHECK_EQ(p.n_targets, 0);
	CHECK_STR(tag(), "not-found");
}

static void test_libraries(void)
{
	struct point p, q;
	bool seen[N_MODES] = {false};

	CHECK(find("uprobe:libc:getpid", &p));
	CHECK(p.n_targets >= 1 && p.n_targets <= N_MODES);
	for (size_t i = 0; i < p.n_targets; i++) {
		CHECK(!seen[p.targets[i].mode]);
		seen[p.targets[i].mode] = true;
	}
	CHECK(seen[MODE_64]);
	CHECK(find("uprobe:c:getpid", &q) && q.n_targets == p.n_targets);
	CHECK(find("uprobe:libc.so.6:getpid", &q) && q.n_targets == p.n_targets);
	CHECK(find("uprobe:sh:main", &q) || strcmp(tag(), "no-symbol") == 0);
}

/* What a process has mapped is found there, also when nothing has that name any more. */
static void test_process(void)
{
	pid_t pid = getpid();
	struct find_options options = {.pids = &pid, .n_pids = 1};
	struct file_map map;
	struct point p;
	struct err err;

	make_file("libmapped-here.so.1", true, EM_X86_64);
	CHECK_EQ(file_map_open(&map, "libmapped-here.so.1", &err), 0);
	CHECK(find_with("uprobe:libmapped-here:f", &options, &p));
	CHECK(p.n_targets == 1 && strstr(p.targets[0].path, "/libmapped-here.so.1"));
	unlink("libmapped-here.so.1");
	CHECK(!find("uprobe:libmapped-here:f", &p));
	/* Needs the right to look into /proc/PID/map_files. */
	if (geteuid() == 0) {
		CHECK(find_with("uprobe:libmapped-here:f", &options, &p));
		CHECK(p.n_targets == 1 && strstr(p.targets[0].path, "/map_files/"));
	}
	file_map_release(&map);
	options = (struct find_options){.command = "./a64"};
	make_file("a64", true, EM_X86_64);
	CHECK(find_with("uprobe::f", &options, &p));
	CHECK_STR(p.targets[0].path, "./a64");
	CHECK(find_with("uprobe:a64:f", &options, &p));
	options.command = "./no-such-program";
	CHECK(!find_with("uprobe::f", &options, &p));
	CHECK_STR(tag(), "not-found");
}

/* --- static probes and the kernel ------------------------------------------------------------- */

static void put_note(struct buf *b, uint64_t addr, uint64_t semaphore, const char *texts, size_t n)
{
	buf_put_u32(b, 8);
	buf_put_u32(b, (uint32_t)(24 + n));
	buf_put_u32(b, 3);
	buf_put(b, "stapsdt", 8);
	buf_put_u64(b, addr);
	buf_put_u64(b, 0);
	buf_put_u64(b, semaphore);
	buf_put(b, texts, n);
	while (b->n % 4)
		buf_put_u8(b, 0);
}

static void test_usdt(void)
{
	struct buf notes = {0};
	struct elf_maker m;
	struct point p;
	uint32_t text;
	uint64_t at = begin_file(&m, true, &text);

	put_note(&notes, TEXT + 0x41, 0, "prov\0one\0-4@%eax", 17);
	put_note(&notes, TEXT + 0x40, TEXT + 0x58, "prov\0one\0-4@%ebx", 17);
	put_note(&notes, TEXT + 0x50, 0, "prov\0two\0", 10);
	put_note(&notes, TEXT + 0x50, 0x999999, "prov\0three\0", 12);
	elf_maker_section(&m, ".note.stapsdt", SHT_NOTE, 0, buf_span(&notes));
	put_file("static", elf_maker_finish(&m));
	elf_maker_release(&m);
	buf_release(&notes);
	CHECK(find("usdt:./static:prov:one", &p));
	CHECK_EQ(p.targets[0].n_sites, 2);
	CHECK_EQ(p.targets[0].sites[0].offset.v, at + 0x40);
	CHECK_EQ(p.targets[0].sites[0].semaphore, at + 0x58);
	CHECK_STR(p.targets[0].sites[0].operands, "-4@%ebx");
	CHECK_STR(p.targets[0].sites[1].operands, "-4@%eax");
	CHECK_STR(p.targets[0].sites[1].provider, "prov");
	CHECK(find("usdt:./static:two", &p) && !find("usdt:./static:other:two", &p));
	CHECK(find("usdt:./static:*", &p));
	CHECK_EQ(p.targets[0].n_sites, 3);
	CHECK_EQ(p.targets[0].n_left_out, 1);
	CHECK(!find("usdt:./static:tow", &p));
	CHECK_STR(tag(), "no-symbol");
	CHECK(strstr(hint(), "'two'"));
}

static bool has_number(const struct point *p, enum mode mode, int number)
{
	return p->numbers[mode][number / 64] >> (number % 64) & 1;
}

static void test_syscalls(void)
{
	struct point p;

	CHECK(find("syscall:read:entry", &p));
	CHECK(has_number(&p, MODE_64, 0) && has_number(&p, MODE_32, 3));
	CHECK(!has_number(&p, MODE_64, 3) && !has_number(&p, MODE_32, 0) && !p.is_all_calls);
	CHECK(find("syscall:mmap2:return", &p));
	CHECK(has_number(&p, MODE_32, 192));
	CHECK(find("tracepoint:syscalls:sys_enter_newfstat", &p));
	CHECK(has_number(&p, MODE_64, 5) && has_number(&p, MODE_32, 108));
	CHECK(find("syscall:*", &p) && p.is_all_calls && has_number(&p, MODE_64, 1));
	CHECK(find("syscall:open*", &p) && has_number(&p, MODE_64, 257));
	CHECK(!has_number(&p, MODE_64, 0));
	CHECK(!find("syscall:opnat", &p));
	CHECK_STR(tag(), "not-found");
	CHECK(strstr(hint(), "'openat'"));
	CHECK(find("syscall:zz*", &p));
	CHECK_EQ(diags.n_warnings, 1);
}

static void test_tracepoints(void)
{
	struct point p;

	if (!find("tracepoint:sched:sched_switch", &p)) {
		CHECK(strcmp(tag(), "no-tracefs") == 0 || geteuid() != 0);
		return;
	}
	CHECK_EQ(p.n_names, 1);
	CHECK_STR(p.names[0], "sched:sched_switch");
	CHECK(find("tracepoint:sched:sched_process_*", &p));
	CHECK(p.n_names > 2 && strncmp(p.names[0], "sched:sched_process_", 20) == 0);
	for (size_t i = 1; i < p.n_names; i++)
		CHECK(strcmp(p.names[i - 1], p.names[i]) < 0);
	CHECK(!find("tracepoint:sched:sched_swich", &p));
	CHECK_STR(tag(), "not-found");
	CHECK(strstr(hint(), "'sched_switch'"));
	CHECK(find("rawtracepoint:sched_switch", &p));
	CHECK_STR(p.names[0], "sched_switch");
	CHECK(find("tracepoint:sys*:sys_enter_openat", &p));
	CHECK_STR(tag(), "left-out");
	if (!kernel_has_kprobes()) {
		CHECK(!find("kprobe:vfs_read", &p));
		CHECK_STR(tag(), "kernel-lacks");
	}
}

/* --- the listing ------------------------------------------------------------------------------ */

static void take_name(void *ctx, const char *name, const char *const *details, size_t n)
{
	struct buf *b = ctx;

	buf_printf(b, "%s\n", name);
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "    %s\n", details[i]);
}

static const char *list(const char *pattern, bool verbose, struct buf *b)
{
	struct err err = {0};

	buf_reset(b);
	if (points_list(&pattern, 1, NULL, verbose, take_name, b, &err) < 0)
		buf_put_cstr(b, err.text);
	return buf_text(b);
}

static void test_list(void)
{
	struct buf b = {0};

	make_file("a64", true, EM_X86_64);
	CHECK_STR(list("uprobe:./a64:*f*", false, &b), "uprobe:./a64:_ZN2ns1fEi\nuprobe:./a64:f\n");
	CHECK(strstr(list("u:./a64", false, &b), "uprobe:./a64:endbr\n"));
	CHECK(strstr(list("uprobe:./a65:*", false, &b), "a65"));
	CHECK_STR(list("usdt:./static:t*", true, &b), "usdt:./static:prov:two\n");
	CHECK_STR(list("U:./static:one", true, &b), "usdt:./static:prov:one\n    -4@%ebx\n");
	CHECK(strstr(list("syscall:open*", true, &b), "syscall:openat:entry\n    int dfd\n"));
	CHECK(strstr((char *)b.p, "syscall:openat:return\n"));
	CHECK_STR(list("syscall:mmap2:entry", false, &b), "syscall:mmap2:entry\n");
	CHECK_STR(list("s:page*", false, &b), "software:page-faults:\n");
	CHECK(strstr(list("*openat*", false, &b), "syscall:openat2:entry\n"));
	if (geteuid() == 0) {
		CHECK(strstr(list("t:sched:sched_wakeup", true, &b), "    pid_t pid\n"));
		CHECK(strstr(list("t:sched", false, &b), "tracepoint:sched:sched_switch\n"));
	}
	CHECK_STR(list("begin", false, &b), "begin\n");
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"a function becomes an offset of its file, named as it was asked for",
			test_function},
		{"a pattern gives each address once and says what is left out", test_glob},
		{"offsets and addresses must be instructions of the file", test_places},
		{"what is not there or cannot be probed has a tag and a hint", test_refusals},
		{"names of a separate debug file mean places of the original", test_debug_file},
		{"two names of a file are one target, and other files are passed over",
			test_one_inode},
		{"a library's short name gives the files of both modes", test_libraries},
		{"processes and commands say which file is meant", test_process},
		{"static probes have sites, operands and semaphores", test_usdt},
		{"system calls become numbers of both modes", test_syscalls},
		{"tracepoints are found in tracefs", test_tracepoints},
		{"the listing has every kind, sorted, with arguments", test_list},
	};
	char folder[] = "/tmp/weir-point-find-XXXXXX";
	char command[64];
	int rc;

	if (!mkdtemp(folder) || chdir(folder) < 0)
		return 1;
	arena = arena_new();
	sources_add(&sources, "t", (struct span){(const uint8_t *)"", 0});
	diags_init(&diags, &sources);
	rc = RUN_TESTS(tests);
	diags_release(&diags);
	sources_release(&sources);
	arena_free(arena);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") < 0 || system(command) ? 1 : rc;
}
