/* SPDX-License-Identifier: MIT */
/*
 * The files that code is of, with their debug information: opened by a thread of their own while the program runs,
 * since that takes longer than a small program does. Whoever asks for one that is not open yet opens it itself.
 */
#ifndef WEIR_TRANSLATE_CODE_FILES_H
#define WEIR_TRANSLATE_CODE_FILES_H

#include "formats/ran_file.h"
#include "process/images.h"
#include "symbols/catalog/image_make.h"

struct code_files;
struct code_files *code_files_new(void);
/* Files that were asked for are closed. */
void code_files_free(struct code_files *f);

/* Code of this image is about to be executed; it is asked for later. `image` lives as long as this. */
void code_files_expect(
	struct code_files *f, uint32_t number, const struct image *image, const char *path);
/* The file as it was when the image was mapped, good until code_files_free(); NULL: it is not there, *why says it. */
struct ran_file *code_files_get(struct code_files *f, uint32_t number, const struct image *image,
	const char *path, const char **why);
/* The debug information of one that code_files_get() has returned; none: there is none, or nobody has asked for it. */
struct opened_debug code_files_debug(const struct code_files *f, uint32_t number);

#endif
