/* SPDX-License-Identifier: MIT */
#include "bpf/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sys.h"

#define LOG_BYTES (256 * 1024)

/* The verifier's complaint is the last line but the statistics. */
static const char *last_complaint(char *log)
{
	char *line = log, *found = log;

	while (line && *line) {
		char *end = strchr(line, '\n');

		if (end)
			*end = 0;
		if (*line && strncmp(line, "processed ", 10) &&
			strncmp(line, "verification time", 17))
			found = line;
		line = end ? end + 1 : NULL;
	}
	return found;
}

int bpf_program_load(
	enum bpf_prog_type type, const char *name, const struct bpf_code *code, struct err *err)
{
	union bpf_attr attr;
	int fd, errnum;
	char *log;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)code->insns.v;
	attr.insn_cnt = (uint32_t)code->insns.n;
	/* The kernel gives the reading helpers to programs under a GPL-compatible licence only. */
	attr.license = (uintptr_t) "Dual MIT/GPL";
	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	fd = bpf_sys(BPF_PROG_LOAD, &attr);
	if (fd >= 0)
		return fd;
	errnum = -fd;
	if (errnum != EACCES && errnum != EINVAL)
		return err_sys(err, errnum, "BPF program '%s': cannot be loaded", name);
	log = mem_zalloc(LOG_BYTES);
	attr.log_level = 1;
	attr.log_buf = (uintptr_t)log;
	attr.log_size = LOG_BYTES;
	fd = bpf_sys(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		err_set(err, ERR_UNSUPPORTED, "BPF program '%s': the kernel refuses it: %s", name,
			log[0] ? last_complaint(log) : strerror(errnum));
	free(log);
	return fd >= 0 ? fd : ERR_UNSUPPORTED;
}

int bpf_lru_map_open(uint32_t n_entries, struct err *err)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_LRU_HASH;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(uint64_t);
	attr.max_entries = n_entries;
	fd = bpf_sys(BPF_MAP_CREATE, &attr);
	return fd < 0 ? err_sys(err, -fd, "BPF map: cannot be made") : fd;
}

int bpf_map_set(int map_fd, uint32_t key, uint64_t value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&value;
	return bpf_sys(BPF_MAP_UPDATE_ELEM, &attr);
}
