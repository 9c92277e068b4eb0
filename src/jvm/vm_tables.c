/* SPDX-License-Identifier: MIT */
#include "jvm/vm_tables.h"

#include <string.h>

#define ENTRY_BYTES_MAX 256
#define ENTRIES_MAX	16384

static const char *const names[VM_N_TABLE_SYMBOLS] = {
	[VM_STRUCTS] = "gHotSpotVMStructs",
	[VM_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[VM_STRUCT_TYPE_NAME] = "gHotSpotVMStructEntryTypeNameOffset",
	[VM_STRUCT_FIELD_NAME] = "gHotSpotVMStructEntryFieldNameOffset",
	[VM_STRUCT_TYPE_STRING] = "gHotSpotVMStructEntryTypeStringOffset",
	[VM_STRUCT_IS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[VM_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[VM_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[VM_TYPES] = "gHotSpotVMTypes",
	[VM_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[VM_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[VM_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[VM_INTS] = "gHotSpotVMIntConstants",
	[VM_INT_STRIDE] = "gHotSpotVMIntConstantEntryArrayStride",
	[VM_INT_NAME] = "gHotSpotVMIntConstantEntryNameOffset",
	[VM_INT_VALUE] = "gHotSpotVMIntConstantEntryValueOffset",
	[VM_LONGS] = "gHotSpotVMLongConstants",
	[VM_LONG_STRIDE] = "gHotSpotVMLongConstantEntryArrayStride",
	[VM_LONG_NAME] = "gHotSpotVMLongConstantEntryNameOffset",
	[VM_LONG_VALUE] = "gHotSpotVMLongConstantEntryValueOffset",
};

struct search {
	struct vm_table_symbols *symbols;
	uint64_t bias;
};

static void take_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct search *s = ctx;

	if (strncmp(symbol->name, "gHotSpotVM", 10))
		return;
	for (size_t i = 0; i < VM_N_TABLE_SYMBOLS; i++)
		if (!strcmp(symbol->name, names[i]))
			s->symbols->addr[i] = symbol->addr.v + s->bias;
}

bool vm_table_symbols_find(
	struct vm_table_symbols *symbols, const struct elf_file *elf, uint64_t bias)
{
	struct search s = {symbols, bias};

	memset(symbols, 0, sizeof(*symbols));
	elf_file_each_object(elf, true, take_symbol, &s);
	for (size_t i = 0; i < VM_N_TABLE_SYMBOLS; i++)
		if (!symbols->addr[i])
			return false;
	return true;
}

/* A table with the places of what an entry has. */
struct table {
	const struct vm_memory *m;
	uint64_t array;
	uint64_t stride;
	uint64_t at[6]; /* offsets in an entry */
};

/* `columns`: variables with the offsets, each of 8 bytes at most in the entry. */
static int table_open(struct table *t, const struct vm_memory *m,
	const struct vm_table_symbols *symbols, enum vm_table_symbol array,
	const enum vm_table_symbol *columns, size_t n, struct err *err)
{
	*t = (struct table){.m = m};
	if (!vm_read_u64(m, symbols->addr[array], &t->array) ||
		!vm_read_u64(m, symbols->addr[array + 1], &t->stride))
		return err_set(err, ERR_CHANGED, "%s cannot be read", names[array]);
	if (!vm_is_pointer(t->array) || !t->stride)
		return err_set(err, ERR_CHANGED, "%s is not set", names[array]);
	if (t->stride > ENTRY_BYTES_MAX)
		return err_set(err, ERR_FORMAT, "%s has entries of %llu bytes", names[array],
			(unsigned long long)t->stride);
	for (size_t i = 0; i < n; i++) {
		if (!vm_read_u64(m, symbols->addr[columns[i]], &t->at[i]))
			return err_set(err, ERR_CHANGED, "%s cannot be read", names[columns[i]]);
		if (t->at[i] > t->stride || t->stride - t->at[i] < 8)
			return err_set(
				err, ERR_FORMAT, "%s does not lie in an entry", names[columns[i]]);
	}
	return 0;
}

static uint64_t column(const struct table *t, const uint8_t *entry, size_t i)
{
	uint64_t v;

	memcpy(&v, entry + t->at[i], sizeof(v));
	return v;
}

/* Calls `each` for entries up to the one that it calls the last. */
static int table_each(const struct table *t, int (*each)(void *ctx, const uint8_t *entry),
	void *ctx, struct err *err)
{
	uint8_t entry[ENTRY_BYTES_MAX];

	for (size_t i = 0; i < ENTRIES_MAX; i++) {
		int rc;

		if (!vm_read(t->m, t->array + i * t->stride, entry, t->stride))
			return err_set(err, ERR_CHANGED, "entry %zu cannot be read", i);
		rc = each(ctx, entry);
		if (rc)
			return rc < 0 ? err_set(err, rc, "entry %zu has a name that cannot be read",
						i)
				      : 0;
	}
	return err_set(err, ERR_FORMAT, "more than %d entries", ENTRIES_MAX);
}

struct walk {
	struct table t;
	void (*each)(void *ctx, const struct vm_entry *entry);
	void *ctx;
};

static bool text(const struct walk *w, const uint8_t *entry, size_t i, char to[VM_NAME_BYTES_MAX])
{
	return vm_read_text(w->t.m, column(&w->t, entry, i), to, VM_NAME_BYTES_MAX);
}

static int field_entry(void *ctx, const uint8_t *entry)
{
	struct walk *w = ctx;
	char name[VM_NAME_BYTES_MAX], field[VM_NAME_BYTES_MAX], type[VM_NAME_BYTES_MAX] = "";
	struct vm_entry e = {.name = name, .field = field, .type = type};

	if (!column(&w->t, entry, 0))
		return 1;
	if (!text(w, entry, 0, name) || !text(w, entry, 1, field))
		return ERR_CHANGED;
	if (column(&w->t, entry, 2) && !text(w, entry, 2, type))
		return ERR_CHANGED;
	e.is_static = (uint32_t)column(&w->t, entry, 3);
	e.value = column(&w->t, entry, e.is_static ? 5 : 4);
	w->each(w->ctx, &e);
	return 0;
}

int vm_tables_each_field(const struct vm_memory *m, const struct vm_table_symbols *symbols,
	void (*each)(void *ctx, const struct vm_entry *entry), void *ctx, struct err *err)
{
	static const enum vm_table_symbol columns[] = {VM_STRUCT_TYPE_NAME, VM_STRUCT_FIELD_NAME,
		VM_STRUCT_TYPE_STRING, VM_STRUCT_IS_STATIC, VM_STRUCT_OFFSET, VM_STRUCT_ADDRESS};
	struct walk w = {.each = each, .ctx = ctx};
	int rc = table_open(&w.t, m, symbols, VM_STRUCTS, columns, 6, err);

	return rc ? rc : table_each(&w.t, field_entry, &w, err);
}

static int named_entry(void *ctx, const uint8_t *entry)
{
	struct walk *w = ctx;
	char name[VM_NAME_BYTES_MAX];
	struct vm_entry e = {.name = name, .value = column(&w->t, entry, 1)};

	if (!column(&w->t, entry, 0))
		return 1;
	if (!text(w, entry, 0, name))
		return ERR_CHANGED;
	w->each(w->ctx, &e);
	return 0;
}

int vm_tables_each_type(const struct vm_memory *m, const struct vm_table_symbols *symbols,
	void (*each)(void *ctx, const struct vm_entry *entry), void *ctx, struct err *err)
{
	static const enum vm_table_symbol columns[] = {VM_TYPE_NAME, VM_TYPE_SIZE};
	struct walk w = {.each = each, .ctx = ctx};
	int rc = table_open(&w.t, m, symbols, VM_TYPES, columns, 2, err);

	return rc ? rc : table_each(&w.t, named_entry, &w, err);
}

int vm_tables_each_constant(const struct vm_memory *m, const struct vm_table_symbols *symbols,
	void (*each)(void *ctx, const struct vm_entry *entry), void *ctx, struct err *err)
{
	static const enum vm_table_symbol ints[] = {VM_INT_NAME, VM_INT_VALUE},
					  longs[] = {VM_LONG_NAME, VM_LONG_VALUE};
	struct walk w = {.each = each, .ctx = ctx};
	int rc = table_open(&w.t, m, symbols, VM_INTS, ints, 2, err);

	if (!rc)
		rc = table_each(&w.t, named_entry, &w, err);
	if (!rc)
		rc = table_open(&w.t, m, symbols, VM_LONGS, longs, 2, err);
	return rc ? rc : table_each(&w.t, named_entry, &w, err);
}
