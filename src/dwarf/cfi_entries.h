/* SPDX-License-Identifier: MIT */
/* The CIEs and FDEs of one .eh_frame or .debug_frame, found but not yet run. */
#ifndef WEIR_DWARF_CFI_ENTRIES_H
#define WEIR_DWARF_CFI_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"
#include "dwarf/cfi_rule.h"

/* Bytes to decode, and what decoding needs to know of the image. */
struct cfi_source {
	struct span bytes;
	uint64_t addr;	    /* linker address of the first byte */
	uint64_t data_addr; /* what DW_EH_PE_datarel is relative to, 0 = not known */
	bool is_eh;	    /* .eh_frame, else .debug_frame */
	bool ends_at_zero;  /* a zero length is the end: the true size is not known */
	bool is_64;	    /* pointers of 8 bytes */
	bool is_386;	    /* register numbers of i386 */
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	struct span program;
	uint64_t addr_bias;	  /* of bytes of the section: linker address - place in memory */
	uint64_t data_addr;	  /* as in the source */
	uint8_t pointer_encoding; /* DW_EH_PE_* of the FDEs' addresses */
	uint8_t lsda_encoding;	  /* of their language-specific data areas */
	uint8_t pointer_bytes;	  /* of DW_EH_PE_absptr */
	bool has_data_length;	  /* augmentation 'z' */
	bool is_signal;		  /* augmentation 'S' */
	bool is_good;
	bool is_386;
	bool has_run;		  /* `initial` is filled */
	struct cfi_state initial; /* after the CIE's own program */
};

struct cfi_fde {
	uint64_t start, size; /* linker addresses */
	uint32_t cie_i;
	uint64_t lsda;	     /* of exceptions: linker address; 0 = it has none */
	struct span program; /* borrowed from the source */
};
#define CFI_LSDA_UNKNOWN UINT64_MAX /* it has one, and where is not understood */

/* Zero-initialise. */
struct cfi_entries {
	VEC(struct cfi_cie) cies;
	VEC(struct cfi_fde) fdes;
	struct map cie_at; /* offset -> index in cies */
	size_t n_skipped;  /* entries that are not understood */
};

void cfi_entries_release(struct cfi_entries *e);
void cfi_entries_read(struct cfi_entries *e, const struct cfi_source *source);

/* A pointer in the encoding of the exception-handling frame (DW_EH_PE_*), `addr` being where the
 * cursor's next byte lies. False when it is omitted, indirect or not understood. */
struct cfi_pointer_base {
	uint64_t addr, data_addr;
	uint8_t absptr_bytes;
};
bool cfi_pointer_read(
	struct cursor *c, uint8_t encoding, const struct cfi_pointer_base *base, uint64_t *value);

#endif
