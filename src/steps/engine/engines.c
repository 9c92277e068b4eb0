/* SPDX-License-Identifier: MIT */
/* The table of engines. */
#include <string.h>

#include "steps/engine/engine.h"

const struct step_engine *const step_engines[] = {
	&step_engine_branch,
	&step_engine_ptrace,
	NULL,
};

const struct step_engine *step_engine_find(const char *name)
{
	for (size_t i = 0; step_engines[i]; i++)
		if (!strcmp(step_engines[i]->name, name))
			return step_engines[i];
	return NULL;
}
