/* SPDX-License-Identifier: MIT */
/*
 * The command line of a linker (GNU ld, gold, lld, mold), read as far as it takes to know which
 * files are linked, what comes out, and where something can be put in without changing anything
 * else.
 *
 *	link_command_read     arguments -> options and inputs; response files are expanded
 *	link_command_find     which file each input is, as the linker will find it
 *	link_command_rewrite  the same arguments with some inputs replaced and the library added
 */
#ifndef WEIR_INSERT_LINK_COMMAND_H
#define WEIR_INSERT_LINK_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

#define LINK_ARGUMENTS_MAX	1000000	   /* after expansion */
#define LINK_RESPONSE_FILES_MAX 2000	   /* expanded in one command line */
#define LINK_RESPONSE_BYTES_MAX (64 << 20) /* of one such file */

enum link_result {
	LINK_RESULT_PROGRAM,
	LINK_RESULT_SHARED,	 /* -shared */
	LINK_RESULT_RELOCATABLE, /* -r */
	LINK_RESULT_OTHER, /* for another machine: -m with another emulation than elf_x86_64 */
};

struct link_input {
	size_t arg, n_args; /* its place in args: 2 for "-l" "z" */
	const char *name;   /* file name, or the name behind -l; borrowed from args */
	bool is_library;    /* -l */
	bool is_static;	    /* behind -Bstatic: shared libraries are not looked for */
	bool is_raw;	    /* behind -b binary: bytes to be linked as data, whatever they are */
	bool is_script;	    /* -T */
	char *path;	    /* set by link_command_find; NULL: the linker finds nothing either */
};

/* The value of an option. */
struct link_value {
	size_t arg;    /* the word that it is in; SIZE_MAX: there is none */
	size_t offset; /* in that word: "-plugin-opt=" may be in front */
};

struct link_words {
	char **v; /* owned texts */
	size_t n, cap;
};

struct link_command {
	struct link_words args;	       /* expanded; without the linker's own name */
	VEC(struct link_input) inputs; /* in order */
	struct link_words folders;     /* -L, in order */
	/* Those that the linker searches by itself, set by whoever knows them, and those of SEARCH_DIR in
	 * scripts. */
	struct link_words own_folders, script_folders;
	bool has_script; /* -T */
	enum link_result result;
	const char *plugin;	   /* -plugin; NULL: none */
	struct link_value wrapper; /* the lto-wrapper that gcc's plug-in is told of */
	bool skips_wrapper;	   /* which that plug-in does not run */
	const char *output;	   /* -o; "a.out" */
	const char *sysroot;	   /* NULL: none */
	bool only_given_folders;   /* -nostdlib */
	/* Where the run-time library goes: in front of the first input that is no start-up object.
	 */
	size_t library_at;
};

/* Fails when a limit is passed. On failure nothing is left to release. */
int link_command_read(struct link_command *c, char *const *args, size_t n, struct err *err);
void link_command_release(struct link_command *c);
/* Sets the paths that are not known yet, in all folders known by now. */
void link_command_find(struct link_command *c);
/* A library was not found: link_command_find needs more folders. */
bool link_command_misses(const struct link_command *c);
/* One that a script names by SEARCH_DIR; false: it is known, or does not count. */
bool link_command_add_folder(struct link_command *c, const char *folder);

/* A script that names files. */
struct link_script_place {
	const char *path;
	bool is_static;	 /* shared libraries are not looked for */
	bool is_library; /* it was found for a -l */
};
enum link_found {
	LINK_FOUND,    /* the path is given, and is the caller's; the file may be missing still */
	LINK_MISSING,  /* none, wherever the script is */
	LINK_DOUBTFUL, /* linkers differ: the script must stay as it is, and where it is */
};
/* Where the linker finds a file that a script names to be linked, below the sysroot, in the script's folder, here,
 * or in the folders. */
enum link_found link_command_find_named(const struct link_command *c,
	const struct link_script_place *script, const char *name, char **path);
/* The same of a script that it includes: here, or in the folders. */
enum link_found link_command_find_included(
	const struct link_command *c, const char *name, char **path);

/* Gives the option another value. The old one is the caller's. */
char *link_command_replace(
	struct link_command *c, const struct link_value *value, const char *text);

/* What a link gets beside its own files. */
struct link_additions {
	const char *library; /* NULL: none is added */
	/* An object that is linked though nothing refers to it but this name; NULL: none. */
	const char *object, *object_symbol;
};
/* The words for the linker: `replaced[i]` stands for input i unless it is NULL. */
void link_command_rewrite(const struct link_command *c, char *const *replaced,
	const struct link_additions *additions, struct link_words *out);
void link_words_release(struct link_words *words);

/* The words of a response file: blanks separate them, quotes and backslashes keep them together. */
void link_words_split(struct span text, struct link_words *out);
/* The other direction. */
void link_words_join(const struct link_words *words, struct buf *out);

#endif
