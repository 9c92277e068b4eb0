/* SPDX-License-Identifier: MIT */
/* Which methods a pattern means, and how they are numbered; what is put into them is the rewriter's
 * (class_rewrite_test.c). */
#include "base/file.h"
#include "check.h"
#include "record/hooks/plan.h"

#define CORPUS "/tests/fuzz/corpus/class_rewrite/"

static struct buf read_class(const char *name)
{
	const char *root = getenv("ROOT");
	char *path = mem_printf("%s" CORPUS "%s", root ? root : ".", name);
	struct buf bytes = {0};

	CHECK_EQ(file_read(&bytes, path, 1 << 20, NULL), 0);
	free(path);
	return bytes;
}

/* Plans the class for the patterns; `to` is the new class. */
static const struct planned_image *plan(
	struct hook_planner *p, const char *class, bool is_library, struct buf *to)
{
	struct buf bytes = read_class(class);
	const struct planned_image *image = NULL;
	struct err err;

	CHECK_EQ(hook_planner_class(p, buf_span(&bytes), is_library, &image, to, &err), 0);
	buf_release(&bytes);
	return image;
}

/* How many methods of the class, of the program's own, the patterns mean. */
static size_t n_meant(const char *patterns, const char *class, bool is_library)
{
	struct hook_planner *p = hook_planner_new();
	const struct planned_image *image;
	struct buf to = {0};
	size_t n;

	CHECK_EQ(wishes_add(&p->wishes, patterns, HOOK_ACTION_CALL, NULL), 0);
	image = plan(p, class, is_library, &to);
	n = image ? image->functions.n : 0;
	CHECK_EQ(to.n != 0, n != 0);
	buf_release(&to);
	hook_planner_free(p);
	return n;
}

static void test_patterns(void)
{
	CHECK_EQ(n_meant("Counted:fib", "counted", false), 1);
	CHECK_EQ(n_meant("Counted:fib(int)", "counted", false), 1);
	CHECK_EQ(n_meant("Counted:fib(long)", "counted", false), 0);
	CHECK_EQ(n_meant("Counted:implicit(int[],int)", "counted", false), 1);
	CHECK_EQ(n_meant("Counted:implicit(int[], int)", "counted", false), 1);
	CHECK_EQ(n_meant("Count*:/^(odd|even)/", "counted", false), 2);
	CHECK_EQ(n_meant("Counted$Round:<init>", "countedround", false), 2);
	CHECK_EQ(n_meant("Other:fib", "counted", false), 0);
}

static void test_without_a_class(void)
{
	CHECK_EQ(n_meant("Counted.fib", "counted", false), 1);
	CHECK_EQ(n_meant("Counted.fib(int)", "counted", false), 1);
	CHECK_EQ(n_meant("fib", "counted", false), 0);
	CHECK_EQ(n_meant("Counted.*", "countedround", false), 0);
	CHECK_EQ(n_meant("Counted.fib", "counted", true), 0);
	CHECK_EQ(n_meant("Counted:fib", "counted", true), 1);
	CHECK(n_meant("*", "counted", false) > 30);
}

static void test_numbers_stay(void)
{
	struct hook_planner *p = hook_planner_new();
	const struct planned_image *first, *again, *of_id;
	struct buf to = {0};

	CHECK_EQ(wishes_add(&p->wishes, "Counted*:*", HOOK_ACTION_CALL, NULL), 0);
	plan(p, "countedround", false, &to);
	first = plan(p, "counted", false, &to);
	again = plan(p, "counted", false, &to);
	CHECK(first && first == again);
	for (size_t i = 0; first && i < first->functions.n; i++) {
		const struct planned_function *f = &first->functions.v[i];

		CHECK(hook_planner_function(p, f->id, &of_id) == f && of_id == first);
		CHECK_EQ(f->method, HOOK_METHOD_BYTECODE);
		CHECK(f->name && strncmp(f->name, "Counted.", 8) == 0);
	}
	CHECK_STR(first->source, "Counted.java");
	CHECK_STR(first->path, "Counted");
	buf_release(&to);
	hook_planner_free(p);
}

static void test_refusals(void)
{
	struct hook_planner *p = hook_planner_new();
	const struct planned_image *image;
	struct buf to = {0};

	CHECK_EQ(wishes_add(&p->wishes, "Counted:fib", HOOK_ACTION_STACK, NULL), 0);
	image = plan(p, "counted", false, &to);
	CHECK(image && image->functions.n == 1 && !image->functions.v[0].method);
	CHECK_STR(image->functions.v[0].reason,
		"stacks at entries of Java methods are not taken: use --functions");
	CHECK_EQ(to.n, 0);
	hook_planner_free(p);
}

static void test_names_of_loaded_classes(void)
{
	struct hook_planner *p = hook_planner_new();

	CHECK_EQ(wishes_add(&p->wishes, "com.example.*:*,org.Main.run,libz:deflate",
			 HOOK_ACTION_CALL, NULL),
		0);
	CHECK(hook_planner_may_want_java(p));
	CHECK(hook_planner_may_want_class(p, "com.example.Main", false));
	CHECK(hook_planner_may_want_class(p, "com.example.Main", true));
	CHECK(hook_planner_may_want_class(p, "org.Main", false));
	CHECK(!hook_planner_may_want_class(p, "org.Main", true));
	CHECK(!hook_planner_may_want_class(p, "org.Other", false));
	CHECK(!hook_planner_may_want_class(p, "java.lang.Object", true));
	hook_planner_free(p);
}

static void test_nearest(void)
{
	struct hook_planner *p = hook_planner_new();
	struct buf to = {0};
	char near[200] = "";

	CHECK_EQ(wishes_add(&p->wishes, "Counted:fibb", HOOK_ACTION_CALL, NULL), 0);
	plan(p, "counted", false, &to);
	CHECK(nearest_names_text(&p->wishes.all.v[0].near, near, sizeof(near)));
	CHECK(strstr(near, "fib") != NULL);
	buf_release(&to);
	hook_planner_free(p);
}

int main(void)
{
	static const struct test tests[] = {
		{"a pattern's image is the class, with and without parameters", test_patterns},
		{"a pattern without a class means the program's own, by the whole name",
			test_without_a_class},
		{"a class that comes again has the numbers that it had", test_numbers_stay},
		{"stacks at entries are refused with a reason", test_refusals},
		{"names say which loaded classes are worth a look", test_names_of_loaded_classes},
		{"names that are near are offered", test_nearest},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
