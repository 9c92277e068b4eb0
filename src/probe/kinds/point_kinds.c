/* SPDX-License-Identifier: MIT */
/* The table of the kinds of trace points; their functions are in points/, compile/ and run/. */
#include "probe/points/point_kind.h"

#include <linux/bpf.h>

/* Runs when weir says so. */
#define OURS                                                                                       \
	.traits = POINT_IS_OURS | POINT_IS_ONCE, .parse = point_parse_word_only,                   \
	.list = points_list_form, .program_type = BPF_PROG_TYPE_RAW_TRACEPOINT
#define COUNTER                                                                                    \
	.traits = POINT_ON_CPUS, .parse = point_parse_count, .list = points_list_counts,           \
	.program_type = BPF_PROG_TYPE_PERF_EVENT, .attach = attach_counter
#define FUNCTION_OF_FILE                                                                           \
	.parse = point_parse_function, .find = find_functions, .list = points_list_files,          \
	.detail = points_detail_function, .set_types = point_types_function,                       \
	.program_type = BPF_PROG_TYPE_KPROBE, .attach = attach_uprobe
#define CALL                                                                                       \
	.parse = point_parse_syscall, .find = find_syscalls, .list = points_list_syscalls,         \
	.detail = points_detail_syscall, .set_types = point_types_syscall,                         \
	.program_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .attach = attach_syscall
#define KERNEL_FUNCTION                                                                            \
	.parse = point_parse_kernel, .find = find_kernel_functions, .list = points_list_names,     \
	.detail = points_detail_kernel, .set_types = point_types_function

#define IN_FILES    (POINT_IN_FILES | POINT_AT_CODE)
#define OF_FUNCTION (POINT_OF_NAMES | POINT_OF_KERNEL | POINT_IS_FUNCTION)

const struct point_kind_def point_kinds[N_POINT_KINDS] = {
	[POINT_BEGIN] = {"begin", "BEGIN", NULL, "begin", OURS},
	[POINT_END] = {"end", "END", NULL, "end", OURS},
	[POINT_ERROR] = {"error", "ERROR", NULL, "error", .traits = POINT_HAS_ERROR | POINT_IS_ONCE,
		.parse = point_parse_word_only, .list = points_list_form},
	[POINT_INTERVAL] = {"interval", "i", NULL,
		"interval:s:SECONDS, interval:ms:N, interval:us:N, interval:hz:N",
		.traits = POINT_IS_OURS | POINT_IS_PERIODIC, .parse = point_parse_period,
		.list = points_list_periods, .program_type = BPF_PROG_TYPE_RAW_TRACEPOINT},
	[POINT_PROFILE] = {"profile", "p", NULL,
		"profile:hz:N, profile:s:N, profile:ms:N, profile:us:N",
		.traits = POINT_ON_CPUS | POINT_IS_PERIODIC, .parse = point_parse_period,
		.list = points_list_periods, .program_type = BPF_PROG_TYPE_PERF_EVENT,
		.attach = attach_profile},
	[POINT_UPROBE] = {"uprobe", "u", NULL,
		"uprobe:FILE:FUNCTION[+OFFSET], uprobe:PROGRAM@SOURCE:LINE", FUNCTION_OF_FILE,
		.traits = IN_FILES | POINT_IS_FUNCTION | POINT_HAS_STACK_WORDS,
		.argument = check_register_argument, .field = check_function_field},
	[POINT_URETPROBE] = {"uretprobe", "ur", NULL, "uretprobe:FILE:FUNCTION", FUNCTION_OF_FILE,
		.traits = IN_FILES | POINT_IS_FUNCTION | POINT_AT_RETURN,
		.result = check_function_result},
	[POINT_USDT] = {"usdt", "U", NULL, "usdt:FILE:[PROVIDER:]NAME", .traits = IN_FILES,
		.parse = point_parse_usdt, .find = find_usdt, .list = points_list_files,
		.detail = points_detail_usdt, .set_types = point_types_usdt,
		.argument = check_usdt_argument, .program_type = BPF_PROG_TYPE_KPROBE,
		.attach = attach_uprobe},
	[POINT_SYSCALL_ENTRY] = {"syscall", NULL, NULL, "syscall:NAME:entry, syscall:NAME:return",
		CALL, .traits = POINT_OF_CALLS, .argument = check_syscall_argument,
		.field = check_syscall_field},
	/* Its word is that of the entry: point_parse_syscall tells them apart. */
	[POINT_SYSCALL_RETURN] = {"syscall", NULL, NULL, "syscall:NAME:entry, syscall:NAME:return",
		CALL, .traits = POINT_OF_CALLS | POINT_AT_RETURN,
		.field = check_syscall_return_field, .result = check_syscall_result},
	[POINT_TRACEPOINT] = {"tracepoint", "t", NULL, "tracepoint:CATEGORY:NAME",
		.traits = POINT_OF_NAMES, .parse = point_parse_tracepoint, .find = find_tracepoints,
		.list = points_list_tracepoints, .detail = points_detail_tracepoint,
		.set_types = point_types_tracepoint, .field = check_record_field,
		.program_type = BPF_PROG_TYPE_TRACEPOINT, .attach = attach_tracepoint},
	[POINT_RAW_TRACEPOINT] = {"rawtracepoint", "rt", NULL, "rawtracepoint:[CATEGORY:]NAME",
		.traits = POINT_OF_NAMES | POINT_OF_KERNEL, .parse = point_parse_kernel,
		.find = find_tracepoints, .list = points_list_names, .detail = points_detail_raw,
		.set_types = point_types_raw, .argument = check_kernel_argument,
		.field = check_function_field, .program_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.attach = attach_raw},
	[POINT_SOFTWARE] = {"software", "s", NULL, "software:EVENT[:COUNT]", COUNTER},
	[POINT_HARDWARE] = {"hardware", "h", NULL, "hardware:EVENT[:COUNT]", COUNTER},
	[POINT_KPROBE] = {"kprobe", "k", NULL, "kprobe:[MODULE:]FUNCTION[+OFFSET]", KERNEL_FUNCTION,
		.traits = OF_FUNCTION | POINT_AT_CODE, .argument = check_kprobe_argument,
		.program_type = BPF_PROG_TYPE_KPROBE, .attach = attach_kprobe},
	[POINT_KRETPROBE] = {"kretprobe", "kr", NULL, "kretprobe:[MODULE:]FUNCTION",
		KERNEL_FUNCTION, .traits = OF_FUNCTION | POINT_AT_CODE | POINT_AT_RETURN,
		.result = check_kprobe_result, .program_type = BPF_PROG_TYPE_KPROBE,
		.attach = attach_kprobe},
	[POINT_FENTRY] = {"fentry", "f", "kfunc", "fentry:[MODULE:]FUNCTION", KERNEL_FUNCTION,
		.traits = OF_FUNCTION | POINT_BY_BTF, .argument = check_kernel_argument,
		.field = check_function_field, .program_type = BPF_PROG_TYPE_TRACING,
		.attach_type = BPF_TRACE_FENTRY, .attach = attach_function},
	[POINT_FEXIT] = {"fexit", "fr", "kretfunc", "fexit:[MODULE:]FUNCTION", KERNEL_FUNCTION,
		.traits = OF_FUNCTION | POINT_BY_BTF | POINT_AT_RETURN,
		.argument = check_kernel_argument, .field = check_function_field,
		.result = check_fexit_result, .program_type = BPF_PROG_TYPE_TRACING,
		.attach_type = BPF_TRACE_FEXIT, .attach = attach_function},
	[POINT_SELF] = {"self", NULL, NULL, "self:signal:SIGUSR1", .traits = POINT_IS_OURS,
		.parse = point_parse_signal, .list = points_list_form,
		.program_type = BPF_PROG_TYPE_RAW_TRACEPOINT},
	[POINT_BENCH] = {"bench", NULL, NULL, "bench:NAME", .traits = POINT_IS_OURS | POINT_IS_ONCE,
		.parse = point_parse_bench, .list = points_list_form,
		.program_type = BPF_PROG_TYPE_RAW_TRACEPOINT},
	[POINT_WATCHPOINT] = {"watchpoint", "w", NULL, "watchpoint:ADDRESS:BYTES:r|w|x",
		.traits = POINT_ON_CPUS, .parse = point_parse_watchpoint, .list = points_list_form,
		.program_type = BPF_PROG_TYPE_PERF_EVENT, .attach = attach_watchpoint},
	[POINT_ITER] = {"iter", "it", NULL, "iter:task, iter:task_file, iter:task_vma",
		.traits = POINT_IS_OURS | POINT_IS_ONCE | POINT_OF_KERNEL | POINT_BY_BTF,
		.parse = point_parse_iter, .list = points_list_iters, .detail = points_detail_iter,
		.program_type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_ITER,
		.attach = attach_iter},
};
