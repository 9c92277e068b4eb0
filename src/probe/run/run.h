/* SPDX-License-Identifier: MIT */
/*
 * What the parts of a running stream share. The way of a stream:
 *
 *   run_points.c    points with the same text become one program for each mode
 *   run_maps.c      maps that the code refers to
 *   run_program.c   prologue.c + pieces + end = a program; loaded; verifier_refusal.c when refused
 *   attach_*.c      links, one for each file or event; attach_named.c: in some processes only
 *   run_rings.c     records in order of time; map_read.c: maps at the end; missed_hits.c: what the kernel skipped
 */
#ifndef WEIR_PROBE_RUN_RUN_H
#define WEIR_PROBE_RUN_RUN_H

#include "base/file.h"
#include "base/map.h"
#include "bpf/code.h"
#include "bpf/followed.h"
#include "bpf/ring.h"
#include "probe/points/point_kind.h"
#include "probe/run/probe_session.h"
#include "probe/types/btf_types.h"

#define SCRATCH_AREAS	    4 /* of a CPU: how deep programs may interrupt each other */
#define SCRATCH_AREAS_SLEEP 8 /* of programs that may sleep: others run meanwhile */
#define RUN_MAPS	    (STREAM_MAP_FIRST_OF_SCRIPT + STREAM_MAPS_MAX)

/* What this kernel has, less what was switched off. */
struct kernel_features {
	int bpf_errnum; /* why no program can be loaded at all; 0 = they can */
	bool has_btf;
	bool has_uprobe_multi;
	bool can_sleep; /* programs of uprobes */
	bool has_task_storage;
	bool counts_turns;   /* of loops: may_goto (Linux 6.9) */
	bool has_tracefs;    /* not looked at before it is needed: false = switched off */
	bool needs_prealloc; /* hash maps must get their memory at once (before Linux 6.1) */
};

/* A place where a program is attached; its number is what the word STREAM_WORD_SITE holds. */
struct run_site {
	const struct stream_point *point;
	const struct target *target; /* UPROBE, URETPROBE, USDT */
	const struct site *site;
	const char *name; /* TRACEPOINT, KPROBE, ...: out of a glob; else NULL */
};
/* System calls have no row: the number says it all. */
#define SITE_SYSCALL	 ((uint64_t)1 << 32)
#define SITE_CALL_RETURN ((uint64_t)1 << 20)
#define SITE_CALL_32	 ((uint64_t)1 << 16)

struct run_program {
	enum point_kind kind;
	VEC(const struct stream_point *) points; /* with one text, in the order of their clauses */
	const struct point *found;
	const char *name;  /* the one that it is attached to (kernel points); NULL: all of found */
	bool has[N_MODES]; /* there is code */
	bool is_switched;  /* both modes occur: the prologue chooses */
	bool uses_site, reads_user, can_sleep;
	uint32_t scratch_bytes;
	uint32_t first_site, n_sites;	  /* in session.sites */
	uint64_t constant_site;		  /* when it is always the same */
	bool has_cookie;		  /* else constant_site */
	uint64_t missed_before, n_missed; /* hits */
	uint64_t n_late;		  /* ticks of an interval that were not run */
	int fd;
	int timer_fd;	 /* INTERVAL */
	int iterator_fd; /* ITER */
};

/* An event that was made in tracefs for a program: its one site, or all of them when the program does
 * not ask which one was hit. */
struct named_event {
	struct run_program *program;
	uint32_t first_site, n_sites;
	uint64_t id; /* perf_event_attr.config */
	int fd;	     /* one that is not inherited, has the program; the others: perf_events */
};

/* Uprobes in the processes that were asked for, and in no others. */
struct named_uprobes {
	bool is_on;
	int tracefs;
	char group[32];
	uint32_t n_names; /* that are in tracefs: GROUP/e0, ... */
	VEC(struct named_event) events;
	struct map threads; /* those that have the events */
	int unseen_map;	    /* one u64: programs begun in which the events have ended */
};

struct probe_session {
	const struct stream *stream;
	struct probe_session_options options;
	struct probe_session_output output;
	struct kernel_features features;
	struct arena *arena;	  /* points that were found here, names of sites */
	struct btf_types *btf;	  /* the kernel's, when a function's number was asked for */
	struct file_map btf_file; /* its bytes */

	VEC(struct run_program) programs;
	VEC(struct run_site) sites;
	struct map found;      /* hash of a point's text -> struct point * */
	struct map site_names; /* site number * 2 + is_function -> char *, in the arena */

	int maps[RUN_MAPS]; /* descriptors; -1 = not needed */
	/* By map of the script: an array of one value instead of a hash, and zero() was called. */
	bool is_array[STREAM_MAPS_MAX], is_zeroed[STREAM_MAPS_MAX];
	bool reads_percpu; /* the script reads an aggregation */
	int enabled_map;   /* one value: a byte for each clause, 0 = its pieces are skipped */
	uint8_t *enabled;  /* what is, or will be, in it */
	bool is_begun;
	struct bpf_ring records, control, copies;
	uint32_t scratch_bytes, scratch_areas;
	bool filters; /* only some processes are traced */
	struct followed followed;
	struct named_uprobes named;

	VEC(int) links;	      /* hold the attachments */
	VEC(int) perf_events; /* closed behind the links */

	int epoll_fd;
	bool is_exiting, is_detached;
	bool counts_missed; /* the kernel's counts change */
	uint64_t exit_ns;   /* records of later times are not handed out */
	int exit_status;
	struct probe_session_facts facts;
};

void session_note(struct probe_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* kernel_features.c */
/* Whether programs can be loaded, and how those of uprobes, costs a load: only when `loads`. */
void kernel_features_find(
	struct kernel_features *f, const struct probe_session_options *options, bool loads);
/* Refuses when programs cannot read what other processors have in maps. */
int kernel_reads_percpu(const struct probe_session_options *options, struct err *err);
/* Sets counts_turns, when the stream has loops that ask. */
void kernel_features_find_turns(struct kernel_features *f,
	const struct probe_session_options *options, const struct stream *stream);
/* The sentence when the kernel does not let us; `errnum` of the failed call. */
int kernel_refusal(struct err *err, int errnum, const char *what);

/* run_points.c: fills programs and sites. */
int run_points(struct probe_session *s, struct err *err);
const struct stream_piece *run_piece(const struct run_program *p, size_t point_i, enum mode mode);

/* run_maps.c */
int run_maps_open(struct probe_session *s, struct err *err);
void run_maps_close(struct probe_session *s);
int run_sites_fill(struct probe_session *s, struct err *err);

/* prologue.c: the part before the pieces. Behind it, where both modes may occur, this word of the
 * stack (STREAM_WORD_IS_32) is not 0 for a 32-bit program. */
void prologue_emit(struct bpf_code *c, const struct probe_session *s, const struct run_program *p);

/* run_program.c */
int run_program_load(struct probe_session *s, struct run_program *p, struct err *err);
int run_btf_open(struct probe_session *s, struct err *err); /* the kernel's types: session.btf */

/* missed_hits.c: from begin{} to the end, or to exit(). */
void missed_hits_begin(struct probe_session *s);
void missed_hits_end(struct probe_session *s);
uint64_t missed_hits(const struct probe_session *s, const struct run_program *p);

/* verifier_refusal.c: where it is and what is wrong; gives the error. */
struct refused {
	const char *point;
	uint32_t clause_i;
	struct place place; /* as exactly as it is known */
};
int verifier_refusal(struct probe_session *s, const struct refused *refused, const char *message,
	struct err *err);

/* attach_kernel.c */
/* All names of a program of the kind POINT_OF_NAMES. */
int attach_names(struct probe_session *s, struct run_program *p, struct err *err);
/* Keeps the descriptors; link_fd 0 = the event itself holds the program. */
void attach_keep(struct probe_session *s, int link_fd, int perf_fd);
/* Opens a perf event of every process on a CPU, attaches the program and keeps both: 0 or -errno. */
struct perf_event_attr;
int attach_event(struct probe_session *s, int program_fd, struct perf_event_attr *attr, int cpu,
	uint64_t cookie);
/* The type number of a PMU ("uprobe", "kprobe") or -1; its return-probe bit. */
int pmu_type(const char *pmu);
int pmu_return_bit(const char *pmu);

/* Closes what attach_keep was given since there were so many. */
void attach_drop(struct probe_session *s, size_t n_links, size_t n_perf_events);

/* attach_named.c */
/* Says whether that is the way for this script; else why not is in the facts. */
void named_uprobes_choose(struct probe_session *s);
/* Attaches all programs of uprobes; on failure nothing stays. */
int named_uprobes_attach(struct probe_session *s, struct err *err);
void named_uprobes_release(struct probe_session *s); /* after perf_events */
/* Programs that were begun by the traced processes and could not be. */
uint64_t named_uprobes_unseen(const struct probe_session *s);

/* uprobe_names.c: the file uprobe_events of tracefs. */
/* Removes names left by weirs that are gone. */
void uprobe_names_sweep(int tracefs);
int uprobe_names_add(struct probe_session *s, struct named_event *e, struct err *err);
void uprobe_names_remove(struct named_uprobes *named);

/* exec_watch.c: counts in unseen_map when a traced process begins a program without events. */
int exec_watch_open(struct probe_session *s, struct err *err);

/* blind_processes.c: says in which processes the kernel has set no breakpoints. */
void blind_processes_note(struct probe_session *s);

/* changed_files.c: says which files are others than those that are traced. */
void changed_files_note(struct probe_session *s);

/* process_filter.c */
int process_filter_open(struct probe_session *s, struct err *err);

/* iterators.c: each goes through its objects, once. */
int run_iterators(struct probe_session *s, struct err *err);

/* run_rings.c: hands out what is there, for a tenth of a second. */
void run_rings_drain(struct probe_session *s);
/* All of it, however much: clauses are switched off. */
void run_rings_empty(struct probe_session *s);

#endif
