/* SPDX-License-Identifier: MIT */
/* weir-test: slow: it starts JVMs of every kind */
/*
 * True JVMs, read from outside while they run. The truth: the shape of the program, the lines of its
 * source, and what jcmd says of the code.
 */
#include "jvm/jvm.h"

#include "../check.h"
#include "../jvm_world.h"
#include "jvm/jvm_internal.h"

#define SAMPLES 60
#define TRIES	2000 /* a thread may be in native code, or wait for a processor */

static const char *const modes[] = {"-Xint", "-XX:+UseSerialGC", "-XX:+UseZGC"};
#define N_MODES (sizeof(modes) / sizeof(modes[0]))

/* The line of the program's source that has this text. */
static uint32_t line_of(const char *text)
{
	char path[512], line[512];
	uint32_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/fixtures/java/Shape.java", getenv("ROOT"));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		n++;
		if (strstr(line, text)) {
			fclose(f);
			return n;
		}
	}
	if (f)
		fclose(f);
	return 0;
}

static pid_t thread_named(struct jvm_world *w, const char *name)
{
	struct jvm_thread threads[128];
	size_t n = jvm_threads(w->jvm, threads, 128);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(threads[i].name, name))
			return (pid_t)threads[i].tid;
	return 0;
}

static void check_threads(struct jvm_world *w)
{
	struct jvm_thread threads[128];
	size_t n = jvm_threads(w->jvm, threads, 128), own = 0;

	CHECK(thread_named(w, "main"));
	CHECK(thread_named(w, "workers"));
	CHECK(thread_named(w, "exceptions"));
	CHECK(thread_named(w, "copier \u00e4\u4e16\U0001f600"));
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(threads[i].name, "VM Thread"))
			CHECK_EQ(threads[i].kind, JVM_THREAD_VM);
		if (!strcmp(threads[i].name, "lambda"))
			CHECK_EQ(threads[i].kind, JVM_THREAD_JAVA);
		own += threads[i].kind != JVM_THREAD_JAVA;
	}
	CHECK(own >= 3);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* From the outermost frame in: the JVM's call stub, Thread.run, the method. The JVM itself may call Java,
 * to link or initialize a class. */
static void check_outer(const struct jvm_world_stack *s, const char *method)
{
	size_t i = s->n;

	/* The JVM's own native code calls stubs, too. */
	CHECK(i &&
		(strstr(s->levels[i - 1].name, "call_stub") || s->kinds[i - 1] == JVM_PLACE_STUB));
	if (i < 2 || strcmp(s->levels[i - 2].name, "java.lang.Thread.run()"))
		return;
	CHECK_STR(s->levels[i - 2].file, "Thread.java");
	for (; i > 0; i--)
		if (begins(s->levels[i - 1].name, method))
			return;
	CHECK(!"the thread's method is in its stack");
	for (i = 0; i < s->n; i++)
		printf("  %s\n", s->levels[i].name);
}

/* deep() calls itself 20 times, whatever of it is inlined into what. What is inlined at the innermost
 * address of compiled code is not known exactly (docs/limits.md). */
static void check_depth(const struct jvm_world_stack *s, bool is_exact)
{
	uint32_t calls = line_of("return deep(depth - 1, worker)");
	uint32_t works = line_of("return worker.work(300)");
	size_t deep = 0;
	bool works_now = false;

	for (size_t i = 0; i < s->n; i++) {
		if (strstr(s->levels[i].name, ".work(int)"))
			works_now = true;
		if (!begins(s->levels[i].name, "Shape.deep(int, Shape$Worker)"))
			continue;
		CHECK_STR(s->levels[i].file, "Shape.java");
		CHECK_STR(s->levels[i].signature, "(ILShape$Worker;)I");
		if (i >= s->n_innermost)
			CHECK(s->levels[i].line == calls || s->levels[i].line == works);
		if (is_exact && i)
			CHECK_EQ(s->levels[i].line, works_now && !deep ? works : calls);
		deep++;
	}
	if (works_now && is_exact)
		CHECK_EQ(deep, 21);
}

static void check_kinds(const struct jvm_world_stack *s, const char *mode)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!strcmp(mode, "-Xint"))
			CHECK(s->kinds[i] != JVM_PLACE_COMPILED && !s->levels[i].is_inlined);
		if (begins(s->levels[i].name, "Shape"))
			CHECK(s->kinds[i] != JVM_PLACE_STUB);
	}
}

static void check_stacks(struct jvm_world *w, const char *mode)
{
	static const struct {
		const char *thread, *method;
	} threads[] = {{"workers", "Shape.spinWorkers()"}, {"lambda", "Shape.spinLambda()"},
		{"copier \u00e4\u4e16\U0001f600", "Shape.spinCopy()"},
		{"exceptions", "Shape.spinExceptions()"}};
	static struct jvm_world_stack s;
	size_t seen = 0, whole = 0;
	pid_t tids[4];

	for (size_t i = 0; i < 4; i++)
		tids[i] = thread_named(w, threads[i].thread);
	for (size_t i = 0; seen < SAMPLES && i < TRIES; i++) {
		pid_t tid = tids[i % 4];

		jvm_begin_batch(w->jvm);
		usleep(1000);
		if (!tid || !jvm_world_sample(w, tid, &s) || !s.in_java)
			continue;
		seen++;
		if (s.end != JVM_STEP_DONE) {
			printf("%s: %s\n", threads[i % 4].thread, s.why);
			continue;
		}
		whole++;
		check_outer(&s, threads[i % 4].method);
		check_kinds(&s, mode);
		if (i % 4 == 0)
			check_depth(&s, !strcmp(mode, "-Xint"));
	}
	printf("%s: %zu stacks, %zu whole\n", mode, seen, whole);
	CHECK(seen > SAMPLES / 4);
	CHECK(whole * 100 >= seen * 98);
}

/* Each compiled method that jcmd lists is at its address, under its name. */
static void check_code_list(struct jvm_world *w)
{
	char command[512], line[4096], method[2048];
	size_t same = 0, other = 0;
	FILE *f;

	snprintf(command, sizeof(command), "'%s/bin/jcmd' %d Compiler.codelist", w->home,
		(int)w->pid);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		int id, level, state;
		uint64_t start, code, end;
		struct jvm_level levels[JVM_LEVELS_MAX];
		struct jvm_place place;
		struct code *c;
		const char *why, *dot;
		char *paren;

		if (sscanf(line, "%d %d %d %2047s [%" SCNx64 ", %" SCNx64 " - %" SCNx64 "]", &id,
			    &level, &state, method, &start, &code, &end) != 7 ||
			state)
			continue;
		c = code_find(w->jvm, code + 1);
		if (!c)
			continue; /* freed since */
		CHECK(c->start <= code && c->end >= end);
		place = (struct jvm_place){JVM_PLACE_COMPILED, c->number, 0};
		paren = strchr(method, '(');
		if (!paren || !jvm_levels(w->jvm, &place, levels, &why))
			continue;
		dot = strchr(levels[0].name, '(');
		if (!strcmp(levels[0].signature, paren) && dot &&
			(size_t)(dot - levels[0].name) == (size_t)(paren - method) &&
			!strncmp(levels[0].name, method, (size_t)(paren - method)))
			same++;
		else {
			printf("%s%s is %s\n", levels[0].name, levels[0].signature, method);
			other++;
		}
	}
	if (f)
		pclose(f);
	printf("%zu methods as in the list, %zu not\n", same, other);
	CHECK(same > 10);
	/* What was freed meanwhile may have made place for another. */
	CHECK(other <= same / 100);
}

static size_t n_classes;
static bool has_shape;
static void count_class(void *ctx, const char *name, uint64_t loader)
{
	(void)ctx;
	n_classes++;
	has_shape |= loader && !strcmp(name, "Shape$Doubler");
}

/* It may be killed at any moment; what was read stays. */
static void check_killed(struct jvm_world *w)
{
	static struct jvm_world_stack before;
	struct jvm_level levels[JVM_LEVELS_MAX];
	struct jvm_thread threads[4];
	const char *why;

	memset(&before, 0, sizeof(before));
	while (!before.n)
		if (!jvm_world_sample(w, thread_named(w, "workers"), &before))
			break;
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	jvm_begin_batch(w->jvm);
	if (before.n) {
		CHECK_EQ(jvm_levels(w->jvm, &before.last, levels, &why), 1);
		CHECK_STR(levels[0].name, before.levels[before.n - 1].name);
	}
	CHECK_EQ(jvm_threads(w->jvm, threads, 4), 0);
	CHECK(!jvm_classes(w->jvm, count_class, NULL));
	w->pid = 0;
}

static char homes[8][256];
static size_t n_homes;

static void test_modes(size_t home)
{
	struct jvm_world w;

	for (size_t i = 0; i < N_MODES; i++) {
		if (!jvm_world_start(&w, homes[home], modes[i])) {
			printf("%s does not start with %s\n", homes[home], modes[i]);
			CHECK(i == N_MODES - 1); /* ZGC is not everywhere */
			continue;
		}
		CHECK(jvm_is_ready(w.jvm));
		usleep(300000); /* so that something is compiled */
		check_threads(&w);
		check_stacks(&w, modes[i]);
		if (!strcmp(modes[i], "-XX:+UseSerialGC"))
			check_code_list(&w);
		n_classes = 0;
		has_shape = false;
		CHECK(jvm_classes(w.jvm, count_class, NULL));
		CHECK(has_shape && n_classes > 300);
		check_killed(&w);
		jvm_world_stop(&w);
	}
}

static void test_not_a_jvm(void)
{
	struct jvm *jvm = NULL;
	struct err err = {0};

	CHECK(jvm_open(&jvm, getpid(), "/proc/self/exe", 0, &err) == ERR_UNSUPPORTED);
	CHECK(strstr(err.text, "gHotSpotVMStructs"));
	CHECK(!jvm);
}

int main(void)
{
	static const struct test others[] = {
		{"a program that is no JVM is refused", test_not_a_jvm},
	};
	int failed = 0;

	n_homes = jvm_world_homes(homes);
	if (!n_homes)
		puts("skip stacks, names and threads of a JVM are right: no JDK is installed");
	for (size_t i = 0; i < n_homes; i++) {
		check_failures = 0;
		test_modes(i);
		printf("%s stacks, names and threads are right with %s\n",
			check_failures ? "not ok" : "ok", strrchr(homes[i], '/') + 1);
		fflush(stdout);
		failed += check_failures != 0;
	}
	return RUN_TESTS(others) || failed;
}
