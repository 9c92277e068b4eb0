/* SPDX-License-Identifier: MIT */
/*
 * Running a trace stream: maps made, programs loaded and attached, rings read, maps printed at the
 * end. One thread; the caller polls the descriptor and calls probe_session_work.
 */
#ifndef WEIR_PROBE_RUN_PROBE_SESSION_H
#define WEIR_PROBE_RUN_PROBE_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "probe/stream/stack_copy.h"
#include "probe/stream/stream.h"

struct probe_session_options {
	const pid_t *pids; /* traced with their children; none: every process */
	size_t n_pids;
	pid_t command_pid; /* of the program that the run has started; 0: none */
	struct find_options find;
	bool has_old_points;  /* `probe` is BEGIN, tracepoint:syscalls:sys_enter_NAME */
	uint32_t max_entries; /* of a map; 0 = 16384 */
	uint32_t ring_bytes;  /* of the record ring; 0 = 8 MB */
	/* Features of the kernel that are not used although they are there, so that the next best
	 * way can be tested: words of "multi,btf,sleep,task-storage,tracefs,bpf". Those of the
	 * variable WEIR_PROBE_WITHOUT count, too. NULL: none. */
	const char *without;
};

/* Where output goes; every call has one whole line or value. */
struct probe_session_output {
	void *ctx;
	/* One record of the rings, already in order of time. exit, enable, disable, clear and zero
	 * are done by the session and not handed out. */
	void (*record)(void *ctx, const struct stream_record *r, struct span args);
	/* A stack that is to be walked (stream/stack_copy.h), before the records that have its id;
	 * NULL: stacks of the program stay unknown. */
	void (*copy)(void *ctx, const struct stack_copy *copy, size_t n);
	void (*note)(
		void *ctx, const char *sentence); /* what works less well than it should, and why */
	/* The verifier refuses a program: a message about the script, before opening fails. NULL: the
	 * sentence of the error says all. */
	void (*refused)(void *ctx, const struct diags *diags);
};

struct probe_session;
/* Makes maps, loads and attaches everything; begin{} has not run yet. On failure nothing stays
 * attached. A verifier's refusal names the script's file and line. */
int probe_session_open(const struct stream *stream, const struct probe_session_options *options,
	const struct probe_session_output *output, struct probe_session **out, struct err *err);
/* Runs begin{}; from now on records flow. */
int probe_session_begin(struct probe_session *s, struct err *err);

/* After begin{}: runs the clauses of each bench:NAME for a while, one after the other. */
struct bench_result {
	const char *name;
	uint64_t average_ns, n_runs;
};
int probe_session_bench(struct probe_session *s,
	void (*each)(void *ctx, const struct bench_result *r), void *ctx, struct err *err);
/* A signal has come to us: runs its clauses (self:signal:NAME). False when there are none. */
bool probe_session_signal(struct probe_session *s, int number);
/* Readable when there is something to do (records, an interval). */
int probe_session_fd(const struct probe_session *s);
/* Hands out what is in the rings and runs intervals that are due. False once exit() was called. */
bool probe_session_work(struct probe_session *s);
/* Detaches everything, hands out the rest, runs end{}. */
void probe_session_end(struct probe_session *s);
void probe_session_close(struct probe_session *s);
int probe_session_exit_status(const struct probe_session *s); /* exit(N) */

int probe_session_enable(
	struct probe_session *s, uint32_t clause_i, bool is_on); /* while running */

/* Losses of a clause, summed over CPUs. */
void probe_session_loss(const struct probe_session *s, uint32_t clause_i, struct clause_loss *out);

/* Name of a site number (struct shape kinds PROBE and FUNC): made once and kept. */
const char *probe_session_site(struct probe_session *s, uint64_t site, bool is_function);

/* Contents of a map (map_i counts in stream.maps): each key once, aggregations added up over CPUs.
 * `value` then has the shape's layout with one value instead of one per CPU. Order is unspecified.
 */
int probe_session_map_each(struct probe_session *s, uint32_t map_i,
	void (*each)(void *ctx, struct span key, struct span value), void *ctx, struct err *err);
int probe_session_map_clear(struct probe_session *s, uint32_t map_i, bool keep_keys);
/* Addresses of a stack, innermost first; fewer than asked when it is shorter. */
size_t probe_session_stack(
	struct probe_session *s, uint64_t stack_id, uint64_t *addresses, size_t max);

/* What the kernel takes for a map of the script, roughly. */
struct map_memory {
	uint32_t n_entries;
	uint64_t at_once_bytes, full_bytes;
};
#define MAP_AT_ONCE_MAX ((uint64_t)1 << 30)
/* max_entries: that of the run, 0 = 16384. */
struct map_memory map_memory_of(const struct stream_map_def *def, uint32_t max_entries);
/* Refuses a map that takes more than MAP_AT_ONCE_MAX when it is made. */
int map_memory_check(const struct stream_map_def *def, uint32_t max_entries, struct err *err);
/* Hands out the copies of stacks that have come and were made before that moment, up to that with the
 * id; 0: all. */
void probe_session_copies(struct probe_session *s, uint64_t until_ns, uint64_t id);
/* From now on the code knows the rule; or forgets it, when `rule` is NULL. */
void probe_session_learn(
	struct probe_session *s, const struct stack_rule_key *key, const struct stack_rule *rule);

/* What the machine has for scripts; `why` is a sentence when nothing can run at all. */
struct probe_kernel {
	bool can_run, has_btf, has_uprobe_multi, can_sleep;
	struct err why;
};
void probe_kernel_ask(struct probe_kernel *out);

struct probe_session_facts {
	uint32_t n_programs, n_sites, n_links;
	uint64_t open_ns; /* of probe_session_open */
	bool sleeps, uses_multi;
	/* Uprobes with pids: only these processes have breakpoints; else why all have. */
	bool arms_only_asked;
	char why_everywhere[192];
};
void probe_session_facts(const struct probe_session *s, struct probe_session_facts *out);

#endif
