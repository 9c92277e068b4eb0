/* SPDX-License-Identifier: MIT */
/* Where the readers of symbol sources put what they find. */
#ifndef WEIR_SYMBOLS_SOURCE_SYMBOL_SINK_H
#define WEIR_SYMBOLS_SOURCE_SYMBOL_SINK_H

#include "symbols/symtab_build.h"

/* The candidate's name is borrowed from the source's bytes. */
struct symbol_sink {
	void (*add)(void *ctx, const struct candidate *c);
	void *ctx;
};

static inline void symbol_sink_add(const struct symbol_sink *sink, const struct candidate *c)
{
	sink->add(sink->ctx, c);
}

#endif
