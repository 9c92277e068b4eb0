/* SPDX-License-Identifier: MIT */
/* The functions of this very process: what is mapped in it, against what the loader and the linker say. */
#include "translate/region_functions.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../check.h"
#include "process/proc.h"

__asm__(".pushsection .text\n"
	".type regions_whole, @function\n"
	"regions_whole: .cfi_startproc\n nop; ret\n .cfi_endproc\n"
	".size regions_whole, . - regions_whole\n"
	".type regions_whole.cold, @function\n"
	"regions_whole.cold: nop; ret\n"
	".size regions_whole.cold, . - regions_whole.cold\n"
	".type regions_outer, @function\n"
	"regions_outer: nop; nop\n"
	".type regions_inner, @function\n"
	"regions_inner: nop; ret\n"
	".size regions_inner, . - regions_inner\n"
	"nop; ret\n"
	".size regions_outer, . - regions_outer\n"
	".type regions_before, @function\n" /* what is behind it has no symbol */
	"regions_before: ret\n"
	".size regions_before, . - regions_before\n"
	".Lnameless: .cfi_startproc\n push %rbx\n .cfi_adjust_cfa_offset 8\n ret\n .cfi_endproc\n"
	".Lpart: .cfi_startproc\n .cfi_def_cfa_offset 16\n nop; ret\n .cfi_endproc\n"
	".Lend:\n"
	".pushsection .data.rel.ro, \"aw\"\n"
	"regions_places: .quad .Lnameless, .Lpart, .Lend\n"
	".popsection\n"
	".popsection\n");
extern const char regions_whole[], regions_cold[] __asm__("regions_whole.cold"), regions_outer[],
	regions_inner[];
extern const uint64_t regions_places[3];

static struct images *images;
static struct function_tables *tables;
static struct addrspace *space;

static void take_mapping(void *ctx, const struct proc_mapping *m)
{
	struct image_query query = {.pid = (uint32_t)getpid(), .mapping = *m};
	struct mapping to = {.start = m->start, .end = m->end, .offset = {m->offset}};

	(void)ctx;
	if (!(m->prot & PROT_EXEC) || !strcmp(m->path, "[vsyscall]"))
		return;
	to.image = images_ensure(images, &query);
	to.bias = images_bias(images, to.image, to.start, to.offset);
	addrspace_map(&space, &to);
}

static void begin(void)
{
	images = images_new();
	tables = function_tables_new(images);
	space = addrspace_new();
	proc_each_mapping(getpid(), take_mapping, NULL, NULL);
}

static void end(void)
{
	function_tables_free(tables);
	addrspace_free(space);
	images_free(images);
}

static const struct mapping *mapping_at(uint64_t addr)
{
	const struct mapping *m = addrspace_find(space, (struct vaddr){addr});

	CHECK(m);
	return m;
}

static const struct image_function *function_at(uint64_t addr)
{
	static const struct image_function none = {.linkage_name = ""};
	const struct mapping *m = mapping_at(addr);
	const struct image_function *f = m ? function_tables_find(tables, m->image, addr - m->bias) : NULL;

	return f ? f : &none;
}

/* Whether a translator is told that a function begins there. */
static bool is_told(uint64_t addr)
{
	struct region_functions f = {0};
	const struct mapping *m = mapping_at(addr);
	bool is_there = false;

	if (m)
		region_functions_find(&f, tables, m);
	for (size_t i = 0; i < f.n; i++) {
		is_there |= f.v[i].start == addr;
		CHECK(!i || f.v[i - 1].start < f.v[i].start);
		CHECK(f.v[i].start >= m->start && f.v[i].start < m->end);
	}
	region_functions_release(&f);
	return is_there;
}

static uint64_t address(const char *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void symbols(void)
{
	begin();
	CHECK_STR(function_at(address(regions_whole))->linkage_name, "regions_whole");
	CHECK_EQ(function_at(address(regions_whole) + 1)->bytes, 2);
	CHECK(is_told(address(regions_whole)));
	CHECK(!is_told(address(regions_whole) + 1));
	end();
}

static void parts(void)
{
	begin();
	CHECK_STR(function_at(address(regions_cold))->linkage_name, "regions_whole.cold");
	CHECK(function_at(address(regions_cold))->is_part);
	CHECK(!is_told(address(regions_cold)));
	CHECK(!function_at(regions_places[1])->linkage_name);
	CHECK(function_at(regions_places[1])->is_part);
	CHECK(!is_told(regions_places[1]));
	end();
}

static void nested(void)
{
	begin();
	CHECK_STR(function_at(address(regions_inner) - 1)->linkage_name, "regions_outer");
	CHECK_STR(function_at(address(regions_inner))->linkage_name, "regions_inner");
	CHECK_STR(function_at(address(regions_inner) + 1)->linkage_name, "regions_inner");
	CHECK_STR(function_at(address(regions_inner) + 2)->linkage_name, "regions_outer");
	CHECK(is_told(address(regions_outer)) && is_told(address(regions_inner)));
	end();
}

static void nameless(void)
{
	begin();
	CHECK(!function_at(regions_places[0])->linkage_name);
	CHECK_EQ(function_at(regions_places[0])->bytes, 2);
	CHECK(!function_at(regions_places[0])->is_part);
	CHECK(is_told(regions_places[0]));
	end();
}

static void stubs(void)
{
	const struct image_function *v;
	const struct mapping *m;
	size_t n, n_stubs = 0;

	begin();
	m = mapping_at(address(regions_whole));
	n = function_tables_get(tables, m->image, &v);
	for (size_t i = 0; i < n; i++)
		if (v[i].linkage_name && strstr(v[i].linkage_name, "@plt")) {
			n_stubs++;
			CHECK(is_told(v[i].start + m->bias));
		}
	CHECK(n_stubs > 5);
	end();
}

static void libraries(void)
{
	static const char *const names[] = {"qsort", "fopen", "getpid", "malloc", "strtoul"};

	begin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t addr = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, names[i]);

		if (addrspace_find(space, (struct vaddr){addr}))
			CHECK(is_told(addr));
	}
	end();
}

static void vdso(void)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	const struct image_function *v;
	const struct mapping *m;
	size_t n, n_named = 0;

	begin();
	m = start ? mapping_at(start) : NULL;
	n = m ? function_tables_get(tables, m->image, &v) : 0;
	for (size_t i = 0; i < n; i++)
		n_named += v[i].linkage_name && strstr(v[i].linkage_name, "clock_gettime");
	CHECK(!start || n_named);
	end();
}

static void nothing(void)
{
	struct region_functions f = {0};
	const struct image_function *v;

	begin();
	CHECK(!function_tables_find(tables, UINT32_MAX - 1, 5));
	CHECK_EQ(function_tables_get(tables, 9999, &v), 0);
	region_functions_find(&f, tables, &(struct mapping){.start = 4096, .end = 8192, .image = 9999});
	CHECK_EQ(f.n, 0);
	region_functions_release(&f);
	end();
	function_tables_free(NULL);
}

int main(void)
{
	static const struct test tests[] = {
		{"symbols are functions", symbols},
		{"what was split off is known, and not told", parts},
		{"of functions that nest the inner one has its own bytes", nested},
		{"where no symbol is the unwind table tells where functions begin", nameless},
		{"stubs of the procedure linkage table are functions", stubs},
		{"functions of libraries begin where the loader says", libraries},
		{"the vdso has functions", vdso},
		{"an image that is not there has none", nothing},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
