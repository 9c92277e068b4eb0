/* SPDX-License-Identifier: MIT */
/*
 * JVMs that write their classes to a file, for others to begin with (class data sharing, ahead-of-time caches). One
 * that is told so at its start refuses agents, and ends; and in one that runs changed classes may get into the file,
 * whose users have no java.lang.WeirHook. So these stay as they are.
 */
#ifdef __x86_64__
#include "java.h"

extern char **environ __attribute__((weak, visibility("default")));

static bool begins_with(const char *text, const char *begin)
{
	while (*begin && *text == *begin) {
		text++;
		begin++;
	}
	return !*begin;
}

static bool asks_for_archive(const char *option)
{
	static const char *const begins[] = {"-Xshare:dump",
		"-XX:ArchiveClassesAtExit=", "-XX:+AutoCreateSharedArchive",
		"-XX:+RecordDynamicDumpInfo", "-XX:+DumpSharedSpaces",
		"-XX:+DynamicDumpSharedSpaces", "-XX:AOTCacheOutput=", "-XX:AOTMode=record",
		"-XX:AOTMode=create"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (begins_with(option, begins[i]))
			return true;
	return false;
}

/* Options between blanks, maybe in quotes. */
static bool has_such_option(const char *text)
{
	for (const char *p = text; p && *p; p++)
		if (*p == '-' && asks_for_archive(p))
			return true;
	return false;
}

bool archive_is_asked_for(const struct jvm_init_args *args)
{
	for (int32_t i = 0; i < args->n_options; i++)
		if (args->options[i].text && asks_for_archive(args->options[i].text))
			return true;
	return &environ && (has_such_option(environment_find(environ, "JAVA_TOOL_OPTIONS")) ||
				   has_such_option(environment_find(environ, "_JAVA_OPTIONS")));
}

bool archive_is_written(jvm_table jni)
{
	struct jvm_object *class = JVM_CALL(jni, JNI_FIND_CLASS,
		struct jvm_object * (*)(jvm_table, const char *))(jni, "jdk/internal/misc/CDS");
	void *method = class ? JVM_CALL(jni, JNI_GET_STATIC_METHOD_ID,
				       void *(*)(jvm_table, struct jvm_object *, const char *,
					       const char *))(jni, class, "isDumpingArchive", "()Z")
			     : NULL;
	bool is = method && JVM_CALL(jni, JNI_CALL_STATIC_BOOLEAN_METHOD_A,
				    uint8_t(*)(jvm_table, struct jvm_object *, void *,
					    const uint64_t *))(jni, class, method, NULL);

	JVM_CALL(jni, JNI_EXCEPTION_CLEAR, void (*)(jvm_table))(jni);
	if (class)
		JVM_CALL(jni, JNI_DELETE_LOCAL_REF, void (*)(jvm_table, struct jvm_object *))
	(jni, class);
	return is;
}
#endif
