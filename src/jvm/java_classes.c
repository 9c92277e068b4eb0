/* SPDX-License-Identifier: MIT */
/* The classes that are loaded: a list of loaders, each with a list of its classes. */
#include "classfile/java_name.h"
#include "jvm/jvm_internal.h"

#define LOADERS_MAX 1000000
#define CLASSES_MAX 4000000

/* Classes that are only being loaded, or unloaded, have no name to be read; arrays are no classes of
 * their own. */
static void tell(struct jvm *jvm, uint64_t klass, uint64_t loader,
	void (*each)(void *ctx, const char *name, uint64_t loader), void *ctx)
{
	struct buf symbol = {0}, name = {0};
	uint64_t addr;

	if (vm_read_u64(&jvm->memory, klass + jvm->layout.klass_name.offset, &addr) &&
		symbol_read(jvm, addr, JAVA_CLASS, &symbol)) {
		java_class_put(&name, buf_span(&symbol));
		each(ctx, buf_text(&name), loader);
	}
	buf_release(&symbol);
	buf_release(&name);
}

static bool each_of_loader(struct jvm *jvm, uint64_t loader,
	void (*each)(void *ctx, const char *name, uint64_t loader), void *ctx)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t klass;

	if (!vm_read_u64(&jvm->memory, loader + l->loader_klasses.offset, &klass))
		return false;
	for (unsigned i = 0; klass; i++) {
		if (i == CLASSES_MAX || !vm_is_pointer(klass))
			return false;
		tell(jvm, klass, loader, each, ctx);
		if (!vm_read_u64(&jvm->memory, klass + l->klass_next.offset, &klass))
			return false;
	}
	return true;
}

bool jvm_classes(
	struct jvm *jvm, void (*each)(void *ctx, const char *name, uint64_t loader), void *ctx)
{
	const struct vm_layout *l = &jvm->layout;
	uint64_t loader;

	if (!jvm->is_ready || !l->loaders || !l->loader_next.width || !l->loader_klasses.width ||
		!l->klass_next.width || !vm_read_u64(&jvm->memory, l->loaders, &loader))
		return false;
	for (unsigned i = 0; loader; i++) {
		if (i == LOADERS_MAX || !vm_is_pointer(loader) ||
			!each_of_loader(jvm, loader, each, ctx) ||
			!vm_read_u64(&jvm->memory, loader + l->loader_next.offset, &loader))
			return false;
	}
	return true;
}
