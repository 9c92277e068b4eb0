/* SPDX-License-Identifier: MIT */
/*
 * What weir says about the sites of uprobes, and what the kernel says.
 *
 *	probe_sites dump POINT [PID | COMMAND]
 *					every site: mode, cost, offset, cheaper site, semaphore,
 *					function, operands, path
 *	probe_sites make FILE		one instruction of every opcode and prefix, 16 bytes apart
 *	probe_sites check POINT		attaches them: all that are called good at once, and each of
 *					those that are called refused alone
 *	probe_sites raw 32|64 FILE	the same for the file that `make` made
 *
 * The kernel takes 50 ms to refuse one, so that of those only a sample is tried without WEIR_SLOW=1.
 * It looks at an instruction only when a process of the right mode has the file mapped for execution:
 * `raw` and `check` map a 64-bit file themselves; for a 32-bit file the caller runs such a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "probe/points/point.h"
#include "probe/points/site_cost.h"

#define SLOT_BYTES	16
#define UPROBE_MULTI	48 /* BPF_TRACE_UPROBE_MULTI, Linux 6.6 */
#define WRONG_SHOWN_MAX 20
#define KERNEL_ENOTSUPP 524
#define BAD_TRIED_MAX	6

static int program = -1;

/* The part of union bpf_attr that older headers do not have. */
struct link_attr {
	uint32_t program, target, type, flags;
	uint64_t path, offsets, ref_counts, cookies;
	uint32_t n, multi_flags, pid, pad;
};

static int load_program(void)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
		.expected_attach_type = UPROBE_MULTI};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* 0, or why the kernel refuses. */
static int attach(const char *path, const uint64_t *offsets, size_t n)
{
	struct link_attr attr = {.program = (uint32_t)program,
		.type = UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.n = (uint32_t)n};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void show(const char *what, const char *path, uint64_t offset, int why)
{
	static int n_shown;
	uint8_t code[SLOT_BYTES] = {0};
	int fd = open(path, O_RDONLY);

	if (n_shown++ > WRONG_SHOWN_MAX || fd < 0)
		return;
	if (pread(fd, code, sizeof(code), (off_t)offset) < 0)
		memset(code, 0, sizeof(code));
	printf("%s at 0x%" PRIx64 " (%d):", what, offset, why);
	for (size_t i = 0; i < sizeof(code); i++)
		printf(" %02x", code[i]);
	printf("\n");
	close(fd);
}

/* Attaches all; where that fails, halves, to find those that were called good and are not. */
static size_t check_good(const char *path, const uint64_t *offsets, size_t n)
{
	int why = n ? attach(path, offsets, n) : 0;

	if (!why)
		return 0;
	if (n == 1) {
		show("refused, but called good", path, offsets[0], why);
		return 1;
	}
	return check_good(path, offsets, n / 2) + check_good(path, offsets + n / 2, n - n / 2);
}

/* The kernel takes some vector instructions for what they are not, so we are stricter than it. */
static bool is_vector(const char *path, uint64_t offset)
{
	uint8_t first = 0;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || pread(fd, &first, 1, (off_t)offset) != 1)
		first = 0;
	close(fd);
	return first == 0x62 || first == 0xc4 || first == 0xc5;
}

static size_t check_bad(const char *path, const uint64_t *offsets, size_t n, size_t *n_tried)
{
	size_t n_wrong = 0, step = getenv("WEIR_SLOW") ? 1 : n / BAD_TRIED_MAX + 1;

	for (size_t i = 0; i < n; i += step) {
		++*n_tried;
		if (attach(path, &offsets[i], 1) || is_vector(path, offsets[i]))
			continue;
		show("taken, but called bad", path, offsets[i], 0);
		n_wrong++;
	}
	return n_wrong;
}

struct offsets {
	VEC(uint64_t) good, bad;
};

static int check(const char *path, struct offsets *o, bool is_64)
{
	int fd = open(path, O_RDONLY);
	off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	size_t n_wrong, n_tried = 0;

	program = load_program();
	if (program < 0 || bytes <= 0) {
		printf("skip: %s\n", strerror(errno));
		return 2;
	}
	if (is_64 &&
		mmap(NULL, (size_t)bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 2;
	close(fd);
	n_wrong = check_good(path, o->good.v, o->good.n);
	n_wrong += check_bad(path, o->bad.v, o->bad.n, &n_tried);
	printf("%zu good, %zu of %zu bad tried, %zu wrong\n", o->good.n, n_tried, o->bad.n,
		n_wrong);
	vec_release(&o->good);
	vec_release(&o->bad);
	return n_wrong != 0;
}

/* --- instructions ----------------------------------------------------------------------------- */

static void put_slot(struct buf *b, const uint8_t *code, size_t n)
{
	static const uint8_t tail[SLOT_BYTES] = {0x45, 0x12, 0x34, 0x56, 0x78, 0x12, 0x34, 0x56,
		0x78, 0x12, 0x34, 0x56, 0x78, 0x12, 0x34, 0x56};

	buf_put(b, code, n);
	buf_put(b, tail, SLOT_BYTES - n);
}

static int make(const char *path)
{
	static const uint8_t prefixes[] = {
		0, 0x66, 0xf2, 0xf3, 0xf0, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x67, 0x41, 0x48};
	struct buf b = {0};
	struct err err;

	for (size_t p = 0; p < sizeof(prefixes); p++) {
		for (int op = 0; op < 512; op++) {
			uint8_t code[3];
			size_t n = 0;

			if (prefixes[p])
				code[n++] = prefixes[p];
			if (op >= 256)
				code[n++] = 0x0f;
			code[n++] = (uint8_t)op;
			put_slot(&b, code, n);
		}
	}
	for (int op = 0; op < 256; op++) { /* two and three byte VEX, EVEX */
		put_slot(&b, (const uint8_t[]){0xc5, 0xf9, (uint8_t)op}, 3);
		put_slot(&b, (const uint8_t[]){0xc5, 0xfa, (uint8_t)op}, 3);
		put_slot(&b, (const uint8_t[]){0xc4, 0xe2, 0x79, (uint8_t)op}, 4);
		put_slot(&b, (const uint8_t[]){0x62, 0xf1, 0x7d, 0x48, (uint8_t)op}, 5);
	}
	if (file_replace(path, buf_span(&b), 0644, &err) < 0) {
		printf("%s\n", err.text);
		return 2;
	}
	buf_release(&b);
	return 0;
}

static int check_raw(const char *path, enum mode mode)
{
	struct offsets o = {0};
	struct file_map map;
	struct err err;

	if (file_map_open(&map, path, &err) < 0)
		return 2;
	for (uint64_t at = 0; at + SLOT_BYTES <= map.bytes.n; at += SLOT_BYTES) {
		const char *why;

		site_cost(span_sub(map.bytes, at, SLOT_BYTES), (struct foff){at}, mode, &why);
		if (!why)
			vec_push(&o.good, at);
		else if (strcmp(why, "there is no instruction") != 0)
			vec_push(&o.bad, at);
	}
	file_map_release(&map);
	return check(path, &o, mode == MODE_64);
}

/* --- points ----------------------------------------------------------------------------------- */

static void dump(const struct target *t)
{
	static const char *const costs[] = {"unknown", "nop5", "emulated", "stepped"};

	for (size_t i = 0; i < t->n_sites; i++) {
		const struct site *s = &t->sites[i];

		printf("%d %s 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " %s%s%s %s %s\n",
			t->mode == MODE_32 ? 32 : 64, costs[s->cost], s->offset.v, s->cheaper.v,
			s->semaphore, s->provider ? s->provider : "", s->provider ? ":" : "",
			s->probe      ? s->probe
			: s->function ? s->function
				      : "-",
			s->operands ? s->operands : "", t->path);
	}
	for (size_t i = 0; i < t->n_left_out; i++)
		printf("%d left-out 0x%" PRIx64 " %s: %s\n", t->mode == MODE_32 ? 32 : 64,
			t->left_out[i].offset.v,
			t->left_out[i].function ? t->left_out[i].function : "-",
			t->left_out[i].why);
}

static int check_target(const struct target *t)
{
	struct offsets o = {0};

	for (size_t i = 0; i < t->n_sites; i++)
		vec_push(&o.good, t->sites[i].offset.v);
	for (size_t i = 0; i < t->n_left_out; i++)
		if (t->left_out[i].offset.v && !strstr(t->left_out[i].why, "IFUNC"))
			vec_push(&o.bad, t->left_out[i].offset.v);
	return check(t->path, &o, t->mode == MODE_64);
}

static int with_point(const char *text, const char *of, bool is_check)
{
	pid_t pid = of ? atoi(of) : 0;
	struct find_options options = {.pids = &pid, .n_pids = pid > 0};

	struct point_text point_text = {.text = text};
	struct arena *arena = arena_new();
	struct sources sources = {0};
	struct point_spec spec;
	struct point point = {0};
	struct diags d;
	int rc = 0;

	if (of && pid <= 0)
		options.command = of;
	sources_add(&sources, "point", (struct span){(const uint8_t *)text, strlen(text)});
	point_text.place.to = (uint32_t)strlen(text);
	diags_init(&d, &sources);
	if (!point_parse(&point_text, arena, &spec, &d) ||
		!point_find(&spec, &options, arena, &point, &d))
		rc = 2;
	for (size_t i = 0; i < d.v.n; i++)
		fprintf(stderr, "%s: %s%s%s\n", d.v.v[i].tag, d.v.v[i].text,
			d.v.v[i].hint ? "; " : "", d.v.v[i].hint ? d.v.v[i].hint : "");
	for (size_t i = 0; i < point.n_targets && rc == 0; i++) {
		if (is_check)
			rc = check_target(&point.targets[i]);
		else
			dump(&point.targets[i]);
	}
	for (size_t i = 0; i < point.n_names; i++)
		printf("%s\n", point.names[i]);
	diags_release(&d);
	sources_release(&sources);
	arena_free(arena);
	return rc;
}

int main(int argc, char **argv)
{
	if ((argc == 3 || argc == 4) && strcmp(argv[1], "dump") == 0)
		return with_point(argv[2], argc == 4 ? argv[3] : NULL, false);
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return with_point(argv[2], NULL, true);
	if (argc == 3 && strcmp(argv[1], "make") == 0)
		return make(argv[2]);
	if (argc == 4 && strcmp(argv[1], "raw") == 0)
		return check_raw(argv[3], strcmp(argv[2], "32") == 0 ? MODE_32 : MODE_64);
	fprintf(stderr, "usage: probe_sites dump|check POINT | make FILE | raw 32|64 FILE\n");
	return 2;
}
