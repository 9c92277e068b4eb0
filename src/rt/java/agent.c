/* SPDX-License-Identifier: MIT */
/*
 * What the agent does with classes. The JVM hands over each that it is about to load, on the thread that loads it;
 * classes that are there already are handed over because the agent asks for it. Those that have chosen
 * methods go to the recorder and come back with calls in them.
 *
 * The names of changed classes are remembered by their hashes, so that they can be asked for once more at the end,
 * when nothing is put into them.
 */
#ifdef __x86_64__
#include "java.h"

#define HASHES		(1u << 18) /* of changed classes; a power of two */
#define HASH_PROBES	64
#define NAMES_BYTES	HOOK_CLASSES_BYTES_MAX
#define NAME_OF_LIBRARY 1
#define NAME_OF_PROGRAM 2

/*
 * JVMS 4.1; in this package every class of every loader finds it:
 *
 *	final class java.lang.WeirHook {
 *		static native void enter(int);
 *		static native void leave(int);
 *		static native void done(int, long);
 *		static void begin(String path) { System.load(path); }
 *	}
 *
 * A library that the JVM has loaded is where it looks for native methods. RegisterNatives would do, too, but is
 * warned of where a class of the JDK's own is concerned.
 */
static const uint8_t hook_class[] =
	"\xca\xfe\xba\xbe\0\0\0\x31\0\x12"
	"\x07\0\x02\x01\0\x12java/lang/WeirHook\x07\0\x04\x01\0\x10java/lang/Object" /* 1 .. 4 */
	"\x01\0\x05"
	"enter\x01\0\x05"
	"leave\x01\0\x04(I)V" /* 5 .. 7 */
	"\x01\0\x05"
	"begin\x01\0\x15(Ljava/lang/String;)V"		     /* 8, 9 */
	"\x07\0\x0b\x01\0\x10java/lang/System\x01\0\x04load" /* 10 .. 12 */
	"\x0c\0\x0c\0\x09\x0a\0\x0a\0\x0d\x01\0\x04"
	"Code" /* 13 .. 15 */
	"\x01\0\x04"
	"done\x01\0\x05(IJ)V" /* 16, 17 */
	"\x10\x31\0\x01\0\x03\0\0\0\0\0\x04"
	"\x01\x09\0\x05\0\x07\0\0\x01\x09\0\x06\0\x07\0\0\x01\x09\0\x10\0\x11\0\0"
	"\0\x09\0\x08\0\x09\0\x01\0\x0f\0\0\0\x11\0\x01\0\x01\0\0\0\x05\x2a\xb8\0\x0e\xb1\0\0\0\0"
	"\0\0";

/* Written by agent_prepare, agent_begin and agent_end, of which one is called at a time; read by every thread that
 * loads classes. NULL: the agent does nothing. */
static jvm_table jvmti;
static bool is_on;
static uint64_t *hashes; /* any thread adds its own, by compare and swap; 0 = free */

/* --- calls of the JVM --------------------------------------------------------------------- */

static bool set_event(jvm_table env, enum jvmti_event event, bool is_wanted)
{
	return JVM_CALL(env, JVMTI_SET_EVENT_NOTIFICATION_MODE,
		       int32_t(*)(jvm_table, int32_t, int32_t, struct jvm_object *, ...))(
		       env, is_wanted, event, NULL) == 0;
}

static void *allocate(jvm_table env, int64_t n)
{
	void *memory = NULL;
	int32_t rc = JVM_CALL(env, JVMTI_ALLOCATE, int32_t(*)(jvm_table, int64_t, void **))(
		env, n, &memory);

	return rc == 0 ? memory : NULL;
}

static void deallocate(jvm_table env, void *memory)
{
	JVM_CALL(env, JVMTI_DEALLOCATE, int32_t(*)(jvm_table, void *))(env, memory);
}

static void delete_local(jvm_table jni, struct jvm_object *object)
{
	if (object)
		JVM_CALL(jni, JNI_DELETE_LOCAL_REF, void (*)(jvm_table, struct jvm_object *))
	(jni, object);
}

static void clear_exception(jvm_table jni)
{
	JVM_CALL(jni, JNI_EXCEPTION_CLEAR, void (*)(jvm_table))(jni);
}

/* --- changed classes ----------------------------------------------------------------------- */

static uint64_t hash_of(const char *name, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3u;
	return h | 1;
}

/* The place of the hash, or a free one; NULL: there is none. */
static uint64_t *hash_place(uint64_t hash)
{
	for (uint64_t i = 0; hashes && i < HASH_PROBES; i++) {
		uint64_t *place = &hashes[(hash + i) & (HASHES - 1)];
		uint64_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);

		if (seen == hash || !seen)
			return place;
	}
	return NULL;
}

static bool remember(const char *name)
{
	uint64_t hash = hash_of(name, text_length(name)), none = 0;
	uint64_t *place;

	while ((place = hash_place(hash))) {
		if (*place == hash || exchange_word(place, &none, hash))
			return true;
		none = 0;
	}
	return false;
}

static bool is_remembered(const char *name, size_t n)
{
	const uint64_t *place = hash_place(hash_of(name, n));

	return place && *place;
}

/* --- a class ------------------------------------------------------------------------------- */

static void take_class(jvm_table env, const struct exchange *x, int32_t *n, uint8_t **bytes)
{
	uint8_t *memory = allocate(env, (int64_t)x->plan_bytes);

	if (!memory) {
		java_count_classes(1);
		return;
	}
	bytes_copy(memory, x->plans, (size_t)x->plan_bytes);
	*n = (int32_t)x->plan_bytes;
	*bytes = memory;
}

static void on_class(jvm_table env, jvm_table jni, struct jvm_object *redefined,
	struct jvm_object *loader, const char *name, struct jvm_object *domain, int32_t n,
	const uint8_t *bytes, int32_t *new_n, uint8_t **new_bytes)
{
	struct exchange x;

	(void)jni;
	(void)redefined;
	(void)domain;
	if (!__atomic_load_n(&is_on, __ATOMIC_ACQUIRE) || !java_is_wanted() || n <= 0)
		return;
	if (name && text_equals(name, "java/lang/WeirHook"))
		return;
	if (name)
		java_note_class(name, text_length(name));
	if (!classes_ask(&x, bytes, (size_t)n, !loader))
		return;
	/* A class that could not become what it was at the end stays as it is. */
	if (name && remember(name))
		take_class(env, &x, new_n, new_bytes);
	else
		java_count_classes(1);
	exchange_close(&x);
}

/* --- classes that are there ---------------------------------------------------------------- */

struct class_list {
	jvm_table env, jni;
	struct jvm_object **all; /* the JVM's memory */
	int32_t n;
	uint8_t *names; /* for the recorder; raw memory */
	size_t n_names_bytes;
	uint32_t n_chosen; /* so many of `all`, which come first, may be changed */
};

static bool is_modifiable(const struct class_list *l, struct jvm_object *class)
{
	uint8_t is = 0;

	return JVM_CALL(l->env, JVMTI_IS_MODIFIABLE_CLASS,
		       int32_t(*)(jvm_table, struct jvm_object *, uint8_t *))(l->env, class, &is) ==
		       0 &&
	       is;
}

static bool is_of_library(const struct class_list *l, struct jvm_object *class)
{
	struct jvm_object *loader = NULL;
	int32_t rc = JVM_CALL(l->env, JVMTI_GET_CLASS_LOADER,
		int32_t(*)(jvm_table, struct jvm_object *, struct jvm_object **))(
		l->env, class, &loader);

	delete_local(l->jni, loader);
	return rc == 0 && !loader;
}

/* `Lcom/example/Main;`, in the JVM's memory; NULL: it does not say, or it is no class. */
static char *signature_of(const struct class_list *l, struct jvm_object *class)
{
	char *signature = NULL;

	if (JVM_CALL(l->env, JVMTI_GET_CLASS_SIGNATURE,
		    int32_t(*)(jvm_table, struct jvm_object *, char **, char **))(
		    l->env, class, &signature, NULL) != 0)
		return NULL;
	if (signature && signature[0] == 'L')
		return signature;
	deallocate(l->env, signature);
	return NULL;
}

/* Appends the class's name; false when there is no room. */
static bool add_name(struct class_list *l, const char *signature, bool is_library)
{
	size_t n = text_length(signature) - 2; /* without L and ; */
	uint8_t *to = l->names + l->n_names_bytes;

	if (n + 2 > NAMES_BYTES - l->n_names_bytes)
		return false;
	to[0] = is_library ? NAME_OF_LIBRARY : NAME_OF_PROGRAM;
	bytes_copy(to + 1, signature + 1, n);
	to[n + 1] = 0;
	l->n_names_bytes += n + 2;
	return true;
}

/* Those that `is_chosen` come first. */
static void choose(struct class_list *l,
	bool (*is_chosen)(struct class_list *l, struct jvm_object *c, const char *s))
{
	l->n_chosen = 0;
	for (int32_t i = 0; i < l->n; i++) {
		struct jvm_object *class = l->all[i];
		char *signature = is_modifiable(l, class) ? signature_of(l, class) : NULL;

		if (!signature)
			continue;
		if (is_chosen(l, class, signature)) {
			l->all[i] = l->all[l->n_chosen];
			l->all[l->n_chosen++] = class;
		}
		deallocate(l->env, signature);
	}
}

static bool is_named(struct class_list *l, struct jvm_object *class, const char *signature)
{
	if (text_equals(signature, "Ljava/lang/WeirHook;"))
		return false;
	java_note_class(signature + 1, text_length(signature) - 2);
	if (add_name(l, signature, is_of_library(l, class)))
		return true;
	java_count_classes(1);
	return false;
}

static bool is_changed(struct class_list *l, struct jvm_object *class, const char *signature)
{
	(void)l;
	(void)class;
	return is_remembered(signature + 1, text_length(signature) - 2);
}

/* Of the chosen ones, those that the recorder says may have something to watch. */
static void ask_recorder(struct class_list *l)
{
	uint32_t kept = 0;
	struct exchange x;

	if (!l->n_chosen || !classes_ask_names(&x, l->names, l->n_names_bytes, l->n_chosen)) {
		l->n_chosen = 0;
		return;
	}
	for (uint32_t i = 0; i < l->n_chosen; i++)
		if (x.plans[i] == 1) {
			struct jvm_object *class = l->all[i];

			l->all[i] = l->all[kept];
			l->all[kept++] = class;
		}
	l->n_chosen = kept;
	exchange_close(&x);
}

static bool retransform(const struct class_list *l, struct jvm_object **classes, int32_t n)
{
	bool is_done = JVM_CALL(l->env, JVMTI_RETRANSFORM_CLASSES,
			       int32_t(*)(jvm_table, int32_t, struct jvm_object **))(
			       l->env, n, classes) == 0;

	if (!is_done)
		clear_exception(l->jni);
	return is_done;
}

/* All at once is faster; where one of them cannot be, none is. */
static void retransform_chosen(const struct class_list *l)
{
	if (!l->n_chosen || retransform(l, l->all, (int32_t)l->n_chosen))
		return;
	for (uint32_t i = 0; i < l->n_chosen; i++)
		if (!retransform(l, &l->all[i], 1))
			java_count_classes(1);
}

static void change_loaded(jvm_table jni, bool is_back)
{
	struct class_list l = {.env = jvmti, .jni = jni};

	if (JVM_CALL(l.env, JVMTI_GET_LOADED_CLASSES,
		    int32_t(*)(jvm_table, int32_t *, struct jvm_object ***))(l.env, &l.n, &l.all) !=
		0)
		return;
	if (is_back) {
		choose(&l, is_changed);
	} else {
		l.names = raw_memory(NULL, NAMES_BYTES, PROT_READ | PROT_WRITE, MAP_NORESERVE);
		if (l.names) {
			choose(&l, is_named);
			ask_recorder(&l);
			raw_call(SYS_munmap, l.names, NAMES_BYTES);
		} else {
			java_count_jvm();
		}
	}
	retransform_chosen(&l);
	for (int32_t i = 0; i < l.n; i++)
		delete_local(jni, l.all[i]);
	deallocate(l.env, l.all);
}

/* --- the agent's life ---------------------------------------------------------------------- */

static void on_start(jvm_table env, jvm_table jni, struct jvm_object *thread)
{
	(void)env;
	(void)thread;
	agent_begin(jni);
}

static void on_death(jvm_table env, jvm_table jni)
{
	(void)env;
	(void)jni;
	__atomic_store_n(&is_on, false, __ATOMIC_RELEASE);
	jvmti = NULL;
}

static bool set_callbacks(jvm_table env)
{
	const void *callbacks[JVMTI_CALLBACKS] = {0};

	callbacks[JVMTI_VM_INIT - JVMTI_FIRST_EVENT] = (const void *)(uintptr_t)on_start;
	callbacks[JVMTI_VM_DEATH - JVMTI_FIRST_EVENT] = (const void *)(uintptr_t)on_death;
	callbacks[JVMTI_CLASS_FILE_LOAD_HOOK - JVMTI_FIRST_EVENT] =
		(const void *)(uintptr_t)on_class;
	return JVM_CALL(env, JVMTI_SET_EVENT_CALLBACKS,
		       int32_t(*)(jvm_table, const void **, int32_t))(
		       env, callbacks, sizeof(callbacks)) == 0;
}

static void dispose(jvm_table env)
{
	JVM_CALL(env, JVMTI_DISPOSE_ENVIRONMENT, int32_t(*)(jvm_table))(env);
}

static bool open_environment(jvm_table vm)
{
	uint8_t capabilities[JVMTI_CAPABILITY_BYTES] = {0};
	jvm_table env = NULL;

	if (jvmti)
		return true;
	if (!hashes)
		hashes = raw_memory(
			NULL, HASHES * sizeof(*hashes), PROT_READ | PROT_WRITE, MAP_NORESERVE);
	if (!hashes || JVM_CALL(vm, VM_GET_ENV, int32_t(*)(jvm_table, jvm_table *, int32_t))(
			       vm, &env, JVMTI_VERSION_WANTED) != 0)
		return false;
	capabilities[JVMTI_CAN_HOOK_BYTE] |= JVMTI_CAN_HOOK_BIT;
	capabilities[JVMTI_CAN_RETRANSFORM_BYTE] |= JVMTI_CAN_RETRANSFORM_BIT;
	if (JVM_CALL(env, JVMTI_ADD_CAPABILITIES, int32_t(*)(jvm_table, const uint8_t *))(
		    env, capabilities) != 0 ||
		!set_callbacks(env) || !set_event(env, JVMTI_VM_DEATH, true)) {
		dispose(env);
		return false;
	}
	jvmti = env;
	return true;
}

bool agent_prepare(jvm_table vm)
{
	return open_environment(vm) && set_event(jvmti, JVMTI_VM_INIT, true);
}

/* A static method of the class; of its arguments all but the first are 0. False: there was an exception, which is
 * forgotten. */
static bool call_static(jvm_table jni, struct jvm_object *class, const char *name,
	const char *signature, uintptr_t argument)
{
	void *method = JVM_CALL(jni, JNI_GET_STATIC_METHOD_ID,
		void *(*)(jvm_table, struct jvm_object *, const char *, const char *))(
		jni, class, name, signature);
	bool is_done;

	if (method)
		JVM_CALL(jni, JNI_CALL_STATIC_VOID_METHOD_A,
			void (*)(jvm_table, struct jvm_object *, void *, const uint64_t *))
	(jni, class, method, (const uint64_t[]){argument, 0});
	is_done = method && !JVM_CALL(jni, JNI_EXCEPTION_CHECK, uint8_t(*)(jvm_table))(jni);
	clear_exception(jni);
	return is_done;
}

/*
 * Has the class load this library, and the JVM find its methods there, by a call of each. Later would be too
 * late: what finds them is written in Java, and may have calls of them in it by then.
 */
static bool load_library(jvm_table jni, struct jvm_object *class)
{
	const char *path = java_own_path();
	struct jvm_object *text;
	bool is_done;

	if (!path)
		return false;
	text = JVM_CALL(jni, JNI_NEW_STRING_UTF, struct jvm_object * (*)(jvm_table, const char *))(
		jni, path);
	is_done = text &&
		  call_static(jni, class, "begin", "(Ljava/lang/String;)V", (uintptr_t)text) &&
		  call_static(jni, class, "enter", "(I)V", JAVA_NO_METHOD) &&
		  call_static(jni, class, "leave", "(I)V", JAVA_NO_METHOD) &&
		  call_static(jni, class, "done", "(IJ)V", JAVA_NO_METHOD);
	clear_exception(jni);
	delete_local(jni, text);
	return is_done;
}

/* Where another copy of this library was before, the methods lead to that one, and have to be told. */
static bool register_anew(jvm_table jni)
{
	const struct jvm_native natives[] = {{"enter", "(I)V", (void *)(uintptr_t)java_enter},
		{"leave", "(I)V", (void *)(uintptr_t)java_leave},
		{"done", "(IJ)V", (void *)(uintptr_t)java_done}};
	struct jvm_object *class;
	bool is_done;

	clear_exception(jni);
	class = JVM_CALL(jni, JNI_FIND_CLASS, struct jvm_object * (*)(jvm_table, const char *))(
		jni, "java/lang/WeirHook");
	is_done = class &&
		  JVM_CALL(jni, JNI_REGISTER_NATIVES,
			  int32_t(*)(jvm_table, struct jvm_object *, const struct jvm_native *,
				  int32_t))(jni, class, natives, 3) == 0;
	clear_exception(jni);
	delete_local(jni, class);
	return is_done;
}

/* The class that rewritten methods call. It stays for as long as the JVM lives, and so do its methods. */
static bool define_class(jvm_table jni)
{
	static bool is_defined;
	struct jvm_object *class;

	if (is_defined)
		return true;
	class = JVM_CALL(jni, JNI_DEFINE_CLASS,
		struct jvm_object * (*)(jvm_table, const char *, struct jvm_object *,
					    const uint8_t *, int32_t))(
		jni, "java/lang/WeirHook", NULL, hook_class, sizeof(hook_class) - 1);
	is_defined = class ? load_library(jni, class) : register_anew(jni);
	delete_local(jni, class);
	return is_defined;
}

void agent_begin(jvm_table jni)
{
	jvm_table vm = NULL;

	if (!java_is_wanted())
		return;
	JVM_CALL(jni, JNI_GET_JAVA_VM, int32_t(*)(jvm_table, jvm_table *))(jni, &vm);
	if (archive_is_written(jni)) {
		java_note_archive();
		return;
	}
	if (!vm || !open_environment(vm) || !define_class(jni)) {
		java_count_jvm();
		return;
	}
	heap_bytes_begin(jvmti, jni);
	__atomic_store_n(&is_on, true, __ATOMIC_RELEASE);
	if (!set_event(jvmti, JVMTI_CLASS_FILE_LOAD_HOOK, true)) {
		java_count_jvm();
		return;
	}
	change_loaded(jni, false);
}

bool agent_is_on(void)
{
	return __atomic_load_n(&is_on, __ATOMIC_ACQUIRE);
}

/* One of two threads that come at the same time does it. */
void agent_end(jvm_table jni)
{
	if (!__atomic_exchange_n(&is_on, false, __ATOMIC_ACQ_REL) || !jvmti)
		return;
	change_loaded(jni, true);
	dispose(jvmti);
	jvmti = NULL;
}
#endif
