// SPDX-License-Identifier: MIT
// Exceptions through hooked frames, caught, thrown again, and in destructors' company.
#define FUNCTIONS(X) X(h_throws) X(h_passes) X(h_catches) X(h_leaf)
#include "hazard.h"

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
namespace
{
struct guard {
	long &sum;
	~guard()
	{
		sum += h_leaf(1);
	}
};
} // namespace
HOOKED long h_throws(long n)
{
	CALLED(h_throws);
	if (n % 3)
		throw n;
	return h_leaf(n);
}
HOOKED long h_passes(long n, long *sum)
{
	CALLED(h_passes);
	guard g{*sum};
	return n & 1 ? h_throws(n) + 1 : h_throws(n / 2) + 2;
}
HOOKED long h_catches(long n, long *sum)
{
	CALLED(h_catches);
	try {
		return h_passes(n, sum);
	} catch (long thrown) {
		if (thrown % 2 && n % 5 == 0)
			throw;
		return thrown + h_leaf(n);
	}
}
static unsigned long hazard(int n)
{
	long sum = 0;

	for (long i = 0; i < (n > 10 ? n * 10 : 3); i++) {
		try {
			sum += h_catches(i, &sum);
		} catch (long thrown) {
			sum += thrown * 7;
		}
	}
	return static_cast<unsigned long>(sum);
}
