/* SPDX-License-Identifier: MIT */
#include "bpf/sys.h"

#include <ctype.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"

#define BTF_MAGIC_AND_VERSION (1u << 16 | 0xeb9f)

int bpf_sys(int command, union bpf_attr *attr)
{
	int rc = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return rc < 0 ? -errno : rc;
}

/* struct btf_header, and what it speaks of. */
int bpf_btf_open(struct span types, struct span strings)
{
	uint32_t header[6] = {BTF_MAGIC_AND_VERSION, sizeof(header), 0, (uint32_t)types.n,
		(uint32_t)types.n, (uint32_t)strings.n};
	struct buf blob = {0};
	union bpf_attr attr;
	int fd;

	buf_put(&blob, header, sizeof(header));
	buf_put(&blob, types.p, types.n);
	buf_put(&blob, strings.p, strings.n);
	memset(&attr, 0, sizeof(attr));
	attr.btf = (uintptr_t)blob.p;
	attr.btf_size = (uint32_t)blob.n;
	fd = bpf_sys(BPF_BTF_LOAD, &attr);
	buf_release(&blob);
	return fd;
}

void bpf_name_set(char *to, const char *name)
{
	for (size_t i = 0; name[i] && i < BPF_OBJ_NAME_LEN - 1; i++)
		to[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
}
