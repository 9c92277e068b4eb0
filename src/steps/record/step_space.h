/* SPDX-License-Identifier: MIT */
/*
 * A space: the memory of one process between two execs, as far as it is executed. It knows what is
 * mapped where, and the content of every instruction that was executed, with versions (the book).
 * For the recording; readers have steps/read/steps.h.
 */
#ifndef WEIR_STEPS_RECORD_STEP_SPACE_H
#define WEIR_STEPS_RECORD_STEP_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/mem.h"
#include "process/module_history.h"
#include "process/processes.h"
#include "trace/step_records.h"
#include "trace/step_ways.h"
#include "trace/writer.h"

/* A stretch of memory that is or was executable, and has not been unmapped since. */
struct step_region {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t inode;
	uint32_t device;
	char *path;	    /* "" for anonymous memory; owned */
	bool is_file;	    /* an ordinary file, mapped privately */
	bool is_executable; /* now */
	bool was_written; /* it was writable at some time: its content may differ from the file's */
};

/* Addresses from `start` up to `end`. */
struct step_range {
	uint64_t start, end;
};

/* The newest content of an address. */
struct step_entry {
	uint64_t addr;
	uint32_t frame;
	uint32_t used; /* generation in which it was executed last */
	uint8_t n;
	uint8_t bytes[STEP_CODE_BYTES_MAX];
	bool is_64;
	bool is_string; /* a repeated string instruction */
	bool is_gone;	/* what it was part of is no longer mapped */
};

struct step_space {
	uint32_t number;
	uint32_t generation;
	struct process *process;
	uint64_t n_changes;		 /* of its mappings */
	VEC(struct step_region) regions; /* by address */
	VEC(struct step_entry) entries;
	struct map by_addr;	       /* address -> index in entries */
	VEC(struct step_code) pending; /* of this generation, not written yet */
	bool pending_is_64;
	uint32_t n_forgotten;		   /* how often code was forgotten */
	VEC(struct step_block) blocks;	   /* by number */
	struct map block_at;		   /* address -> number of the block that was there last */
	uint32_t n_written;		   /* of the blocks */
	VEC(struct step_range) engine_own; /* memory that is none of the program's */
	VEC(struct step_range) kernels;	   /* pages that the kernel has put there for uprobes */
	uint64_t unknown_page;		   /* where they were looked for last; by number */
	bool is_sunk; /* nothing of it is written: struct step_sink */
	void *sunk;   /* of the sink */
	struct step_memory *memory; /* steps/record/step_memory.h; NULL: nobody asks; owned */
};

/* What spaces write to. */
struct step_space_env {
	struct trace_writer *w;
	uint32_t code_stream;
	struct images *images;
	struct module_history *modules;
};

struct step_space *step_space_new(uint32_t number, struct process *process);
void step_space_free(struct step_space *s);
/* For the child of a fork, which begins with the mappings of its parent. */
void step_space_copy_regions(struct step_space *to, const struct step_space *from);

/* A change of the mappings, as told by step_space_read_maps. */
struct step_change {
	enum step_map_change what;
	uint64_t start, end;
	const char *path;
};
/* Compares with /proc/PID/maps, brings regions and the module history up to date and calls `each`
 * for every change of executable memory. Code that is no longer there is forgotten. What has changed of
 * the memory is noted in s->memory. */
void step_space_read_maps(struct step_space *s, const struct step_space_env *env, pid_t pid,
	uint64_t time, void (*each)(void *ctx, const struct step_change *change), void *ctx);
/* Only what has changed of the memory that is not executed, into s->memory. */
void step_space_read_memory(struct step_space *s, const struct step_space_env *env, pid_t pid);
/* NULL when nothing executable is known there. */
const struct step_region *step_space_region(const struct step_space *s, uint64_t addr);

/* The entry for an instruction that was just executed with these bytes; new code is noted, and when
 * it takes the place of code that was executed in this generation, a new generation begins. The
 * pointer is good until the next call. */
struct step_entry *step_space_execute(struct step_space *s, const struct step_space_env *env,
	uint64_t addr, const uint8_t *bytes, size_t n, bool is_64, uint64_t time);
/* What is known of the address now; NULL when nothing is. */
const struct step_entry *step_space_known(const struct step_space *s, uint64_t addr);
/* Whether a mapping of this name is the kernel's, for uprobes: no code of the program. */
bool step_mapping_is_kernels(const char *path);
/* What was there is no longer mapped. */
void step_space_forget(struct step_space *s, uint64_t start, uint64_t end);
/* The number of this block, for ways; the same for the same instructions. */
uint32_t step_space_block(struct step_space *s, const struct step_block *b);
/* Writes the code and the blocks that were noted. */
void step_space_write_code(struct step_space *s, const struct step_space_env *env, uint64_t time);

#endif
