/* SPDX-License-Identifier: MIT */
/*
 * What a trace defines: things that records refer to by a dense id. Written once, before the first
 * record that refers to them. Shared by writer and reader; layout in docs/format/trace.md.
 * Strings are ids of the string table; id 0 of every table is reserved for "none" (the empty
 * string, no image, the empty stack).
 */
#ifndef WEIR_TRACE_DEFS_H
#define WEIR_TRACE_DEFS_H

#include <stdbool.h>
#include <stdint.h>

#define BUILD_ID_MAX 32

enum stream_kind {
	STREAM_KIND_LIFE = 1,  /* processes, threads, modules, phases, losses */
	STREAM_KIND_CPU = 2,   /* samples and switches of one CPU; number = CPU */
	STREAM_KIND_THREAD = 3 /* events of one thread; number = thread id (of the table) */
};

struct trace_stream {
	enum stream_kind kind;
	uint32_t number;
};

/* A resource that is measured. By convention metric 1 is the main one of the trace. */
struct trace_metric {
	uint32_t name; /* "cpu", "samples", "instructions", ... */
	uint32_t unit; /* "ns", "1", "bytes" */
};

enum image_kind {
	IMAGE_KIND_ELF = 1,    /* a file; addresses are the linker's */
	IMAGE_KIND_KERNEL = 2, /* the running kernel; addresses are its own */
	IMAGE_KIND_VDSO = 3,   /* an ELF image without a file */
	IMAGE_KIND_JIT = 4,    /* code made at run time by one process; addresses are virtual */
	IMAGE_KIND_OTHER = 5   /* a mapped file that is not ELF, or could not be read */
};
const char *image_kind_name(enum image_kind kind); /* "elf", "kernel", ...; "?" = not known */

/* The path of a JVM's image, of kind JIT: all of them, since a method is the same method in each. Its
 * addresses are not virtual: docs/format/trace.md. */
#define JAVA_IMAGE_PATH "[java]"

struct trace_image {
	enum image_kind kind;
	uint32_t path;
	uint8_t bits;	    /* 32, 64, 0 = not known */
	uint8_t build_id_n; /* 0 = none */
	uint8_t build_id[BUILD_ID_MAX];
	uint64_t file_bytes; /* size and time stamp of the file that was read; 0 = not known */
	uint64_t file_mtime_ns;
	uint32_t pid; /* the owner of a JIT image, else 0 */
};

/* A process is a pid and the time it began, since pids are used again. */
struct trace_thread {
	uint32_t pid, tid;
	uint64_t start_ns; /* of the process; 0 = before the trace or not known */
};

enum frame_kind {
	FRAME_KIND_NATIVE = 1,
	FRAME_KIND_KERNEL = 2,
	FRAME_KIND_INTERPRETED = 3,
	FRAME_KIND_JITTED = 4,
	FRAME_KIND_INLINE = 5, /* only in symbol levels, never in a frame */
	FRAME_KIND_MARKER = 6  /* the walk ended here without reaching the thread's start */
};

/*
 * One place in code. A frame with an image is (image, addr); one without an image and with a name
 * is known by that name alone (imports); one with neither is an address in no known module.
 * A marker has the reason as its name.
 */
struct trace_frame {
	enum frame_kind kind;
	bool is_caller; /* addr is a return address: look up addr - 1 */
	uint32_t image;
	uint32_t name;
	uint64_t addr; /* iaddr for ELF and vdso images, else vaddr */
};

/* A stack is its innermost frame below the stack of its caller. */
struct trace_stack {
	uint32_t parent; /* 0 = this frame is the outermost */
	uint32_t frame;
};

/* What a frame means: levels innermost first; all but the last are inlined into the next. */
struct trace_symbol_level {
	uint32_t name; /* demangled */
	uint32_t file; /* 0 = not known */
	uint32_t line;
	uint32_t offset; /* of the frame's address from the function's start */
};

#define SYMBOL_LEVELS_MAX 64

struct trace_symbol {
	uint32_t frame;
	uint32_t reason;   /* why there is no true name (string), 0 when there is one */
	uint32_t n_levels; /* 0: nothing is known */
	const struct trace_symbol_level *levels;
};

/* The codes that records of a trace have: a record's kind is an index into the table of these. */
struct trace_kind {
	uint32_t major, minor;
};

/* --- what the trace knows about images beyond their table entry --- */

struct trace_segment { /* PT_LOAD of an ELF image */
	uint64_t addr, offset, file_bytes, mem_bytes;
	uint32_t flags; /* PF_* */
};
#define TRACE_SEGMENTS_MAX 256

/* What the verification ladder compares; written once for an image. */
struct trace_image_facts {
	uint32_t image;
	uint16_t machine;      /* EM_*; 0 = not known */
	uint64_t content_hash; /* of the executable segments; 0 = not known */
	uint32_t n_segments;
	const struct trace_segment *segments;
};

/* Which symbols an image got, and how sure they are its own. */
struct trace_match {
	uint32_t image;
	uint8_t rung;	     /* enum match_rung of symbols/catalog/match.h */
	uint32_t reason;     /* string */
	uint32_t catalog_id; /* string; 0 = not from a catalog */
	uint32_t sources;    /* string: "symtab+dwarf" */
	uint64_t n_symbols;  /* functions known; UINT64_MAX = not counted */
};
#define TRACE_MATCH_N_RUNGS 5 /* rung is below it */

/* One function of an image, so that any address of it has a name, later and elsewhere. */
struct trace_function {
	uint64_t start, size; /* in the image's address space */
	uint32_t name;	      /* string, as the image has it (mangled) */
};

/* How the end of a mapping is known. */
enum module_end {
	MODULE_END_NONE = 0,	/* it was there at the end of the trace */
	MODULE_END_OVERLAP = 1, /* another mapping took its place */
	MODULE_END_MUNMAP = 2,	/* the process unmapped it */
	MODULE_END_EXEC = 3,	/* the process became another program */
	MODULE_END_EXIT = 4,	/* the process ended */
	MODULE_END_REUSED = 5,	/* another process has its pid */
	MODULE_END_SNAPSHOT = 6 /* it was no longer there when the end snapshot was taken */
};
#define MODULE_N_ENDS 7

/* One row of the address index: who was where, when. */
struct trace_module_span {
	uint32_t pid;
	uint64_t process_start; /* as in trace_thread */
	uint64_t start, end;	/* vaddr */
	uint64_t from, to;	/* time; to = UINT64_MAX: until the end */
	uint32_t image;
	uint64_t bias;	       /* vaddr - iaddr */
	enum module_end ended; /* how `to` is known */
	bool at_start;	       /* it was there before the recording began */
	bool is_used;	       /* some record refers to it */
};
/* By pid, process_start, start, from, to, end; for qsort. */
int trace_module_span_compare(const void *a, const void *b);

#endif
