/* SPDX-License-Identifier: MIT */
#include "probe/points/unwind_risk.h"

#include <string.h>

/* Whether a table of names has this one. Names that others define count, too: a program names the
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

static bool is_one_of(const char *const *names, const char *function)
{
	size_t n = strcspn(function, "@"); /* its version */

	for (; *names; names++)
		if (!strncmp(*names, function, n) && !(*names)[n])
			return true;
	return false;
}

/* mov (%esp), %REG first of all: __x86.get_pc_thunk.bx and its like. */
static bool reads_return_address(struct span code)
{
	return code.n >= 3 && code.p[0] == 0x8b && (code.p[1] & 0xc7) == 0x04 && code.p[2] == 0x24;
}

const char *unwind_refusal(const char *function, struct span code)
{
	static const char *const users[] = {"dlopen", "dlmopen", "dlsym", "dlvsym", "setjmp",
		"_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "__getcontext",
		"swapcontext", "__swapcontext", "_Unwind_RaiseException", "_Unwind_Resume",
		"_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind", "_Unwind_Backtrace",
		"uw_init_context_1", "__cxa_throw", "__cxa_rethrow", NULL};
	static const char *const uncalled[] = {"_start", "_dl_start_user", "__restore_rt",
		"__restore", "_dl_runtime_resolve_fxsave", "_dl_runtime_resolve_xsave",
		"_dl_runtime_resolve_xsavec", "_dl_runtime_profile_sse", "_dl_runtime_profile_avx",
		"_dl_runtime_profile_avx512", "_dl_runtime_resolve", "_dl_runtime_resolve_shstk",
		"_dl_runtime_profile", "_dl_runtime_profile_shstk", NULL};

	if (reads_return_address(code) || (function && is_one_of(users, function)))
		return "it uses its return address, which a return probe replaces: the program "
		       "would go wrong";
	if (function && is_one_of(uncalled, function))
		return "nobody calls it: a return probe would overwrite what it finds on the "
		       "stack";
	return NULL;
}

enum unwind_risk unwind_risk_of(const struct elf_file *elf)
{
	if (elf_file_find_section(elf, ".gopclntab") ||
		elf_file_find_section(elf, ".data.rel.ro.gopclntab") ||
		elf_file_find_section(elf, ".note.go.buildid"))
		return UNWIND_RISK_GO;
	if (names(elf, "rust_eh_personality"))
		return UNWIND_RISK_PANICS;
	return names(elf, "__gxx_personality_v0") ? UNWIND_RISK_EXCEPTIONS : UNWIND_RISK_NONE;
}
