/* SPDX-License-Identifier: MIT */
/*
 * What a thread has allocated on the JVM's heap: what it has used up of all its buffers before, and of the one it has
 * now. The JVM keeps both for its own statistics, and says where (gHotSpotVMStructs): so nothing is called, and
 * nothing is switched on. A collector may take the buffer in between, which is then seen twice, or not; what was seen
 * once too often is not counted again.
 */
#ifdef __x86_64__
#include "java.h"

#define ENTRIES_MAX	 16384
#define ENV_DISTANCE_MAX 16384 /* between a JavaThread and the JNIEnv in it */
#define FIELD_MAX	 16384

/* VMStructEntry */
struct vm_field_entry {
	const char *type, *field, *type_of_field;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

/* From the JNIEnv of a thread to the fields. Written by heap_bytes_begin before has_all, which is written last and
 * stays; read by every thread. */
static struct {
	intptr_t env, buffer, start, top, used_up;
	uint32_t has_all;
} at;

/* HOOK_OWN_VM_STRUCTS and so on; written when libjvm.so is first seen. */
static const uint64_t *variables[HOOK_OWN_VM_OFFSET - HOOK_OWN_VM_STRUCTS + 1];

void java_tell_table(enum hook_own which, uintptr_t variable)
{
	variables[which - HOOK_OWN_VM_STRUCTS] = (const uint64_t *)variable;
}

static uint64_t told(enum hook_own which)
{
	const uint64_t *variable = variables[which - HOOK_OWN_VM_STRUCTS];

	return variable ? *variable : 0;
}

/* NULL: there is no table, or it is another one. */
static const struct vm_field_entry *table(void)
{
	if (told(HOOK_OWN_VM_STRIDE) != sizeof(struct vm_field_entry) ||
		told(HOOK_OWN_VM_OFFSET) != __builtin_offsetof(struct vm_field_entry, offset))
		return NULL;
	return (const struct vm_field_entry *)(uintptr_t)told(HOOK_OWN_VM_STRUCTS);
}

static bool take_field(
	const struct vm_field_entry *e, const char *type, const char *field, intptr_t *to)
{
	if (e->is_static || e->offset >= FIELD_MAX || !text_equals(e->type, type) ||
		!text_equals(e->field, field))
		return false;
	*to = (intptr_t)e->offset;
	return true;
}

static bool find_fields(void)
{
	const struct vm_field_entry *e = table();
	uint32_t n_found = 0;

	for (int i = 0; e && i < ENTRIES_MAX && e->type && e->field; i++, e++) {
		n_found += take_field(e, "Thread", "_tlab", &at.buffer);
		n_found += take_field(e, "Thread", "_allocated_bytes", &at.used_up);
		n_found += take_field(e, "ThreadLocalAllocBuffer", "_start", &at.start);
		n_found += take_field(e, "ThreadLocalAllocBuffer", "_top", &at.top);
	}
	return n_found == 4;
}

/* java.lang.Thread says where its JavaThread is, and the JNIEnv is in that. */
static bool find_thread(jvm_table jvmti, jvm_table jni)
{
	struct jvm_object *thread = NULL, *class;
	void *field;
	intptr_t distance = 0;

	if (JVM_CALL(jvmti, JVMTI_GET_CURRENT_THREAD, int32_t(*)(jvm_table, struct jvm_object **))(
		    jvmti, &thread) != 0)
		return false;
	class = JVM_CALL(jni, JNI_FIND_CLASS, struct jvm_object * (*)(jvm_table, const char *))(
		jni, "java/lang/Thread");
	field = class ? JVM_CALL(jni, JNI_GET_FIELD_ID,
				void *(*)(jvm_table, struct jvm_object *, const char *,
					const char *))(jni, class, "eetop", "J")
		      : NULL;
	if (field && thread)
		distance = (intptr_t)jni - (intptr_t)JVM_CALL(jni, JNI_GET_LONG_FIELD,
						   int64_t(*)(jvm_table, struct jvm_object *,
							   void *))(jni, thread, field);
	JVM_CALL(jni, JNI_EXCEPTION_CLEAR, void (*)(jvm_table))(jni);
	at.env = distance;
	return distance > 0 && distance < ENV_DISTANCE_MAX && distance % 8 == 0;
}

void heap_bytes_begin(jvm_table jvmti, jvm_table jni)
{
	if (at.has_all || !library.control || !library.control->counts_bytes)
		return;
	if (find_fields() && find_thread(jvmti, jni))
		__atomic_store_n(&at.has_all, 1, __ATOMIC_RELEASE);
	else
		__atomic_add_fetch(&library.control->n_jvms_without_bytes, 1, __ATOMIC_RELAXED);
}

bool heap_bytes(const void *env, uint64_t *bytes)
{
	const uint8_t *thread;
	uint64_t start, top;

	if (likely(!__atomic_load_n(&at.has_all, __ATOMIC_ACQUIRE)))
		return false;
	thread = (const uint8_t *)env - at.env;
	start = *(const volatile uint64_t *)(thread + at.buffer + at.start);
	top = *(const volatile uint64_t *)(thread + at.buffer + at.top);
	*bytes = *(const volatile uint64_t *)(thread + at.used_up);
	if (start && top > start)
		*bytes += top - start;
	return true;
}
#endif
