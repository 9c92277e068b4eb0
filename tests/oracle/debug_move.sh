# SPDX-License-Identifier: MIT
# Debug information of objects whose code has grown says of each moved address what it said of the old
# one: lines, ranges, locations, as llvm-dwarfdump reads them. Code that stays keeps every byte.
# weir-test: once: takes long; unit tests and fuzz targets take debug_move through the sanitizers
# weir-test: patient
. "$ROOT/tests/lib.sh"
grow=$BUILD/tests/oracle/debug_move_grow

for tool in llvm-dwarfdump objcopy ld; do
	if ! command -v $tool >/dev/null; then
		skip "moved debug information is as it was: $tool is not here"
		finish
	fi
done

cat >plain.c <<'END'
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int value; };
static inline int scale(int a, int b) { int c = a * b; if (c > 100) { c -= b; printf("%d\n", c); } return c + a; }
struct node *push(struct node *list, int value)
{
	struct node *n = malloc(sizeof(*n));
	if (!n) abort();
	n->next = list; n->value = scale(value, 3);
	return n;
}
static int __attribute__((noinline)) sum(const struct node *list, int depth)
{
	int total = 0;
	for (; list; list = list->next) {
		int part = list->value;
		switch (depth + part % 7) {
		case 0: part += 2; break;
		case 1: part = scale(part, depth); break;
		case 2: part ^= 5; break;
		case 3: puts("three"); break;
		case 4: part *= sum(list->next, depth + 1); break;
		}
		total += part;
	}
	return total;
}
int main(int argc, char **argv)
{
	struct node *list = NULL;
	for (int i = 0; i < argc; i++) { char *end; long v = strtol(argv[i], &end, 10); list = push(list, (int)v); }
	return sum(list, 0);
}
END
cat >classes.cc <<'END'
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
template <class T> T twice(T x) { return x + x; }
struct S { int v; int f(int a) { int r = 0; for (int i = 0; i < a; i++) { int t = twice(i) * v; r += t; } return r; } };
int g(std::vector<int> &v, const std::string &s)
{
	S k{3}; int sum = 0;
	for (auto x : v) try { if (x == 77) throw std::runtime_error(s); sum += k.f(x); } catch (std::exception &e) { puts(e.what()); }
	return twice(sum);
}
int main(int argc, char **argv)
{
	std::vector<int> v; for (int i = 0; i < argc + 5; i++) v.push_back(i * argc);
	return g(v, argv[0]);
}
END

# moved SENTENCE OBJECT [verify] [entries]: with nothing inserted, with a little everywhere, with much.
moved() {
	local how bytes every line
	for how in "0 0" "1 1" "8 3" "300 2"; do
		read -r bytes every <<<"$how"
		python3 "$ROOT/tests/oracle/debug_move.py" "$grow" "$2" "$bytes" "$every" "${@:3}" >moved.txt 2>&1
		line=$(tail -n 1 moved.txt)
		if [[ $line =~ ^([0-9]+)\ lines\ 0\ different$ ]] && [ "${BASH_REMATCH[1]}" -gt 100 ]; then
			ok "$1: $bytes bytes before every $every"
		else
			not_ok "$1: $bytes bytes before every $every: $line"
			head -n 20 moved.txt
		fi
	done
}

# built SOURCE COMMAND...: compiles it and compares.
built() {
	local source=$1
	shift
	if ! "$@" -c "$source" -o built.o 2>err.txt; then
		skip "debug information of $* moves: $(head -n 1 err.txt)"
		return
	fi
	# llvm-dwarfdump 14 takes minutes to verify what gcc writes.
	case $1,$source in
	clang*) moved "debug information of $* moves" built.o verify ;;
	*.S) moved "debug information of the assembler ($*) moves" built.o verify entries ;;
	*) moved "debug information of $* moves" built.o ;;
	esac
}

while read -r line; do
	# shellcheck disable=SC2086 # words
	[ -z "$line" ] || built plain.c $line
done <<'END'
gcc -O0 -gdwarf-5
gcc -O2 -gdwarf-5
gcc -Og -gdwarf-4 -ffunction-sections
gcc -O2 -gdwarf-5 -ffunction-sections
gcc -O2 -gdwarf-2
gcc -O2 -gdwarf-5 -gz
gcc -O2 -gdwarf-5 -gdwarf64
gcc -O2 -gdwarf-5 -gvariable-location-views=incompat5
gcc -O2 -gdwarf-5 -gno-as-loc-support
gcc -O2 -gdwarf-4 -gsplit-dwarf
clang -O0 -gdwarf-5
clang -O2 -gdwarf-4
clang -O2 -gdwarf-5
clang -O2 -gdwarf-5 -ffunction-sections
clang -O2 -gdwarf-5 -gsplit-dwarf=single
clang -O1 -gline-tables-only
END
for line in "g++ -O2 -gdwarf-5" "g++ -O2 -gdwarf-4" "clang++ -O2 -gdwarf-5" "clang++ -O2 -gdwarf-4"; do
	# shellcheck disable=SC2086
	built classes.cc $line
done

# The assembler's own debug information.
gcc -O2 -S -o plain.S plain.c && built plain.S gcc -g && built plain.S gcc -gdwarf-4

# Several units in one object: each has its line table and its lists.
for compiler in "gcc -O2 -gdwarf-5" "gcc -O2 -gdwarf-4" "clang -O2 -gdwarf-5"; do
	# shellcheck disable=SC2086
	if $compiler -c plain.c -o one.o && $compiler -Dmain=other -Dpush=pull -c plain.c -o two.o &&
		ld -r -o both.o one.o two.o; then
		moved "debug information of two units of $compiler moves" both.o
	else
		skip "debug information of two units of $compiler moves: they cannot be linked here"
	fi
done
