/* SPDX-License-Identifier: MIT */
/*
 * Structures of the kernel that arguments of system calls point to. The kernel's own formats of its
 * system calls name them for 64-bit programs; what 32-bit programs hand over is as the kernel's compat
 * functions have it: structures with names of their own where the layout differs.
 */
#include <string.h>

#include "probe/points/syscalls.h"

static const struct {
	const char *call, *arg;
	const char *name[N_MODES]; /* NULL: there is none in this mode */
} rows[] = {
/* clang-format off: a row a line */
#define ROW(call, arg, of_64, of_32) {#call, #arg, {[MODE_64] = #of_64, [MODE_32] = #of_32}},
#define ONE(call, arg, of)	     ROW(call, arg, of, of)
#define TIME(call, arg)		     ROW(call, arg, __kernel_timespec, old_timespec32)
	TIME(nanosleep, rqtp)
	TIME(nanosleep, rmtp)
	TIME(clock_nanosleep, rqtp)
	TIME(clock_nanosleep, rmtp)
	TIME(clock_gettime, tp)
	TIME(clock_settime, tp)
	TIME(clock_getres, tp)
	TIME(sched_rr_get_interval, interval)
	TIME(utimensat, utimes)
	TIME(ppoll, tsp)
	TIME(pselect6, tsp)
	TIME(recvmmsg, timeout)
	TIME(rt_sigtimedwait, uts)
	TIME(semtimedop, timeout)
	TIME(mq_timedsend, u_abs_timeout)
	TIME(mq_timedreceive, u_abs_timeout)
	TIME(futex, utime)
	ONE(clock_nanosleep_time64, rqtp, __kernel_timespec)
	ONE(clock_nanosleep_time64, rmtp, __kernel_timespec)
	ONE(clock_gettime64, tp, __kernel_timespec)
	ONE(clock_settime64, tp, __kernel_timespec)
	ONE(clock_getres_time64, tp, __kernel_timespec)
	ONE(sched_rr_get_interval_time64, interval, __kernel_timespec)
	ONE(utimensat_time64, utimes, __kernel_timespec)
	ONE(ppoll_time64, tsp, __kernel_timespec)
	ONE(pselect6_time64, tsp, __kernel_timespec)
	ONE(recvmmsg_time64, timeout, __kernel_timespec)
	ONE(rt_sigtimedwait_time64, uts, __kernel_timespec)
	ONE(semtimedop_time64, timeout, __kernel_timespec)
	ONE(futex_time64, utime, __kernel_timespec)
	ONE(epoll_pwait2, timeout, __kernel_timespec)
	ROW(gettimeofday, tv, __kernel_old_timeval, old_timeval32)
	ROW(settimeofday, tv, __kernel_old_timeval, old_timeval32)
	ONE(gettimeofday, tz, timezone)
	ONE(settimeofday, tz, timezone)
	ROW(getitimer, value, __kernel_old_itimerval, old_itimerval32)
	ROW(setitimer, value, __kernel_old_itimerval, old_itimerval32)
	ROW(setitimer, ovalue, __kernel_old_itimerval, old_itimerval32)
	ROW(timer_settime, new_setting, __kernel_itimerspec, old_itimerspec32)
	ROW(timer_settime, old_setting, __kernel_itimerspec, old_itimerspec32)
	ROW(timer_gettime, setting, __kernel_itimerspec, old_itimerspec32)
	ROW(timerfd_settime, utmr, __kernel_itimerspec, old_itimerspec32)
	ROW(timerfd_settime, otmr, __kernel_itimerspec, old_itimerspec32)
	ROW(timerfd_gettime, otmr, __kernel_itimerspec, old_itimerspec32)
	ROW(stat, statbuf, stat, compat_stat)
	ROW(lstat, statbuf, stat, compat_stat)
	ROW(fstat, statbuf, stat, compat_stat)
	ROW(newfstatat, statbuf, stat, compat_stat)
	ROW(statfs, buf, statfs, compat_statfs)
	ROW(fstatfs, buf, statfs, compat_statfs)
	ONE(statx, buffer, statx)
	ONE(openat2, how, open_how)
	ROW(readv, vec, iovec, compat_iovec)
	ROW(writev, vec, iovec, compat_iovec)
	ROW(preadv, vec, iovec, compat_iovec)
	ROW(pwritev, vec, iovec, compat_iovec)
	ROW(preadv2, vec, iovec, compat_iovec)
	ROW(pwritev2, vec, iovec, compat_iovec)
	ROW(vmsplice, uiov, iovec, compat_iovec)
	ROW(process_vm_readv, lvec, iovec, compat_iovec)
	ROW(process_vm_readv, rvec, iovec, compat_iovec)
	ROW(process_vm_writev, lvec, iovec, compat_iovec)
	ROW(process_vm_writev, rvec, iovec, compat_iovec)
	ROW(sendmsg, msg, user_msghdr, compat_msghdr)
	ROW(recvmsg, msg, user_msghdr, compat_msghdr)
	ROW(sendmmsg, mmsg, mmsghdr, compat_mmsghdr)
	ROW(recvmmsg, mmsg, mmsghdr, compat_mmsghdr)
	ONE(bind, umyaddr, sockaddr)
	ONE(connect, uservaddr, sockaddr)
	ONE(accept, upeer_sockaddr, sockaddr)
	ONE(accept4, upeer_sockaddr, sockaddr)
	ONE(getsockname, usockaddr, sockaddr)
	ONE(getpeername, usockaddr, sockaddr)
	ONE(sendto, addr, sockaddr)
	ONE(recvfrom, addr, sockaddr)
	ROW(rt_sigaction, act, sigaction, compat_sigaction)
	ROW(rt_sigaction, oact, sigaction, compat_sigaction)
	ROW(getrusage, ru, rusage, compat_rusage)
	ROW(wait4, ru, rusage, compat_rusage)
	ROW(waitid, ru, rusage, compat_rusage)
	ROW(getrlimit, rlim, rlimit, compat_rlimit)
	ROW(setrlimit, rlim, rlimit, compat_rlimit)
	ONE(prlimit64, new_rlim, rlimit64)
	ONE(prlimit64, old_rlim, rlimit64)
	ONE(poll, ufds, pollfd)
	ONE(ppoll, ufds, pollfd)
	ONE(ppoll_time64, ufds, pollfd)
	ONE(epoll_ctl, event, epoll_event)
	ONE(epoll_wait, events, epoll_event)
	ONE(epoll_pwait, events, epoll_event)
	ROW(sysinfo, info, sysinfo, compat_sysinfo)
	ROW(times, tbuf, tms, compat_tms)
	ONE(uname, name, new_utsname)
	ONE(clone3, uargs, clone_args)
	ONE(perf_event_open, attr_uptr, perf_event_attr)
	ONE(io_uring_setup, params, io_uring_params)
	ONE(sched_setparam, param, sched_param)
	ONE(sched_getparam, param, sched_param)
	ONE(sched_setscheduler, param, sched_param)
	ONE(sched_setattr, uattr, sched_attr)
	ONE(sched_getattr, uattr, sched_attr)
	ONE(capget, header, __user_cap_header_struct)
	ONE(capset, header, __user_cap_header_struct)
	ONE(rseq, rseq, rseq)
	ROW(set_robust_list, head, robust_list_head, compat_robust_list_head)
	ONE(name_to_handle_at, handle, file_handle)
	ONE(open_by_handle_at, handle, file_handle)
#undef ROW
#undef ONE
#undef TIME
	/* clang-format on */
};

const char *syscall_struct(enum mode mode, const char *call, const char *arg)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].call, call) && !strcmp(rows[i].arg, arg))
			return rows[i].name[mode];
	return NULL;
}

bool syscall_hands_struct(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int mode = 0; mode < N_MODES; mode++)
			if (rows[i].name[mode] && !strcmp(rows[i].name[mode], name))
				return true;
	return false;
}
