/* SPDX-License-Identifier: MIT */
/*
 * The three tables of functions by which native code speaks to a JVM, as far as the agent needs them. What stands
 * where in them is part of the Java Native Interface and of the JVM Tool Interface, and never changes;
 * tests/meta/jvm_tables.sh compares all of it with a JDK's headers.
 */
#ifndef WEIR_RT_JAVA_JVM_TABLES_H
#define WEIR_RT_JAVA_JVM_TABLES_H

#include <stdint.h>

#define JNI_VERSION_WANTED   0x00010006
#define JVMTI_VERSION_WANTED 0x30010200

struct jvm_object; /* a jobject, jclass, jthread */

/* Each of the three begins with a pointer to its table, and is the first argument of its functions. */
typedef void *const *const *jvm_table;
#define JVM_CALL(table, i, type) ((type)(uintptr_t)(*(table))[i])

enum java_vm_function {
	VM_DETACH_CURRENT_THREAD = 5,
	VM_GET_ENV = 6,
	VM_ATTACH_CURRENT_THREAD_AS_DAEMON = 7,
};

enum jni_function {
	JNI_DEFINE_CLASS = 5,
	JNI_FIND_CLASS = 6,
	JNI_EXCEPTION_CLEAR = 17,
	JNI_DELETE_LOCAL_REF = 23,
	JNI_GET_FIELD_ID = 94,
	JNI_GET_LONG_FIELD = 101,
	JNI_GET_STATIC_METHOD_ID = 113,
	JNI_CALL_STATIC_BOOLEAN_METHOD_A = 119,
	JNI_CALL_STATIC_VOID_METHOD_A = 143,
	JNI_NEW_STRING_UTF = 167,
	JNI_REGISTER_NATIVES = 215,
	JNI_GET_JAVA_VM = 219,
	JNI_EXCEPTION_CHECK = 228,
};

enum jvmti_function {
	JVMTI_SET_EVENT_NOTIFICATION_MODE = 1,
	JVMTI_GET_CURRENT_THREAD = 17,
	JVMTI_IS_MODIFIABLE_CLASS = 44,
	JVMTI_ALLOCATE = 45,
	JVMTI_DEALLOCATE = 46,
	JVMTI_GET_CLASS_SIGNATURE = 47,
	JVMTI_GET_CLASS_LOADER = 56,
	JVMTI_GET_LOADED_CLASSES = 77,
	JVMTI_SET_EVENT_CALLBACKS = 121,
	JVMTI_DISPOSE_ENVIRONMENT = 126,
	JVMTI_ADD_CAPABILITIES = 141,
	JVMTI_RETRANSFORM_CLASSES = 151,
};

enum jvmti_event {
	JVMTI_VM_INIT = 50,
	JVMTI_VM_DEATH = 51,
	JVMTI_CLASS_FILE_LOAD_HOOK = 54,
};
#define JVMTI_FIRST_EVENT 50
#define JVMTI_CALLBACKS	  (JVMTI_CLASS_FILE_LOAD_HOOK - JVMTI_FIRST_EVENT + 1)

/* jvmtiCapabilities: 16 bytes of bits. */
#define JVMTI_CAPABILITY_BYTES	   16
#define JVMTI_CAN_HOOK_BYTE	   3 /* can_generate_all_class_hook_events */
#define JVMTI_CAN_HOOK_BIT	   0x04
#define JVMTI_CAN_RETRANSFORM_BYTE 4 /* can_retransform_classes */
#define JVMTI_CAN_RETRANSFORM_BIT  0x20

/* JavaVMOption, JavaVMInitArgs, JavaVMAttachArgs, JNINativeMethod */
struct jvm_option {
	const char *text;
	void *extra;
};
struct jvm_init_args {
	int32_t version, n_options;
	struct jvm_option *options;
	uint8_t ignores_unknown;
};
struct jvm_attach_args {
	int32_t version;
	const char *name;
	struct jvm_object *group;
};
struct jvm_native {
	const char *name, *signature;
	void *function;
};

#endif
