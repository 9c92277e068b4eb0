/* SPDX-License-Identifier: MIT */
/* Options that were parsed, as arguments again. */
#include "base/word_list.h"
#include "cmd/options.h"

#include <stdlib.h>

#include "base/mem.h"

static void put(struct option_values *out, const struct option_spec *o, char *text)
{
	vec_push(out, ((struct option_value){o, text}));
}

/* "--name=", or "-x" for one that has a letter only. */
static char *front_of(const struct option_spec *o)
{
	return o->name ? mem_printf("--%s=", o->name) : mem_printf("-%c", o->letter);
}

static void put_value(struct option_values *out, const struct option_spec *o, const void *value)
{
	char *front = front_of(o);

	switch (o->kind) {
	case OPTION_FLAG:
		put(out, o, o->name ? mem_printf("--%s", o->name) : mem_printf("-%c", o->letter));
		break;
	case OPTION_TEXT:
	case OPTION_TEXT_ONCE:
		put(out, o, mem_printf("%s%s", front, *(const char *const *)value));
		break;
	case OPTION_TEXTS:
		for (size_t i = 0; i < ((const struct option_texts *)value)->n; i++)
			put(out, o,
				mem_printf(
					"%s%s", front, ((const struct option_texts *)value)->v[i]));
		break;
	case OPTION_NUMBER:
		put(out, o, mem_printf("%s%lu", front, *(const uint64_t *)value));
		break;
	case OPTION_SECONDS:
	case OPTION_DECIMAL:
		put(out, o, mem_printf("%s%.17g", front, *(const double *)value));
		break;
	}
	free(front);
}

/* Several names of one value are one option: the last row that was given has it. */
static bool is_given_again(const struct command *command, uint64_t given, size_t i)
{
	for (size_t j = i + 1; given >> j; j++)
		if ((given >> j & 1) && command->options[j].offset == command->options[i].offset)
			return true;
	return false;
}

void options_again(const struct command *command, const void *from, uint64_t given,
	const char *without, struct option_values *out)
{
	for (size_t i = 0; given >> i; i++) {
		const struct option_spec *o = &command->options[i];

		if ((given >> i & 1) && !(o->name && word_list_has(without, o->name)) &&
			!is_given_again(command, given, i))
			put_value(out, o, (const char *)from + o->offset);
	}
}
