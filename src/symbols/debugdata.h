/* SPDX-License-Identifier: MIT */
/* .gnu_debugdata ("mini debuginfo"): an xz-compressed ELF file that holds only a .symtab. */
#ifndef WEIR_SYMBOLS_DEBUGDATA_H
#define WEIR_SYMBOLS_DEBUGDATA_H

#include "base/buf.h"
#include "base/err.h"
#include "elf/elf_file.h"

#define DEBUGDATA_BYTES_MAX	((size_t)512 << 20) /* uncompressed */
#define DEBUGDATA_RATIO_MAX	64		    /* symbol tables shrink by 5 to 10 */
#define DEBUGDATA_SLACK_BYTES	((size_t)1 << 20)   /* allowed whatever the ratio */
#define DEBUGDATA_XZ_MEMORY_MAX ((uint64_t)128 << 20)

/* Appends the uncompressed ELF file to `out`. Fails with ERR_NOT_FOUND when there is no such
 * section. */
int debugdata_read(const struct elf_file *elf, struct buf *out, struct err *err);

#endif
