/* SPDX-License-Identifier: MIT */
#include "probe/points/kernel_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KALLSYMS_PATH "/proc/kallsyms"
#define LINE_BYTES    1024

/* "ffffffff81000000 T name [module]" */
bool kernel_symbol_address(const char *name, uint64_t *out)
{
	FILE *file = fopen(KALLSYMS_PATH, "re");
	char line[LINE_BYTES], symbol[LINE_BYTES];
	uint64_t address = 0, found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %*c %1023s", &address, symbol) == 2 &&
			!strcmp(symbol, name))
			found = address;
	if (file)
		fclose(file);
	if (found)
		*out = found;
	return found != 0;
}
