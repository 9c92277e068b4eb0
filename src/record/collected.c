/* SPDX-License-Identifier: MIT */
/*
 * Decoding of perf records (perf_event_open(2)). The kernel wrote them, but they are read through
 * a cursor all the same. All events of a set share one sample_type, but for those of the
 * kernel (kernel_sources.h).
 */
#include "record/collected.h"

#include <asm/perf_regs.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define KERNEL_FRAMES_MAX 512

/* In the order in which a sample holds them: ascending bits of sample_regs_user. */
static const struct {
	uint8_t perf_bit;
	enum cpu_reg reg;
} register_order[] = {
	{PERF_REG_X86_AX, CPU_REG_RAX},
	{PERF_REG_X86_BX, CPU_REG_RBX},
	{PERF_REG_X86_CX, CPU_REG_RCX},
	{PERF_REG_X86_DX, CPU_REG_RDX},
	{PERF_REG_X86_SI, CPU_REG_RSI},
	{PERF_REG_X86_DI, CPU_REG_RDI},
	{PERF_REG_X86_BP, CPU_REG_RBP},
	{PERF_REG_X86_SP, CPU_REG_RSP},
	{PERF_REG_X86_IP, CPU_REG_RIP},
	{PERF_REG_X86_R8, CPU_REG_R8},
	{PERF_REG_X86_R9, CPU_REG_R9},
	{PERF_REG_X86_R10, CPU_REG_R10},
	{PERF_REG_X86_R11, CPU_REG_R11},
	{PERF_REG_X86_R12, CPU_REG_R12},
	{PERF_REG_X86_R13, CPU_REG_R13},
	{PERF_REG_X86_R14, CPU_REG_R14},
	{PERF_REG_X86_R15, CPU_REG_R15},
};

static void take_registers(
	struct cursor *c, const struct perf_event_attr *attr, struct collected_sample *s)
{
	uint64_t abi = cursor_u64(c);

	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	s->regs.is_64 = abi == PERF_SAMPLE_REGS_ABI_64;
	for (size_t i = 0; i < sizeof(register_order) / sizeof(register_order[0]); i++) {
		enum cpu_reg reg = register_order[i].reg;

		if (!(attr->sample_regs_user >> register_order[i].perf_bit & 1))
			continue;
		s->regs.r[reg] = cursor_u64(c);
		if (!s->regs.is_64 && reg >= CPU_REG_R8 && reg <= CPU_REG_R15)
			continue;
		s->regs.known |= 1u << reg;
	}
	s->has_regs = !c->failed;
}

/* The call chain holds kernel addresses only (exclude_callchain_user), after a context mark. */
static struct span take_chain(struct cursor *c)
{
	uint64_t n = cursor_u64(c);

	if (n > cursor_left(c) / sizeof(uint64_t)) {
		c->failed = true;
		return (struct span){NULL, 0};
	}
	return cursor_bytes(c, n * sizeof(uint64_t));
}

static size_t copy_kernel_frames(uint64_t *to, struct span chain)
{
	struct cursor c = cursor_of(chain);
	size_t n = 0;

	while (cursor_left(&c) >= sizeof(uint64_t) && n < KERNEL_FRAMES_MAX) {
		uint64_t ip = cursor_u64(&c);

		if (ip < (uint64_t)PERF_CONTEXT_MAX) /* above are marks, not addresses */
			to[n++] = ip;
	}
	return n;
}

/* TID, TIME, CPU. */
static void take_moment(struct cursor *c, struct collected *r)
{
	r->pid = cursor_u32(c);
	r->tid = cursor_u32(c);
	r->time = cursor_u64(c);
	r->cpu = cursor_u32(c);
	cursor_u32(c);
}

static struct collected *decode_sample(
	const struct perf_event_attr *attr, const struct perf_event_header *h, struct cursor c)
{
	struct collected r = {.kind = COLLECTED_SAMPLE}, *out;
	struct collected_sample *s = &r.sample;
	struct span chain = {NULL, 0}, stack = {NULL, 0};
	uint64_t size, used = 0;
	uint8_t *tail;

	s->in_kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	s->id = cursor_u64(&c);
	s->ip = cursor_u64(&c);
	take_moment(&c, &r);
	s->period = cursor_u64(&c);
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN)
		chain = take_chain(&c);
	if (attr->sample_type & PERF_SAMPLE_REGS_USER)
		take_registers(&c, attr, s);
	if (attr->sample_type & PERF_SAMPLE_STACK_USER) {
		size = cursor_u64(&c);
		stack = cursor_bytes(&c, size);
		used = size ? cursor_u64(&c) : 0;
	}
	if (c.failed || used > stack.n)
		return NULL;
	r.bytes = sizeof(*out) + chain.n + DEEP_BELOW_BYTES + used;
	out = mem_alloc(r.bytes);
	tail = (uint8_t *)(out + 1);
	s->kernel = (uint64_t *)(void *)tail;
	s->n_kernel = (uint32_t)copy_kernel_frames((uint64_t *)(void *)tail, chain);
	s->below = tail + chain.n;
	s->stack = (struct span){s->below + DEEP_BELOW_BYTES, (size_t)used};
	if (used)
		memcpy(s->below + DEEP_BELOW_BYTES, stack.p, used);
	*out = r;
	return out;
}

/* A record with a text behind its fixed part, or NULL, when it was cut short. */
static struct collected *new_with_text(
	const struct collected *r, const char *text, const struct cursor *c)
{
	size_t n = c->failed ? 0 : strlen(text) + 1;
	struct collected *out;

	if (!n)
		return NULL;
	out = mem_alloc(sizeof(*out) + n);
	*out = *r;
	out->bytes = sizeof(*out) + n;
	memcpy(out + 1, text, n);
	if (r->kind == COLLECTED_MMAP)
		out->mmap.mapping.path = (const char *)(out + 1);
	else
		out->comm.name = (const char *)(out + 1);
	return out;
}

static struct collected *decode_mmap(const struct perf_event_header *h, struct cursor c)
{
	struct collected r = {.kind = COLLECTED_MMAP};
	struct collected_mmap *m = &r.mmap;

	r.pid = cursor_u32(&c);
	r.tid = cursor_u32(&c);
	m->mapping.start = cursor_u64(&c);
	m->mapping.end = m->mapping.start + cursor_u64(&c);
	m->mapping.offset = cursor_u64(&c);
	if (h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		m->build_id_n = cursor_u8(&c);
		cursor_skip(&c, 3);
		cursor_take(&c, m->build_id, 20);
		if (m->build_id_n > 20)
			m->build_id_n = 20;
	} else {
		m->mapping.major = cursor_u32(&c);
		m->mapping.minor = cursor_u32(&c);
		m->mapping.inode = cursor_u64(&c);
		cursor_u64(&c); /* inode generation */
	}
	m->mapping.prot = cursor_u32(&c);
	cursor_u32(&c); /* flags */
	return new_with_text(&r, cursor_cstr(&c), &c);
}

static struct collected *decode_comm(const struct perf_event_header *h, struct cursor c)
{
	struct collected r = {.kind = COLLECTED_COMM};

	r.pid = cursor_u32(&c);
	r.tid = cursor_u32(&c);
	r.comm.is_exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
	return new_with_text(&r, cursor_cstr(&c), &c);
}

static struct collected *new_plain(enum collected_kind kind)
{
	struct collected *out = mem_zalloc(sizeof(*out));

	out->kind = kind;
	out->bytes = sizeof(*out);
	return out;
}

static struct collected *keep_if_whole(struct collected *out, const struct cursor *c)
{
	if (!c->failed)
		return out;
	free(out);
	return NULL;
}

static struct collected *decode_task(const struct perf_event_header *h, struct cursor c)
{
	struct collected *out =
		new_plain(h->type == PERF_RECORD_FORK ? COLLECTED_FORK : COLLECTED_EXIT);

	out->pid = cursor_u32(&c);
	out->fork.parent_pid = cursor_u32(&c);
	out->tid = cursor_u32(&c);
	out->fork.parent_tid = cursor_u32(&c);
	cursor_u64(&c); /* time */
	return keep_if_whole(out, &c);
}

static struct collected *decode_switch(const struct perf_event_header *h)
{
	struct collected *out = new_plain(COLLECTED_SWITCH);

	out->sw.is_out = h->misc & PERF_RECORD_MISC_SWITCH_OUT;
	out->sw.is_preempted = h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	return out;
}

static struct collected *decode_lost(const struct perf_event_header *h, struct cursor c)
{
	struct collected *out = new_plain(COLLECTED_LOST);

	if (h->type == PERF_RECORD_LOST)
		cursor_u64(&c); /* id */
	out->lost.n = cursor_u64(&c);
	return keep_if_whole(out, &c);
}

/*
 * sample_id_all: every record but a sample ends with {pid, tid, time, cpu, res, identifier}, for
 * TID | TIME | CPU | IDENTIFIER.
 */
#define SAMPLE_ID_BYTES (8 + 8 + 8 + 8)

static void take_sample_id(struct collected *out, struct span record)
{
	struct cursor c = cursor_of(span_sub(record, record.n - SAMPLE_ID_BYTES, SAMPLE_ID_BYTES));
	uint32_t pid = out->pid, tid = out->tid;

	take_moment(&c, out);
	/* These say of which task they are, which need not be the one that ran. */
	if (out->kind == COLLECTED_MMAP || out->kind == COLLECTED_COMM ||
		out->kind == COLLECTED_FORK || out->kind == COLLECTED_EXIT) {
		out->pid = pid;
		out->tid = tid;
	}
}

struct collected *collected_decode(const struct perf_event_attr *attr, struct span record)
{
	struct cursor c = cursor_of(record);
	struct perf_event_header h;
	struct collected *out = NULL;

	if (!cursor_take(&c, &h, sizeof(h)))
		return NULL;
	if (h.type == PERF_RECORD_SAMPLE)
		return decode_sample(attr, &h, c);
	if (record.n < sizeof(h) + SAMPLE_ID_BYTES)
		return NULL;
	c = cursor_of(span_sub(record, 0, record.n - SAMPLE_ID_BYTES));
	cursor_skip(&c, sizeof(h));
	switch (h.type) {
	case PERF_RECORD_MMAP2:
		out = decode_mmap(&h, c);
		break;
	case PERF_RECORD_COMM:
		out = decode_comm(&h, c);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		out = decode_task(&h, c);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		out = decode_switch(&h);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		out = decode_lost(&h, c);
		break;
	case PERF_RECORD_THROTTLE:
		out = new_plain(COLLECTED_THROTTLE);
		break;
	default:
		break;
	}
	if (out)
		take_sample_id(out, record);
	return out;
}

bool collected_sample_event(struct span record, uint64_t *id)
{
	struct cursor c = cursor_of(record);
	struct perf_event_header h;

	if (!cursor_take(&c, &h, sizeof(h)) || h.type != PERF_RECORD_SAMPLE)
		return false;
	*id = cursor_u64(&c);
	return !c.failed;
}

struct collected *collected_decode_kernel(
	enum kernel_event event, const struct tracepoint *t, struct span record)
{
	bool is_munmap = event == KERNEL_EVENT_MUNMAP;
	struct collected *out = new_plain(is_munmap ? COLLECTED_MUNMAP : COLLECTED_KERNEL);
	struct cursor c = cursor_of(record);
	uint64_t values[TRACEPOINT_FIELDS_MAX] = {0};

	cursor_skip(&c, sizeof(struct perf_event_header));
	cursor_u64(&c); /* id */
	take_moment(&c, out);
	if (t->fields[0].bytes) {
		struct span raw = cursor_bytes(&c, cursor_u32(&c));

		for (size_t i = 0; i < TRACEPOINT_FIELDS_MAX && t->fields[i].bytes; i++)
			c.failed |= !tracepoint_value(t, i, raw, &values[i]);
	}
	if (is_munmap) {
		out->munmap.start = values[0];
		out->munmap.bytes = values[1];
	} else {
		out->kernel.event = event;
		out->kernel.number = (int64_t)values[0];
	}
	return keep_if_whole(out, &c);
}

void collected_free(struct collected *r)
{
	if (r && r->kind == COLLECTED_SAMPLE)
		free(r->sample.deep);
	free(r);
}
