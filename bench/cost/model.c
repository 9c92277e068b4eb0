/* SPDX-License-Identifier: MIT */
/* The cycle model over blocks in hexadecimal, one a line on standard input: cycles, one a line.
 *   model CPU             prints the cycles
 *   model CPU REPEATS     prints blocks a second of CPU time, of that many rounds over all of them */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "insert/cost/cost.h"

#define BLOCK_BYTES 4096

struct block {
	uint8_t bytes[BLOCK_BYTES];
	size_t n;
};

static size_t bytes_of(const char *hex, uint8_t *to)
{
	size_t n = 0;
	unsigned byte;

	while (n < BLOCK_BYTES && sscanf(hex, "%2x", &byte) == 1) {
		to[n++] = (uint8_t)byte;
		hex += 2;
		if (!hex[0] || !hex[-1])
			break;
	}
	return n;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const struct cost_cpu *cpu = cost_cpu_find(argc > 1 ? argv[1] : NULL);
	unsigned repeats = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct block *blocks = NULL;
	size_t n = 0, cap = 0, line_cap = 0;
	char *line = NULL;
	uint64_t sum = 0;
	double start;

	if (!cpu)
		return 2;
	while (getline(&line, &line_cap, stdin) > 0) {
		if (n == cap) {
			cap = cap ? cap * 2 : 256;
			blocks = mem_realloc(blocks, cap * sizeof(*blocks));
		}
		blocks[n].n = bytes_of(line, blocks[n].bytes);
		n++;
	}
	if (!repeats) {
		for (size_t i = 0; i < n; i++)
			printf("%.2f\n",
				cost_block(cpu, (struct span){blocks[i].bytes, blocks[i].n}) /
					(double)COST_UNIT);
		return 0;
	}
	start = now();
	for (unsigned r = 0; r < repeats; r++)
		for (size_t i = 0; i < n; i++)
			sum += cost_block(cpu, (struct span){blocks[i].bytes, blocks[i].n});
	printf("%s %.0f %" PRIu64 "\n", cost_cpu_name(cpu), (double)n * repeats / (now() - start),
		sum);
	free(blocks);
	free(line);
	return 0;
}
