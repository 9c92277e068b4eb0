/* SPDX-License-Identifier: MIT */
#include "jvm/vm_layout.h"

#include <string.h>

#include "base/map.h"

/* What a row asks for. */
enum row_kind {
	ROW_FIELD, /* offset and width of a field */
	ROW_PLACE, /* address of a variable */
	ROW_SIZE,  /* bytes of a type */
	ROW_VALUE  /* a constant */
};
/* Not every JVM has what is optional; whoever uses that asks. */
enum row_need { NEEDED, OPTIONAL };

struct row {
	enum row_kind kind;
	enum row_need need;
	size_t member; /* offset in struct vm_layout */
	const char *name, *field;
};

#define FIELD(need, member, type, field)                                                           \
	{                                                                                          \
		ROW_FIELD, need, offsetof(struct vm_layout, member), type, field                   \
	}
#define PLACE(need, member, type, field)                                                           \
	{                                                                                          \
		ROW_PLACE, need, offsetof(struct vm_layout, member), type, field                   \
	}
#define SIZE(need, member, type)                                                                   \
	{                                                                                          \
		ROW_SIZE, need, offsetof(struct vm_layout, member), type, NULL                     \
	}
#define VALUE(need, member, constant)                                                              \
	{                                                                                          \
		ROW_VALUE, need, offsetof(struct vm_layout, member), constant, NULL                \
	}

/* Where versions name the same thing differently, several rows have the same member. */
static const struct row rows[] = {
	PLACE(NEEDED, heaps, "CodeCache", "_heaps"),
	PLACE(NEEDED, low_bound, "CodeCache", "_low_bound"),
	PLACE(NEEDED, high_bound, "CodeCache", "_high_bound"),
	FIELD(NEEDED, heap_memory, "CodeHeap", "_memory"),
	FIELD(NEEDED, heap_segmap, "CodeHeap", "_segmap"),
	FIELD(NEEDED, heap_log2_segment, "CodeHeap", "_log2_segment_size"),
	FIELD(NEEDED, space_low, "VirtualSpace", "_low"),
	FIELD(NEEDED, space_high, "VirtualSpace", "_high"),
	FIELD(NEEDED, array_len, "GrowableArrayBase", "_len"),
	FIELD(NEEDED, array_len, "GenericGrowableArray", "_len"),
	FIELD(NEEDED, array_data, "GrowableArray<int>", "_data"),
	FIELD(NEEDED, block_used, "HeapBlock::Header", "_used"),
	SIZE(NEEDED, block_bytes, "HeapBlock"),

	SIZE(NEEDED, blob_bytes, "CodeBlob"),
	SIZE(NEEDED, nmethod_bytes, "nmethod"),
	FIELD(NEEDED, blob_name, "CodeBlob", "_name"),
	FIELD(OPTIONAL, blob_kind, "CodeBlob", "_kind"),
	FIELD(NEEDED, blob_size, "CodeBlob", "_size"),
	FIELD(NEEDED, blob_frame_complete, "CodeBlob", "_frame_complete_offset"),
	FIELD(NEEDED, blob_frame_size, "CodeBlob", "_frame_size"),
	FIELD(NEEDED, blob_data_offset, "CodeBlob", "_data_offset"),
	FIELD(OPTIONAL, blob_code_begin, "CodeBlob", "_code_begin"),
	FIELD(OPTIONAL, blob_code_end, "CodeBlob", "_code_end"),
	FIELD(OPTIONAL, blob_code_offset, "CodeBlob", "_code_offset"),
	FIELD(OPTIONAL, blob_relocation_size, "CodeBlob", "_relocation_size"),
	FIELD(OPTIONAL, blob_mutable_data, "CodeBlob", "_mutable_data"),
	FIELD(OPTIONAL, blob_mutable_size, "CodeBlob", "_mutable_data_size"),
	VALUE(OPTIONAL, kind_nmethod, "CodeBlobKind::Nmethod"),

	FIELD(OPTIONAL, nm_method, "nmethod", "_method"),
	FIELD(OPTIONAL, nm_method, "CompiledMethod", "_method"),
	FIELD(NEEDED, nm_entry_bci, "nmethod", "_entry_bci"),
	FIELD(NEEDED, nm_compile_id, "nmethod", "_compile_id"),
	FIELD(NEEDED, nm_orig_pc_offset, "nmethod", "_orig_pc_offset"),
	FIELD(NEEDED, nm_stub_offset, "nmethod", "_stub_offset"),
	FIELD(OPTIONAL, nm_deopt_begin, "CompiledMethod", "_deopt_handler_begin"),
	FIELD(OPTIONAL, nm_deopt_mh_begin, "CompiledMethod", "_deopt_mh_handler_begin"),
	FIELD(OPTIONAL, nm_deopt_begin, "nmethod", "_deopt_handler_begin"),
	FIELD(OPTIONAL, nm_deopt_mh_begin, "nmethod", "_deopt_mh_handler_begin"),
	FIELD(OPTIONAL, nm_deopt_offset, "nmethod", "_deopt_handler_offset"),
	FIELD(OPTIONAL, nm_deopt_mh_offset, "nmethod", "_deopt_mh_handler_offset"),
	FIELD(OPTIONAL, nm_scopes_data_begin, "CompiledMethod", "_scopes_data_begin"),
	FIELD(OPTIONAL, nm_scopes_data_begin, "nmethod", "_scopes_data_begin"),
	FIELD(OPTIONAL, nm_scopes_data_offset, "nmethod", "_scopes_data_offset"),
	FIELD(NEEDED, nm_scopes_pcs_offset, "nmethod", "_scopes_pcs_offset"),
	FIELD(OPTIONAL, nm_dependencies_offset, "nmethod", "_dependencies_offset"),
	FIELD(OPTIONAL, nm_metadata_offset, "nmethod", "_metadata_offset"),
	FIELD(OPTIONAL, nm_immutable_data, "nmethod", "_immutable_data"),
	FIELD(OPTIONAL, nm_immutable_size, "nmethod", "_immutable_data_size"),
	VALUE(NEEDED, invocation_bci, "InvocationEntryBci"),

	PLACE(NEEDED, interpreter, "AbstractInterpreter", "_code"),
	FIELD(NEEDED, queue_buffer, "StubQueue", "_stub_buffer"),
	FIELD(NEEDED, queue_limit, "StubQueue", "_buffer_limit"),
	FIELD(NEEDED, queue_begin, "StubQueue", "_queue_begin"),
	FIELD(NEEDED, queue_end, "StubQueue", "_queue_end"),
	SIZE(NEEDED, codelet_bytes, "InterpreterCodelet"),
	FIELD(NEEDED, codelet_size, "InterpreterCodelet", "_size"),
	FIELD(NEEDED, codelet_description, "InterpreterCodelet", "_description"),
	PLACE(NEEDED, call_stub_return, "StubRoutines", "_call_stub_return_address"),
	VALUE(OPTIONAL, frame_sender_sp, "frame::interpreter_frame_sender_sp_offset"),
	VALUE(OPTIONAL, frame_last_sp, "frame::interpreter_frame_last_sp_offset"),
	VALUE(OPTIONAL, frame_call_wrapper, "frame::entry_frame_call_wrapper_offset"),
	SIZE(OPTIONAL, continuation_entry_bytes, "ContinuationEntry"),
	PLACE(OPTIONAL, continuation_return, "ContinuationEntry", "_return_pc"),

	SIZE(NEEDED, pc_desc_bytes, "PcDesc"),
	FIELD(NEEDED, pc_desc_pc, "PcDesc", "_pc_offset"),
	FIELD(NEEDED, pc_desc_scope, "PcDesc", "_scope_decode_offset"),

	FIELD(NEEDED, bytes_data, "Array<u1>", "_data"),
	SIZE(NEEDED, method_bytes, "Method"),
	FIELD(NEEDED, method_const, "Method", "_constMethod"),
	FIELD(NEEDED, method_access, "Method", "_access_flags"),
	SIZE(NEEDED, const_bytes, "ConstMethod"),
	FIELD(NEEDED, const_pool, "ConstMethod", "_constants"),
	FIELD(NEEDED, const_size, "ConstMethod", "_constMethod_size"),
	FIELD(OPTIONAL, const_flags, "ConstMethod", "_flags"),
	FIELD(OPTIONAL, const_flags, "ConstMethod", "_flags._flags"),
	FIELD(NEEDED, const_code_size, "ConstMethod", "_code_size"),
	FIELD(NEEDED, const_name, "ConstMethod", "_name_index"),
	FIELD(NEEDED, const_signature, "ConstMethod", "_signature_index"),
	VALUE(OPTIONAL, const_has_lines, "ConstMethod::_has_linenumber_table"),
	VALUE(OPTIONAL, const_has_lines, "ConstMethodFlags::_misc_has_linenumber_table"),
	SIZE(NEEDED, pool_bytes, "ConstantPool"),
	FIELD(NEEDED, pool_tags, "ConstantPool", "_tags"),
	FIELD(NEEDED, pool_holder, "ConstantPool", "_pool_holder"),
	FIELD(NEEDED, pool_length, "ConstantPool", "_length"),
	FIELD(OPTIONAL, pool_source_file, "ConstantPool", "_source_file_name_index"),
	VALUE(NEEDED, tag_utf8, "JVM_CONSTANT_Utf8"),
	FIELD(NEEDED, klass_constants, "InstanceKlass", "_constants"),
	FIELD(NEEDED, klass_name, "Klass", "_name"),
	FIELD(OPTIONAL, klass_source_file, "InstanceKlass", "_source_file_name_index"),
	FIELD(NEEDED, symbol_hash, "Symbol", "_hash_and_refcount"),
	FIELD(NEEDED, symbol_length, "Symbol", "_length"),
	FIELD(NEEDED, symbol_body, "Symbol", "_body"),
	PLACE(OPTIONAL, vm_major, "Abstract_VM_Version", "_vm_major_version"),

	PLACE(OPTIONAL, thread_list, "ThreadsSMRSupport", "_java_thread_list"),
	FIELD(OPTIONAL, list_length, "ThreadsList", "_length"),
	FIELD(OPTIONAL, list_threads, "ThreadsList", "_threads"),
	FIELD(OPTIONAL, thread_obj, "JavaThread", "_threadObj"),
	FIELD(OPTIONAL, thread_os, "JavaThread", "_osthread"),
	FIELD(OPTIONAL, thread_os, "Thread", "_osthread"),
	FIELD(OPTIONAL, os_thread_id, "OSThread", "_thread_id"),

	PLACE(OPTIONAL, flags, "JVMFlag", "flags"),
	PLACE(OPTIONAL, n_flags, "JVMFlag", "numFlags"),
	SIZE(OPTIONAL, flag_bytes, "JVMFlag"),
	FIELD(OPTIONAL, flag_name, "JVMFlag", "_name"),
	FIELD(OPTIONAL, flag_addr, "JVMFlag", "_addr"),
	PLACE(OPTIONAL, oop_base, "CompressedOops", "_base"),
	PLACE(OPTIONAL, oop_base, "CompressedOops", "_narrow_oop._base"),
	PLACE(OPTIONAL, oop_shift, "CompressedOops", "_shift"),
	PLACE(OPTIONAL, oop_shift, "CompressedOops", "_narrow_oop._shift"),
	PLACE(OPTIONAL, narrow_klass_base, "CompressedKlassPointers", "_base"),
	PLACE(OPTIONAL, narrow_klass_base, "CompressedKlassPointers", "_narrow_klass._base"),
	PLACE(OPTIONAL, narrow_klass_shift, "CompressedKlassPointers", "_shift"),
	PLACE(OPTIONAL, narrow_klass_shift, "CompressedKlassPointers", "_narrow_klass._shift"),
	VALUE(OPTIONAL, mark_klass_shift, "markWord::klass_shift"),
	FIELD(OPTIONAL, oop_klass, "oopDesc", "_metadata._klass"),
	PLACE(OPTIONAL, z_globals, "ZGlobalsForVMStructs", "_instance_p"),
	FIELD(OPTIONAL, z_bad, "ZGlobalsForVMStructs", "_ZPointerLoadBadMask"),
	FIELD(OPTIONAL, z_bad, "ZGlobalsForVMStructs", "_ZAddressBadMask"),
	FIELD(OPTIONAL, z_shift, "ZGlobalsForVMStructs", "_ZPointerLoadShift"),
	FIELD(OPTIONAL, klass_super, "Klass", "_super"),
	FIELD(OPTIONAL, klass_layout, "Klass", "_layout_helper"),
	FIELD(OPTIONAL, klass_fields, "InstanceKlass", "_fields"),
	FIELD(OPTIONAL, klass_n_fields, "InstanceKlass", "_java_fields_count"),
	FIELD(OPTIONAL, klass_field_stream, "InstanceKlass", "_fieldinfo_stream"),

	PLACE(OPTIONAL, loaders, "ClassLoaderDataGraph", "_head"),
	FIELD(OPTIONAL, loader_next, "ClassLoaderData", "_next"),
	FIELD(OPTIONAL, loader_klasses, "ClassLoaderData", "_klasses"),
	FIELD(OPTIONAL, loader_object, "ClassLoaderData", "_class_loader"),
	FIELD(OPTIONAL, klass_next, "Klass", "_next_link"),
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

struct reading {
	struct vm_layout *layout;
	struct intern types; /* names, and by their ids */
	VEC(uint64_t) bytes; /* their sizes */
};

static void take_type(void *ctx, const struct vm_entry *e)
{
	struct reading *r = ctx;
	uint32_t id = intern_text(&r->types, e->name);

	vec_ensure_zero(&r->bytes, id + 1);
	r->bytes.v[id] = e->value;
	for (size_t i = 0; i < N_ROWS; i++)
		if (rows[i].kind == ROW_SIZE && !strcmp(rows[i].name, e->name))
			*(uint32_t *)((char *)r->layout + rows[i].member) = (uint32_t)e->value;
}

/* Bytes of a field of this type; 1 where the type has no name, which arrays at the end have. */
static uint8_t width_of(struct reading *r, const char *type)
{
	size_t n = strlen(type);
	uint32_t id;

	if (!n)
		return 1;
	if (type[n - 1] == '*')
		return 8;
	id = intern_text(&r->types, type);
	vec_ensure_zero(&r->bytes, id + 1);
	return r->bytes.v[id] == 0 ? 1 : r->bytes.v[id] > 8 ? 8 : (uint8_t)r->bytes.v[id];
}

static bool is_signed_type(const char *type)
{
	return !strncmp(type, "int", 3) || !strcmp(type, "jint") || strstr(type, "signed char");
}

static void take_field(void *ctx, const struct vm_entry *e)
{
	struct reading *r = ctx;

	for (size_t i = 0; i < N_ROWS; i++) {
		void *member = (char *)r->layout + rows[i].member;

		if (rows[i].kind > ROW_PLACE || strcmp(rows[i].field, e->field) ||
			strcmp(rows[i].name, e->name))
			continue;
		if (rows[i].kind == ROW_PLACE && e->is_static)
			*(uint64_t *)member = e->value;
		if (rows[i].kind == ROW_FIELD && !e->is_static && e->value <= UINT16_MAX)
			*(struct vm_field *)member = (struct vm_field){
				(uint16_t)e->value, width_of(r, e->type), is_signed_type(e->type)};
	}
}

static void take_constant(void *ctx, const struct vm_entry *e)
{
	struct reading *r = ctx;

	for (size_t i = 0; i < N_ROWS; i++)
		if (rows[i].kind == ROW_VALUE && !strcmp(rows[i].name, e->name))
			*(struct vm_value *)((char *)r->layout + rows[i].member) =
				(struct vm_value){(int32_t)e->value, true};
}

static bool has_member(const struct vm_layout *layout, const struct row *row)
{
	const void *member = (const char *)layout + row->member;

	switch (row->kind) {
	case ROW_FIELD:
		return ((const struct vm_field *)member)->width;
	case ROW_PLACE:
		return *(const uint64_t *)member;
	case ROW_SIZE:
		return *(const uint32_t *)member;
	default:
		return ((const struct vm_value *)member)->is_known;
	}
}

static int require(const struct vm_layout *layout, struct err *err)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (rows[i].need == NEEDED && !has_member(layout, &rows[i]))
			return err_set(err, ERR_UNSUPPORTED, "this JVM does not tell %s%s%s",
				rows[i].name, rows[i].field ? "::" : "",
				rows[i].field ? rows[i].field : "");
	return 0;
}

int vm_layout_read(struct vm_layout *layout, const struct vm_memory *m,
	const struct vm_table_symbols *symbols, struct err *err)
{
	struct vm_layout found = {0};
	struct reading r = {.layout = &found};
	int rc = vm_tables_each_type(m, symbols, take_type, &r, err);

	if (!rc)
		rc = vm_tables_each_field(m, symbols, take_field, &r, err);
	if (!rc)
		rc = vm_tables_each_constant(m, symbols, take_constant, &r, err);
	if (!rc)
		rc = require(&found, err);
	if (!rc)
		*layout = found;
	intern_release(&r.types);
	vec_release(&r.bytes);
	return rc;
}

uint64_t vm_get(struct span copy, struct vm_field field)
{
	struct span bytes = span_sub(copy, field.offset, field.width);
	uint64_t v = 0;
	unsigned unused = 64 - 8 * field.width;

	if (!bytes.p || !bytes.n)
		return 0;
	memcpy(&v, bytes.p, bytes.n);
	return field.is_signed ? (uint64_t)((int64_t)(v << unused) >> unused) : v;
}
