/* SPDX-License-Identifier: MIT */
/* bpf(2). What newer kernels know and older headers of the C library do not is here as numbers. */
#ifndef WEIR_BPF_SYS_H
#define WEIR_BPF_SYS_H

#include <linux/bpf.h>

/* enum bpf_attach_type, Linux 6.6 */
#define BPF_ATTACH_UPROBE_MULTI 48

/* The result, or -errno. */
int bpf_sys(int command, union bpf_attr *attr);

#endif
