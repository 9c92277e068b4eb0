/* SPDX-License-Identifier: MIT */
/*
 * A class file with calls put into chosen methods:
 *
 *	run(...)	enter(id)		at the start
 *			leave(id); return	in place of each return
 *			leave(id); athrow	for every exception that leaves the method
 *
 *			done(id, n); ...	in place of leave, of a method that counts the bytecodes that it executes
 *
 * enter and leave are static methods, (I)V, of one class, and done is one, (IJ)V. Fields and methods stay as they are, so a
 * running JVM takes the new class in place of the old one. An exception in a constructor is seen once
 * the constructor of the superclass has returned: before that, no code may handle it (JVMS 4.10.2.4).
 */
#ifndef WEIR_CLASSFILE_CLASS_REWRITE_H
#define WEIR_CLASSFILE_CLASS_REWRITE_H

#include "base/buf.h"
#include "classfile/class_file.h"

struct class_calls {
	const char *class_name; /* `java/lang/WeirHook` */
	const char *enter, *leave;
	const char *done; /* NULL: bytecodes are not counted */
};

/* What is to be done with a method, in the order of the class's. */
struct class_wish {
	uint32_t id;	    /* 0 = nothing; below 2^31 */
	const char *reason; /* set when it could not be done; static */
};

/* Appends the new class file. Returns how many methods have calls now; 0: nothing was appended. Never fails: a
 * method that cannot be changed stays as it is and has its reason. */
size_t class_rewrite(const struct class_file *c, const struct class_calls *calls,
	struct class_wish *wishes, struct buf *to);

#endif
