#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a large C++17 program of the kind that fills debug information: templates of the standard
library over many types of its own, lambdas, virtual functions, exceptions, namespaces, and inlining
many levels deep.

    make_big_cpp.py FOLDER UNITS [CLUSTERS]

The folder gets big.h, UNITS files unit_N.cc with CLUSTERS groups of types each (8 when not given),
main.cc and a Makefile that builds FOLDER/big (make -C FOLDER -j2; CXX and CXXFLAGS may be given,
the latter is -O2 -g otherwise). The same arguments give the same files. A unit of 8 clusters makes
about 9 MB of DWARF with g++ 12 and takes about 14 s of CPU: 11 units are 100 MB.
"""
import random
import re
import sys

# Names and members differ from cluster to cluster, as they do in real programs: what compresses
# well only because all of it is alike would flatter every format that is measured with this.
WORDS = """account anchor archive batch beacon border branch bridge buffer cable candle carrier
castle channel circle client cloud column copper corner cursor dealer device dialog domain
driver editor engine entity factor filter flight forest garden gather handle harbor header
history image import island journal kernel ladder layout ledger letter marker matrix member
mirror module motion network number object option packet parcel planet pocket policy portal
prism profile quarry query random reader record region report result river route sample schema
school sensor server signal socket source spring stream street string summer symbol system
target temple thread ticket timber tower track transit update valley vector vendor vessel window
winter writer zone""".split()
MEMBERS = ["long @ = 0", "double @ = 0", "std::string @", "std::vector<int> @", "bool @ = false",
           "std::optional<double> @", "std::pair<int, long> @", "std::uint64_t @ = 1",
           "std::array<short, 6> @", "std::shared_ptr<int> @"]
RENAMED = ["key", "record", "square", "ring", "registry", "value", "weight", "weigh", "ordered",
           "hashed", "sorted", "shapes", "queued", "varied", "by_label", "squares", "rings",
           "ranked", "order", "listeners", "recent", "buckets", "total", "label", "values", "rank"]

HEADER = """\
#ifndef BIG_H
#define BIG_H
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace big {

/* Small functions that end up inlined everywhere. */
inline std::uint64_t mix(std::uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	return x ^ (x >> 29);
}

template <class T> static inline T clamp_to(T v, T low, T high)
{
	if (v < low)
		return low;
	return v > high ? high : v;
}

template <class Range, class F> auto fold(const Range &range, long start, F f)
{
	for (const auto &v : range)
		start = f(start, v);
	return start;
}

class shape {
public:
	virtual ~shape() = default;
	virtual long area(long scale) const = 0;
	virtual std::string name() const { return "shape"; }
};

struct bad_value : std::runtime_error {
	explicit bad_value(long v) : std::runtime_error(std::to_string(v)), amount(v) {}
	long amount;
};

} // namespace big
#endif
"""

# One group of types and the functions over them. @U@ is the unit, @C@ the cluster, @S@ a number.
CLUSTER = """\
namespace cluster_@C@ {

struct key {
	long a;
	int b;
	bool operator<(const key &o) const { return a != o.a ? a < o.a : b < o.b; }
	bool operator==(const key &o) const { return a == o.a && b == o.b; }
};

struct key_hash {
	std::size_t operator()(const key &k) const { return big::mix(k.a * @S@ + k.b); }
};

struct record {
	key id;
	std::string label;
	std::vector<double> values;
	std::optional<int> rank;
@MEMBERS@	double total() const { return std::accumulate(values.begin(), values.end(), 0.0); }
};

class square : public big::shape {
public:
	explicit square(long side) : side_(side) {}
	long area(long scale) const override { return big::clamp_to(side_ * side_ * scale, 0l, 1000000l); }
	std::string name() const override { return "square_@U@_@C@"; }

private:
	long side_;
};

class ring : public big::shape {
public:
	ring(long outer, long inner) : outer_(outer), inner_(inner)
	{
		if (inner_ > outer_)
			throw big::bad_value(inner_ - outer_);
	}
	long area(long scale) const override { return scale * (outer_ * outer_ - inner_ * inner_) * 3; }

private:
	long outer_, inner_;
};

/* A class with many members of which the functions here need few, as real ones are: its debug
 * information is large and its code small. */
struct registry {
	std::map<std::string, std::vector<record>> by_label;
	std::map<key, std::shared_ptr<square>> squares;
	std::unordered_map<long, std::unique_ptr<ring>> rings;
	std::multimap<long, std::pair<key, record *>> ranked;
	std::set<std::tuple<long, key, const record *>> order;
	std::list<std::function<void(const registry &, const key &)>> listeners;
	std::deque<std::optional<record>> recent;
	std::array<std::vector<key>, 4> buckets;
	long weigh() const { return static_cast<long>(by_label.size() + order.size() * @S@); }
};

long weigh(const registry &r, long n)
{
	return r.weigh() + static_cast<long>(r.buckets[n & 3].size()) + r.squares.count(key{n, 1});
}

using value = std::variant<long, std::string, key>;

static long weight(const value &v)
{
	return std::visit(
		[](const auto &x) -> long {
			using T = std::decay_t<decltype(x)>;
			if constexpr (std::is_same_v<T, long>)
				return x;
			else if constexpr (std::is_same_v<T, key>)
				return x.a + x.b;
			else
				return static_cast<long>(x.size());
		},
		v);
}

"""

# The bodies, each a function `long NAME(long)`; every cluster gets all of them in its own order.
BODIES = {
    "ordered": """\
	std::map<key, record> m;
	for (long i = 0; i < n % 97; i++) {
		key k{i * @S@ % 31, static_cast<int>(i)};
		record &r = m[k];
		r.id = k;
		r.label += "x" + std::to_string(i);
		r.values.push_back(static_cast<double>(i) / 3);
	}
	long sum = 0;
	for (auto it = m.lower_bound(key{3, 0}); it != m.end(); ++it)
		sum += static_cast<long>(it->second.total()) + it->first.b;
	m.erase(key{1, 1});
	return sum + static_cast<long>(m.size());
""",
    "hashed": """\
	std::unordered_map<key, std::vector<record>, key_hash> m;
	for (long i = 0; i < n % 89; i++)
		m[key{i % 13, static_cast<int>(i % 7)}].push_back(record{{i, 0}, "h", {1.0 * i}, {}});
	long sum = 0;
	for (const auto &[k, v] : m)
		sum += k.a + big::fold(v, 0, [](long s, const record &r) { return s + r.id.a; });
	return sum;
""",
    "sorted": """\
	std::vector<record> v;
	v.reserve(64);
	for (long i = 0; i < 64; i++)
		v.emplace_back(record{{static_cast<long>(big::mix(n + i) % 100), 1}, "s", {}, {}});
	std::sort(v.begin(), v.end(), [](const record &x, const record &y) { return x.id < y.id; });
	auto end = std::unique(v.begin(), v.end(),
		[](const record &x, const record &y) { return x.id == y.id; });
	v.erase(end, v.end());
	auto it = std::find_if(v.begin(), v.end(), [n](const record &r) { return r.id.a > n % @S@; });
	return it == v.end() ? -1 : it - v.begin();
""",
    "shapes": """\
	std::vector<std::unique_ptr<big::shape>> all;
	long caught = 0;
	for (long i = 0; i < n % 23; i++) {
		try {
			if (i % 3)
				all.push_back(std::make_unique<square>(i));
			else
				all.push_back(std::make_unique<ring>(i, i * @S@ % 17));
		} catch (const big::bad_value &e) {
			caught += e.amount;
		} catch (const std::exception &e) {
			caught += e.what()[0];
		}
	}
	for (const auto &s : all)
		caught += s->area(n % 5) + static_cast<long>(s->name().size());
	return caught;
""",
    "queued": """\
	std::deque<std::function<long(long)>> q;
	std::shared_ptr<record> shared = std::make_shared<record>();
	for (long i = 0; i < n % 11; i++)
		q.push_back([shared, i](long x) { return x * i + static_cast<long>(shared->values.size()); });
	long sum = @S@;
	while (!q.empty()) {
		sum = q.front()(sum);
		q.pop_front();
		shared->values.push_back(static_cast<double>(sum));
	}
	return sum;
""",
    "varied": """\
	std::vector<value> v{n, std::string("v@C@"), key{n, @S@}};
	std::set<long> seen;
	for (long i = 0; i < n % 19; i++)
		v.push_back(i % 2 ? value(i) : value(key{i, 2}));
	std::transform(v.begin(), v.end(), std::inserter(seen, seen.end()), weight);
	return seen.empty() ? 0 : *seen.rbegin() - *seen.begin();
""",
}


def members(draw):
    kinds = draw.sample(MEMBERS, draw.randrange(0, 6))
    return "".join("\t" + kind.replace("@", f"extra_{i}") + ";\n" for i, kind in enumerate(kinds))


def rename(draw, out, first, names):
    """Gives the cluster's types, functions and members names of its own."""
    words = draw.sample(WORDS, len(RENAMED))  # all different
    to = {old: f"{word}_{draw.choice(WORDS)}_" for old, word in zip(RENAMED, words)}
    pattern = re.compile(r"\b(" + "|".join(RENAMED) + r")\b")
    for i in range(first, len(out)):
        out[i] = pattern.sub(lambda m: to[m[1]], out[i])
    return [to[name] for name in names]


def unit(u, clusters):
    draw = random.Random(u)
    out = ['#include "big.h"\n\nnamespace unit_%d {\n\n' % u]
    calls = []
    for c in range(clusters):
        first = len(out)
        out.append(CLUSTER.replace("@U@", str(u)).replace("@C@", str(c))
                   .replace("@S@", str(draw.randrange(3, 29))).replace("@MEMBERS@", members(draw)))
        names = sorted(BODIES)
        draw.shuffle(names)
        for name in names:
            body = BODIES[name].replace("@C@", str(c)).replace("@S@", str(draw.randrange(3, 29)))
            out.append(f"static long {name}(long n)\n{{\n{body}}}\n\n")
        out.append("} // namespace cluster_%d\n\n" % c)
        names = rename(draw, out, first, names)
        calls += [f"\tsum += cluster_{c}::{name}(n + {c});\n" for name in names]
    draw.shuffle(calls)
    out.append("long run(long n)\n{\n\tlong sum = 0;\n\n" + "".join(calls) + "\treturn sum;\n}\n\n")
    out.append("} // namespace unit_%d\n" % u)
    return "".join(out)


MAKEFILE = """\
CXX ?= g++
CXXFLAGS ?= -O2 -g
LDFLAGS ?=
OBJ := main.o $(patsubst %.cc,%.o,$(wildcard unit_*.cc))

big: $(OBJ)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $(OBJ)
# Parsed once: half of a unit's time is the standard library's headers otherwise.
big.h.gch: big.h
	$(CXX) -std=c++17 $(CXXFLAGS) -x c++-header -o $@ $<
%.o: %.cc big.h.gch
	$(CXX) -std=c++17 $(CXXFLAGS) -Winvalid-pch -include big.h -c -o $@ $<
"""


def main():
    folder, units = sys.argv[1], int(sys.argv[2])
    clusters = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    files = {"big.h": HEADER, "Makefile": MAKEFILE}
    for u in range(units):
        files[f"unit_{u}.cc"] = unit(u, clusters)
    files["main.cc"] = "".join(
        [f"namespace unit_{u} {{ long run(long n); }}\n" for u in range(units)]
        + ["#include <cstdio>\n#include <cstdlib>\n\nint main(int argc, char **argv)\n{\n",
           "\tlong n = argc > 1 ? std::atol(argv[1]) : argc, sum = 0;\n\n"]
        + [f"\tsum += unit_{u}::run(n);\n" for u in range(units)]
        + ['\tstd::printf("%ld\\n", sum);\n\treturn 0;\n}\n'])
    for name, text in files.items():
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(text)


main()
