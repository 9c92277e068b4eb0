/* SPDX-License-Identifier: MIT */
/*
 * The files of a link: what each is, and which names the link as a whole defines. A name that an
 * object uses and no object of the link defines is foreign: it comes from a shared library.
 */
#ifndef WEIR_INSERT_LINK_FILES_H
#define WEIR_INSERT_LINK_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "insert/content_hash.h"

enum link_file_kind {
	LINK_FILE_OTHER, /* unknown to us, or a script that names no files */
	LINK_FILE_OBJECT,
	LINK_FILE_ARCHIVE,
	LINK_FILE_SHARED,
	LINK_FILE_OTHER_MACHINE, /* an object that is not for x86-64 */
	LINK_FILE_LTO,		 /* no machine code, or not what is linked: not counted */
	LINK_FILE_LTO_COUNTED,	 /* code that the plug-in makes, and that is counted */
	LINK_FILE_SCRIPT,	 /* text that names files or folders */
};

/* Who makes the code of objects that gcc made for link-time optimisation. */
enum link_lto {
	LINK_LTO_NO_PLUGIN, /* nobody: machine code that they have beside it is linked */
	LINK_LTO_LEFT,	    /* a plug-in of the linker */
	LINK_LTO_COUNTED,   /* a plug-in, and counting code is put into what it makes */
};

/* Names of a link, each with a number. */
struct link_names {
	enum link_lto lto; /* set before files are opened */
	struct intern names;
	VEC(bool) is_defined; /* by number; by an object that is going to be inserted */
	VEC(bool) is_left;    /* by number: of a function of such an object that is left alone */
};
void link_names_release(struct link_names *names);
void link_names_define(struct link_names *names, const char *name);
bool link_names_defines(struct link_names *names, const char *name); /* may give it a number */
void link_names_leave(struct link_names *names, const char *name);
bool link_names_is_left(struct link_names *names, const char *name); /* may give it a number */

struct link_file {
	enum link_file_kind kind;
	char *path; /* owned */
	struct file_map map;
	VEC(struct file_map) outside; /* members of a thin archive */
	VEC(uint64_t) wanted;	      /* numbers of the names that it leaves undefined; each once */
	VEC(uint64_t) defined;	      /* numbers of those that it defines */
	uint32_t
		n_lto; /* objects for link-time optimisation that are not counted: it, or members */
};

/* Reads the file and adds its names. Fails when the file cannot be read; what is in it never is a
 * failure: broken objects and archives are LINK_FILE_OTHER. */
int link_file_open(
	struct link_file *f, const char *path, struct link_names *names, struct err *err);
void link_file_release(struct link_file *f);
/* All bytes that the inserted copy depends on. */
void link_file_hash(const struct link_file *f, struct content_hash *hash);

/* The names in a section .gnu.lto_.symtab, which gcc's plug-in tells the linker; false at a damaged one. */
bool link_lto_read(struct span table,
	void (*each)(void *context, const char *name, bool is_defined), void *context);

#endif
