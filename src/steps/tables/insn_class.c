/* SPDX-License-Identifier: MIT */
#include "steps/tables/insn_class.h"

#include <string.h>

#include "arch/x86_zydis.h"

/* Where the category of Zydis decides; the others are INSN_CLASS_OTHER. */
static const uint8_t class_of_category[ZYDIS_CATEGORY_MAX_VALUE + 1] = {
	[ZYDIS_CATEGORY_DATAXFER] = INSN_CLASS_MOVE,
	[ZYDIS_CATEGORY_CMOV] = INSN_CLASS_MOVE,
	[ZYDIS_CATEGORY_CONVERT] = INSN_CLASS_MOVE,
	[ZYDIS_CATEGORY_PUSH] = INSN_CLASS_STACK,
	[ZYDIS_CATEGORY_POP] = INSN_CLASS_STACK,
	[ZYDIS_CATEGORY_BINARY] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_LOGICAL] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_FLAGOP] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_SETCC] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_DECIMAL] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_ADOX_ADCX] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_SEMAPHORE] = INSN_CLASS_INTEGER,
	[ZYDIS_CATEGORY_SHIFT] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_ROTATE] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_BITBYTE] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_BMI1] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_BMI2] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_TBM] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_LZCNT] = INSN_CLASS_BITS,
	[ZYDIS_CATEGORY_STRINGOP] = INSN_CLASS_STRING,
	[ZYDIS_CATEGORY_IOSTRINGOP] = INSN_CLASS_STRING,
	[ZYDIS_CATEGORY_X87_ALU] = INSN_CLASS_X87,
	[ZYDIS_CATEGORY_FCMOV] = INSN_CLASS_X87,
	[ZYDIS_CATEGORY_MMX] = INSN_CLASS_MMX,
	[ZYDIS_CATEGORY_NOP] = INSN_CLASS_NOP,
	[ZYDIS_CATEGORY_WIDENOP] = INSN_CLASS_NOP,
	[ZYDIS_CATEGORY_PREFETCH] = INSN_CLASS_CACHE,
	[ZYDIS_CATEGORY_PREFETCHWT1] = INSN_CLASS_CACHE,
	[ZYDIS_CATEGORY_CLFLUSHOPT] = INSN_CLASS_CACHE,
	[ZYDIS_CATEGORY_CLWB] = INSN_CLASS_CACHE,
	[ZYDIS_CATEGORY_CLDEMOTE] = INSN_CLASS_CACHE,
	[ZYDIS_CATEGORY_SERIALIZE] = INSN_CLASS_CACHE,
	[ZYDIS_CATEGORY_SYSTEM] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_SYSRET] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_SEGOP] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_INTERRUPT] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_IO] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_CET] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_PKU] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_RDPID] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_RDRAND] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_RDSEED] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_RDWRFSGS] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_XSAVE] = INSN_CLASS_SYSTEM,
	[ZYDIS_CATEGORY_XSAVEOPT] = INSN_CLASS_SYSTEM,
	/* What is left of it has no vector register: fxsave, stmxcsr. */
	[ZYDIS_CATEGORY_SSE] = INSN_CLASS_SYSTEM,
};

/* INSN_CLASS_UNKNOWN when control just goes on. */
static const uint8_t class_of_flow[] = {
	[X86_FLOW_NEXT] = INSN_CLASS_UNKNOWN,
	[X86_FLOW_JUMP] = INSN_CLASS_JUMP,
	[X86_FLOW_BRANCH] = INSN_CLASS_BRANCH,
	[X86_FLOW_CALL] = INSN_CLASS_CALL,
	[X86_FLOW_JUMP_FAR] = INSN_CLASS_INDIRECT_JUMP,
	[X86_FLOW_CALL_FAR] = INSN_CLASS_INDIRECT_CALL,
	[X86_FLOW_RETURN] = INSN_CLASS_RETURN,
	[X86_FLOW_STOP] = INSN_CLASS_SYSTEM,
	[X86_FLOW_SYSCALL] = INSN_CLASS_SYSCALL,
};

/* Those that their category would put elsewhere. */
static const uint8_t class_of_mnemonic[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
	[ZYDIS_MNEMONIC_MUL] = INSN_CLASS_MULTIPLY,
	[ZYDIS_MNEMONIC_IMUL] = INSN_CLASS_MULTIPLY,
	[ZYDIS_MNEMONIC_MULX] = INSN_CLASS_MULTIPLY,
	[ZYDIS_MNEMONIC_DIV] = INSN_CLASS_DIVIDE,
	[ZYDIS_MNEMONIC_IDIV] = INSN_CLASS_DIVIDE,
	[ZYDIS_MNEMONIC_LEA] = INSN_CLASS_ADDRESS,
	[ZYDIS_MNEMONIC_ENTER] = INSN_CLASS_STACK,
	[ZYDIS_MNEMONIC_LEAVE] = INSN_CLASS_STACK,
	[ZYDIS_MNEMONIC_XLAT] = INSN_CLASS_MOVE,
	[ZYDIS_MNEMONIC_CRC32] = INSN_CLASS_INTEGER,
	[ZYDIS_MNEMONIC_POPCNT] = INSN_CLASS_BITS,
	[ZYDIS_MNEMONIC_ENDBR32] = INSN_CLASS_NOP,
	[ZYDIS_MNEMONIC_ENDBR64] = INSN_CLASS_NOP,
	[ZYDIS_MNEMONIC_PAUSE] = INSN_CLASS_CACHE,
	[ZYDIS_MNEMONIC_CLFLUSH] = INSN_CLASS_CACHE,
	[ZYDIS_MNEMONIC_LFENCE] = INSN_CLASS_CACHE,
	[ZYDIS_MNEMONIC_MFENCE] = INSN_CLASS_CACHE,
	[ZYDIS_MNEMONIC_SFENCE] = INSN_CLASS_CACHE,
	[ZYDIS_MNEMONIC_CPUID] = INSN_CLASS_SYSTEM,
	[ZYDIS_MNEMONIC_VZEROUPPER] = INSN_CLASS_AVX,
	[ZYDIS_MNEMONIC_VZEROALL] = INSN_CLASS_AVX,
};

/* By the widest kind of register that it names; INSN_CLASS_UNKNOWN when all are general ones. */
static enum insn_class class_of_registers(const struct x86_decoded *x)
{
	bool is_legacy = x->d.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
			 x->d.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
	enum insn_class class = INSN_CLASS_UNKNOWN, of_one;

	if (x->d.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
		x->d.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX)
		return INSN_CLASS_AVX512;
	for (unsigned i = 0; i < x->d.operand_count; i++) {
		if (x->operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		switch (ZydisRegisterGetClass(x->operands[i].reg.value)) {
		case ZYDIS_REGCLASS_X87:
			of_one = INSN_CLASS_X87;
			break;
		case ZYDIS_REGCLASS_MMX:
			of_one = INSN_CLASS_MMX;
			break;
		case ZYDIS_REGCLASS_XMM:
		case ZYDIS_REGCLASS_YMM:
			of_one = is_legacy ? INSN_CLASS_SSE : INSN_CLASS_AVX;
			break;
		case ZYDIS_REGCLASS_ZMM:
		case ZYDIS_REGCLASS_MASK:
			of_one = INSN_CLASS_AVX512;
			break;
		default:
			continue;
		}
		class = of_one > class ? of_one : class;
	}
	return class;
}

static enum insn_class class_of(const struct x86_decoded *x, enum x86_flow flow)
{
	enum insn_class class = class_of_flow[flow];

	if (!class)
		class = class_of_mnemonic[x->d.mnemonic];
	if (!class)
		class = class_of_registers(x);
	if (!class)
		class = class_of_category[x->d.meta.category];
	return class ? class : INSN_CLASS_OTHER;
}

static enum insn_memory memory_of(const struct x86_decoded *x, enum insn_class class)
{
	bool is_load = false, is_store = false;

	/* They name memory that they do not access. */
	if (class == INSN_CLASS_NOP || class == INSN_CLASS_CACHE)
		return INSN_MEMORY_NONE;
	for (unsigned i = 0; i < x->d.operand_count; i++) {
		const ZydisDecodedOperand *o = &x->operands[i];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN ||
			o->mem.type == ZYDIS_MEMOP_TYPE_MIB)
			continue;
		is_load |= (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
		is_store |= (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	}
	if (is_load)
		return is_store ? INSN_MEMORY_BOTH : INSN_MEMORY_LOAD;
	return is_store ? INSN_MEMORY_STORE : INSN_MEMORY_NONE;
}

static bool is_float(const ZydisDecodedOperand *o)
{
	return o->element_type == ZYDIS_ELEMENT_TYPE_FLOAT16 ||
	       o->element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
	       o->element_type == ZYDIS_ELEMENT_TYPE_FLOAT64;
}

/* A scalar instruction has one operand at least of a single element. */
static enum insn_vector vector_of(
	const struct x86_decoded *x, enum insn_class class, uint16_t *width)
{
	bool spreads = x->d.meta.category == ZYDIS_CATEGORY_BROADCAST ||
		       x->d.meta.category == ZYDIS_CATEGORY_GATHER ||
		       x->d.meta.category == ZYDIS_CATEGORY_SCATTER ||
		       x->d.meta.category == ZYDIS_CATEGORY_AVX2GATHER;
	enum insn_vector vector = INSN_VECTOR_INTEGER;

	if (class < INSN_CLASS_MMX || class > INSN_CLASS_AVX512)
		return INSN_VECTOR_NONE;
	for (unsigned i = 0; i < x->d.operand_count_visible; i++) {
		const ZydisDecodedOperand *o = &x->operands[i];

		if (!is_float(o))
			continue;
		if (o->element_count == 1 && !spreads) {
			*width = o->element_size;
			return INSN_VECTOR_SCALAR_FLOAT;
		}
		vector = INSN_VECTOR_PACKED_FLOAT;
	}
	return vector;
}

static uint16_t width_of(const struct x86_decoded *x, enum insn_class class)
{
	uint16_t width = 0;

	if (class == INSN_CLASS_NOP)
		return 0;
	if (class == INSN_CLASS_STRING)
		return x->d.operand_width;
	for (unsigned i = 0; i < x->d.operand_count_visible; i++) {
		const ZydisDecodedOperand *o = &x->operands[i];
		bool is_value = o->type == ZYDIS_OPERAND_TYPE_REGISTER ||
				(o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
					o->mem.type != ZYDIS_MEMOP_TYPE_AGEN);

		if (is_value && o->size > width)
			width = o->size;
	}
	return width;
}

static bool is_locked(const struct x86_decoded *x)
{
	if (x->d.attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return true;
	return x->d.mnemonic == ZYDIS_MNEMONIC_XCHG &&
	       (x->operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
		       x->operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

static const char *prefix_of(const struct x86_decoded *x)
{
	if (x->d.attributes & ZYDIS_ATTRIB_HAS_REP)
		return "rep ";
	if (x->d.attributes & ZYDIS_ATTRIB_HAS_REPE)
		return "repe ";
	return x->d.attributes & ZYDIS_ATTRIB_HAS_REPNE ? "repne " : "";
}

void insn_traits_get(struct insn_traits *traits, const struct step_insn *insn)
{
	struct x86_decoded x;

	*traits = (struct insn_traits){.mnemonic = "", .prefix = "", .extension = ""};
	if (!insn->length ||
		!x86_decode_all(&x, (struct span){insn->bytes, insn->n_bytes}, insn->is_64))
		return;
	traits->class = (uint8_t)class_of(&x, (enum x86_flow)insn->flow);
	traits->memory = (uint8_t)memory_of(&x, traits->class);
	traits->width = width_of(&x, traits->class);
	traits->vector = (uint8_t)vector_of(&x, traits->class, &traits->width);
	traits->is_locked = is_locked(&x);
	traits->prefix = traits->class == INSN_CLASS_STRING ? prefix_of(&x) : "";
	traits->is_repeated = *traits->prefix;
	traits->mnemonic = ZydisMnemonicGetString(x.d.mnemonic);
	traits->extension = ZydisISAExtGetString(x.d.meta.isa_ext);
}
