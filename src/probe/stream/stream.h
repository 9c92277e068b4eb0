/* SPDX-License-Identifier: MIT */
/*
 * A trace stream: what the compiler makes of scripts and the loader runs. For each clause and each
 * of its trace points it has two pieces of BPF code, one for 32-bit and one for 64-bit programs.
 * Written down in docs/format/probe-stream.md; stream_file.h writes and reads it.
 *
 * How a piece of code is run. The loader puts pieces of one trace point one behind the other, in
 * the order of their clauses, between a beginning and an end of its own:
 *
 *   r6 = ctx; leave unless the process is traced; choose 32 or 64; r7 = a scratch area
 *   piece of clause 1 / piece of clause 2 / ...
 *   give the scratch area back; return 0
 *
 * A piece begins with its predicate (when it has one), never changes r6 and r7, and ends by running
 * off its end. At the top of the stack are the loader's own 8-byte words (enum stream_word); below
 * them it uses up to STREAM_STACK_BYTES. Maps are loaded by ld_imm64 with src_reg
 * BPF_PSEUDO_MAP_FD and imm = number of the map in this stream. User memory is read with
 * bpf_copy_from_user; where a program cannot sleep the loader puts bpf_probe_read_user there, which
 * takes the same arguments.
 *
 * Behind its end a piece may have functions, which it calls or which helpers call for each entry of
 * a map. They get the stack of the piece as their fourth argument and end by an exit; the loader puts
 * them behind the end of its program. A call with src_reg BPF_PSEUDO_CALL, and ld_imm64 with src_reg
 * BPF_PSEUDO_FUNC, have imm = its first instruction, counted from the first one of all functions of
 * the piece.
 *
 * Loops of any length ask at each turn whether they may go on (STREAM_LOOP_CODE). Kernels that count
 * turns do so themselves; on others the loader compares with a limit.
 */
#ifndef WEIR_PROBE_STREAM_STREAM_H
#define WEIR_PROBE_STREAM_STREAM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "probe/stream/shape.h"
#include "probe/points/point.h"
#include "probe/script/ast.h"
#include "probe/script/diag.h"

/* The loader's words, as offsets from r10. They are at the top, so that a program has no more stack
 * than it needs: that of functions comes to it, and 512 bytes are all there are. */
enum stream_word {
	STREAM_WORD_SITE =
		-8, /* number of the site (stream run's site table): cookie of the link */
	STREAM_WORD_CALL = -16, /* SYSCALL: number of the call */
	STREAM_WORD_REGS = -24, /* SYSCALL: kernel address of the user registers (struct pt_regs) */
	STREAM_WORD_IS_32 = -32, /* the loader's: whether the program is a 32-bit one */
	STREAM_WORD_FREE = -56	 /* -56 .. -33: for the loader's use */
};
#define STREAM_WORDS_BYTES 56
#define STREAM_STACK_BYTES 456

/* Maps. The first are the loader's, the script's own follow. */
enum stream_map {
	STREAM_MAP_RECORDS, /* ring: printf, print(value), ... */
	STREAM_MAP_CONTROL, /* ring: exit, print(@map), clear(@map), ... */
	STREAM_MAP_LOSS,    /* per-CPU array by clause: struct clause_loss */
	STREAM_MAP_SCRATCH, /* per-CPU array of areas; only the loader touches it */
	STREAM_MAP_ZERO,    /* array, one value of zeros as long as the longest map value */
	STREAM_MAP_SELF,    /* task storage: 8-byte words and texts of thread-locals */
	STREAM_MAP_STACKS,  /* hash: u64 id of a stack -> u64 n, u64 address[STREAM_STACK_FRAMES] */
	STREAM_MAP_PROCESSES, /* hash: u32 process -> u32 mark (bpf/followed.h): those that are traced (-c, -p) */
	STREAM_MAP_SITES,  /* array: number of a site -> u64 linker address of it */
	STREAM_MAP_FACTS,  /* array of u64: enum run_fact */
	STREAM_MAP_RULES,  /* hash: struct stack_rule_key -> struct stack_rule (stack_copy.h) */
	STREAM_MAP_COPIES, /* ring: struct stack_copy */
	STREAM_MAP_FIRST_OF_SCRIPT = 16
};

enum run_fact {
	FACT_BEGIN,	 /* when the run began, CLOCK_MONOTONIC ns */
	FACT_WALL_CLOCK, /* ns that CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
	FACT_IS_OVER,	 /* not 0 behind exit(): set by the code, only end { } runs then */
	FACT_COMMAND,	 /* process of the program that the run has started; 0: none */
	FACT_TAI,	 /* CLOCK_TAI - CLOCK_BOOTTIME, ns */
	N_RUN_FACTS
};

/*
 * The operation code of may_goto (Linux 6.9); what the loader makes of it follows from src_reg:
 *   STREAM_LOOP_TURN     may_goto off; without it: if r0 >= imm goto off
 *   STREAM_LOOP_UNKNOWN  r0 = something that the verifier knows nothing of; without it: r0 = 0
 */
#define STREAM_LOOP_CODE (BPF_JMP | 0xe0)
enum { STREAM_LOOP_TURN, STREAM_LOOP_UNKNOWN };

#define STREAM_STACK_FRAMES 127
#define STREAM_STACK_LOST   1 /* number of a stack that could not be kept: it is never found */
#define STREAM_BUILD_ID_MAX 64
#define STREAM_SCRATCH_MAX  32752 /* bytes of a scratch area: offsets of instructions have 16 bits */
#define STREAM_MAPS_MAX	    256
#define STREAM_CLAUSES_MAX  4096

/* Value of STREAM_MAP_LOSS. */
struct clause_loss {
	uint64_t failed_reads; /* memory that could not be read */
	uint64_t map_full;     /* a map had no room for a new key, or an update failed */
	uint64_t lost_records; /* the ring was full */
	uint64_t busy;	       /* no scratch area was free, by the loader's beginning */
	uint64_t stack_failed; /* a stack could not be stored */
	uint64_t loop_limit;   /* a loop ended because it ran too often */
	uint64_t other;	 /* division by zero, index behind an array, a value that cannot be read */
	uint64_t unseen; /* programs of the traced processes without the uprobe; the loader's */
	uint64_t left_out; /* processes that were to be traced and were too many; the loader's */
	uint64_t stack_unwalked; /* len() of a stack that the program has not walked itself */
	uint64_t texts_cut;	 /* by the limit of str() without a length; told, but no loss */
	uint64_t missed;	 /* hits that the kernel did not run the program at; the loader's */
	uint64_t late_ticks;	 /* of an interval, that were not run; the loader's */
};

/* What every record in the rings begins with; arguments follow in the shapes of its format. */
struct stream_record {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t format;  /* number of the format (STREAM_MAP_RECORDS) or of the action (CONTROL) */
	uint32_t clause;  /* low 24 bits; bit 31: made by 64-bit code */
	uint32_t pid, tid;
};

enum format_kind {
	FORMAT_PRINTF, /* text with conversions; args */
	FORMAT_PRINT,  /* print(value): one argument, and a newline */
	FORMAT_JOIN,   /* join(argv): one argument of strings */
	FORMAT_ERROR,  /* an error that no error{} clause handles is only counted */
	/* actions in the control ring */
	FORMAT_EXIT,	  /* arg 0: exit status, SHAPE_INT */
	FORMAT_PRINT_MAP, /* print(@m, top, div): map; args top, div */
	FORMAT_CLEAR_MAP, /* all keys gone */
	FORMAT_ZERO_MAP,  /* all values 0, keys stay */
	FORMAT_TIME,	  /* time(fmt): text, printed with the wall clock of the record */
	FORMAT_CAT,	  /* cat(file): text is a printf format for the name */
	FORMAT_SYSTEM,	  /* system(command), with --unsafe only */
	FORMAT_ENABLE,	  /* enable(clause), disable(clause): arg 0 the clause */
	FORMAT_DISABLE,
	FORMAT_PRINT_ENTRY, /* print(@m[key]) of what is drawn or is several numbers: map; arg key */
	FORMAT_ERRORF, /* like PRINTF, to the terminal of messages, with its place in the script */
	FORMAT_WARNF,
	N_FORMAT_KINDS
};

/* What a format of a kind has. */
struct format_traits {
	const char *name; /* of the function */
	bool has_map, has_text, has_argument;
	uint8_t first_arg; /* which argument of the call is the record's first */
};
extern const struct format_traits format_traits[]; /* by enum format_kind */

struct stream_format {
	enum format_kind kind;
	const char *text; /* PRINTF, CAT, SYSTEM, ERRORF, WARNF: the format; TIME: for strftime */
	uint32_t map_i;	  /* PRINT_MAP, CLEAR_MAP, ZERO_MAP: number in maps[] (from FIRST_OF_SCRIPT
			     on) */
	struct shape **args;
	uint32_t n_args;
	struct place place;
};

struct stream_map_def {
	const char *name;     /* "@bytes" */
	struct shape *key;    /* SHAPE_NONE: a scalar map */
	struct shape *value;  /* aggregations are per-CPU maps */
	uint32_t max_entries; /* 0 = the run's default */
	bool is_lru;	      /* a full map forgets what was not used for longest */
	struct place place;
};

/* An instruction and where in the script it comes from, for --dump and for verifier messages. */
struct stream_line {
	uint32_t insn_i; /* the first one; lines are in order */
	struct place place;
};

/* The code of one clause at one of its points for one mode: parts of stream.code[mode]. */
struct stream_piece {
	uint32_t predicate_at, predicate_n; /* instructions; n = 0: no predicate */
	uint32_t action_at, action_n;
	uint32_t functions_n; /* of these, at the end, so many are functions */
	bool is_there;	      /* false: this mode cannot be compiled (why_not) or does not occur */
	const char *why_not;  /* a sentence, or NULL */
	uint32_t scratch_bytes; /* that it needs; 0 = none */
	bool uses_site;		/* wants STREAM_WORD_SITE */
	bool reads_user; /* reads memory of the program: a program that may sleep is better */
};

/* A file whose debug information, symbols or addresses are in the code of a point. */
struct stream_image {
	const char *path;
	enum mode mode;
	uint8_t build_id_n; /* 0: it has none */
	uint8_t build_id[STREAM_BUILD_ID_MAX];
	uint64_t content_hash; /* of its code; 0 where there is a build-id */
};
#define STREAM_IMAGES_MAX 4096

/* One trace point of one clause. */
struct stream_point {
	uint32_t clause_i;
	struct point_spec spec;
	const char *operands; /* USDT: this code is for sites with these operands only; else NULL */
	enum mode operands_mode;
	const char
		*name; /* TRACEPOINT, KPROBE, FENTRY out of a glob: for this one only; else NULL */
	/* Functions: the code is for this site only, since arguments are elsewhere at others; or NULL. */
	const struct target *site_target;
	const struct site *site;
	/* The same of a stream out of a file: which of the images, and the linker's address. */
	bool has_site;
	uint32_t site_image;
	uint64_t site_addr;
	struct stream_image *images; /* that the code was made for; it is for no other ones */
	uint32_t n_images;
	struct stream_piece pieces[N_MODES];
	const struct point
		*found; /* on this machine, or NULL: to be found (a stream out of a file) */
};

struct stream_clause {
	struct place place;
	bool has_predicate;
};

/* Whose forms are printed, where versions of bpftrace differ (print/print_manner.h); and the little that
 * they mean differently: what comparisons are, who ends a script of begin{} and end{}. */
enum stream_like { STREAM_LIKE_0_26, STREAM_LIKE_0_17, N_STREAM_LIKES };

struct stream {
	struct sources sources; /* names and texts of the scripts */
	VEC(struct stream_clause) clauses;
	VEC(struct stream_point) points;
	VEC(struct stream_map_def) maps; /* map number = STREAM_MAP_FIRST_OF_SCRIPT + index */
	VEC(struct stream_format) formats;
	VEC(const char *) strings; /* texts that values refer to by number (SHAPE_TIME) */
	VEC(struct bpf_insn) code[N_MODES];
	VEC(struct stream_line) lines[N_MODES];
	uint32_t self_bytes; /* of thread-locals, a multiple of 8; 0 = none */
	uint32_t zero_bytes; /* longest map value */
	bool uses_stacks;    /* ustack or kstack: STREAM_MAP_STACKS is needed */
	bool hides_maps;     /* they are not printed at the end */
	enum stream_like like;
	uint32_t ring_pages; /* of 4096 bytes; 0 = the run's default */
	uint32_t cat_bytes;  /* of a file that cat() prints at most; 0 = all */
	/* The build of the kernel whose structures are in the code; 0 bytes: there are none, or it has none. */
	uint8_t kernel_id_n;
	uint8_t kernel_id[STREAM_BUILD_ID_MAX];
	struct arena *arena; /* owns names, specs, shapes */
};

struct stream *stream_new(void);
void stream_free(struct stream *s);

#endif
