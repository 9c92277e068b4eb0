/* SPDX-License-Identifier: MIT */
/*
 * What must not be hooked, whatever its code looks like: functions whose return address is more to
 * them than the way back, and code that runs when no hook can.
 */
#include <elf.h>
#include <fnmatch.h>
#include <string.h>

#include "base/file.h"
#include "record/hooks/plan_internal.h"

static const char returns_twice[] = "it returns twice";
static const char switches_stacks[] = "it changes the stack under its caller";
static const char reads_return[] = "reads its own return address";
static const char unwinds[] = "it unwinds the stack from its own frame";
static const char is_probe[] = "compilers insert calls of it that keep all registers";
static const char is_returned_to[] = "it is returned to, not called";
static const char is_v8_code[] = "V8's own code moves its return addresses and reads them";
static const char is_jvm_entry[] =
	"code that the JVM makes calls it, and the JVM finds the caller by its return address";
static const char is_dynamic_linker[] = "it belongs to the dynamic linker";
static const char runs_before[] = "it runs before or after the program";

struct unsafe_name {
	const char *name; /* a "*" at the end stands for anything */
	const char *reason;
};

static const struct unsafe_name unsafe_names[] = {
	{"setjmp", returns_twice},
	{"_setjmp", returns_twice},
	{"__setjmp", returns_twice},
	{"__GI___setjmp", returns_twice},
	{"sigsetjmp", returns_twice},
	{"__sigsetjmp", returns_twice},
	{"__GI___sigsetjmp", returns_twice},
	{"vfork", returns_twice},
	{"__vfork", returns_twice},
	{"__libc_vfork", returns_twice},
	{"getcontext", returns_twice},
	{"__getcontext", returns_twice},
	{"_ITM_beginTransaction", returns_twice},
	{"swapcontext", switches_stacks},
	{"__swapcontext", switches_stacks},
	{"setcontext", switches_stacks},
	{"__setcontext", switches_stacks},
	{"jump_fcontext", switches_stacks},
	{"ontop_fcontext", switches_stacks},
	{"__morestack*", switches_stacks},
	{"__rust_probestack", is_probe},
	{"__chkstk*", is_probe},
	{"___chkstk*", is_probe},
	{"__alloca", is_probe},
	{"_alloca", is_probe},
	{"__cyg_profile_*", is_probe},
	{"mcount", is_probe},
	{"_mcount", is_probe},
	{"__mcount", is_probe},
	{"__fentry__", is_probe},
	{"__tls_get_addr*", is_probe},
	{"___tls_get_addr*", is_probe},
	{"__x86.get_pc_thunk.*", reads_return},
	{"__i686.get_pc_thunk.*", reads_return},
	{"__x86_return_thunk", reads_return},
	{"__x86_indirect_thunk_*", reads_return},
	{"__llvm_retpoline_*", reads_return},
	/* They look up their caller's library: the namespace, RTLD_NEXT, $ORIGIN. */
	{"dlopen", reads_return},
	{"__dlopen", reads_return},
	{"dlmopen", reads_return},
	{"__dlmopen", reads_return},
	{"dlsym", reads_return},
	{"__dlsym", reads_return},
	{"dlvsym", reads_return},
	{"__dlvsym", reads_return},
	{"_dl_*", is_dynamic_linker},
	{"__restore_rt", is_returned_to},
	{"__restore", is_returned_to},
	{"__kernel_sigreturn", is_returned_to},
	{"__kernel_rt_sigreturn", is_returned_to},
	{"__start_context", is_returned_to},
	{"_Unwind_RaiseException*", unwinds},
	{"_Unwind_Resume*", unwinds},
	{"_Unwind_ForcedUnwind*", unwinds},
	{"_Unwind_Backtrace*", unwinds},
	{"uw_*", unwinds},
	{"_init", runs_before},
	{"_fini", runs_before},
	{"_start", runs_before},
	{"__start", runs_before},
};

static bool name_fits(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return strncmp(pattern, name, n - 1) == 0;
	return strcmp(pattern, name) == 0;
}

bool image_is_pc_thunk(const struct image_facts *f, uint64_t addr)
{
	struct span code = image_code(f, addr);

	return !f->is_64 && code.n >= 4 && code.p[0] == 0x8b && (code.p[1] & 0xc7) == 0x04 &&
	       code.p[2] == 0x24 && code.p[3] == 0xc3;
}

/* InterpreterRuntime, SharedRuntime and others are entered from generated code, which leaves no other
 * mark of where it stopped than the return address. */
static bool is_entered_by_jvm(const char *name)
{
	static const char *const globs[] = {"_ZN[0-9]*Runtime[0-9]*", "_ZN14Deoptimization*", NULL};

	for (const char *const *glob = globs; *glob; glob++)
		if (fnmatch(*glob, name, 0) == 0)
			return true;
	return false;
}

const char *function_refusal(const struct image_facts *f, const struct image_function *fn)
{
	for (uint32_t i = 0; i < fn->n_names; i++) {
		const char *name = f->names.v[fn->name_i + i].name;

		for (size_t k = 0; k < sizeof(unsafe_names) / sizeof(unsafe_names[0]); k++)
			if (name[0] == unsafe_names[k].name[0] &&
				name_fits(unsafe_names[k].name, name))
				return unsafe_names[k].reason;
	}
	if (f->is_jvm && is_entered_by_jvm(image_function_name(f, fn)))
		return is_jvm_entry;
	if (f->is_v8 && name_fits("Builtins_*", image_function_name(f, fn)))
		return is_v8_code;
	if (fn->is_ifunc)
		return "an IFUNC resolver runs before the program does";
	if (fn->is_label)
		return "its symbol does not say that it is a function";
	return image_is_pc_thunk(f, fn->start) ? reads_return : NULL;
}

/* --- images ------------------------------------------------------------------------------ */

/* DT_SONAME, or the name of the file when there is none. */
static const char *own_name(const struct elf_file *elf, const char *path)
{
	uint64_t names, at;
	const char *name = NULL;

	if (elf_file_dynamic(elf, DT_STRTAB, &names) && elf_file_dynamic(elf, DT_SONAME, &at)) {
		struct span bytes = elf_file_bytes_at(elf, (struct iaddr){names});

		if (at < bytes.n && bytes.n - at > ELF_NAME_MAX)
			bytes.n = (size_t)at + ELF_NAME_MAX;
		name = span_cstr(bytes, at);
	}
	return name && *name ? name : path_base_name(path);
}

static bool is_called(const struct elf_file *elf, const char *path, const char *const *globs)
{
	const char *name = own_name(elf, path);

	for (; *globs; globs++)
		if (fnmatch(*globs, name, 0) == 0 || fnmatch(*globs, path_base_name(path), 0) == 0)
			return true;
	return false;
}

bool image_is_libc(const struct elf_file *elf, const char *path)
{
	static const char *const globs[] = {"libc.so.*", "libc-2.*.so", "libc.musl-*", NULL};

	return is_called(elf, path, globs);
}

static bool is_linker(const struct elf_file *elf, const char *path)
{
	static const char *const globs[] = {
		"ld-linux*.so*", "ld-2.*.so", "ld-musl-*", "ld.so*", "ld64.so*", NULL};

	return is_called(elf, path, globs);
}

bool image_is_go(const struct elf_file *elf)
{
	return elf_file_find_section(elf, ".gopclntab") ||
	       elf_file_find_section(elf, ".data.rel.ro.gopclntab") ||
	       elf_file_find_section(elf, ".note.go.buildid");
}

const char *image_refusal(const struct elf_file *elf, const char *path)
{
	static const char *const own_globs[] = {"libweir.so*", "libweir32.so*", NULL};

	if (is_linker(elf, path))
		return is_dynamic_linker;
	if (is_called(elf, path, own_globs))
		return "it is the hook library itself";
	if (image_is_go(elf))
		return "Go moves its stacks";
	return NULL;
}
