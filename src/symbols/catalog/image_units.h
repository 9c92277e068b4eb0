/* SPDX-License-Identifier: MIT */
/* Debug information into a catalog image: units are read by several threads, added in order. */
#ifndef WEIR_SYMBOLS_CATALOG_IMAGE_UNITS_H
#define WEIR_SYMBOLS_CATALOG_IMAGE_UNITS_H

#include "symbols/catalog/image_make.h"

/* Begins `source` and adds the units of `elf` that the recipe wants. What cannot be read is noted.
 */
void image_units_add(struct image_builder *b, const struct image_recipe *recipe,
	const struct elf_file *elf, const struct catalog_source *source);

#endif
