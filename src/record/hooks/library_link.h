/* SPDX-License-Identifier: MIT */
/*
 * ld.so splits LD_PRELOAD at blanks and colons. A library in a folder whose name has one of those
 * is reached through a link in a folder of ours, which every user can enter.
 */
#ifndef WEIR_RECORD_HOOKS_LIBRARY_LINK_H
#define WEIR_RECORD_HOOKS_LIBRARY_LINK_H

#include <stdbool.h>

/* Whether LD_PRELOAD can have the path as it is. */
bool library_link_is_needed(const char *folder);
/* A folder with a link `lib` to that of `folder`; owned; NULL when it cannot be made. Those that
 * recorders left that were killed are removed. */
char *library_link_make(const char *folder);
/* NULL is fine; frees the text, too. */
void library_link_remove(char *link_folder);

#endif
