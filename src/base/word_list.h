/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BASE_WORD_LIST_H
#define WEIR_BASE_WORD_LIST_H

#include <stdbool.h>

/* Whether the word is one of those in a text, which are separated by blanks. NULL has none. */
bool word_list_has(const char *words, const char *word);

#endif
