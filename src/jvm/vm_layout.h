/* SPDX-License-Identifier: MIT */
/*
 * Where a JVM has what, from its own description of itself: the tables gHotSpotVMStructs,
 * gHotSpotVMTypes and gHotSpotVMIntConstants, which libjvm.so exports. Versions differ in what they
 * have; what is missing is 0.
 */
#ifndef WEIR_JVM_VM_LAYOUT_H
#define WEIR_JVM_VM_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "jvm/vm_memory.h"
#include "jvm/vm_tables.h"

struct vm_field {
	uint16_t offset;
	uint8_t width; /* bytes, 0 = this JVM does not have it */
	bool is_signed;
};

struct vm_value {
	int32_t v;
	bool is_known;
};

/* Addresses and sizes are 0 where they are not known. */
struct vm_layout {
	uint64_t heaps, low_bound, high_bound;
	struct vm_field heap_memory, heap_segmap, heap_log2_segment, space_low, space_high,
		array_len, array_data, block_used;
	uint32_t block_bytes;

	uint32_t blob_bytes, nmethod_bytes;
	struct vm_field blob_name, blob_kind, blob_size, blob_frame_complete, blob_frame_size,
		blob_data_offset, blob_code_begin, blob_code_end, blob_code_offset,
		blob_relocation_size, blob_mutable_data, blob_mutable_size;
	struct vm_value kind_nmethod;

	struct vm_field nm_method, nm_entry_bci, nm_compile_id, nm_orig_pc_offset, nm_stub_offset,
		nm_deopt_begin, nm_deopt_mh_begin, nm_deopt_offset, nm_deopt_mh_offset,
		nm_scopes_data_begin, nm_scopes_data_offset, nm_scopes_pcs_offset,
		nm_dependencies_offset, nm_metadata_offset, nm_immutable_data, nm_immutable_size;
	struct vm_value invocation_bci;

	uint64_t interpreter;
	uint32_t codelet_bytes;
	struct vm_field queue_buffer, queue_limit, queue_begin, queue_end, codelet_size,
		codelet_description;
	uint64_t call_stub_return;
	struct vm_value frame_sender_sp, frame_last_sp, frame_call_wrapper;
	uint32_t continuation_entry_bytes;
	uint64_t continuation_return;

	uint32_t pc_desc_bytes;
	struct vm_field pc_desc_pc, pc_desc_scope;

	struct vm_field bytes_data;
	uint32_t method_bytes;
	struct vm_field method_const, method_access;
	uint32_t const_bytes;
	struct vm_field const_pool, const_size, const_flags, const_code_size, const_name,
		const_signature;
	struct vm_value const_has_lines;
	uint32_t pool_bytes;
	struct vm_field pool_tags, pool_holder, pool_length, pool_source_file;
	struct vm_value tag_utf8;
	struct vm_field klass_constants, klass_name, klass_source_file, symbol_hash, symbol_length,
		symbol_body;
	uint64_t vm_major;

	uint64_t thread_list;
	struct vm_field list_length, list_threads, thread_obj, thread_os, os_thread_id;

	uint64_t flags, n_flags;
	uint32_t flag_bytes;
	struct vm_field flag_name, flag_addr;
	uint64_t oop_base, oop_shift, narrow_klass_base, narrow_klass_shift;
	struct vm_value mark_klass_shift;
	struct vm_field oop_klass;
	uint64_t z_globals;
	struct vm_field z_bad, z_shift, klass_super, klass_layout, klass_fields, klass_n_fields,
		klass_field_stream;

	uint64_t loaders;
	struct vm_field loader_next, loader_klasses, loader_object, klass_next;
};

/* Fills it in from the tables, whose variables are at `symbols`. ERR_CHANGED: there
 * is nothing yet, the library is only being loaded. What is needed and missing is a failure. */
int vm_layout_read(struct vm_layout *layout, const struct vm_memory *m,
	const struct vm_table_symbols *symbols, struct err *err);

/* A field of a copy of a structure, with its sign; 0 when the JVM, or the copy, does not have it. */
uint64_t vm_get(struct span copy, struct vm_field field);

#endif
