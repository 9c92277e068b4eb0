/* SPDX-License-Identifier: MIT */
/*
 * Decoding of perf records (perf_event_open(2)), of our own events and of those in a perf.data: which
 * fields there are is in the event's attributes. The kernel wrote them, but they are read through
 * a cursor all the same. All events of a set of ours share one sample_type, but for those of the
 * kernel (kernel_sources.h).
 */
#include "record/collected.h"

#include <asm/perf_regs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

#define KERNEL_FRAMES_MAX 512
#define BRANCH_BYTES	  24 /* from, to, flags */
#define BUILD_ID_BYTES	  20
/* Newer than the headers that this must compile with. */
#define BRANCH_HW_INDEX	      (1u << 17)
#define BRANCH_COUNTERS	      (1u << 19)
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define LOST_BY_A_FILTER      (1u << 15) /* of PERF_RECORD_LOST_SAMPLES: left out on purpose */

/* A register's number by its bit of sample_regs_user, and 1: 0 are those that no walk asks for. */
static const uint8_t register_of[64] = {
	[PERF_REG_X86_AX] = CPU_REG_RAX + 1,
	[PERF_REG_X86_BX] = CPU_REG_RBX + 1,
	[PERF_REG_X86_CX] = CPU_REG_RCX + 1,
	[PERF_REG_X86_DX] = CPU_REG_RDX + 1,
	[PERF_REG_X86_SI] = CPU_REG_RSI + 1,
	[PERF_REG_X86_DI] = CPU_REG_RDI + 1,
	[PERF_REG_X86_BP] = CPU_REG_RBP + 1,
	[PERF_REG_X86_SP] = CPU_REG_RSP + 1,
	[PERF_REG_X86_IP] = CPU_REG_RIP + 1,
	[PERF_REG_X86_R8] = CPU_REG_R8 + 1,
	[PERF_REG_X86_R9] = CPU_REG_R9 + 1,
	[PERF_REG_X86_R10] = CPU_REG_R10 + 1,
	[PERF_REG_X86_R11] = CPU_REG_R11 + 1,
	[PERF_REG_X86_R12] = CPU_REG_R12 + 1,
	[PERF_REG_X86_R13] = CPU_REG_R13 + 1,
	[PERF_REG_X86_R14] = CPU_REG_R14 + 1,
	[PERF_REG_X86_R15] = CPU_REG_R15 + 1,
};

/* In the order of their bits. */
static void take_registers(
	struct cursor *c, const struct perf_event_attr *attr, struct collected_sample *s)
{
	uint64_t abi = cursor_u64(c);

	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	s->regs.is_64 = abi == PERF_SAMPLE_REGS_ABI_64;
	for (uint64_t left = attr->sample_regs_user; left; left &= left - 1) {
		unsigned number = register_of[__builtin_ctzll(left)];
		uint64_t value = cursor_u64(c);
		enum cpu_reg reg = (enum cpu_reg)(number - 1);

		if (!number)
			continue;
		s->regs.r[reg] = value;
		if (!s->regs.is_64 && reg >= CPU_REG_R8 && reg <= CPU_REG_R15)
			continue;
		s->regs.known |= 1u << reg;
	}
	s->has_regs = !c->failed && s->regs.known;
}

/* A number of 8-byte words, and the words. */
static struct span take_chain(struct cursor *c)
{
	uint64_t n = cursor_u64(c);

	if (n > cursor_left(c) / sizeof(uint64_t)) {
		c->failed = true;
		return (struct span){NULL, 0};
	}
	return cursor_bytes(c, n * sizeof(uint64_t));
}

/* The addresses of a call chain that are of the kernel, or of the program; the others may be those of a
 * hypervisor or a guest. A mark says of which the next ones are. */
static size_t copy_chain(
	uint64_t *to, struct collected_sample *s, struct span chain, bool of_kernel)
{
	uint64_t wanted = of_kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER;
	uint64_t context = s->in_kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER;
	size_t n = 0, max = of_kernel ? KERNEL_FRAMES_MAX : SIZE_MAX;
	struct cursor c = cursor_of(chain);

	while (cursor_left(&c) >= sizeof(uint64_t) && n < max) {
		uint64_t ip = cursor_u64(&c);

		if (ip >= (uint64_t)PERF_CONTEXT_MAX)
			context = ip;
		else if (context == wanted)
			to[n++] = ip;
		s->is_deferred |= context == CONTEXT_USER_DEFERRED;
	}
	return n;
}

/* What the CPU keeps of the calls that are open: where each call is, the innermost first. Such an address
 * is that of the call itself, and a caller's is looked up one byte before. */
static size_t copy_calls(uint64_t *to, const struct collected_sample *s, struct span branches)
{
	struct cursor c = cursor_of(branches);
	size_t n = 0;

	while (cursor_left(&c) >= BRANCH_BYTES) {
		uint64_t from = cursor_u64(&c), callee = cursor_u64(&c);

		cursor_u64(&c); /* flags */
		if (!n)
			to[n++] = s->cpu_mode == PERF_RECORD_MISC_USER ? s->ip : callee;
		to[n++] = from + 1;
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

/* Values of counters, which nobody asks for. */
static void skip_counts(struct cursor *c, uint64_t format)
{
	uint64_t n_each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & (1u << 4) /* LOST */),
		 n = 1;
	uint64_t n_times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			   !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	if (format & PERF_FORMAT_GROUP)
		n = cursor_u64(c);
	if (n > cursor_left(c)) {
		c->failed = true;
		return;
	}
	cursor_skip(c, (n * n_each + n_times) * sizeof(uint64_t));
}

static struct span take_branches(struct cursor *c, uint64_t what)
{
	uint64_t n = cursor_u64(c);
	struct span branches;

	if (what & BRANCH_HW_INDEX)
		cursor_u64(c);
	if (n > cursor_left(c) / BRANCH_BYTES) {
		c->failed = true;
		return (struct span){NULL, 0};
	}
	branches = cursor_bytes(c, n * BRANCH_BYTES);
	if (what & BRANCH_COUNTERS)
		cursor_skip(c, n * sizeof(uint64_t));
	return what & PERF_SAMPLE_BRANCH_CALL_STACK ? branches : (struct span){NULL, 0};
}

/* The fields of a sample that are of use, borrowed from the record. What comes behind them is not read. */
struct sample_fields {
	struct span chain, branches, stack;
};

static void take_head(struct cursor *c, const struct perf_event_attr *attr, struct collected *r)
{
	struct collected_sample *s = &r->sample;
	uint64_t has = attr->sample_type;

	if (has & PERF_SAMPLE_IDENTIFIER)
		s->id = cursor_u64(c);
	if (has & PERF_SAMPLE_IP)
		s->ip = cursor_u64(c);
	if (has & PERF_SAMPLE_TID) {
		r->pid = cursor_u32(c);
		r->tid = cursor_u32(c);
	}
	if (has & PERF_SAMPLE_TIME)
		r->time = cursor_u64(c);
	if (has & PERF_SAMPLE_ADDR)
		cursor_u64(c);
	if (has & PERF_SAMPLE_ID)
		s->id = cursor_u64(c);
	if (has & PERF_SAMPLE_STREAM_ID)
		cursor_u64(c);
	if (has & PERF_SAMPLE_CPU)
		r->cpu = (uint32_t)cursor_u64(c);
	if (has & PERF_SAMPLE_PERIOD)
		s->period = cursor_u64(c);
	else if (!attr->freq)
		s->period = attr->sample_period;
}

static void take_stack(struct cursor *c, struct span *stack)
{
	uint64_t size = cursor_u64(c), used;

	*stack = cursor_bytes(c, size);
	used = size ? cursor_u64(c) : 0;
	c->failed |= used > stack->n;
	stack->n = (size_t)used;
}

static void take_fields(struct cursor *c, const struct perf_event_attr *attr, struct collected *r,
	struct sample_fields *f)
{
	uint64_t has = attr->sample_type;

	take_head(c, attr, r);
	if (has & PERF_SAMPLE_READ)
		skip_counts(c, attr->read_format);
	if (has & PERF_SAMPLE_CALLCHAIN)
		f->chain = take_chain(c);
	if (has & PERF_SAMPLE_RAW)
		cursor_skip(c, cursor_u32(c));
	if (has & PERF_SAMPLE_BRANCH_STACK)
		f->branches = take_branches(c, attr->branch_sample_type);
	if (has & PERF_SAMPLE_REGS_USER)
		take_registers(c, attr, &r->sample);
	if (has & PERF_SAMPLE_STACK_USER)
		take_stack(c, &f->stack);
}

static struct collected *decode_sample(
	const struct perf_event_attr *attr, const struct perf_event_header *h, struct cursor c)
{
	struct collected r = {.kind = COLLECTED_SAMPLE}, *out;
	struct collected_sample *s = &r.sample;
	struct sample_fields f = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
	uint64_t *addresses;
	size_t words_bytes;

	s->cpu_mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	s->in_kernel = s->cpu_mode == PERF_RECORD_MISC_KERNEL;
	s->is_bare = !(attr->sample_type &
		       (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_BRANCH_STACK));
	take_fields(&c, attr, &r, &f);
	if (c.failed)
		return NULL;
	words_bytes = f.chain.n + f.branches.n;
	r.bytes = sizeof(*out) + words_bytes + DEEP_BELOW_BYTES + f.stack.n;
	out = mem_alloc(r.bytes);
	addresses = (uint64_t *)(void *)(out + 1);
	s->kernel = addresses;
	s->n_kernel = (uint32_t)copy_chain(addresses, s, f.chain, true);
	addresses += s->n_kernel;
	s->user = addresses;
	s->n_user = (uint32_t)(f.branches.n ? copy_calls(addresses, s, f.branches)
					    : copy_chain(addresses, s, f.chain, false));
	s->below = (uint8_t *)(out + 1) + words_bytes;
	s->stack = (struct span){s->below + DEEP_BELOW_BYTES, f.stack.n};
	if (f.stack.n)
		memcpy(s->below + DEEP_BELOW_BYTES, f.stack.p, f.stack.n);
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

/*
 * Whether the bytes behind a mapping's offset are a build-id: size, 3 zeros, 20 bytes with zeros behind the
 * id; or else device, inode and generation. Kernels leave the mark on a record for one event that they have
 * set for another one, of any recorder on the machine, so that it is believed for events that ask for it.
 * Of others, which perf inject marks, the bytes must not look like a device.
 */
static bool is_build_id(
	const struct perf_event_header *h, const struct perf_event_attr *attr, const uint8_t *bytes)
{
	uint8_t n = bytes[0];

	if (!(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || !n || n > BUILD_ID_BYTES || bytes[1] ||
		bytes[2] || bytes[3])
		return false;
	for (size_t i = n; i < BUILD_ID_BYTES; i++)
		if (bytes[4 + i])
			return false;
	return attr->build_id || bytes[5] || bytes[6] || bytes[7];
}

static struct collected *decode_mmap(
	const struct perf_event_attr *attr, const struct perf_event_header *h, struct cursor c)
{
	uint8_t which[4 + BUILD_ID_BYTES];
	struct collected r = {.kind = COLLECTED_MMAP};
	struct collected_mmap *m = &r.mmap;

	r.pid = cursor_u32(&c);
	r.tid = cursor_u32(&c);
	m->mapping.start = cursor_u64(&c);
	m->mapping.end = m->mapping.start + cursor_u64(&c);
	m->mapping.offset = cursor_u64(&c);
	cursor_take(&c, which, sizeof(which));
	if (is_build_id(h, attr, which)) {
		m->build_id_n = which[0];
		memcpy(m->build_id, which + 4, BUILD_ID_BYTES);
	} else { /* and the generation of the inode */
		memcpy(&m->mapping.major, which, 4);
		memcpy(&m->mapping.minor, which + 4, 4);
		memcpy(&m->mapping.inode, which + 8, 8);
	}
	m->mapping.prot = cursor_u32(&c);
	cursor_u32(&c); /* flags */
	return new_with_text(&r, cursor_cstr(&c), &c);
}

/* The older kind has neither protection nor inode. */
static struct collected *decode_plain_mmap(const struct perf_event_header *h, struct cursor c)
{
	struct collected r = {.kind = COLLECTED_MMAP};
	struct proc_mapping *m = &r.mmap.mapping;

	r.pid = cursor_u32(&c);
	r.tid = cursor_u32(&c);
	m->start = cursor_u64(&c);
	m->end = m->start + cursor_u64(&c);
	m->offset = cursor_u64(&c);
	m->prot = h->misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ : PROT_EXEC;
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
	out->time = cursor_u64(&c);
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

/* sample_id_all: every record but a sample ends with these of its fields. */
static size_t sample_id_bytes(const struct perf_event_attr *attr)
{
	uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return attr->sample_id_all ? 8 * (size_t)__builtin_popcountll(attr->sample_type & fields)
				   : 0;
}

static void take_sample_id(
	struct collected *out, const struct perf_event_attr *attr, struct span id)
{
	struct cursor c = cursor_of(id);
	uint64_t has = id.n ? attr->sample_type : 0;
	uint32_t pid = out->pid, tid = out->tid;

	if (has & PERF_SAMPLE_TID) {
		out->pid = cursor_u32(&c);
		out->tid = cursor_u32(&c);
	}
	if (has & PERF_SAMPLE_TIME)
		out->time = cursor_u64(&c);
	if (has & PERF_SAMPLE_ID)
		cursor_u64(&c);
	if (has & PERF_SAMPLE_STREAM_ID)
		cursor_u64(&c);
	if (has & PERF_SAMPLE_CPU)
		out->cpu = (uint32_t)cursor_u64(&c);
	/* These say of which task they are, which need not be the one that ran. */
	if (out->kind == COLLECTED_MMAP || out->kind == COLLECTED_COMM ||
		out->kind == COLLECTED_FORK || out->kind == COLLECTED_EXIT) {
		out->pid = pid;
		out->tid = tid;
	}
}

static struct collected *decode_other(
	const struct perf_event_attr *attr, const struct perf_event_header *h, struct cursor c)
{
	switch (h->type) {
	case PERF_RECORD_MMAP:
		return decode_plain_mmap(h, c);
	case PERF_RECORD_MMAP2:
		return decode_mmap(attr, h, c);
	case PERF_RECORD_COMM:
		return decode_comm(h, c);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return decode_task(h, c);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return decode_switch(h);
	case PERF_RECORD_LOST:
		return decode_lost(h, c);
	case PERF_RECORD_LOST_SAMPLES:
		return h->misc & LOST_BY_A_FILTER ? NULL : decode_lost(h, c);
	case PERF_RECORD_THROTTLE:
		return new_plain(COLLECTED_THROTTLE);
	default:
		return NULL;
	}
}

struct collected *collected_decode(const struct perf_event_attr *attr, struct span record)
{
	size_t id_bytes = sample_id_bytes(attr);
	struct cursor c = cursor_of(record);
	struct perf_event_header h;
	struct collected *out;

	if (!cursor_take(&c, &h, sizeof(h)))
		return NULL;
	if (h.type == PERF_RECORD_SAMPLE)
		return decode_sample(attr, &h, c);
	if (record.n < sizeof(h) + id_bytes)
		return NULL;
	c = cursor_of(span_sub(record, 0, record.n - id_bytes));
	cursor_skip(&c, sizeof(h));
	out = decode_other(attr, &h, c);
	if (out)
		take_sample_id(out, attr, span_sub(record, record.n - id_bytes, id_bytes));
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
