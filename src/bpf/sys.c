/* SPDX-License-Identifier: MIT */
#include "bpf/sys.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int bpf_sys(int command, union bpf_attr *attr)
{
	int rc = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return rc < 0 ? -errno : rc;
}
