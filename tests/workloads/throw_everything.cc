// SPDX-License-Identifier: MIT
// Exceptions of many kinds, through constructors, nested handlers, cold code, alloca and noexcept.
// Prints how many were caught, a number made of everything that happened in its order, and how many
// more frames a backtrace finds nine calls deeper. With an argument it ends in std::terminate.
#include <cstdio>
#include <cstdlib>
#include <execinfo.h>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static unsigned long history;

static void note(const char *text, int n = 0)
{
	for (const char *p = text; *p; p++)
		history = history * 31 + *p;
	history = history * 17 + n;
}

struct guard {
	int n;
	explicit guard(int k) : n(k)
	{
		if (k == 13)
			throw 13;
		note("made", k);
	}
	~guard() { note("gone", n); }
};

struct base_error {
	virtual ~base_error() {}
	virtual int value() const { return 1; }
};
struct derived_error : base_error {
	int x;
	explicit derived_error(int k) : x(k) {}
	int value() const override { return x; }
};
struct other {};

__attribute__((noinline)) static int thrower(int k)
{
	guard g(k);
	switch (k % 9) {
	case 0:
		throw k;
	case 1:
		throw derived_error(k);
	case 2:
		throw std::runtime_error("runtime " + std::to_string(k));
	case 3:
		throw other();
	case 4:
		throw std::string("text");
	case 5:
		throw static_cast<const char *>("chars");
	case 6: {
		std::vector<int> v(3);
		return v.at(k);
	}
	case 7:
		throw 1.5;
	}
	return k;
}

__attribute__((noinline, cold)) static void rare(int k)
{
	guard g(k + 100);
	if (k % 3 == 0)
		throw static_cast<long>(k);
}

__attribute__((noinline)) static int middle(int k)
{
	guard a(k + 1000);
	try {
		guard b(k + 2000);
		try {
			if (__builtin_expect(k % 7 == 5, 0)) {
				guard c(k + 3000);
				rare(k);
				guard d(k + 4000);
			}
			return thrower(k);
		} catch (std::out_of_range &) {
			note("range", k);
			throw;
		} catch (int i) {
			note("int", i);
			if (i > 20)
				throw std::logic_error("again");
			return -i;
		}
	} catch (const base_error &e) {
		note("base", e.value());
		return e.value();
	} catch (const std::logic_error &e) {
		note(e.what(), 3);
		throw derived_error(5);
	} catch (long l) {
		note("long", static_cast<int>(l));
		return 7;
	}
}

struct pair {
	guard a, b;
	explicit pair(int k)
	try : a(k), b(k == 4 ? 13 : k) {
		note("pair", k);
	} catch (int i) {
		note("in a constructor", i);
	}
};

static int through_function(int k)
{
	std::unique_ptr<guard> p(new guard(k));
	std::function<int(int)> f = [&](int x) {
		guard z(x);
		return middle(x + k);
	};

	return f(k);
}

static int through_alloca(int k)
{
	volatile char *p = static_cast<volatile char *>(__builtin_alloca(16 + k * 64));
	guard g(k);

	p[k] = 1;
	return through_function(k) + p[k];
}

static int deep(int n, int k)
{
	guard g(n);

	return n ? deep(n - 1, k) + 1 : through_alloca(k);
}

__attribute__((noinline)) static int frames_below(int n)
{
	static void *frames[100];
	int found = n ? frames_below(n - 1) : backtrace(frames, 100);

	asm volatile("" : "+r"(found)); // no tail call
	return found;
}

static int one_round(int k)
{
	try {
		note("value", deep(k % 5, k));
		return 0;
	} catch (const derived_error &e) {
		note("derived", e.x);
	} catch (const std::exception &e) {
		note(e.what(), k);
	} catch (const std::string &s) {
		note(s.c_str(), k);
	} catch (const char *s) {
		note(s, k);
	} catch (int i) {
		note("outer int", i);
	} catch (...) {
		note("rest", k);
		try {
			throw;
		} catch (double) {
			note("double");
		} catch (const other &) {
			note("other");
		} catch (...) {
			note("unknown");
		}
	}
	return 1;
}

static void never_throws() noexcept
{
	guard g(1);
	thrower(0);
}

int main(int argc, char **)
{
	int caught = 0;

	for (int k = 0; k < 60; k++)
		caught += one_round(k);
	for (int k = 0; k < 6; k++)
		try {
			pair x(k);
		} catch (int i) {
			caught++;
			note("out of a constructor", i);
		}
	std::set_terminate([] {
		puts("terminate");
		fflush(stdout);
		_Exit(3);
	});
	printf("%d %lu %d\n", caught, history, frames_below(9) - frames_below(0));
	fflush(stdout);
	if (argc > 1)
		never_throws();
	return 0;
}
