/* SPDX-License-Identifier: MIT */
/*
 * A folder of ours for a while. Its maker holds a lock on it for as long as it lives, so that the
 * next one who makes a folder with the same prefix can tell what a killed process has left there,
 * and removes it.
 */
#ifndef WEIR_BASE_TEMPORARY_FOLDER_H
#define WEIR_BASE_TEMPORARY_FOLDER_H

struct temporary_folder {
	char *path; /* owned; NULL = there is none */
	int lock_fd;
};

/* $TMPDIR when it is an absolute path, else /tmp. */
const char *temporary_place(void);
/* An empty file there that has no name, for reading and writing. Negative: errno says why. */
int temporary_file_open(void);
/* PLACE/PREFIX, the pid, "-" and six characters, for its owner alone. 0, or a negative errno. */
int temporary_folder_make(struct temporary_folder *f, const char *place, const char *prefix);
/* With all that is in it. Nothing when there is none. */
void temporary_folder_remove(struct temporary_folder *f);

#endif
