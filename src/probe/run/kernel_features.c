/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/attach.h"
#include "bpf/code.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "bpf/sys.h"
#include "probe/run/run.h"
#include "probe/types/btf_types.h"

#define WITHOUT_VARIABLE "WEIR_PROBE_WITHOUT"

static int load_nothing(uint32_t attach_type, bool can_sleep)
{
	struct bpf_code c = {0};
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_KPROBE,
		.attach_type = attach_type,
		.can_sleep = can_sleep,
		.name = "weir_feature"};
	int fd;

	bpf_return_0(&c);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	fd = bpf_program_open(&spec, NULL, 0);
	bpf_code_release(&c);
	return fd;
}

/* A kernel that knows uprobe_multi links says EBADF of a path that is no regular file; one that
 * does not says EINVAL of the kind of attachment. */
static bool find_uprobe_multi(int program_fd)
{
	uint64_t offset = 0;
	struct bpf_uprobe_multi nothing = {.path = "/", .offsets = &offset, .n = 1};
	int fd = bpf_attach_uprobes(program_fd, &nothing);

	if (fd >= 0)
		close(fd);
	return fd == -EBADF;
}

/* r0 = 0; while (may_goto) ; exit */
static bool find_turns(void)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = STREAM_LOOP_CODE, .off = 1},
		{.code = BPF_JMP | BPF_JA, .off = -2},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_KPROBE,
		.name = "weir_feature",
		.insns = insns,
		.n_insns = sizeof(insns) / sizeof(insns[0])};
	FD_AUTO fd = bpf_program_open(&spec, NULL, 0);

	return fd >= 0;
}

/* Whether a word is in a list with commas. */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p && *p;) {
		size_t k = strcspn(p, ", ");

		if (k == n && !memcmp(p, word, n))
			return true;
		p += k + (p[k] != 0);
	}
	return false;
}

static bool is_off(const struct probe_session_options *options, const char *word)
{
	return has_word(options->without, word) || has_word(getenv(WITHOUT_VARIABLE), word);
}

void kernel_features_find(
	struct kernel_features *f, const struct probe_session_options *options, bool loads)
{
	FD_AUTO sleeps = loads ? load_nothing(BPF_ATTACH_UPROBE_MULTI, true) : -1;
	FD_AUTO plain = loads && sleeps < 0 ? load_nothing(BPF_ATTACH_UPROBE_MULTI, false) : -1;

	f->bpf_errnum = is_off(options, "bpf") ? EPERM : 0;
	if (loads && sleeps < 0 && (plain == -EPERM || plain == -ENOSYS))
		f->bpf_errnum = -plain;
	f->has_btf = !is_off(options, "btf") && !access(BTF_VMLINUX, R_OK);
	f->can_sleep = sleeps >= 0 && !is_off(options, "sleep");
	f->has_uprobe_multi = !is_off(options, "multi") && (sleeps >= 0 || plain >= 0) &&
			      find_uprobe_multi(sleeps >= 0 ? sleeps : plain);
	f->has_tracefs = !is_off(options, "tracefs");
	f->has_task_storage = f->has_btf && !is_off(options, "task-storage");
}

/* r0 = lookup_percpu(map, 0, 0), on a map of one value */
static int load_percpu_read(int map_fd)
{
	struct bpf_code c = {0};
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_KPROBE, .name = "weir_feature"};
	int fd;

	bpf_store_imm(&c, BPF_DW, BPF_REG_10, -8, 0);
	bpf_load_map(&c, BPF_REG_1, map_fd);
	bpf_stack_address(&c, BPF_REG_2, -8);
	bpf_mov_imm(&c, BPF_REG_3, 0);
	bpf_call(&c, BPF_FUNC_map_lookup_percpu_elem);
	bpf_return_0(&c);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	fd = bpf_program_open(&spec, NULL, 0);
	bpf_code_release(&c);
	return fd;
}

int kernel_reads_percpu(const struct probe_session_options *options, struct err *err)
{
	struct bpf_map_spec map = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0, "weir_feature"};
	FD_AUTO map_fd = bpf_map_open(&map);
	FD_AUTO fd = map_fd >= 0 ? load_percpu_read(map_fd) : map_fd;

	if (fd == -EPERM || fd == -ENOSYS)
		return kernel_refusal(err, -fd, "aggregations that the script reads");
	if (fd >= 0 && !is_off(options, "percpu-read"))
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		"this kernel's programs cannot read the values of other processors (Linux 5.19), and the script reads an aggregation; @x += n makes a number that can be read");
}

static bool has_loops(const struct stream *s)
{
	for (enum mode m = 0; m < N_MODES; m++)
		for (size_t i = 0; i < s->code[m].n; i++)
			if (s->code[m].v[i].code == STREAM_LOOP_CODE)
				return true;
	return false;
}

void kernel_features_find_turns(struct kernel_features *f,
	const struct probe_session_options *options, const struct stream *stream)
{
	f->counts_turns = has_loops(stream) && !is_off(options, "turns") && find_turns();
}

int kernel_refusal(struct err *err, int errnum, const char *what)
{
	if ((errnum == EPERM || errnum == EACCES) && geteuid() == 0)
		return err_set(err, ERR_PERMISSION,
			"%s: the kernel does not permit it, not even to root: a capability was taken away, or its security rules (lockdown, a container) forbid it",
			what);
	if (errnum == EPERM || errnum == EACCES)
		return err_set(err, ERR_PERMISSION,
			"%s: not permitted; run it as root, or with the capabilities CAP_BPF and CAP_PERFMON",
			what);
	if (errnum == ENOSYS)
		return err_set(err, ERR_UNSUPPORTED,
			"%s: this kernel has no BPF (CONFIG_BPF_SYSCALL)", what);
	if (errnum == ENOMEM)
		return err_set(err, ERR_FAILED,
			"%s: the kernel has no memory for it; smaller maps (--max-entries) or a smaller ring (--ring) may fit",
			what);
	return err_sys(err, errnum, "%s", what);
}

void probe_kernel_ask(struct probe_kernel *out)
{
	struct probe_session_options options = {0};
	struct kernel_features f = {0};

	kernel_features_find(&f, &options, true);
	*out = (struct probe_kernel){.can_run = !f.bpf_errnum,
		.has_btf = f.has_btf,
		.has_uprobe_multi = f.has_uprobe_multi,
		.can_sleep = f.can_sleep};
	if (f.bpf_errnum)
		kernel_refusal(&out->why, f.bpf_errnum, "loading BPF programs");
}
