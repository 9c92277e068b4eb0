/* SPDX-License-Identifier: MIT */
/* Names for addresses of this very program and its C library, read from the files that they are. */
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "symbols/resolve/resolver.h"
#include "symbols/symtab.h"

__attribute__((noinline)) int resolver_test_landmark(int x);
int resolver_test_landmark(int x)
{
	return x * 3 + 1;
}

/* A loaded file: where it is and who it is. */
struct file {
	char path[4096];
	uint64_t bias;
	struct trace_image image;
};

struct search {
	uint64_t addr;
	struct file *file;
	bool found;
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || s->addr < start || s->addr - start >= p->p_memsz)
			continue;
		snprintf(s->file->path, sizeof(s->file->path), "%s",
			*info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
		s->file->bias = info->dlpi_addr;
		s->found = true;
		return 1;
	}
	return 0;
}

static void read_identity(struct file *f)
{
	struct file_map map;
	struct elf_file elf;
	struct span id;

	f->image = (struct trace_image){.kind = IMAGE_KIND_ELF, .bits = 64};
	CHECK_EQ(file_map_open(&map, f->path, NULL), 0);
	CHECK_EQ(elf_file_init(&elf, map.bytes, NULL), 0);
	id = elf_file_build_id(&elf);
	if (id.n && id.n <= BUILD_ID_MAX) {
		f->image.build_id_n = (uint8_t)id.n;
		memcpy(f->image.build_id, id.p, id.n);
	}
	f->image.file_bytes = map.bytes.n;
	elf_file_release(&elf);
	file_map_release(&map);
}

static struct file file_of(uintptr_t addr)
{
	struct file f = {0};
	struct search s = {addr, &f, false};

	dl_iterate_phdr(look_at_object, &s);
	if (!s.found)
		abort();
	read_identity(&f);
	return f;
}

/* Resolves one address of one image, and copies the texts out. */
struct answer {
	char name[256], reason[512]; /* "" when there is none */
	uint64_t offset;
};

static struct answer ask(const struct trace_image *image, const char *path, uint64_t addr)
{
	struct resolver *r = resolver_new();
	struct resolved found;
	struct answer a = {0};

	resolver_add_image(r, 1, image, path, NULL, NULL);
	resolver_find(r, 1, addr, &found);
	snprintf(a.name, sizeof(a.name), "%s", found.name);
	snprintf(a.reason, sizeof(a.reason), "%s", found.reason ? found.reason : "");
	a.offset = found.offset;
	resolver_free(r);
	return a;
}

static void test_own_function(void)
{
	struct file f = file_of((uintptr_t)resolver_test_landmark);
	struct answer a = ask(&f.image, f.path, (uintptr_t)resolver_test_landmark - f.bias);

	CHECK_STR(a.name, "resolver_test_landmark");
	CHECK_STR(a.reason, "");
	CHECK_EQ(a.offset, 0);
	a = ask(&f.image, f.path, (uintptr_t)resolver_test_landmark - f.bias + 2);
	CHECK_STR(a.name, "resolver_test_landmark");
	CHECK_EQ(a.offset, 2);
}

static void test_libc_function(void)
{
	struct file f = file_of((uintptr_t)a64l);
	struct answer a = ask(&f.image, f.path, (uintptr_t)a64l - f.bias + 1);

	CHECK(strstr(f.path, "libc"));
	CHECK_STR(a.name, "a64l");
	CHECK_STR(a.reason, "");
	CHECK_EQ(a.offset, 1);
}

static void test_kept_elf(void)
{
	struct file f = file_of((uintptr_t)resolver_test_landmark);
	struct trace_image image = {.kind = IMAGE_KIND_ELF};
	struct resolver *r = resolver_new();
	struct file_map map;
	struct elf_file elf;
	struct resolved found;

	CHECK_EQ(file_map_open(&map, f.path, NULL), 0);
	CHECK_EQ(elf_file_init(&elf, map.bytes, NULL), 0);
	/* the file that was kept is asked, not the one at the path */
	resolver_add_image(r, 3, &image, "/no/such/file", &elf, NULL);
	resolver_find(r, 3, (uintptr_t)resolver_test_landmark - f.bias, &found);
	CHECK_STR(found.name, "resolver_test_landmark");
	CHECK(!found.reason);
	resolver_free(r);
	elf_file_release(&elf);
	file_map_release(&map);
}

static void test_wrong_build_id(void)
{
	struct file f = file_of((uintptr_t)a64l);
	uint64_t addr = (uintptr_t)a64l - f.bias;
	char expected[5000], right[8], wrong[8];
	struct answer a;

	if (!f.image.build_id_n)
		f.image.build_id_n = 20;
	snprintf(right, sizeof(right), "%02x%02x", f.image.build_id[0], f.image.build_id[1]);
	f.image.build_id[0] ^= 1;
	snprintf(wrong, sizeof(wrong), "%02x%02x", f.image.build_id[0], f.image.build_id[1]);
	a = ask(&f.image, f.path, addr);
	CHECK(strstr(a.reason, f.path) && strstr(a.reason, right) && strstr(a.reason, wrong));
	f.image.build_id[0] ^= 1;
	f.image.build_id[f.image.build_id_n - 1] ^= 0x80;
	a = ask(&f.image, f.path, addr);
	CHECK(strstr(a.reason, f.path) && strstr(a.reason, "build-id"));
	snprintf(expected, sizeof(expected), "%s+0x%lx", strrchr(f.path, '/') + 1, addr);
	CHECK_STR(a.name, expected);
	CHECK_EQ(a.offset, 0);
}

static void test_wrong_size(void)
{
	struct file f = file_of((uintptr_t)a64l);
	struct answer a;

	f.image.build_id_n = 0; /* then size is what tells */
	a = ask(&f.image, f.path, (uintptr_t)a64l - f.bias);
	CHECK_STR(a.name, "a64l");
	f.image.file_bytes++;
	a = ask(&f.image, f.path, (uintptr_t)a64l - f.bias);
	CHECK(strstr(a.reason, f.path) && strstr(a.reason, "size"));
	CHECK(strstr(a.name, "+0x"));
	f.image.file_bytes = 0; /* nothing is known: it is believed */
	a = ask(&f.image, f.path, (uintptr_t)a64l - f.bias);
	CHECK_STR(a.reason, "");
}

static void test_no_file(void)
{
	struct trace_image image = {.kind = IMAGE_KIND_ELF};
	struct answer a = ask(&image, "/no/such/lib.so", 0x1234);
	char path[] = "/tmp/weir-resolver-XXXXXX";
	int fd = mkstemp(path);

	CHECK_STR(a.name, "lib.so+0x1234");
	CHECK(strstr(a.reason, "'/no/such/lib.so': cannot open: No such file or directory"));
	CHECK(fd >= 0 && write(fd, "not ELF at all", 14) == 14);
	a = ask(&image, path, 0x10);
	CHECK(!strncmp(a.reason, "'/tmp/weir-resolver-", 20));
	close(fd);
	unlink(path);
}

static void test_nameless_kinds(void)
{
	struct trace_image image = {.kind = IMAGE_KIND_OTHER};
	struct answer a = ask(&image, "/data/blob", 0x40);

	CHECK_STR(a.name, "blob+0x40");
	CHECK_STR(a.reason, "'/data/blob': could not be read when it was mapped");
	image.kind = IMAGE_KIND_VDSO;
	a = ask(&image, "[vdso]", 0x40);
	CHECK_STR(a.name, "[vdso]+0x40");
	CHECK_STR(a.reason, "the vdso was not kept");
}

static void test_jit(void)
{
	struct trace_image image = {.kind = IMAGE_KIND_JIT, .pid = (uint32_t)getpid()};
	char path[64], expected[128];
	struct answer a;
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	snprintf(expected, sizeof(expected), "code made at run time, and no map of it at %s", path);
	a = ask(&image, "[jit]", 0x7000);
	CHECK_STR(a.reason, expected);
	f = fopen(path, "w");
	if (!f)
		abort();
	fputs("7000 100 jitted function\n", f);
	fclose(f);
	a = ask(&image, "[jit]", 0x70ff);
	CHECK_STR(a.name, "jitted function");
	CHECK_STR(a.reason, "");
	CHECK_EQ(a.offset, 0xff);
	a = ask(&image, "[jit]", 0x7100);
	CHECK_STR(a.name, "[jit]+0x7100");
	CHECK_STR(a.reason, "address not in the process's perf map");
	unlink(path);
}

static void test_unknown_image(void)
{
	struct resolver *r = resolver_new();
	struct trace_image image = {.kind = IMAGE_KIND_OTHER};
	struct resolved found;

	resolver_find(r, 0, 0xabc, &found);
	CHECK_STR(found.name, "[unknown 0xabc]");
	CHECK_STR(found.reason, "address in no known module");
	resolver_add_image(r, 5, &image, "x", NULL, NULL);
	resolver_find(r, 4, 0xabd, &found); /* below a known one */
	CHECK_STR(found.name, "[unknown 0xabd]");
	resolver_find(r, UINT32_MAX, 0xabe, &found);
	CHECK_STR(found.name, "[unknown 0xabe]");
	resolver_add_image(r, 5, &image, "y", NULL, NULL); /* the first one stays */
	resolver_find(r, 5, 1, &found);
	CHECK_STR(found.name, "x+0x1");
	resolver_free(r);
	resolver_free(NULL);
}

/* An address of the file with call-frame information around it, not at its start, and no symbol. */
static bool find_unnamed(const struct file *f, uint64_t *addr, uint64_t *start)
{
	struct file_map map;
	struct elf_file elf;
	struct symtab *names;
	struct cfi_table *cfi;
	uint64_t size = 0;
	bool found = false;

	CHECK_EQ(file_map_open(&map, f->path, NULL), 0);
	CHECK_EQ(elf_file_init(&elf, map.bytes, NULL), 0);
	names = symtab_new_elf(&elf, f->path);
	cfi = cfi_table_new(&elf);
	for (uint64_t at = 3; at < map.bytes.n && !found; at += 16) {
		struct iaddr first;

		if (symtab_find(names, at) ||
			!cfi_table_function_at(cfi, (struct iaddr){at}, &first, &size))
			continue;
		*addr = at;
		*start = first.v;
		found = first.v < at;
	}
	symtab_free(names);
	cfi_table_free(cfi);
	elf_file_release(&elf);
	file_map_release(&map);
	return found;
}

static uint64_t unnamed_addr, unnamed_start;

static void test_stripped(void)
{
	struct file f = file_of((uintptr_t)a64l);
	struct answer a = ask(&f.image, f.path, unnamed_addr);
	char expected[5000];

	snprintf(expected, sizeof(expected), "%s+0x%lx", strrchr(f.path, '/') + 1, unnamed_start);
	CHECK_STR(a.name, expected);
	CHECK_EQ(a.offset, unnamed_addr - unnamed_start);
	CHECK_STR(a.reason, "stripped: no symbol covers the address");
}

int main(void)
{
	static const struct test tests[] = {
		{"a function of our own is named, with the offset into it", test_own_function},
		{"a function of the C library is named", test_libc_function},
		{"a file that was kept is asked before its path", test_kept_elf},
		{"a file with another build-id gives no names, and the reason says which",
			test_wrong_build_id},
		{"without a build-id the size tells another version", test_wrong_size},
		{"a file that is gone or not ELF is named in the reason", test_no_file},
		{"images without names say why", test_nameless_kinds},
		{"code made at run time is named by its perf map", test_jit},
		{"an address in no known image keeps its number", test_unknown_image},
	};
	static const struct test stripped[] = {
		{"a nameless function goes by its start", test_stripped},
	};
	struct file libc = file_of((uintptr_t)a64l);
	int rc = RUN_TESTS(tests);

	if (find_unnamed(&libc, &unnamed_addr, &unnamed_start))
		return rc | RUN_TESTS(stripped);
	printf("skip %s: every function of %s has a symbol\n", stripped[0].sentence, libc.path);
	return rc;
}
