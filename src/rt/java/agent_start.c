/* SPDX-License-Identifier: MIT */
/*
 * The way into a JVM. One that is being made gets one more option, -agentpath:, so that it calls Agent_OnLoad; nothing
 * is printed by that, as it is for JAVA_TOOL_OPTIONS. In one that runs the recorder has weir_java_start called on
 * one of its threads: that makes a thread of our own, which the JVM gets to know for as long as it works. So a
 * JVM that was told to refuse agents (-XX:+DisableAttachMechanism) is none the wiser, and none prints a
 * warning.
 */
#ifdef __x86_64__
#include <link.h>
#include <pthread.h>

#include "java.h"

#define OPTIONS_MAX 65536

extern struct r_debug _r_debug __attribute__((weak));
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern __typeof__(pthread_create) pthread_create __attribute__((weak, visibility("default")));
extern __typeof__(pthread_self) pthread_self __attribute__((weak, visibility("default")));
extern __typeof__(pthread_detach) pthread_detach __attribute__((weak, visibility("default")));

/* Found by name by the recorder, which waits until none of our threads is at work: how many there are. */
__attribute__((visibility("default"))) uint32_t weir_java_state;
__attribute__((visibility("default"))) int weir_java_start(const char *place);
__attribute__((visibility("default"))) int Agent_OnLoad(
	jvm_table vm, char *options, void *reserved);

/* JNI_GetCreatedJavaVMs; written when libjvm.so is first seen. Found by name, too: there is a JVM's library. */
__attribute__((visibility("default"))) uintptr_t weir_java_jvms;

void java_tell_jvms(uintptr_t function)
{
	weir_java_jvms = function;
}

bool java_is_wanted(void)
{
	return library.control && !library.is_off;
}

void java_count_jvm(void)
{
	if (library.control)
		__atomic_add_fetch(&library.control->n_jvms_left, 1, __ATOMIC_RELAXED);
}

void java_count_classes(uint32_t n)
{
	if (library.control)
		__atomic_add_fetch(&library.control->n_classes_left, n, __ATOMIC_RELAXED);
}

void java_note_archive(void)
{
	if (library.control)
		library.control->writes_archive = 1;
}

/* It is loaded with the first virtual thread. */
void java_note_class(const char *name, size_t n)
{
	static const char mark[] = "java/lang/VirtualThread$VThreadContinuation";

	if (library.control && n == sizeof(mark) - 1 && bytes_equal(name, mark, n))
		library.control->has_virtual_threads = 1;
}

/* --- one that is being made --------------------------------------------------------------- */

const char *java_own_path(void)
{
	const struct link_map *l = &_r_debug ? _r_debug.r_map : NULL;

	while (l && l->l_ld != _DYNAMIC)
		l = l->l_next;
	return l ? l->l_name : NULL;
}

/* JVMs end the path at the first '='. */
static bool is_usable(const char *path)
{
	for (size_t i = 0; path && path[i]; i++)
		if (path[i] == '=')
			return false;
	return path && path[0] == '/';
}

/* The options and one more. They stay: the JVM may look at them at any time. */
static struct jvm_option *with_agent(const struct jvm_init_args *args, const char *path)
{
	static const char option[] = "-agentpath:";
	size_t n = (size_t)args->n_options, n_path = text_length(path) + 1;
	size_t bytes = (n + 1) * sizeof(struct jvm_option) + sizeof(option) + n_path;
	struct jvm_option *options = raw_memory(NULL, PAGE_UP(bytes), PROT_READ | PROT_WRITE, 0);
	char *text;

	if (!options)
		return NULL;
	text = (char *)(options + n + 1);
	bytes_copy(options, args->options, n * sizeof(*options));
	bytes_copy(text, option, sizeof(option) - 1);
	bytes_copy(text + sizeof(option) - 1, path, n_path);
	options[n] = (struct jvm_option){text, NULL};
	return options;
}

void java_note_create(uintptr_t at)
{
	struct jvm_init_args *args = (struct jvm_init_args *)at;
	const char *path = java_own_path();
	struct jvm_option *options;

	if (!args || !java_is_wanted() || args->n_options < 0 || args->n_options > OPTIONS_MAX)
		return;
	if (!exchange_recorder_lives()) {
		library_stop();
		return;
	}
	if (archive_is_asked_for(args)) {
		java_note_archive();
		return;
	}
	options = is_usable(path) ? with_agent(args, path) : NULL;
	if (!options) {
		java_count_jvm();
		return;
	}
	args->options = options;
	args->n_options++;
}

/* Anything but 0 would end the JVM. */
int Agent_OnLoad(jvm_table vm, char *options, void *reserved)
{
	(void)options;
	(void)reserved;
	if (java_is_wanted() && !agent_prepare(vm))
		java_count_jvm();
	return 0;
}

/* --- one that runs ------------------------------------------------------------------------- */

static jvm_table running_jvm(void)
{
	jvm_table vm = NULL;
	int32_t n = 0;

	if (!weir_java_jvms)
		return NULL;
	((int32_t(*)(jvm_table *, int32_t, int32_t *))weir_java_jvms)(&vm, 1, &n);
	return n > 0 ? vm : NULL;
}

/* Watches, or gives back what was watched: as the recording is on or over. */
static void *work(void *none)
{
	const struct jvm_attach_args args = {JNI_VERSION_WANTED, "weir", NULL};
	jvm_table vm = running_jvm(), jni = NULL;

	(void)none;
	pthread_detach(pthread_self());
	if (vm && JVM_CALL(vm, VM_ATTACH_CURRENT_THREAD_AS_DAEMON,
			  int32_t(*)(jvm_table, jvm_table *, const struct jvm_attach_args *))(
			  vm, &jni, &args) == 0) {
		if (java_is_wanted())
			agent_begin(jni);
		else
			agent_end(jni);
		JVM_CALL(vm, VM_DETACH_CURRENT_THREAD, int32_t(*)(jvm_table))(vm);
	} else if (vm) {
		java_count_jvm();
	}
	__atomic_sub_fetch(&weir_java_state, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

static int start_thread(void)
{
	pthread_t thread;
	int rc;

	if (!pthread_create || !pthread_detach || !pthread_self || !weir_java_jvms)
		return -ENOSYS;
	__atomic_add_fetch(&weir_java_state, 1, __ATOMIC_ACQ_REL);
	rc = pthread_create(&thread, NULL, work, NULL);
	if (rc)
		__atomic_sub_fetch(&weir_java_state, 1, __ATOMIC_ACQ_REL);
	return -rc;
}

int weir_java_start(const char *place)
{
	return text_equals(place, weir_place) ? start_thread() : -ESRCH;
}

/* Not where the program forbids itself system calls: a thread needs some. */
void java_give_back(void)
{
	static uint32_t given_back; /* the recording that it was last done for */
	uint32_t seen = __atomic_load_n(&given_back, __ATOMIC_RELAXED), now = library.session;

	if (seen == now || !agent_is_on() || !library.control || !library.is_off ||
		library.control->stop_reason || library_is_copy())
		return;
	if (__atomic_compare_exchange_n(
		    &given_back, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		start_thread();
}
#endif
