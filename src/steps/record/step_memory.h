/* SPDX-License-Identifier: MIT */
/*
 * What is in the memory of a space that instructions read and write (--data): variables of images,
 * stacks, the heap, files. Known by the mappings of the process; what changes is written as places
 * (trace/step_records.h), a variable when it is first accessed.
 *
 *   /proc/PID/maps --> regions (image, memory, file) --> changes --> records
 *   an access      --> its region --> the image's symbols ---------> records
 */
#ifndef WEIR_STEPS_RECORD_STEP_MEMORY_H
#define WEIR_STEPS_RECORD_STEP_MEMORY_H

#include "steps/record/step_space.h"
#include "symbols/symtab.h"

/* A stretch that is not what it was. */
struct step_memory_change {
	struct mapping now; /* image: number of what is there; `is_gone`: only start and end */
	bool is_gone;
	bool was_there; /* something else */
};

struct step_memory {
	struct addrspace *regions; /* as /proc said last; image: number in `kinds` */
	struct addrspace *told;	   /* the same with variables, which have STEP_MEMORY_VARIABLE */
	struct intern kinds;	   /* struct step_memory_kind */
	VEC(struct step_memory_change) changes; /* not told yet, by address */
	uint64_t unknown_page;			/* where nothing was found last, by number */
};
#define STEP_MEMORY_VARIABLE UINT32_MAX

struct step_memory *step_memory_new(void);
void step_memory_free(struct step_memory *m);

/* Notes in m->changes how these mappings, all of the process and in their order, differ from those
 * before. */
void step_memory_compare(struct step_memory *m, const struct step_space_env *env,
	const struct process *process, const struct step_region *regions, size_t n);
/* Whether a change takes something away, so that what was accessed before must be told apart. */
bool step_memory_has_losses(const struct step_memory *m);
/* Writes the changes. */
void step_memory_tell(
	struct step_memory *m, const struct step_space_env *env, uint32_t space, uint64_t time);

/* The variables of an image, by its number; NULL when it has none. */
typedef const struct symtab *step_memory_symbols(void *ctx, uint32_t image);
/* Somebody accesses this address: when it is in a variable that has not been told, it is. False when
 * nothing is known to be there. */
bool step_memory_access(struct step_memory *m, const struct step_space_env *env,
	const struct step_space *space, uint64_t addr, uint64_t time, step_memory_symbols *symbols,
	void *ctx);

#endif
