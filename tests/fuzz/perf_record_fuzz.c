/* SPDX-License-Identifier: MIT */
/* Any bytes as one perf record; the first byte picks the attributes that it was written with. */
#include <stdlib.h>

#include "record/collected.h"

#define PLAIN_SAMPLE                                                                               \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
		PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define ALL_REGS 0xff01ffu

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every byte that is handed out can be read and lies where the header promises. */
static uint64_t read_all(const struct collected *c, size_t record_bytes)
{
	/* A sample has room for what is below its stack pointer. */
	size_t room = c->kind == COLLECTED_SAMPLE ? DEEP_BELOW_BYTES : 0;
	uint64_t sum = 0;

	if (c->bytes < sizeof(*c) + room || c->bytes > sizeof(*c) + room + record_bytes + 1)
		abort();
	if (c->kind == COLLECTED_SAMPLE) {
		for (uint32_t i = 0; i < c->sample.n_kernel; i++)
			sum += c->sample.kernel[i];
		for (size_t i = 0; i < DEEP_BELOW_BYTES; i++)
			c->sample.below[i] = (uint8_t)i;
		for (size_t i = 0; i < c->sample.stack.n; i++)
			sum += c->sample.stack.p[i];
		if (c->sample.n_kernel * sizeof(uint64_t) + c->sample.stack.n > record_bytes)
			abort();
		if (c->sample.has_regs != (c->sample.regs.known != 0))
			abort();
	} else if (c->kind == COLLECTED_MMAP) {
		sum += strlen(c->mmap.mapping.path);
		if (c->mmap.build_id_n > BUILD_ID_MAX)
			abort();
	} else if (c->kind == COLLECTED_COMM) {
		sum += strlen(c->comm.name);
	} else if (c->kind == COLLECTED_KERNEL && c->kernel.event >= KERNEL_N_EVENTS) {
		abort();
	}
	return sum;
}

/* The high half picks the event, the low one how its number is stored. */
static struct collected *decode_kernel(uint8_t pick, struct span record)
{
	enum kernel_event event = (enum kernel_event)((pick >> 4) % KERNEL_N_EVENTS);
	uint8_t bytes = pick & 1 ? 4 : 8;
	struct tracepoint t = {.fields = {{8, bytes, pick & 2}}};

	if (event == KERNEL_EVENT_MUNMAP)
		t = (struct tracepoint){.fields = {{16, bytes, pick & 2}, {24, 8, false}}};
	else if (event == KERNEL_EVENT_FAULT)
		t.fields[0].bytes = 0;
	return collected_decode_kernel(event, &t, record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct perf_event_attr attr = {.sample_type = PLAIN_SAMPLE, .sample_id_all = 1};
	struct collected *c;

	if (!n)
		return 0;
	if (data[0] & 1)
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (data[0] & 2) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = ALL_REGS;
	}
	if (data[0] & 4) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = 4096;
	}
	if (data[0] & 8)
		c = decode_kernel(data[0], (struct span){data + 1, n - 1});
	else
		c = collected_decode(&attr, (struct span){data + 1, n - 1});
	if (c)
		__asm__ volatile("" : : "r"(read_all(c, n - 1))); /* the reads are not left out */
	free(c);
	return 0;
}
