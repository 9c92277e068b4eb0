# SPDX-License-Identifier: MIT
# The numbers that the agent for Java knows of the JVM's tables are those of a JDK's headers.
# weir-test: once: a compiler looks at headers
. "$ROOT/tests/lib.sh"
jdk=$(readlink -f "$(command -v javac)")
include=${jdk%/bin/javac}/include
[ -e "$include/jvmti.h" ] || { skip "the tables of functions of a JVM are as in a JDK's headers: no jvmti.h" && finish; }
cat >tables.c <<'C'
#include <stddef.h>
#include <jvmti.h>
#define jvm_table our_jvm_table
#define JVMTI_VM_INIT OUR_VM_INIT
#include "jvm_tables.h"
#define AT(table, member, number) _Static_assert(offsetof(struct table, member) / sizeof(void *) == number, #member)
AT(JNIInvokeInterface_, DetachCurrentThread, VM_DETACH_CURRENT_THREAD);
AT(JNIInvokeInterface_, GetEnv, VM_GET_ENV);
AT(JNIInvokeInterface_, AttachCurrentThreadAsDaemon, VM_ATTACH_CURRENT_THREAD_AS_DAEMON);
AT(JNINativeInterface_, DefineClass, JNI_DEFINE_CLASS);
AT(JNINativeInterface_, FindClass, JNI_FIND_CLASS);
AT(JNINativeInterface_, ExceptionClear, JNI_EXCEPTION_CLEAR);
AT(JNINativeInterface_, DeleteLocalRef, JNI_DELETE_LOCAL_REF);
AT(JNINativeInterface_, GetStaticMethodID, JNI_GET_STATIC_METHOD_ID);
AT(JNINativeInterface_, CallStaticBooleanMethodA, JNI_CALL_STATIC_BOOLEAN_METHOD_A);
AT(JNINativeInterface_, CallStaticVoidMethodA, JNI_CALL_STATIC_VOID_METHOD_A);
AT(JNINativeInterface_, NewStringUTF, JNI_NEW_STRING_UTF);
AT(JNINativeInterface_, RegisterNatives, JNI_REGISTER_NATIVES);
AT(JNINativeInterface_, GetJavaVM, JNI_GET_JAVA_VM);
AT(JNINativeInterface_, ExceptionCheck, JNI_EXCEPTION_CHECK);
AT(jvmtiInterface_1_, SetEventNotificationMode, JVMTI_SET_EVENT_NOTIFICATION_MODE);
AT(jvmtiInterface_1_, IsModifiableClass, JVMTI_IS_MODIFIABLE_CLASS);
AT(jvmtiInterface_1_, Allocate, JVMTI_ALLOCATE);
AT(jvmtiInterface_1_, Deallocate, JVMTI_DEALLOCATE);
AT(jvmtiInterface_1_, GetClassSignature, JVMTI_GET_CLASS_SIGNATURE);
AT(jvmtiInterface_1_, GetClassLoader, JVMTI_GET_CLASS_LOADER);
AT(jvmtiInterface_1_, GetLoadedClasses, JVMTI_GET_LOADED_CLASSES);
AT(jvmtiInterface_1_, SetEventCallbacks, JVMTI_SET_EVENT_CALLBACKS);
AT(jvmtiInterface_1_, DisposeEnvironment, JVMTI_DISPOSE_ENVIRONMENT);
AT(jvmtiInterface_1_, AddCapabilities, JVMTI_ADD_CAPABILITIES);
AT(jvmtiInterface_1_, RetransformClasses, JVMTI_RETRANSFORM_CLASSES);
#define CALLBACK(member, event) _Static_assert(offsetof(jvmtiEventCallbacks, member) / sizeof(void *) == event - JVMTI_FIRST_EVENT, #member)
CALLBACK(VMInit, JVMTI_EVENT_VM_INIT);
CALLBACK(VMDeath, JVMTI_VM_DEATH);
CALLBACK(ClassFileLoadHook, JVMTI_CLASS_FILE_LOAD_HOOK);
_Static_assert(OUR_VM_INIT == JVMTI_EVENT_VM_INIT, "VMInit");
_Static_assert(JVMTI_VM_DEATH == JVMTI_EVENT_VM_DEATH, "VMDeath");
_Static_assert(JVMTI_CLASS_FILE_LOAD_HOOK == JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, "ClassFileLoadHook");
_Static_assert(sizeof(jvmtiCapabilities) == JVMTI_CAPABILITY_BYTES, "capabilities");
#define SAME(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #ours)
SAME(jvm_option, JavaVMOption);
SAME(jvm_init_args, JavaVMInitArgs);
SAME(jvm_attach_args, JavaVMAttachArgs);
SAME(jvm_native, JNINativeMethod);
_Static_assert(offsetof(struct jvm_init_args, options) == offsetof(JavaVMInitArgs, options), "options");
int main(void)
{
	jvmtiCapabilities hook = {.can_generate_all_class_hook_events = 1}, again = {.can_retransform_classes = 1};

	return ((unsigned char *)&hook)[JVMTI_CAN_HOOK_BYTE] != JVMTI_CAN_HOOK_BIT ||
	       ((unsigned char *)&again)[JVMTI_CAN_RETRANSFORM_BYTE] != JVMTI_CAN_RETRANSFORM_BIT;
}
C
check "the tables of functions of a JVM are as in a JDK's headers" \
	gcc -I"$include" -I"$include/linux" -I"$ROOT/src/rt/java" -o tables tables.c
check "and so are its capabilities" ./tables
finish
