/* SPDX-License-Identifier: MIT */
/*
 * The processor is the judge: single instructions of every opcode are run from many states, and
 * again from states that differ in the registers and flags that the instruction is said not to
 * read. Nothing but those may then differ, killed ones not even that.
 */
#include "arch/x86_effects.h"

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define HAS_ADDRESS_SANITIZER 0
#endif

/* ---- a single instruction from a given state ---- */

#define SCRATCH_BYTES                                                                              \
	4096u /* the memory that instructions work on, between pages without access                \
	       */
#define CODE_BYTES  4096u
#define XSAVE_BYTES 16384

struct cpu {
	uint64_t regs[16];
	uint64_t flags;
};

/* In the order that the code below uses; written by it and by the signal handler only. */
struct step_context {
	struct cpu in, out;
	uint64_t stack, target, back, running, faulted;
};
extern struct step_context step_context;
struct step_context step_context;
void step_run(void);
extern const char step_back[], step_fault[];

/* No stack and no register is free around the instruction: everything is relative to rip. */
__asm__(".text\n"
	".globl step_run, step_back, step_fault\n"
	"step_run:\n"
	"	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"	mov %rsp, 272+step_context(%rip)\n"
	"	push 128+step_context(%rip)\n"
	"	popfq\n"
	"	mov 0+step_context(%rip), %rax\n mov 8+step_context(%rip), %rcx\n"
	"	mov 16+step_context(%rip), %rdx\n mov 24+step_context(%rip), %rbx\n"
	"	mov 32+step_context(%rip), %rsp\n mov 40+step_context(%rip), %rbp\n"
	"	mov 48+step_context(%rip), %rsi\n mov 56+step_context(%rip), %rdi\n"
	"	mov 64+step_context(%rip), %r8\n mov 72+step_context(%rip), %r9\n"
	"	mov 80+step_context(%rip), %r10\n mov 88+step_context(%rip), %r11\n"
	"	mov 96+step_context(%rip), %r12\n mov 104+step_context(%rip), %r13\n"
	"	mov 112+step_context(%rip), %r14\n mov 120+step_context(%rip), %r15\n"
	"	jmp *280+step_context(%rip)\n"
	"step_back:\n"
	"	mov %rax, 136+step_context(%rip)\n mov %rcx, 144+step_context(%rip)\n"
	"	mov %rdx, 152+step_context(%rip)\n mov %rbx, 160+step_context(%rip)\n"
	"	mov %rsp, 168+step_context(%rip)\n mov %rbp, 176+step_context(%rip)\n"
	"	mov %rsi, 184+step_context(%rip)\n mov %rdi, 192+step_context(%rip)\n"
	"	mov %r8, 200+step_context(%rip)\n mov %r9, 208+step_context(%rip)\n"
	"	mov %r10, 216+step_context(%rip)\n mov %r11, 224+step_context(%rip)\n"
	"	mov %r12, 232+step_context(%rip)\n mov %r13, 240+step_context(%rip)\n"
	"	mov %r14, 248+step_context(%rip)\n mov %r15, 256+step_context(%rip)\n"
	"	mov 272+step_context(%rip), %rsp\n"
	"	pushfq\n"
	"	pop 264+step_context(%rip)\n"
	"step_fault:\n"
	"	push $2\n popfq\n"
	"	pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
	"	ret\n");

static uint8_t *code, *scratch;
static uint8_t scratch_start[SCRATCH_BYTES];
static uint8_t vectors[XSAVE_BYTES] __attribute__((aligned(64)));
static uint64_t random_state = 88172645463325252ull;

static uint64_t any(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	if (!step_context.running) {
		signal(sig, SIG_DFL);
		return;
	}
	step_context.running = 0;
	step_context.faulted = 1;
	regs[REG_RIP] = (greg_t)step_fault;
	regs[REG_RSP] = (greg_t)step_context.stack;
	regs[REG_EFL] = 0x202;
}

/* Code, then the scratch page between two without access, all below 2 GiB. */
static bool step_init(void)
{
	static const int signals[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP};
	static uint8_t signal_stack[65536];
	struct sigaction action = {.sa_sigaction = on_fault};
	uint8_t *p = mmap(NULL, CODE_BYTES + 3 * SCRATCH_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (p == MAP_FAILED || mprotect(p, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) ||
		mprotect(p + CODE_BYTES + SCRATCH_BYTES, SCRATCH_BYTES, PROT_READ | PROT_WRITE))
		return false;
	code = p;
	scratch = p + CODE_BYTES + SCRATCH_BYTES;
	sigaltstack(&(stack_t){.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)}, NULL);
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	for (size_t i = 0; i < SCRATCH_BYTES; i++)
		scratch_start[i] = (uint8_t)any();
	/* The vector registers start the same each time. */
	__asm__ volatile("xsave64 %0" : "+m"(vectors) : "a"(-1), "d"(-1));
	for (size_t i = 160; i < 416; i++)
		vectors[i] = (uint8_t)any();
	vectors[512] |= 3; /* x87 and SSE state are in it */
	step_context.back = (uint64_t)step_back;
	return true;
}

/* False when it faults. */
static bool step(struct cpu *out, const struct cpu *in)
{
	step_context.in = *in;
	step_context.faulted = 0;
	memcpy(scratch, scratch_start, SCRATCH_BYTES);
	__asm__ volatile("xrstor64 %0" : : "m"(vectors), "a"(-1), "d"(-1) : "memory");
	step_context.running = 1;
	step_run();
	step_context.running = 0;
	*out = step_context.out;
	return !step_context.faulted;
}

static void place_code(const uint8_t *bytes, size_t n)
{
	uint8_t *p = code + 64;
	int64_t distance;

	memcpy(p, bytes, n);
	p += n;
	/* jmp *back, whose address lies at the start of the page */
	memcpy(code, &step_context.back, 8);
	distance = code - (p + 6);
	p[0] = 0xff;
	p[1] = 0x25;
	memcpy(p + 2, &(int32_t){(int32_t)distance}, 4);
	step_context.target = (uint64_t)(code + 64);
}

/* ---- one instruction, judged ---- */

static const uint64_t flag_mask[7] = {1, 4, 16, 64, 128, 2048, 1024};

static uint64_t flags_as_cpu(unsigned flags)
{
	uint64_t out = 0;

	for (unsigned i = 0; i < 7; i++)
		if (flags >> i & 1)
			out |= flag_mask[i];
	return out;
}

struct subject {
	uint8_t bytes[32];
	uint8_t length;
	struct x86_effects e;
	uint64_t flags_read, flags_written, flags_killed; /* as the processor has them */
	uint64_t flags_undefined;
	bool is_random; /* its results differ by themselves */
};

static unsigned n_judged, n_ran, n_wrong;
static unsigned one_of = 6; /* the share of the encodings that is tried */

static void complain(const struct subject *s, const char *what, unsigned which)
{
	char text[128] = "", hex[64] = "";
	ZydisDisassembledInstruction d;

	if (ZYAN_SUCCESS(
		    ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, 0, s->bytes, s->length, &d)))
		snprintf(text, sizeof(text), "%s", d.text);
	for (unsigned i = 0; i < s->length; i++)
		snprintf(hex + 3 * i, 4, "%02x ", s->bytes[i]);
	if (n_wrong++ < 40)
		printf("%s(%s): %s %x (reads %x writes %x kills %x flags %x %x %x)\n", hex, text,
			what, which, s->e.reads, s->e.writes, s->e.kills, s->e.flags_read,
			s->e.flags_written, s->e.flags_killed);
	fflush(stdout);
}

/* The registers and flags outside `writes` are as they were. */
static bool keeps_the_rest(const struct subject *s, const struct cpu *in, const struct cpu *out)
{
	for (unsigned r = 0; r < 16; r++)
		if (!(s->e.writes >> r & 1) && in->regs[r] != out->regs[r]) {
			complain(s, "writes register", r);
			return false;
		}
	if ((in->flags ^ out->flags) & flags_as_cpu(X86_FLAGS_ALL) & ~s->flags_written) {
		complain(s, "writes flags", (unsigned)(in->flags ^ out->flags));
		return false;
	}
	return true;
}

struct run {
	struct cpu in, out;
};

/* What came of two states that differ only in what is said not to be read. */
static bool is_independent(const struct subject *s, const struct run *a, const struct run *b)
{
	uint64_t differing;

	if (!keeps_the_rest(s, &b->in, &b->out))
		return false;
	for (unsigned r = 0; r < 16; r++) {
		differing = a->out.regs[r] ^ b->out.regs[r];
		/* A bit that is not surely written may be the old one, in both runs. */
		if (!((s->e.kills | s->e.reads) >> r & 1))
			differing &=
				(a->in.regs[r] ^ a->out.regs[r]) | (b->in.regs[r] ^ b->out.regs[r]);
		if (differing && s->e.writes >> r & 1) {
			complain(s, "the result depends on what it does not read: register", r);
			return false;
		}
	}
	differing = (a->out.flags ^ b->out.flags) & s->flags_written & ~s->flags_undefined;
	differing &= s->flags_killed | s->flags_read | (a->in.flags ^ a->out.flags) |
		     (b->in.flags ^ b->out.flags);
	if (differing)
		complain(s, "the result depends on what it does not read: flags",
			(unsigned)differing);
	return !differing;
}

static uint64_t any_value(unsigned pointers_of_8)
{
	static const uint64_t edges[] = {0, 1, ~0ull, 0xffffffffu, 0x80000000u, 1ull << 63, 0x7fff};
	uint64_t v = any();

	if ((v & 7) < pointers_of_8)
		return (uint64_t)scratch + 1024 + (v >> 8) % 128 * 16;
	switch (v >> 4 & 3) {
	case 0:
		return edges[(v >> 8) % 7];
	case 1:
		return v >> 8 & 31;
	case 2:
		return v << 20 | 5;
	default:
		return any();
	}
}

static void any_state(struct cpu *in, unsigned pointers_of_8)
{
	for (unsigned r = 0; r < 16; r++)
		in->regs[r] = any_value(r == X86_REG_RSP ? 8 : pointers_of_8);
	in->flags = 0x202 | (any() & flags_as_cpu(X86_FLAGS_ALL));
}

static void change_unread(const struct subject *s, struct cpu *in)
{
	for (unsigned r = 0; r < 16; r++)
		if (!(s->e.reads >> r & 1))
			in->regs[r] = any() & 1 ? any_value(2) : any();
	in->flags ^= any() & flags_as_cpu(X86_FLAGS_ALL) & ~s->flags_read;
}

/* Runs that differ from `a`, which left `memory`, in what is said not to be read. */
static bool judge_others(const struct subject *s, const struct run *a, const uint8_t *memory)
{
	for (unsigned i = 0; i < 3; i++) {
		struct run b = *a;

		change_unread(s, &b.in);
		if (!step(&b.out, &b.in)) {
			complain(s, "faults by what it does not read", 0);
			return false;
		}
		if (!is_independent(s, a, &b))
			return false;
		if (memcmp(memory, scratch, SCRATCH_BYTES)) {
			complain(s, "memory depends on what it does not read", 0);
			return false;
		}
	}
	return true;
}

static void judge(const struct subject *s)
{
	static uint8_t memory[SCRATCH_BYTES];
	struct run a;
	bool ran = false;

	place_code(s->bytes, s->length);
	n_judged++;
	for (unsigned round = 0; round < 8; round++) {
		any_state(&a.in, round & 1 ? 8 : round & 2 ? 4 : 0);
		if (!step(&a.out, &a.in))
			continue;
		ran = true;
		if (!keeps_the_rest(s, &a.in, &a.out))
			return;
		memcpy(memory, scratch, SCRATCH_BYTES);
		if (!s->is_random && !judge_others(s, &a, memory))
			return;
	}
	n_ran += ran;
}

/* ---- every opcode ---- */

/* What cannot be run alone, or would change what the test stands on. */
static bool is_runnable(const ZydisDecodedInstruction *d, const struct x86_insn *insn)
{
	if (insn->flow != X86_FLOW_NEXT && insn->flow != X86_FLOW_BRANCH)
		return false;
	if (insn->rel_at && insn->is_bound)
		return false; /* Intel and AMD do not agree on the length of 66 0f 8x */
	if (d->attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS)
		return false; /* thread-local data */
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_POPF: /* the trap and alignment flags */
	case ZYDIS_MNEMONIC_POPFD:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_WRFSBASE: /* the same */
	case ZYDIS_MNEMONIC_WRGSBASE:
	case ZYDIS_MNEMONIC_LFS:
	case ZYDIS_MNEMONIC_LGS:
	case ZYDIS_MNEMONIC_MWAITX: /* wait */
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE:
	case ZYDIS_MNEMONIC_WRPKRU: /* access to our own memory */
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
		return false;
	case ZYDIS_MNEMONIC_MOV:
		return d->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || d->opcode != 0x8e;
	case ZYDIS_MNEMONIC_POP:
		return d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
	default:
		return true;
	}
}

static bool is_random(const ZydisDecodedInstruction *d)
{
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDPMC:
	case ZYDIS_MNEMONIC_RDPRU:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_RDPID: /* the number of the processor we happen to be on */
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_LSL:
		return true;
	default:
		return false;
	}
}

/* Bytes that go on with fill; places in it that mean an address are pointed somewhere harmless. */
static void try_bytes(const uint8_t *bytes, size_t n, uint8_t fill)
{
	struct subject s = {0};
	struct span span = {s.bytes, X86_INSN_BYTES_MAX};
	ZydisDecodedInstruction d;
	ZydisDecoder decoder;
	struct x86_insn insn;
	uint64_t addr = (uint64_t)code + 64;

	if (any() % one_of)
		return;
	memset(s.bytes, fill, sizeof(s.bytes));
	memcpy(s.bytes, bytes, n);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, span.p, span.n, &d)) ||
		!x86_decode(&insn, span, addr, true) || !is_runnable(&d, &insn))
		return;
	if (insn.disp_at) {
		int32_t distance = (int32_t)((uint64_t)scratch + 2048 - (addr + insn.length));

		memcpy(s.bytes + insn.disp_at, &distance, 4);
	}
	if (d.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && d.opcode >= 0xa0 && d.opcode <= 0xa3)
		memcpy(s.bytes + d.raw.disp.offset, &(uint64_t){(uint64_t)scratch + 2048},
			d.raw.disp.size / 8);
	memset(s.bytes + insn.rel_at, insn.rel_at ? 0 : s.bytes[0],
		insn.rel_at ? insn.rel_bytes : 1);
	if (!x86_decode_effects(&insn, &s.e, span, addr)) {
		complain(&s, "is no instruction", 0);
		return;
	}
	if (s.e.is_privileged || s.e.is_transaction || s.e.uses_gs || s.e.reads == X86_REGS_ALL)
		return;
	s.length = insn.length;
	s.flags_read = flags_as_cpu(s.e.flags_read);
	s.flags_written = flags_as_cpu(s.e.flags_written);
	s.flags_killed = flags_as_cpu(s.e.flags_killed);
	s.flags_undefined = d.cpu_flags->undefined;
	s.is_random = is_random(&d);
	judge(&s);
}

/* Behind an opcode: registers, the same register twice, high bytes; memory by several ways. */
static void try_operands(uint8_t *bytes, size_t n)
{
	static const uint8_t fills[] = {0x00, 0x01, 0x21, 0xff};
	static const uint8_t rms[] = {0, 1, 3, 4, 7};

	for (unsigned reg = 0; reg < 8; reg++) {
		for (unsigned i = 0; i < sizeof(rms); i++) {
			bytes[n] = (uint8_t)(0xc0 | reg << 3 | rms[i]);
			try_bytes(bytes, n + 1, fills[any() % 4]);
		}
		bytes[n] = (uint8_t)(0xc0 | reg << 3 | reg);
		try_bytes(bytes, n + 1, fills[any() % 4]);
		bytes[n] = (uint8_t)(0x00 | reg << 3 | 3); /* (rbx) */
		try_bytes(bytes, n + 1, fills[any() % 4]);
		bytes[n] = (uint8_t)(0x00 | reg << 3 | 5); /* (rip) */
		try_bytes(bytes, n + 1, fills[any() % 4]);
		bytes[n] = (uint8_t)(0x40 | reg << 3 | 4); /* disp8(rsi,rcx) */
		bytes[n + 1] = 0x0e;
		try_bytes(bytes, n + 2, fills[any() % 3]);
	}
}

static const uint8_t prefixes[][3] = {{0}, {1, 0x66}, {1, 0x48}, {1, 0x44}, {1, 0x49}, {1, 0x4f},
	{1, 0xf2}, {1, 0xf3}, {1, 0x67}, {1, 0xf0}, {2, 0xf3, 0x48}, {2, 0xf2, 0x48},
	{2, 0x66, 0x48}, {2, 0x67, 0xf3}};

static void try_legacy(void)
{
	static const uint8_t maps[][3] = {{0}, {1, 0x0f}, {2, 0x0f, 0x38}, {2, 0x0f, 0x3a}};

	for (unsigned m = 0; m < 4; m++) {
		for (unsigned p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
			for (unsigned opcode = 0; opcode < 256; opcode++) {
				uint8_t bytes[8];
				size_t n = 0;

				memcpy(bytes, prefixes[p] + 1, 2);
				n = prefixes[p][0];
				memcpy(bytes + n, maps[m] + 1, 2);
				n += maps[m][0];
				bytes[n] = (uint8_t)opcode;
				try_operands(bytes, n + 1);
			}
		}
	}
}

/* C4 RXBmmmmm WvvvvLpp */
static void try_vex(void)
{
	for (unsigned map = 1; map <= 3; map++) {
		for (unsigned last = 0; last < 16; last++) {
			for (unsigned opcode = 0; opcode < 256; opcode++) {
				uint8_t bytes[8] = {0xc4};
				unsigned vvvv = any() & 1 ? 15 : 15 - (unsigned)(any() & 15);

				bytes[1] = (uint8_t)((any() & 1 ? 0xe0 : any() & 0xe0) | map);
				bytes[2] = (uint8_t)((last & 8) << 4 | vvvv << 3 | (last & 7));
				bytes[3] = (uint8_t)opcode;
				try_operands(bytes, 4);
			}
		}
	}
}

/* 62 RXBR'00mm Wvvvv1pp zL'LbV'aaa: those that touch general registers are few. */
static void try_evex(void)
{
	for (unsigned map = 1; map <= 3; map++) {
		for (unsigned pp = 0; pp < 8; pp++) {
			for (unsigned opcode = 0; opcode < 256; opcode++) {
				uint8_t bytes[8] = {0x62};

				bytes[1] = (uint8_t)(0xf0 | map);
				bytes[2] = (uint8_t)((pp & 4) << 5 | 0x7c | (pp & 3));
				bytes[3] = 0x08;
				bytes[4] = (uint8_t)opcode;
				try_operands(bytes, 5);
			}
		}
	}
}

static void run_alone(void (*try)(void), unsigned least)
{
	pid_t child;
	int status = 0;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (!step_init())
			_exit(2);
		try();
		printf("# %u instructions judged, %u of them ran\n", n_judged, n_ran);
		if (n_ran < least)
			printf("fewer than %u ran\n", least);
		fflush(stdout);
		_exit(n_wrong || n_ran < least);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

static void test_legacy_run(void)
{
	run_alone(try_legacy, 40000);
}

static void test_vex_run(void)
{
	run_alone(try_vex, 8000);
}

static void test_evex_run(void)
{
	run_alone(try_evex, 4000);
}

/* Why instructions cannot be run here; NULL when they can. */
static const char *why_not(unsigned encoding)
{
	unsigned a, b, c, d;
	void *page = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (HAS_ADDRESS_SANITIZER)
		return "the sanitizer's memory lies where instructions may write";
	if (page == MAP_FAILED)
		return "there is no writable and executable memory below 2 GiB";
	munmap(page, CODE_BYTES);
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return "the processor has no xsave";
	if (encoding == 1 && !(c & bit_AVX))
		return "the processor has no AVX";
	if (encoding == 2 && (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX512F)))
		return "the processor has no AVX-512";
	return NULL;
}

int main(void)
{
	static const struct test runs[] = {
		{"the processor agrees on instructions of the legacy maps", test_legacy_run},
		{"the processor agrees on VEX instructions", test_vex_run},
		{"the processor agrees on EVEX instructions", test_evex_run},
	};
	const char *slow = getenv("WEIR_SLOW");
	int failed = 0;

	if (slow && *slow)
		one_of = 1;
	for (unsigned i = 0; i < 3; i++) {
		const char *reason = why_not(i);

		if (reason)
			printf("skip %s: %s\n", runs[i].sentence, reason);
		else
			failed |= run_tests(&runs[i], 1);
	}
	puts("end"); /* when all are skipped, too */
	return failed;
}
