/* SPDX-License-Identifier: MIT */
/*
 * Watchpoints: breakpoint events of perf, which the processor's debug registers carry out. With -c and
 * -p each thread has its own, with `inherit` for threads and children to come; a thread that is made
 * meanwhile is found by looking until nobody is new. Else the addresses are watched in whatever runs,
 * by an event of each CPU; so are those of the kernel.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/attach.h"
#include "bpf/kernel_map.h"
#include "probe/run/run.h"
#include "process/proc.h"

#define ROUNDS_MAX   100
#define KERNEL_BEGIN (UINT64_C(1) << 63) /* addresses from here on are the kernel's */

struct watch {
	struct probe_session *s;
	struct run_program *p;
	struct perf_event_attr attr;
	struct map threads;
	size_t n, n_new;
	int errnum; /* of the first failure */
};

static struct perf_event_attr watch_attr(const struct point_spec *spec)
{
	bool is_code = strchr(spec->name, 'x');
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.bp_addr = spec->address,
		.bp_len = is_code ? sizeof(long) : spec->count};

	attr.bp_type = is_code			 ? HW_BREAKPOINT_X
		       : strchr(spec->name, 'r') ? HW_BREAKPOINT_RW
						 : HW_BREAKPOINT_W;
	return attr;
}

static void watch_task(struct watch *w, pid_t tid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, &w->attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int link = fd < 0 ? -errno : bpf_attach_perf(w->p->fd, fd, 0);

	if (link >= 0) {
		attach_keep(w->s, link, fd);
		w->n++;
		return;
	}
	if (fd >= 0)
		close(fd);
	/* The thread has ended; the CPU is possible, but not there. */
	if (link != -ESRCH && link != -ENODEV && !w->errnum)
		w->errnum = -link;
}

static void take_thread(void *ctx, pid_t tid)
{
	struct watch *w = ctx;
	bool is_new = false;

	map_ensure(&w->threads, (uint64_t)tid, &is_new);
	w->n_new += is_new;
	if (is_new && !w->errnum)
		watch_task(w, tid, -1);
}

static void take_process(void *ctx, const void *key, const void *value)
{
	(void)value;
	proc_each_task(*(const pid_t *)key, take_thread, ctx);
}

static void watch_processes(struct watch *w)
{
	w->attr.inherit = 1;
	for (int i = 0; i < ROUNDS_MAX && !w->errnum; i++) {
		w->n_new = 0;
		if (bpf_map_each(w->s->maps[STREAM_MAP_PROCESSES], sizeof(uint32_t),
			    sizeof(uint32_t), take_process, w) < 0 ||
			!w->n_new)
			break;
	}
	map_release(&w->threads);
}

static int refuse(const struct watch *w, const char *text, struct err *err)
{
	if (w->errnum == ENOSPC)
		return err_set(err, ERR_LIMIT,
			"%s: the processor has 4 debug registers, and all are in use", text);
	if (w->errnum == EINVAL || w->errnum == EOPNOTSUPP)
		return err_set(
			err, ERR_UNSUPPORTED, "%s: this machine cannot watch that address", text);
	if (w->errnum)
		return kernel_refusal(err, w->errnum, text);
	return err_set(err, ERR_NOT_FOUND, "%s: there is no thread to watch", text);
}

int attach_watchpoint(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	const struct point_spec *spec = &p->points.v[0]->spec;
	struct watch w = {.s = s, .p = p, .attr = watch_attr(spec)};

	(void)name;
	if (s->filters && spec->address < KERNEL_BEGIN)
		watch_processes(&w);
	else
		for (size_t cpu = 0; cpu < bpf_possible_cpus() && !w.errnum; cpu++)
			watch_task(&w, -1, (int)cpu);
	if (w.errnum || !w.n)
		return refuse(&w, spec->text, err);
	s->facts.n_sites++;
	return 0;
}
