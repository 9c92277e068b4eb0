/* SPDX-License-Identifier: MIT */
#include "bpf/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bpf/sys.h"

#define LOG_BYTES     ((size_t)8 << 20) /* only what is written is touched */
#define CONTEXT_WORDS 12		/* the most that a raw tracepoint has */
#define AGAIN_MAX     5

/* A BTF with one type of function: static, without arguments, an int as result. */
#define KIND_INT       (1u << 24)
#define KIND_FUNC      (12u << 24)
#define KIND_PROTOTYPE (13u << 24)
#define NAME_INT       1
#define NAME_FUNCTION  5
#define TYPE_FUNCTION  3

static int open_function_type(void)
{
	static const char names[] = "\0int\0function";
	static const uint32_t types[] = {NAME_INT, KIND_INT, 4, 1u << 24 | 32, /* 1 */
		0, KIND_PROTOTYPE, 1,					       /* 2 */
		NAME_FUNCTION, KIND_FUNC, 2};				       /* 3 */

	return bpf_btf_open((struct span){(const uint8_t *)types, sizeof(types)},
		(struct span){(const uint8_t *)names, sizeof(names)});
}

static void set_btf(union bpf_attr *attr, const struct bpf_program_spec *spec,
	const struct bpf_func_info *info, uint32_t n)
{
	attr->prog_btf_fd = (uint32_t)spec->btf_fd;
	attr->func_info = (uintptr_t)info;
	attr->func_info_cnt = n;
	attr->func_info_rec_size = sizeof(*info);
	attr->core_relos = (uintptr_t)spec->relocations;
	attr->core_relo_cnt = spec->n_relocations;
	attr->core_relo_rec_size = sizeof(*spec->relocations);
}

static int open_program(const struct bpf_program_spec *spec, const struct bpf_func_info *info,
	uint32_t n_infos, char *log, size_t log_bytes)
{
	union bpf_attr attr;
	int fd = -EAGAIN;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = spec->type;
	attr.insns = (uintptr_t)spec->insns;
	attr.insn_cnt = (uint32_t)spec->n_insns;
	/* The kernel gives the reading helpers to programs under a GPL-compatible licence only. */
	attr.license = (uintptr_t) "Dual MIT/GPL";
	attr.expected_attach_type = spec->attach_type;
	attr.attach_btf_id = spec->attach_btf_id;
	attr.prog_flags = spec->can_sleep ? BPF_F_SLEEPABLE : 0;
	bpf_name_set(attr.prog_name, spec->name);
	if (spec->btf_fd)
		set_btf(&attr, spec, info, n_infos);
	if (log) {
		attr.log_level = 1;
		attr.log_buf = (uintptr_t)log;
		attr.log_size = (uint32_t)log_bytes;
	}
	/* The verifier gives up with EAGAIN when a signal is pending. */
	for (int i = 0; i < AGAIN_MAX && fd == -EAGAIN; i++)
		fd = bpf_sys(BPF_PROG_LOAD, &attr);
	return fd;
}

int bpf_program_open(const struct bpf_program_spec *spec, char *log, size_t log_bytes)
{
	struct bpf_func_info first = {0, spec->function_type}, *infos;
	FD_AUTO btf_fd = spec->n_functions ? open_function_type() : -1;
	struct bpf_program_spec with = *spec;
	int fd;

	if (!spec->n_functions)
		return open_program(spec, &first, 1, log, log_bytes);
	if (btf_fd < 0)
		return btf_fd;
	with.btf_fd = btf_fd;
	infos = mem_calloc(spec->n_functions + 1, sizeof(*infos));
	for (uint32_t i = 0; i <= spec->n_functions; i++)
		infos[i] = (struct bpf_func_info){i ? spec->functions[i - 1] : 0, TYPE_FUNCTION};
	fd = open_program(&with, infos, spec->n_functions + 1, log, log_bytes);
	free(infos);
	return fd;
}

int bpf_program_open_logged(
	const struct bpf_program_spec *spec, struct verifier_complaint *complaint)
{
	char *log = mem_alloc(LOG_BYTES);
	int fd;

	log[0] = 0;
	fd = bpf_program_open(spec, log, LOG_BYTES);
	verifier_log_read((struct span){(const uint8_t *)log, strnlen(log, LOG_BYTES)}, complaint);
	free(log);
	return fd;
}

int bpf_program_load(
	enum bpf_prog_type type, const char *name, const struct bpf_code *code, struct err *err)
{
	struct bpf_program_spec spec = {
		.type = type, .name = name, .insns = code->insns.v, .n_insns = code->insns.n};
	int fd = bpf_program_open(&spec, NULL, 0), errnum = -fd;
	struct verifier_complaint complaint;

	if (fd >= 0)
		return fd;
	if (errnum != EACCES && errnum != EINVAL)
		return err_sys(err, errnum, "BPF program '%s': cannot be loaded", name);
	fd = bpf_program_open_logged(&spec, &complaint);
	if (fd >= 0)
		return fd;
	return err_set(err, ERR_UNSUPPORTED, "BPF program '%s': the kernel refuses it: %s", name,
		complaint.message[0] ? complaint.message : strerror(errnum));
}

int bpf_program_run(int program_fd)
{
	uint64_t context[CONTEXT_WORDS] = {0};
	union bpf_attr attr;
	int rc;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)program_fd;
	attr.test.ctx_in = (uintptr_t)context;
	attr.test.ctx_size_in = sizeof(context);
	rc = bpf_sys(BPF_PROG_TEST_RUN, &attr);
	return rc < 0 ? rc : 0;
}

int bpf_run_time_enable(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.enable_stats.type = BPF_STATS_RUN_TIME;
	return bpf_sys(BPF_ENABLE_STATS, &attr);
}

static int get_info(int program_fd, struct bpf_prog_info *out)
{
	union bpf_attr attr;

	*out = (struct bpf_prog_info){0};
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)program_fd;
	attr.info.info_len = sizeof(*out);
	attr.info.info = (uintptr_t)out;
	return bpf_sys(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

int bpf_program_run_time(int program_fd, struct bpf_run_time *out)
{
	struct bpf_prog_info info;
	int rc = get_info(program_fd, &info);

	if (rc == 0)
		*out = (struct bpf_run_time){.ns = info.run_time_ns, .n_runs = info.run_cnt};
	return rc;
}

int bpf_program_missed(int program_fd, uint64_t *out)
{
	struct bpf_prog_info info;
	int rc = get_info(program_fd, &info);

	if (rc == 0)
		*out = info.recursion_misses;
	return rc;
}
