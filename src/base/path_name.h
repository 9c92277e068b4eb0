/* SPDX-License-Identifier: MIT */
/* What the texts of paths say; no file is looked at. */
#ifndef WEIR_BASE_PATH_NAME_H
#define WEIR_BASE_PATH_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The part of a path behind its last slash; the path itself when nothing is there. */
const char *path_base_name(const char *path);
/* The kernel puts " (deleted)" behind the path of an open or mapped file that has no name any more. A
 * name may end like that all the same. The bytes of the path without it, and whether it is there. */
size_t path_plain_bytes(const char *path);
bool path_is_deleted(const char *path);
/* How many bytes of a library's file name come before ".so", its version and a "-2.31" in front of
 * that; 0 when it is no library. */
size_t path_library_stem(const char *name);

#endif
