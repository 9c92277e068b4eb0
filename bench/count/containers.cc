// SPDX-License-Identifier: MIT
// Containers of the C++ library, not optimised: functions of a few instructions that call each other.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main()
{
	std::map<std::string, int> sums;
	std::vector<int> v;
	long s = 0;

	for (int i = 0; i < 60000; i++) {
		v.push_back((i * 7919) % 10007);
		sums["k" + std::to_string(i % 500)] += v.back();
	}
	std::sort(v.begin(), v.end());
	for (auto &p : sums)
		s = s * 31 + p.second;
	for (size_t i = 0; i < v.size(); i++)
		s += v[i] * (long)i;
	printf("%ld\n", s);
	return 0;
}
