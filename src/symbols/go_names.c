/* SPDX-License-Identifier: MIT */
#include "dwarf/go_table.h"
#include "symbols/elf_tables.h"

void go_names_read(const struct elf_file *elf, const struct symbol_sink *sink)
{
	struct go_table go;

	if (elf_file_has_functions(elf) || !go_table_init(&go, elf))
		return;
	for (uint64_t i = 0; i < go.n; i++) {
		struct go_function f;

		if (!go_table_function(&go, i, &f) || !f.name_bytes)
			continue;
		symbol_sink_add(sink, &(struct candidate){.name = f.name,
					      .name_bytes = f.name_bytes,
					      .source = SYMBOL_SOURCE_GOPCLNTAB,
					      .kind = CANDIDATE_KIND_FUNCTION,
					      .bind = CANDIDATE_BIND_LOCAL,
					      .start = f.start,
					      .size = f.size,
					      .room = f.size});
	}
	go_table_release(&go);
}
