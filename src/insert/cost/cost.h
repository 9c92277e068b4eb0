/* SPDX-License-Identifier: MIT */
/*
 * What a block of instructions costs on a processor: a table of instruction classes
 * (micro-operations, ports, latency) and a small out-of-order model over it. It answers what the
 * block costs when it runs again and again with its data in the first cache and its branches
 * predicted.
 */
#ifndef WEIR_INSERT_COST_COST_H
#define WEIR_INSERT_COST_COST_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct cost_cpu; /* a processor that can be modelled */

/* By name ("icelake", "skylake", "zen3", ...); NULL or "native": this machine's, or the nearest
 * known one. NULL when the name is not known. */
const struct cost_cpu *cost_cpu_find(const char *name);
const char *cost_cpu_name(const struct cost_cpu *cpu);
/* The i-th known processor, NULL behind the last: for help texts. */
const struct cost_cpu *cost_cpu_at(size_t i);

#define COST_UNIT 100u /* costs are in hundredths of a cycle */
/* The cost of the block whose instructions are `code`, in 1/COST_UNIT cycles. Bytes that are no
 * instruction end the block. A block without instructions costs 0. Linear in its length. */
uint32_t cost_block(const struct cost_cpu *cpu, struct span code);

#endif
