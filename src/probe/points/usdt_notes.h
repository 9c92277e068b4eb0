/* SPDX-License-Identifier: MIT */
/* The static probes of an ELF file: the notes that <sys/sdt.h> leaves in .note.stapsdt. */
#ifndef WEIR_PROBE_POINTS_USDT_NOTES_H
#define WEIR_PROBE_POINTS_USDT_NOTES_H

#include "base/addr.h"
#include "base/err.h"
#include "elf/elf_file.h"

#define USDT_NOTES_MAX	   65536 /* of a file; more are left out */
#define USDT_NOTE_TEXT_MAX 4096	 /* bytes of a name or of the operands */

struct usdt_note {
	const char *provider, *probe; /* borrowed from the file, not empty */
	const char *operands;	      /* "" when it has none */
	struct iaddr addr;	/* of the nop, moved as the linker or prelink moved the file */
	struct iaddr semaphore; /* a 16-bit count of tracers; 0 = it has none */
};

/* Calls `each` for every note, in file order: a probe of several sites has one for each, with
 * operands of its own. Returns how many there were; negative (with the place, without a subject)
 * when a note is cut short or malformed, after those in front of it. */
int usdt_notes_each(const struct elf_file *elf,
	void (*each)(void *ctx, const struct usdt_note *note), void *ctx, struct err *err);

/* Where an address of the image is in the file; false when the file holds no bytes for it. */
bool elf_iaddr_to_offset(const struct elf_file *elf, struct iaddr addr, struct foff *offset);

#endif
