/* SPDX-License-Identifier: MIT */
#include "probe/print/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbols/symtab.h"

#define KALLSYMS_PATH "/proc/kallsyms"

struct kernel_names {
	const char *path;
	bool is_read;
	struct symtab *names; /* NULL: hidden */
	char *name, *module;  /* given out last, when the line has a module */
};

struct kernel_names *kernel_names_new(const char *path)
{
	struct kernel_names *kn = mem_zalloc(sizeof(*kn));

	kn->path = path ? path : KALLSYMS_PATH;
	return kn;
}

void kernel_names_free(struct kernel_names *kn)
{
	if (!kn)
		return;
	symtab_free(kn->names);
	free(kn->name);
	free(kn->module);
	free(kn);
}

/* "name [module]" in two texts. */
static void split_module(struct kernel_names *kn, struct printer_symbol *out)
{
	const char *mark = strstr(out->name, " [");

	if (!mark)
		return;
	free(kn->name);
	free(kn->module);
	kn->name = mem_strndup(out->name, (size_t)(mark - out->name));
	kn->module = mem_strdup(mark + 1);
	out->name = kn->name;
	out->module = kn->module;
}

bool kernel_names_find(struct kernel_names *kn, uint64_t address, struct printer_symbol *out)
{
	const struct symbol *symbol;

	if (!kn->is_read && symtab_new_kallsyms(&kn->names, kn->path, NULL) < 0)
		kn->names = NULL;
	kn->is_read = true;
	symbol = kn->names ? symtab_find(kn->names, address) : NULL;
	if (!symbol)
		return false;
	*out = (struct printer_symbol){
		.name = symbol->name, .offset = address - symbol->start, .module = "[kernel]"};
	split_module(kn, out);
	return true;
}
