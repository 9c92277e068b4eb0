/* SPDX-License-Identifier: MIT */
/*
 * The classes that the runtimes of a trace had: from the records of their loading and unloading, and
 * from the methods in the profile. A class is its name; loaders and processes that have one of
 * that name are counted.
 */
#ifndef WEIR_CALLTREE_CLASSES_H
#define WEIR_CALLTREE_CLASSES_H

#include "base/map.h"
#include "base/mem.h"
#include "calltree/build.h"

struct class_row {
	const char *name;  /* `com.example.Outer$Inner` */
	uint64_t n_start;  /* there when the recording of its process began */
	uint64_t n_loaded; /* since, and */
	uint64_t n_unloaded;
	bool is_used; /* one of its methods is in the profile */
};

struct classes {
	struct intern names;	    /* id = row */
	VEC(struct class_row) rows; /* in order of first sight */
	uint64_t n_damaged;	    /* records that could not be read */
};

/* Without classes in the trace there are no rows. */
int classes_init(struct classes *c, const struct profile *p, struct err *err);
void classes_release(struct classes *c);

#endif
