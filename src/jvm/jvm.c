/* SPDX-License-Identifier: MIT */
#include "jvm/jvm.h"

#include <string.h>

#include "jvm/jvm_internal.h"

#define COPIES_MAX	   256 /* bytes of structures that are copied to the stack */
#define JDK_WITHOUT_ZEROES 20  /* from here on compressed streams have no byte 0 */

const char *jvm_text(struct jvm *jvm, const char *text)
{
	return intern_get(&jvm->texts, intern_text(&jvm->texts, text));
}

int jvm_open(struct jvm **to, pid_t pid, const char *path, uint64_t bias, struct err *err)
{
	struct jvm *jvm = mem_zalloc(sizeof(*jvm));
	int rc = file_map_open(&jvm->file, path, err);

	jvm->methods = methods_new();
	if (!rc) {
		rc = elf_file_init(&jvm->elf, jvm->file.bytes, err);
		if (rc)
			err_prefix(err, "'%s'", path);
	}
	if (!rc && !jvm->elf.is_64)
		rc = err_set(err, ERR_UNSUPPORTED, "'%s': a JVM with 32 bits is not read", path);
	if (!rc && !vm_table_symbols_find(&jvm->symbols, &jvm->elf, bias))
		rc = err_set(err, ERR_UNSUPPORTED,
			"'%s': it does not export gHotSpotVMStructs and its siblings", path);
	if (rc) {
		jvm_free(jvm);
		return rc;
	}
	jvm->memory = (struct vm_memory){.pid = pid, .elf = &jvm->elf, .bias = bias};
	jvm_begin_batch(jvm);
	*to = jvm;
	return 0;
}

void jvm_free(struct jvm *jvm)
{
	if (!jvm)
		return;
	codes_release(jvm);
	methods_free(jvm->methods);
	vec_release(&jvm->codelets);
	vec_release(&jvm->exit_rules);
	vec_release(&jvm->place_levels);
	map_release(&jvm->place_levels.by_place);
	map_release(&jvm->exit_rules.by_place);
	map_release(&jvm->codelet_states);
	intern_release(&jvm->texts);
	elf_file_release(&jvm->elf);
	file_map_release(&jvm->file);
	free(jvm);
}

bool jvm_is_ready(const struct jvm *jvm)
{
	return jvm->is_ready;
}

/* What is copied to buffers of a fixed size fits. */
static bool has_sane_sizes(const struct vm_layout *l)
{
	return l->method_bytes <= COPIES_MAX && l->const_bytes <= COPIES_MAX &&
	       l->pool_bytes <= COPIES_MAX && l->block_bytes <= 64 && l->blob_bytes <= 512 &&
	       l->nmethod_bytes <= 768 && l->codelet_bytes <= 64 && l->pc_desc_bytes <= 64;
}

/* The tables do not change once they are there. */
static bool read_layout(struct jvm *jvm)
{
	int rc;

	if (jvm->has_layout || jvm->is_refused)
		return jvm->has_layout;
	rc = vm_layout_read(&jvm->layout, &jvm->memory, &jvm->symbols, &jvm->hindrance);
	if (!rc && !has_sane_sizes(&jvm->layout))
		rc = err_set(
			&jvm->hindrance, ERR_UNSUPPORTED, "the JVM's structures are too large");
	jvm->has_layout = !rc;
	jvm->is_refused = rc == ERR_UNSUPPORTED;
	return !rc;
}

static bool begin(struct jvm *jvm)
{
	uint32_t major = 0;

	if (!read_layout(jvm))
		return false;
	if (!vm_read_u32(&jvm->memory, jvm->layout.vm_major, &major) || !code_cache_begin(jvm) ||
		!interpreter_begin(jvm) ||
		!vm_read_u64(&jvm->memory, jvm->layout.call_stub_return, &jvm->call_stub_return) ||
		!jvm->call_stub_return) {
		err_set(&jvm->hindrance, ERR_CHANGED, "the JVM has not begun to run Java");
		return false;
	}
	jvm->least_byte = major >= JDK_WITHOUT_ZEROES;
	if (jvm->layout.continuation_return)
		vm_read_u64(
			&jvm->memory, jvm->layout.continuation_return, &jvm->continuation_return);
	return true;
}

void jvm_begin_batch(struct jvm *jvm)
{
	jvm->batch++;
	if (!jvm->is_ready) {
		jvm->is_ready = begin(jvm);
	} else if (!jvm->is_gone) {
		codes_compare(jvm);
		methods_compare(jvm);
	}
}

const char *jvm_hindrance(const struct jvm *jvm)
{
	return jvm->is_ready ? NULL : jvm->hindrance.text;
}

bool jvm_has_code(struct jvm *jvm, uint64_t pc)
{
	return pc >= jvm->code_low && pc < jvm->code_high && jvm->is_ready;
}
