/* SPDX-License-Identifier: MIT */
/*
 * One recording of steps: what was asked for, the trace that is written, and what engines call to
 * say what the program does. A thread of the program is known here by a struct step_track.
 *
 *   engine --> step_session_* --> code book (versions), runs, marks --> trace writer
 */
#ifndef WEIR_STEPS_RECORD_STEP_SESSION_H
#define WEIR_STEPS_RECORD_STEP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "process/launch.h"
#include "symbols/function_pattern.h"
#include "trace/step_records.h"

struct step_engine;
struct step_session;

/* Where a region begins or ends: a pattern (symbols/function_pattern.h) or 0xADDRESS. Nothing has to
 * be released when it fails. */
struct step_function {
	const char *text; /* borrowed */
	bool is_address;
	uint64_t address;
	struct function_pattern pattern; /* unless is_address */
};
int step_function_init(struct step_function *f, const char *text, struct err *err);
void step_function_release(struct step_function *f);

struct step_options {
	const char *output;
	const char *engine;   /* NULL: the first that works */
	char *const *command; /* NULL-terminated, or NULL and then: */
	const pid_t *pids;
	size_t n_pids;
	const struct step_function *from, *to, *around; /* NULL = not given */
	const char *user_code;				/* glob of image paths; NULL = all */
	const char *threads; /* only threads of this name (glob) or tid; NULL = all */
	uint64_t max;	     /* steps in all; 0 = no limit */
	double every_ms;     /* bursts: one begins every so often ... */
	uint64_t burst;	     /* ... and is so many steps of each thread long; 0 = no bursts */
	bool data;
	bool no_follow;	   /* children that are forked run untraced */
	double duration_s; /* 0 = until the end */
	int parent_fd;	   /* readable when nobody waits for the recording any more; -1 = none */

	void (*progress)(void *ctx, uint64_t steps, double seconds); /* may be NULL */
	void (*note)(void *ctx, const char *sentence);		     /* may be NULL */
	void (*complain)(void *ctx, const char *sentence); /* of what is not there; may be NULL */
	void *ctx;
};

struct step_result {
	const char *engine; /* that was used */
	uint64_t n_steps, n_lost;
	uint64_t n_threads, n_processes;
	uint64_t trace_bytes, wall_ns;
	bool has_status; /* of the command */
	int wait_status;
	uint64_t n_unmatched;	/* functions that were asked for and are not there */
	struct err write_error; /* code 0, or why the trace is not complete */
};

/* Negative when nothing was recorded; the command has then not run. */
int step_record(const struct step_options *options, struct step_result *result, struct err *err);

/* --- for engines --------------------------------------------------------------------------- */

struct step_track; /* a thread that is being traced */

/* Why the recording is over: STEP_WHY_MAX or STEP_WHY_END. */
enum step_why step_session_why_over(const struct step_session *s);
void step_session_note(struct step_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void step_session_progress(struct step_session *s); /* now and then; cheap */

/* Processes and threads. A process that was attached to is read from /proc. */
void step_session_process(struct step_session *s, pid_t pid, bool was_running);
struct step_track *step_session_thread(struct step_session *s, pid_t pid, pid_t tid);
/* `child` was made by the thread `by`. Returns its track. */
struct step_track *step_session_forked(
	struct step_session *s, struct step_track *by, pid_t pid, pid_t tid);
/* The thread's process became another program; its other threads have ended. */
void step_session_exec(struct step_session *s, struct step_track *t);
void step_session_exit(struct step_session *s, struct step_track *t, int wait_status);
/* For a recording that others have begun: this process has just become another program, whose only thread is ours from
 * here on; and it is so no longer. */
struct step_track *step_session_adopt(struct step_session *s, pid_t pid);
void step_session_leave(struct step_session *s, struct step_track *t);
/* The thread may have another name now; engines ask when it ends. */
void step_session_look_at_name(struct step_session *s, const struct step_track *t);
/* The mappings of the thread's process may have changed, by the step that was added last. The
 * process must not run meanwhile. */
void step_session_maps(struct step_session *s, struct step_track *t);
/* Whether the address is in a page that the kernel has put there for uprobes of others: what is
 * executed there is none of the program's. */
bool step_track_is_in_kernels(const struct step_track *t, uint64_t addr);
/* The bytes of an instruction as memory has them: where a uprobe is on it they become those of the
 * file, which are what the kernel executes. False: they are what they are. */
bool step_track_unprobe(
	const struct step_track *t, uint64_t addr, uint8_t *bytes, size_t n, bool is_64);
/* Steps that were made and could not be seen. */
void step_session_lost(
	struct step_session *s, struct step_track *t, uint64_t steps, const char *why);
/* Whether --user-code wants this address; true without that option. */
bool step_session_wants(struct step_session *s, const struct step_track *t, uint64_t addr);
/* The addresses of a function in the process as it is mapped now: up to `max` are written; returns how many there
 * are, 0 = it is not there (yet). */
size_t step_session_find(struct step_session *s, const struct step_track *t,
	const struct step_function *f, uint64_t *addrs, size_t max);
/* It was never found: says so, with the names that were there instead. */
void step_session_complain_of_missing(
	struct step_session *s, const char *option, const struct step_function *f);

/* An executed instruction: its address, and the bytes from there on as they were right after it was
 * executed (`n` up to 15, fewer at the end of memory, 0 when they cannot be read). False: there are
 * enough steps already, and this one is left out. */
bool step_session_step(struct step_session *s, struct step_track *t, uint64_t addr,
	const uint8_t *bytes, size_t n, bool is_64);
void step_session_mark(struct step_session *s, struct step_track *t, enum step_mark_kind kind,
	int64_t a, int64_t b, int64_t c);
/* The thread stands at the first instruction of a signal handler, which has interrupted what was at `addr`. */
void step_session_handler(struct step_session *s, struct step_track *t, uint64_t addr);
/* The program runs on untraced, for a reason that is a phrase. */
void step_session_pause(
	struct step_session *s, struct step_track *t, enum step_why why, const char *reason);
/* What the step that was added last read or wrote. */
void step_session_datum(struct step_session *s, struct step_track *t, uint64_t addr, unsigned how,
	const uint8_t *value, size_t n, bool has_value);

#endif
