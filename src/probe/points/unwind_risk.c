/* SPDX-License-Identifier: MIT */
#include "probe/points/unwind_risk.h"

#include <string.h>

/* Whether a table of names has this one. Also names that others define count: a program names the
 * routine of its language that unwinds. */
static bool has_name(const struct elf_file *elf, const char *table, const char *name)
{
	const struct elf_section *s = elf_file_find_section(elf, table);
	struct span bytes;

	if (!s)
		return false;
	bytes = elf_file_section_bytes(elf, s);
	return bytes.n && memmem(bytes.p, bytes.n, name, strlen(name) + 1);
}

static bool names(const struct elf_file *elf, const char *name)
{
	return has_name(elf, ".dynstr", name) || has_name(elf, ".strtab", name);
}

enum unwind_risk unwind_risk_of(const struct elf_file *elf)
{
	if (elf_file_find_section(elf, ".gopclntab") ||
		elf_file_find_section(elf, ".data.rel.ro.gopclntab"))
		return UNWIND_RISK_GO;
	if (names(elf, "rust_eh_personality"))
		return UNWIND_RISK_PANICS;
	return names(elf, "__gxx_personality_v0") ? UNWIND_RISK_EXCEPTIONS : UNWIND_RISK_NONE;
}
