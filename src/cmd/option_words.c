/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cmd/options.h"

bool option_words_have(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (; words && *words; words += strcspn(words, " "), words += *words == ' ')
		if (!strncmp(words, word, n) && (!words[n] || words[n] == ' '))
			return true;
	return false;
}
