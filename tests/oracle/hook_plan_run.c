/* SPDX-License-Identifier: MIT */
/*
 * Loads a library, runs something that it is good for, hooks all of its functions in this process
 * with a counter in place of the hook, and runs it again: the result must be the same.
 *   hook_plan_run z|sqlite|crypto|gmp|m LIBRARY
 * Prints: functions hooked, calls counted, "same" or "different".
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/file.h"
#include "record/hooks/plan.h"

#define NEAR_BYTES (32u << 20)
#define INPUT_N	   200000u

static uint64_t n_calls;
static uint8_t input[INPUT_N];

static uint64_t hash(uint64_t h, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
	return h;
}

/* --- workloads --------------------------------------------------------------------------- */

static void *symbol(void *library, const char *name)
{
	void *p = dlsym(library, name);

	if (!p)
		fprintf(stderr, "%s is missing\n", name), exit(1);
	return p;
}

static uint64_t run_z(void *l)
{
	int (*compress2)(uint8_t *, unsigned long *, const uint8_t *, unsigned long, int) =
		symbol(l, "compress2");
	int (*uncompress)(uint8_t *, unsigned long *, const uint8_t *, unsigned long) =
		symbol(l, "uncompress");
	unsigned long (*crc32)(unsigned long, const uint8_t *, unsigned) = symbol(l, "crc32");
	unsigned long (*adler32)(unsigned long, const uint8_t *, unsigned) = symbol(l, "adler32");
	static uint8_t packed[INPUT_N * 2], unpacked[INPUT_N];
	uint64_t h = crc32(0, input, INPUT_N) ^ adler32(1, input, INPUT_N);

	for (int level = 0; level <= 9; level++) {
		unsigned long n = sizeof(packed), m = sizeof(unpacked);

		h = h * 31 + (uint64_t)compress2(packed, &n, input, INPUT_N, level);
		h = hash(h, packed, n) + (uint64_t)uncompress(unpacked, &m, packed, n);
		h = hash(h, unpacked, m);
	}
	return h;
}

static int add_row(void *ctx, int n, char **values, char **names)
{
	(void)names;
	for (int i = 0; i < n; i++)
		*(uint64_t *)ctx = hash(*(uint64_t *)ctx, values[i] ? values[i] : "-",
			values[i] ? strlen(values[i]) : 1);
	return 0;
}

static uint64_t run_sqlite(void *l)
{
	static const char sql[] =
		"create table t(a integer primary key, b text, c real); create index i on t(b);"
		"with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000)"
		" insert into t select x, printf('row %d %s', x * 7919 % 3000, hex(x)), x / 3.0 from n;"
		"update t set c = c * 2 where b like '%9%'; delete from t where a % 17 = 0;"
		"select count(*), sum(c), min(b), max(b), total(length(b)) from t;"
		"select t1.a, t2.b from t t1 join t t2 on t1.a = t2.a + 5 where t1.a < 200 order by t2.b desc;"
		"select substr(b, 1, 5), count(*), avg(c) from t group by 1 having count(*) > 3 order by 2;"
		"select json_extract('{\"a\":[1,2,{\"b\":3}]}', '$.a[2].b'), upper('x'), round(2.567, 1);"
		"pragma integrity_check; select * from missing;";
	int (*sqlite3_open)(const char *, void **) = symbol(l, "sqlite3_open");
	int (*exec)(void *, const char *, int (*)(void *, int, char **, char **), void *, char **) =
		symbol(l, "sqlite3_exec");
	const char *(*errmsg)(void *) = symbol(l, "sqlite3_errmsg");
	int (*close)(void *) = symbol(l, "sqlite3_close");
	uint64_t h = 1;
	void *db;

	sqlite3_open(":memory:", &db);
	h = h * 31 + (uint64_t)exec(db, sql, add_row, &h, NULL);
	h = hash(h, errmsg(db), strlen(errmsg(db)));
	return h * 31 + (uint64_t)close(db);
}

static uint64_t run_crypto(void *l)
{
	static const char *const names[] = {
		"MD5", "SHA1", "SHA256", "SHA512", "SHA3-256", "BLAKE2B512"};
	int (*digest)(void *, const char *, const char *, const void *, size_t, uint8_t *,
		size_t *) = symbol(l, "EVP_Q_digest");
	char *(*dec)(const void *) = symbol(l, "BN_bn2dec");
	void *(*bn_new)(void) = symbol(l, "BN_new"), *(*ctx_new)(void) = symbol(l, "BN_CTX_new");
	int (*from_dec)(void **, const char *) = symbol(l, "BN_dec2bn");
	int (*mod_exp)(void *, const void *, const void *, const void *, void *) =
		symbol(l, "BN_mod_exp");
	uint64_t h = 1;
	void *a = NULL, *p = NULL, *r = bn_new();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint8_t md[64] = {0};
		size_t n = 0;

		h += (uint64_t)digest(NULL, names[i], NULL, input, INPUT_N, md, &n);
		h = hash(h, md, n);
	}
	from_dec(&a, "123456789012345678901234567890123456789012345678901234567890");
	from_dec(&p,
		"170141183460469231731687303715884105727170141183460469231731687303715884105727");
	mod_exp(r, a, a, p, ctx_new());
	return hash(h, dec(r), strlen(dec(r)));
}

static uint64_t run_gmp(void *l)
{
	typedef struct {
		int a, b;
		void *p;
	} number;
	int (*set)(number *, const char *, int) = symbol(l, "__gmpz_init_set_str");
	char *(*get)(char *, int, const number *) = symbol(l, "__gmpz_get_str");
	void (*op)(number *, const number *, const number *);
	void (*powm)(number *, const number *, const number *, const number *) =
		symbol(l, "__gmpz_powm");
	static const char *const ops[] = {"__gmpz_mul", "__gmpz_add", "__gmpz_sub", "__gmpz_gcd",
		"__gmpz_tdiv_q", "__gmpz_tdiv_r", "__gmpz_and", "__gmpz_xor"};
	static char text[20001];
	number a, b, c;
	uint64_t h = 1;

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = (char)('1' + (i * 7 + i / 13) % 9);
	for (size_t n = 20; n < sizeof(text); n *= 10) {
		char *out;

		set(&a, text + sizeof(text) - 1 - n, 10);
		set(&b, text + sizeof(text) - 1 - n / 2, 10);
		set(&c, "0", 10);
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			op = symbol(l, ops[i]);
			op(&c, &a, &b);
			out = get(NULL, 10, &c);
			h = hash(h, out, strlen(out));
		}
	}
	set(&a, text + 19900, 10);
	set(&b, text + 19800, 10);
	powm(&c, &a, &a, &b);
	return hash(h, get(NULL, 16, &c), strlen(get(NULL, 16, &c)));
}

static uint64_t run_m(void *l)
{
	static const char *const names[] = {"sin", "cos", "tan", "exp", "log", "asin", "atan",
		"sinh", "cbrt", "erf", "lgamma", "tgamma", "floor", "rint", "sqrt", "log1p",
		"expm1", "j0", "y1"};
	uint64_t h = 1;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		double (*f)(double) = symbol(l, names[i]);

		for (double x = 0.01; x < 3; x += 0.0931) {
			double y = f(x);

			h = hash(h, &y, sizeof(y));
		}
	}
	return h;
}

static const struct {
	const char *name;
	uint64_t (*run)(void *library);
} workloads[] = {{"z", run_z}, {"sqlite", run_sqlite}, {"crypto", run_crypto}, {"gmp", run_gmp},
	{"m", run_m}};

/* --- hooking ----------------------------------------------------------------------------- */

static struct trap {
	uintptr_t site, trampoline;
} * traps;
static size_t n_traps;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)signal;
	(void)info;
	for (size_t i = 0; i < n_traps; i++) {
		if (traps[i].site != (uintptr_t)*pc - 1)
			continue;
		*pc = (greg_t)traps[i].trampoline;
		return;
	}
	abort();
}

static uint8_t *map_near(uintptr_t base)
{
	for (uintptr_t at = base & ~0xfffffull; base - at < 0x60000000; at -= 1u << 20) {
		void *p = mmap((void *)at, NEAR_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (p != MAP_FAILED)
			return p;
	}
	fprintf(stderr, "no memory near the library\n");
	exit(1);
}

static void put_jump(uint8_t *at, const uint8_t *target)
{
	int32_t distance = (int32_t)(target - (at + 5));

	*at = 0xe9;
	memcpy(at + 1, &distance, 4);
}

/* pushf; push %rax; mov $&n_calls,%rax; incq (%rax); pop %rax; popf; moved code */
static uint8_t *put_trampoline(uint8_t *at, const struct hook_plan *plan, uintptr_t bias)
{
	static const uint8_t begin[] = {0x9c, 0x50, 0x48, 0xb8},
			     end[] = {0x48, 0xff, 0x00, 0x58, 0x9d};
	const uint8_t *code = (const uint8_t *)(plan + 1);
	const struct hook_fixup *fixups = (const void *)(code + (plan->n_code + 7) / 8 * 8);
	uint64_t *counter = &n_calls;

	memcpy(at, begin, sizeof(begin));
	memcpy(at + 4, &counter, 8);
	memcpy(at + 12, end, sizeof(end));
	at += 12 + sizeof(end);
	memcpy(at, code, plan->n_code);
	for (int i = 0; i < plan->n_fixups; i++) {
		int64_t distance =
			(int64_t)(fixups[i].target + bias - (uintptr_t)(at + fixups[i].next));

		if (distance != (int32_t)distance)
			abort();
		memcpy(at + fixups[i].at, &(int32_t){(int32_t)distance}, 4);
	}
	return at + plan->n_code;
}

static void apply(const struct hook_plan *plan, uintptr_t bias, uint8_t *trampoline)
{
	uint8_t *site = (uint8_t *)(plan->site + bias);

	if (memcmp(site, plan->original, plan->n_original)) {
		fprintf(stderr, "%" PRIx64 " is not as in the file\n", plan->site);
		exit(1);
	}
	if (plan->n_patched == 1) {
		traps[n_traps++] = (struct trap){(uintptr_t)site, (uintptr_t)trampoline};
		*site = 0xcc;
	} else if (plan->n_patched == 2) {
		put_jump((uint8_t *)(plan->pad_site + bias), trampoline);
		site[0] = 0xeb;
		site[1] = (uint8_t)(plan->pad_site - plan->site - 2);
	} else {
		put_jump(site, trampoline);
		memset(site + 5, 0xcc, plan->n_patched - 5u);
	}
}

static void make_writable(const struct elf_file *elf, uintptr_t bias)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uintptr_t start = (bias + s->addr.v) & ~4095ull;

		if (s->type == PT_LOAD && (s->flags & PF_X) &&
			mprotect((void *)start, bias + s->addr.v + s->mem_size - start,
				PROT_READ | PROT_WRITE | PROT_EXEC))
			perror("mprotect"), exit(1);
	}
}

static size_t hook_all(const char *path, uintptr_t bias)
{
	struct hook_planner *p = hook_planner_new();
	const struct planned_image *image;
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct file_map map;
	struct elf_file elf;
	struct err err;
	uint8_t *at = map_near(bias), *next;
	size_t n = 0;

	wishes_add(&p->wishes, "*", HOOK_ACTION_CALL, NULL);
	if (file_map_open(&map, path, &err) < 0 || elf_file_init(&elf, map.bytes, &err) < 0 ||
		hook_planner_image(
			p, &(struct planned_file){.key = 1}, &elf, path, true, &image, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	traps = calloc(image->functions.n + 1, sizeof(*traps));
	sigaction(SIGTRAP, &action, NULL);
	make_writable(&elf, bias);
	for (size_t i = 0; i < image->functions.n; i++, at = next) {
		const struct planned_function *f = &image->functions.v[i];
		const struct hook_plan *plan = (const void *)(image->plans.p + f->plan_at);

		next = at;
		if (!f->plan_bytes || !plan->n_patched)
			continue;
		next = put_trampoline(at, plan, bias);
		apply(plan, bias, at);
		n++;
	}
	hook_planner_free(p);
	elf_file_release(&elf);
	file_map_release(&map);
	return n;
}

int main(int argc, char **argv)
{
	struct link_map *map;
	void *library;
	size_t i = 0, n;
	uint64_t before, after;

	if (argc != 3)
		return 2;
	while (i < sizeof(workloads) / sizeof(workloads[0]) && strcmp(workloads[i].name, argv[1]))
		i++;
	library = dlopen(argv[2], RTLD_NOW);
	if (i == sizeof(workloads) / sizeof(workloads[0]) || !library ||
		dlinfo(library, RTLD_DI_LINKMAP, &map))
		return fprintf(stderr, "cannot run %s with %s\n", argv[1], argv[2]), 1;
	for (size_t k = 0; k < INPUT_N; k++)
		input[k] =
			(uint8_t)("weir records what a program does. "[k * k % 34] ^ (k % 61 == 0));
	before = workloads[i].run(library);
	n = hook_all(map->l_name, map->l_addr);
	after = workloads[i].run(library);
	printf("%zu functions, %" PRIu64 " calls, %s\n", n, n_calls,
		before == after ? "same" : "different");
	return before != after || !n_calls;
}
