/* SPDX-License-Identifier: MIT */
/* Attaching BPF programs. All give a descriptor that holds the attachment, or -errno. */
#ifndef WEIR_BPF_ATTACH_H
#define WEIR_BPF_ATTACH_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* Many places of one file at once (Linux 6.6); all or none. */
struct bpf_uprobe_multi {
	const char *path;
	const uint64_t *offsets;
	const uint64_t *semaphores; /* file offsets of counters, 0 = none; or NULL */
	const uint64_t *cookies;    /* or NULL */
	uint32_t n;
	bool is_return;
};
int bpf_attach_uprobes(int program_fd, const struct bpf_uprobe_multi *uprobes);

/* To a perf event; the cookie needs Linux 5.15. Without links (before that) the program is set on
 * the event itself, and 0 is given: the event is what holds it. The event is enabled. */
int bpf_attach_perf(int program_fd, int perf_fd, uint64_t cookie);
/* The same, but the event stays as it is. */
int bpf_link_perf(int program_fd, int perf_fd, uint64_t cookie);
/* NULL: fentry and fexit, of which loading has said where. */
int bpf_attach_raw_tracepoint(int program_fd, const char *name);
/* A program of the type BPF_TRACE_ITER: to the objects that loading has named. Each descriptor that
 * is opened of it goes through all of them once, while it is read. */
int bpf_attach_iterator(int program_fd);
int bpf_open_iterator(int link_fd);

#endif
