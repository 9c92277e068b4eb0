/* SPDX-License-Identifier: MIT */
/* Functions that matter to the hooks whatever the user wished for. */
#include <elf.h>
#include <string.h>

#include "base/path_name.h"
#include "record/hooks/plan_internal.h"

/* --- allocations ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum hook_amount amount;
} allocations[] = {
	{"malloc", HOOK_AMOUNT_ARG0},
	{"calloc", HOOK_AMOUNT_ARG0_ARG1},
	{"realloc", HOOK_AMOUNT_ARG1},
	{"reallocarray", HOOK_AMOUNT_ARG1_ARG2},
	{"memalign", HOOK_AMOUNT_ARG1},
	{"aligned_alloc", HOOK_AMOUNT_ARG1},
	{"posix_memalign", HOOK_AMOUNT_ARG2},
	{"valloc", HOOK_AMOUNT_ARG0},
	{"pvalloc", HOOK_AMOUNT_ARG0},
};

/* operator new and new[], with "m" (64-bit) or "j" for the size. */
static bool is_operator_new(const char *name)
{
	static const char *const rest[] = {
		"", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"};

	if ((strncmp(name, "_Znw", 4) && strncmp(name, "_Zna", 4)) ||
		(name[4] != 'm' && name[4] != 'j'))
		return false;
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		if (!strcmp(name + 5, rest[i]))
			return true;
	return false;
}

bool allocation_amount(const char *name, uint8_t *detail)
{
	if (!strchr("mcrapv_", name[0]))
		return false;
	for (size_t i = 0; i < sizeof(allocations) / sizeof(allocations[0]); i++) {
		if (strcmp(allocations[i].name, name) != 0)
			continue;
		*detail = (uint8_t)allocations[i].amount;
		return true;
	}
	if (!is_operator_new(name))
		return false;
	*detail = HOOK_AMOUNT_ARG0;
	return true;
}

static void note_allocation(void *ctx, const struct elf_symbol *s)
{
	uint8_t detail;

	if (s->bind != STB_LOCAL && allocation_amount(s->name, &detail))
		*(bool *)ctx = true;
}

bool image_defines_allocations(const struct elf_file *elf)
{
	bool found = false;

	elf_file_each_function(elf, true, note_allocation, &found);
	return found;
}

/* --- libc -------------------------------------------------------------------------------- */

static void add_extra(struct extras *e, const struct image_facts *f, struct extra extra)
{
	if (extra.function_i == NO_FUNCTION && !extra.stub)
		return;
	for (size_t i = 0; i < e->all.n; i++)
		if (e->all.v[i].function_i == extra.function_i && e->all.v[i].stub == extra.stub)
			return;
	if (extra.function_i != NO_FUNCTION && f->functions.v[extra.function_i].is_ifunc)
		return;
	vec_push(&e->all, extra);
}

/* Whether the function calls the other one, or jumps to it. */
static bool leads_to(const struct image_facts *f, uint32_t from_i, uint32_t to_i)
{
	const struct image_function *from = &f->functions.v[from_i], *to = &f->functions.v[to_i];
	struct x86_insn insn;

	for (uint64_t at = from->start; at < from->end && image_decode(f, at, &insn);
		at += insn.length)
		if (insn.has_target && insn.target == to->start)
			return true;
	return false;
}

void extras_find_libc(struct extras *e, const struct image_facts *f)
{
	static const struct {
		const char *name;
		enum hook_own own;
	} noted[] = {
		{"makecontext", HOOK_OWN_MAKECONTEXT},
		{"prctl", HOOK_OWN_PRCTL},
		{"syscall", HOOK_OWN_SYSCALL},
		{"mprotect", HOOK_OWN_MPROTECT},
		{"pkey_mprotect", HOOK_OWN_MPROTECT},
	};
	uint32_t process = image_function_named(f, "sigprocmask");
	uint32_t thread = image_function_named(f, "pthread_sigmask");

	for (size_t i = 0; i < sizeof(noted) / sizeof(noted[0]); i++)
		add_extra(e, f,
			(struct extra){image_function_named(f, noted[i].name), 0, HOOK_ACTION_NOTE,
				noted[i].own});
	add_extra(e, f, (struct extra){thread, 0, HOOK_ACTION_REPLACE, HOOK_OWN_SIGMASK});
	/* The two differ in how they report errors: where one is made of the other, only the inner
	 * one is replaced. */
	if (process != NO_FUNCTION && (thread == NO_FUNCTION || !leads_to(f, process, thread)))
		add_extra(e, f, (struct extra){process, 0, HOOK_ACTION_REPLACE, HOOK_OWN_SIGMASK});
	/* signal(3) and its relatives are made of it. */
	add_extra(e, f,
		(struct extra){image_function_named(f, "sigaction"), 0, HOOK_ACTION_REPLACE,
			HOOK_OWN_SIGACTION});
}

/* In glibc the two functions are one, an empty one. So the stubs by which this image calls them are
 * replaced. */
void extras_find_cyg(struct extras *e, const struct image_facts *f)
{
	for (size_t i = 0; i < f->callee_of.cap; i++) {
		const struct map_slot *slot = &f->callee_of.slots[i];

		if (!slot->used || slot->value == CALLEE_MCOUNT)
			continue;
		add_extra(e, f,
			(struct extra){NO_FUNCTION, slot->key, HOOK_ACTION_REPLACE,
				slot->value == CALLEE_CYG_ENTER ? HOOK_OWN_CYG_ENTER
								: HOOK_OWN_CYG_EXIT});
	}
}

/* --- V8 ---------------------------------------------------------------------------------- */

/* v8::internal::StackFrame::SetReturnAddressLocationResolver(unsigned long (*)(unsigned long)) */
#define V8_SETTER "_ZN2v88internal10StackFrame32SetReturnAddressLocationResolverEPF"

static bool is_v8_setter(const char *name)
{
	return name[0] == '_' && (!strcmp(name, V8_SETTER "mmE") || !strcmp(name, V8_SETTER "jjE"));
}

static void note_v8_setter(void *ctx, const struct elf_symbol *s)
{
	if (is_v8_setter(s->name))
		*(bool *)ctx = true;
}

bool image_defines_v8(const struct elf_file *elf)
{
	bool found = false;

	elf_file_each_function(elf, true, note_v8_setter, &found);
	return found;
}

/* It may be called at any time only if it does no more than to store: a few plain instructions. */
static bool only_stores(const struct image_facts *f, const struct image_function *fn)
{
	struct x86_insn insn = {.flow = X86_FLOW_STOP};
	uint64_t at = fn->start;

	for (int i = 0; i < 8 && at < fn->end && image_decode(f, at, &insn); i++) {
		if (insn.flow != X86_FLOW_NEXT)
			break;
		at += insn.length;
	}
	return insn.flow == X86_FLOW_RETURN;
}

bool extras_find_v8(struct extras *e, const struct image_facts *f)
{
	uint32_t setter = image_function_named(f, f->is_64 ? V8_SETTER "mmE" : V8_SETTER "jjE");

	if (setter == NO_FUNCTION || !only_stores(f, &f->functions.v[setter]))
		return !f->is_v8;
	add_extra(e, f, (struct extra){setter, 0, HOOK_ACTION_TELL, HOOK_OWN_RETURN_LOCATION});
	return true;
}

/* --- JVMs -------------------------------------------------------------------------------- */

bool image_is_jvm(const struct elf_file *elf, const char *path)
{
	return elf->is_64 && path_library_stem(path_base_name(path)) == strlen("libjvm") &&
	       strncmp(path_base_name(path), "libjvm", strlen("libjvm")) == 0;
}

/* The library reads the table in the process, when its entries are as heap_bytes.c has them. */
void extras_find_heap(struct extras *e, const struct image_facts *f)
{
	static const struct {
		const char *name;
		enum hook_own own;
	} rows[] = {{"gHotSpotVMStructEntryArrayStride", HOOK_OWN_VM_STRIDE},
		{"gHotSpotVMStructEntryOffsetOffset", HOOK_OWN_VM_OFFSET},
		{"gHotSpotVMStructs", HOOK_OWN_VM_STRUCTS}};
	struct elf_symbol symbol;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (elf_file_find_object(f->elf, rows[i].name, &symbol) &&
			symbol.size == sizeof(uint64_t))
			add_extra(e, f,
				(struct extra){NO_FUNCTION, symbol.addr.v, HOOK_ACTION_VARIABLE,
					rows[i].own});
}

void extras_find_jvm(struct extras *e, const struct image_facts *f)
{
	add_extra(e, f,
		(struct extra){image_function_named(f, "JNI_CreateJavaVM"), 0, HOOK_ACTION_NOTE,
			HOOK_OWN_CREATE_JVM});
	add_extra(e, f,
		(struct extra){image_function_named(f, "JNI_GetCreatedJavaVMs"), 0,
			HOOK_ACTION_TELL, HOOK_OWN_FIND_JVMS});
}
