/* SPDX-License-Identifier: MIT */
/* The files of the page, which the build has put into weir: web/dist. */
#ifndef WEIR_CMD_VIEW_PAGE_FILES_H
#define WEIR_CMD_VIEW_PAGE_FILES_H

#include "base/span.h"

struct page_file {
	const char *name; /* "page.js" */
	const char *type; /* as in HTTP */
	struct span bytes;
};

/* NULL when there is none. */
const struct page_file *page_file_find(const char *name);

#endif
