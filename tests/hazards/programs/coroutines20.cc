// SPDX-License-Identifier: MIT
// Coroutines of C++20, resumed from hooked functions, and from other threads than those they began
// in.
#define FUNCTIONS(X) X(h_leaf) X(h_resumes) X(h_top)
#include "hazard.h"
#include <coroutine>
#include <exception>
#include <pthread.h>

namespace
{
struct generator {
	struct promise_type {
		long value = 0;
		generator get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend()
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(long v)
		{
			value = v;
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	std::coroutine_handle<promise_type> handle;
};
} // namespace

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
static generator numbers(long from)
{
	for (long i = from;; i++)
		co_yield h_leaf(i);
}
HOOKED long h_resumes(generator *g)
{
	CALLED(h_resumes);
	g->handle.resume();
	AFTER_CALL();
	return g->handle.promise().value;
}
HOOKED long h_top(generator *g, int n)
{
	long sum = 0;

	CALLED(h_top);
	for (int i = 0; i < n; i++)
		sum += h_resumes(g);
	return sum;
}
namespace
{
struct job {
	generator *g;
	int n;
	long sum;
};
void *work(void *arg)
{
	job *j = static_cast<job *>(arg);

	j->sum = h_top(j->g, j->n);
	return nullptr;
}
} // namespace
static unsigned long hazard(int n)
{
	generator g = numbers(n);
	long sum = h_top(&g, n * 10);

	for (int i = 0; i < 2; i++) {
		job j = {&g, n * 10, 0};
		pthread_t thread;

		if (pthread_create(&thread, nullptr, work, &j))
			return 1;
		pthread_join(thread, nullptr);
		sum += j.sum;
	}
	g.handle.destroy();
	return static_cast<unsigned long>(sum);
}
