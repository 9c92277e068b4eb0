/* SPDX-License-Identifier: MIT */
#include "base/word_list.h"

#include <string.h>

bool word_list_has(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (; words && *words; words += strcspn(words, " "), words += *words == ' ')
		if (!strncmp(words, word, n) && (!words[n] || words[n] == ' '))
			return true;
	return false;
}
