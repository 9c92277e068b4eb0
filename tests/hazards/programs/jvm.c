/* SPDX-License-Identifier: MIT */
/*
 * A program with a JVM in it, which is there before main. HOW says what Java does (Work.java); IN_NAMESPACE: in a
 * pid namespace of its own; OTHER_USER: as another user; FILES: with as few descriptors as that; BESIDE: until there
 * is a file beside.done; FORK: children of C code that has a JVM; EXEC: becomes itself once more. What Java has
 * called is printed as "java NAME N", or "javahere NAME N" where it differs from run to run.
 */
#define FUNCTIONS(X) X(h_native) X(h_round)
#include "hazard.h"
#include <fcntl.h>
#include <grp.h>
#include <jni.h>
#include <sched.h>
#include <sys/resource.h>

#ifndef HOW
#define HOW "plain"
#endif
enum { N_METHODS = 6 };
static const char *const java_names[N_METHODS] = {
	"leaf", "recursive", "thrower", "catcher", "called", "round"};
static unsigned long java_n[N_METHODS];
static JNIEnv *env;
static jclass work_class;

HOOKED long h_native(long n)
{
	CALLED(h_native);
	return n * 5 + hazard_zero;
}

/* The native method: calls back every tenth time. */
static jlong native_leaf(JNIEnv *its_env, jobject work, jlong n)
{
	jmethodID called;

	if (n % 10)
		return h_native(n);
	called = (*its_env)->GetMethodID(its_env, work_class, "called", "(J)J");
	return (*its_env)->CallLongMethod(its_env, work, called, h_native(n));
}

PLAIN static void java_print(void)
{
	char text[1024];
	size_t n = 0;

	for (int i = 0; i < N_METHODS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "java%s hazard.Work.%s %lu\n",
			strcmp(calls_word, "calls") ? "here" : "", java_names[i], java_n[i]);
	say(text);
}

HOOKED long h_round(int n)
{
	jmethodID round =
		(*env)->GetStaticMethodID(env, work_class, "rounds", "(ILjava/lang/String;[J)J");
	jlongArray calls = (*env)->NewLongArray(env, N_METHODS);
	jlong counts[N_METHODS];
	jlong result;

	CALLED(h_round);
	result = (*env)->CallStaticLongMethod(
		env, work_class, round, n, (*env)->NewStringUTF(env, HOW), calls);
	if ((*env)->ExceptionCheck(env)) {
		(*env)->ExceptionDescribe(env);
		return -1;
	}
	(*env)->GetLongArrayRegion(env, calls, 0, N_METHODS, counts);
	for (int i = 0; i < N_METHODS && !calls_are_told; i++)
		java_n[i] += (unsigned long)counts[i];
	return (long)result;
}

PLAIN static void needed(int good, const char *what)
{
	if (good)
		return;
	say(what);
	_exit(96);
}

PLAIN static void enter_place(void)
{
#ifdef IN_NAMESPACE
	int status;
	pid_t child;

	needed(!unshare(CLONE_NEWPID), "no pid namespace\n");
	child = fork();
	if (child > 0) {
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 95);
	}
#endif
#ifdef OTHER_USER
	needed(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534), "no other user\n");
#endif
}

__attribute__((constructor)) PLAIN static void make_jvm(void)
{
	JavaVMOption options[] = {{(char *)"-Djava.class.path=.", NULL}, {(char *)"-Xmx64m", NULL},
		{(char *)"-Xss512k", NULL},
		/* It warns where another pid namespace has a JVM of the same number. */
		{(char *)"-XX:-UsePerfData", NULL}};
	JavaVMInitArgs arguments = {.version = JNI_VERSION_10, .nOptions = 4, .options = options};
	JNINativeMethod natives = {(char *)"nativeLeaf", (char *)"(J)J", (void *)native_leaf};
	JavaVM *vm;

	enter_place();
	needed(JNI_CreateJavaVM(&vm, (void **)&env, &arguments) == JNI_OK, "no JVM\n");
	work_class = (*env)->FindClass(env, "hazard/Work");
	needed(work_class && !(*env)->RegisterNatives(env, work_class, &natives, 1), "no class\n");
	work_class = (*env)->NewGlobalRef(env, work_class);
	atexit(java_print);
#ifdef BESIDE
	close(creat("jvm.ready", 0644));
#endif
#ifdef FILES
	struct rlimit limit = {FILES, FILES};

	setrlimit(RLIMIT_NOFILE, &limit);
#endif
}

#ifdef EXEC
PLAIN static void exec_again(unsigned long result, int n)
{
	char size[16];

	if (getenv("HAZARD_EXECED"))
		return;
	result_print(result);
	calls_print();
	java_print();
	setenv("HAZARD_EXECED", "1", 1);
	snprintf(size, sizeof(size), "%d", n);
	execl("/proc/self/exe", "./program", size, "once", NULL);
}
#endif

static unsigned long hazard(int n)
{
	unsigned long sum = 0;

#ifdef BESIDE
	calls_word = "here";
	sum = (unsigned long)h_round(n);
	while (access("beside.done", F_OK)) {
		if ((unsigned long)h_round(n) != sum)
			say("a round has another result\n");
		usleep(1000);
	}
#else
	sum = (unsigned long)h_round(n);
#endif
#ifdef FORK
	for (int i = 0; i < 4; i++) {
		int status = 1;
		pid_t child = fork();

		if (child == 0) {
			calls_reset();
			status = (int)(h_native(i) & 63);
			calls_print();
			_exit(status);
		}
		waitpid(child, &status, 0);
		sum += (unsigned long)status;
	}
#endif
#ifdef EXIT
	result_print(sum);
	calls_print();
	(*env)->CallStaticVoidMethod(
		env, work_class, (*env)->GetStaticMethodID(env, work_class, "leave", "()V"));
#endif
#ifdef EXEC
	exec_again(sum, n);
#endif
	return sum;
}
