/* SPDX-License-Identifier: MIT */
#include "bpf/attach.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include "bpf/sys.h"

#define UPROBE_MULTI_RETURN 1u

/* link_create of union bpf_attr with the member that came in Linux 6.6. */
struct link_create_uprobes {
	uint32_t program_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t n, uprobe_flags, pid;
};

int bpf_attach_uprobes(int program_fd, const struct bpf_uprobe_multi *uprobes)
{
	struct link_create_uprobes create = {.program_fd = (uint32_t)program_fd,
		.attach_type = BPF_ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)uprobes->path,
		.offsets = (uintptr_t)uprobes->offsets,
		.semaphores = (uintptr_t)uprobes->semaphores,
		.cookies = (uintptr_t)uprobes->cookies,
		.n = uprobes->n,
		.uprobe_flags = uprobes->is_return ? UPROBE_MULTI_RETURN : 0};
	union bpf_attr attr;

	_Static_assert(sizeof(create) <= sizeof(attr), "it lies inside");
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, &create, sizeof(create));
	return bpf_sys(BPF_LINK_CREATE, &attr);
}

int bpf_link_perf(int program_fd, int perf_fd, uint64_t cookie)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program_fd;
	attr.link_create.target_fd = (uint32_t)perf_fd;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	attr.link_create.perf_event.bpf_cookie = cookie;
	fd = bpf_sys(BPF_LINK_CREATE, &attr);
	if (fd == -EINVAL && !cookie) {
		fd = 0;
		if (ioctl(perf_fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0)
			return -errno;
	}
	return fd;
}

int bpf_attach_perf(int program_fd, int perf_fd, uint64_t cookie)
{
	int fd = bpf_link_perf(program_fd, perf_fd, cookie);

	if (fd >= 0 && ioctl(perf_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	return fd;
}

int bpf_attach_raw_tracepoint(int program_fd, const char *name)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)name;
	attr.raw_tracepoint.prog_fd = (uint32_t)program_fd;
	return bpf_sys(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

int bpf_attach_iterator(int program_fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program_fd;
	attr.link_create.attach_type = BPF_TRACE_ITER;
	return bpf_sys(BPF_LINK_CREATE, &attr);
}

int bpf_open_iterator(int link_fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.iter_create.link_fd = (uint32_t)link_fd;
	return bpf_sys(BPF_ITER_CREATE, &attr);
}
