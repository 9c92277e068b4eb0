/* SPDX-License-Identifier: MIT */
/* bpf(2). What newer kernels know and older headers of the C library do not is here as numbers. */
#ifndef WEIR_BPF_SYS_H
#define WEIR_BPF_SYS_H

#include <linux/bpf.h>

#include "base/span.h"

/* enum bpf_attach_type, Linux 6.6 */
#define BPF_ATTACH_UPROBE_MULTI 48

/* The result, or -errno. */
int bpf_sys(int command, union bpf_attr *attr);

/* Gives the kernel a BTF of these types (linux/btf.h) and texts: a descriptor or -errno. */
int bpf_btf_open(struct span types, struct span strings);
/* Fills in the name of a program or map, BPF_OBJ_NAME_LEN bytes of zeros: what is no letter or
 * digit becomes _. */
void bpf_name_set(char *to, const char *name);

#endif
