/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PROCESS_OWN_FILE_H
#define WEIR_PROCESS_OWN_FILE_H

/* A file of ours, relative to the folder of the program: in the build folder or where `make
 * install` puts it; NULL when neither is there. The caller frees it. */
char *own_file_find(const char *built, const char *installed);

#endif
