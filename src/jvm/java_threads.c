/* SPDX-License-Identifier: MIT */
/*
 * The threads of a JVM. Java's are in a list, each with its java.lang.Thread, whose name is a String:
 * a byte[] in Latin-1 or UTF-16. The others (collector, compiler, the JVM's own) have the names that
 * the system knows.
 */
#include <stdio.h>
#include <string.h>

#include "jvm/jvm_internal.h"

#define THREADS_MAX    65536
#define NAME_CHARS_MAX 1024
#define CODER_UTF16    1
#define TRIES_MAX      3 /* the collector moves objects */

/* Klass::_layout_helper of an array: what kind in the upper bits, then the bytes in front of its
 * elements. */
#define LAYOUT_IS_PRIMITIVE_ARRAY(helper) ((int32_t)(helper) >> 30 == -1)
#define LAYOUT_HEADER_BYTES(helper)	  ((helper) >> 16 & 0xff)

/* --- names --- */

static size_t put_utf8(char *to, size_t room, uint32_t c)
{
	uint8_t bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n > room)
		return 0;
	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
	bytes[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
	memcpy(to, bytes, n);
	return n;
}

/* The character at *i, which goes on. Half of one is U+FFFD. */
static uint32_t next_character(const uint8_t *bytes, size_t n, bool is_utf16, size_t *i)
{
	uint16_t high, low;

	if (!is_utf16)
		return bytes[(*i)++];
	memcpy(&high, bytes + *i, 2);
	*i += 2;
	if ((high & 0xf800) != 0xd800)
		return high;
	if (high >= 0xdc00 || *i + 2 > n)
		return 0xfffd;
	memcpy(&low, bytes + *i, 2);
	if ((low & 0xfc00) != 0xdc00)
		return 0xfffd;
	*i += 2;
	return 0x10000 + ((uint32_t)(high & 0x3ff) << 10) + (low & 0x3ff);
}

static void put_name(char *to, size_t room, const uint8_t *bytes, size_t n, bool is_utf16)
{
	size_t used = 0;

	if (is_utf16)
		n &= ~(size_t)1;
	for (size_t i = 0; i < n;) {
		uint32_t c = next_character(bytes, n, is_utf16, &i);
		size_t put = put_utf8(to + used, room - 1 - used, c ? c : ' ');

		if (!put)
			break;
		used += put;
	}
	to[used] = 0;
}

/* Where java.lang.Thread and java.lang.String have what; found at the first object of theirs. */
static bool find_name_field(struct jvm *jvm, uint64_t thread)
{
	uint64_t klass;
	int32_t at;

	if (jvm->thread_name_at)
		return true;
	if (!oop_klass(jvm, thread, &klass))
		return false;
	klass = klass_find_super(jvm, klass, "java/lang/Thread");
	at = klass ? klass_field_offset(jvm, klass, "name") : -1;
	jvm->thread_name_at = at > 0 ? (uint32_t)at : 0;
	return at > 0;
}

static bool find_string_fields(struct jvm *jvm, uint64_t string)
{
	uint64_t klass;
	int32_t value, coder;

	if (!oop_klass(jvm, string, &klass))
		return false;
	if (jvm->string_klass)
		return klass == jvm->string_klass;
	if (klass_find_super(jvm, klass, "java/lang/String") != klass)
		return false;
	value = klass_field_offset(jvm, klass, "value");
	coder = klass_field_offset(jvm, klass, "coder");
	if (value <= 0 || coder <= 0)
		return false;
	jvm->string_klass = klass;
	jvm->string_value_at = (uint32_t)value;
	jvm->string_coder_at = (uint32_t)coder;
	return true;
}

/* A byte[]: its length, and where the bytes begin. */
static bool read_array_head(struct jvm *jvm, uint64_t array, uint32_t *length, uint32_t *header)
{
	const struct oop_format *f = &jvm->oops;
	uint32_t length_at = f->has_compact_headers ? 8 : f->has_narrow_klass ? 12 : 16;
	uint32_t helper;
	uint64_t klass;

	if (!oop_klass(jvm, array, &klass) ||
		!vm_read_u32(&jvm->memory, klass + jvm->layout.klass_layout.offset, &helper) ||
		!LAYOUT_IS_PRIMITIVE_ARRAY(helper))
		return false;
	*header = LAYOUT_HEADER_BYTES(helper);
	return *header >= length_at + 4 && vm_read_u32(&jvm->memory, array + length_at, length);
}

static bool read_string(struct jvm *jvm, uint64_t string, char *to, size_t room)
{
	uint8_t bytes[NAME_CHARS_MAX], coder;
	uint32_t length, header;
	uint64_t array;

	if (!find_string_fields(jvm, string) ||
		!oop_read_field(jvm, string, jvm->string_value_at, &array) ||
		!vm_read(&jvm->memory, string + jvm->string_coder_at, &coder, 1) ||
		coder > CODER_UTF16 || !read_array_head(jvm, array, &length, &header))
		return false;
	if (length > sizeof(bytes))
		length = sizeof(bytes);
	if (!vm_read(&jvm->memory, array + header, bytes, length))
		return false;
	put_name(to, room, bytes, length, coder == CODER_UTF16);
	return true;
}

/* The reference to the object and the one to its name are the same afterwards. */
static bool read_thread_name(struct jvm *jvm, uint64_t handle, char *to, size_t room)
{
	uint64_t thread, string, thread_after, string_after;

	for (unsigned i = 0; i < TRIES_MAX; i++) {
		if (!oop_read_handle(jvm, handle, &thread) || !find_name_field(jvm, thread) ||
			!oop_read_field(jvm, thread, jvm->thread_name_at, &string))
			return false;
		if (read_string(jvm, string, to, room) &&
			oop_read_handle(jvm, handle, &thread_after) && thread_after == thread &&
			oop_read_field(jvm, thread, jvm->thread_name_at, &string_after) &&
			string_after == string)
			return true;
	}
	return false;
}

/* --- kinds --- */

/* Of threads that are not Java's own, by the begin of their names. */
static enum jvm_thread_kind kind_by_name(const char *name, enum jvm_thread_kind otherwise)
{
	static const struct {
		const char *begin;
		enum jvm_thread_kind kind;
	} kinds[] = {
		{"GC Thread#", JVM_THREAD_COLLECTOR},
		{"G1 ", JVM_THREAD_COLLECTOR},
		{"ParGC Thread#", JVM_THREAD_COLLECTOR},
		{"Shenandoah", JVM_THREAD_COLLECTOR},
		{"ZDirector", JVM_THREAD_COLLECTOR},
		{"ZDriver", JVM_THREAD_COLLECTOR},
		{"ZStat", JVM_THREAD_COLLECTOR},
		{"ZUncommitter", JVM_THREAD_COLLECTOR},
		{"ZUnmapper", JVM_THREAD_COLLECTOR},
		{"ZWorker", JVM_THREAD_COLLECTOR},
		{"XWorker", JVM_THREAD_COLLECTOR},
		{"StringDedup", JVM_THREAD_COLLECTOR},
		{"C1 Compiler", JVM_THREAD_COMPILER},
		{"C2 Compiler", JVM_THREAD_COMPILER},
		{"JVMCI", JVM_THREAD_COMPILER},
		{"VM Thread", JVM_THREAD_VM},
		{"VM Periodic", JVM_THREAD_VM},
		{"Signal Dispatch", JVM_THREAD_VM},
		{"Service Thread", JVM_THREAD_VM},
		{"Monitor Deflati", JVM_THREAD_VM},
		{"Notification Th", JVM_THREAD_VM},
		{"Sweeper thread", JVM_THREAD_VM},
		{"Attach Listener", JVM_THREAD_VM},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name, kinds[i].begin, strlen(kinds[i].begin)))
			return kinds[i].kind;
	return otherwise;
}

/* --- lists --- */

struct listing {
	struct jvm *jvm;
	struct jvm_thread *to;
	size_t n, max;
	bool has_own_numbers; /* a pid namespace of its own, where tids are others than here */
};

static bool has_thread(const struct listing *l, uint32_t tid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->to[i].tid == tid)
			return true;
	return false;
}

static void add_java_thread(struct listing *l, uint64_t thread)
{
	struct jvm *jvm = l->jvm;
	const struct vm_layout *layout = &jvm->layout;
	struct jvm_thread t = {0};
	uint64_t os, handle;

	if (!vm_is_pointer(thread) ||
		!vm_read_u64(&jvm->memory, thread + layout->thread_os.offset, &os) ||
		!vm_is_pointer(os) ||
		!vm_read_u32(&jvm->memory, os + layout->os_thread_id.offset, &t.tid) || !t.tid ||
		!vm_read_u64(&jvm->memory, thread + layout->thread_obj.offset, &handle) ||
		!read_thread_name(jvm, handle, t.name, sizeof(t.name)))
		return;
	t.kind = kind_by_name(t.name, JVM_THREAD_JAVA);
	l->to[l->n++] = t;
}

static void list_java_threads(struct listing *l)
{
	struct jvm *jvm = l->jvm;
	const struct vm_layout *layout = &jvm->layout;
	uint64_t list, threads, *all;
	uint32_t n;

	if (!layout->thread_list || !layout->list_threads.width || !layout->thread_obj.width ||
		!layout->thread_os.width || !layout->os_thread_id.width || !oop_format_begin(jvm) ||
		!vm_read_u64(&jvm->memory, layout->thread_list, &list) || !vm_is_pointer(list) ||
		!vm_read_u32(&jvm->memory, list + layout->list_length.offset, &n) ||
		!vm_read_u64(&jvm->memory, list + layout->list_threads.offset, &threads) ||
		n > THREADS_MAX)
		return;
	all = mem_calloc(n + 1, sizeof(*all));
	if (vm_read(&jvm->memory, threads, all, n * sizeof(*all)))
		for (uint32_t i = 0; i < n && l->n < l->max; i++)
			add_java_thread(l, all[i]);
	free(all);
}

/* The JVM's own threads have no object; the system knows their names, cut to 15 bytes. Others that it
 * does not know are not its threads. */
static void add_own_thread(void *ctx, pid_t tid)
{
	struct listing *l = ctx;
	struct jvm_thread t = {0};
	pid_t pid = l->jvm->memory.pid, own = tid;
	char name[64];

	/* It is read for each thread out of a long text: only where it must. */
	if (l->n == l->max || (l->has_own_numbers && !proc_own_number(pid, tid, &own)) ||
		has_thread(l, (uint32_t)own))
		return;
	proc_name(pid, tid, name, sizeof(name));
	t.tid = (uint32_t)own;
	t.kind = kind_by_name(name, JVM_THREAD_JAVA);
	if (t.kind == JVM_THREAD_JAVA)
		return;
	t.is_systems = strcmp(name, "VM Periodic Tas") != 0;
	snprintf(t.name, sizeof(t.name), "%s", t.is_systems ? name : "VM Periodic Task Thread");
	l->to[l->n++] = t;
}

size_t jvm_threads(struct jvm *jvm, struct jvm_thread *to, size_t max)
{
	struct listing l = {.jvm = jvm, .to = to, .max = max};
	pid_t own;

	if (!jvm->is_ready)
		return 0;
	list_java_threads(&l);
	l.has_own_numbers = proc_own_number(jvm->memory.pid, jvm->memory.pid, &own) != 1;
	if (jvm->memory.pid)
		proc_each_task(jvm->memory.pid, add_own_thread, &l);
	return l.n;
}
