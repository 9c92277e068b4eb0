/* SPDX-License-Identifier: MIT */
/* Any bytes as a block (the first byte picks the processor): something costs something, nothing
 * costs nothing, and no instruction costs more than the slowest of the tables. */
#include <stdlib.h>

#include "insert/cost/model.h"

#define CYCLES_MAX 400u /* of one instruction, with its load and store */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct cost_cpu *cpu;
	struct op_block block;
	struct span code;
	size_t n_cpus = 0, taken;
	uint32_t cost;

	if (!n)
		return 0;
	while (cost_cpu_at(n_cpus))
		n_cpus++;
	cpu = cost_cpu_at(data[0] % n_cpus);
	code = (struct span){data + 1, n - 1};
	cost = cost_block(cpu, code);
	taken = block_decode(&block, cpu, code);
	if (taken > code.n || block.n > COST_BLOCK_MAX || (block.n != 0) != (cost != 0))
		abort();
	if (cost / COST_UNIT > (uint64_t)n * CYCLES_MAX)
		abort();
	block_link(&block, cpu);
	for (unsigned i = 0; i < block.n; i++)
		if (block.ops[i].forward_from >= (int)block.n)
			abort();
	return 0;
}
