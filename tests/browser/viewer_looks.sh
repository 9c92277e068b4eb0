# SPDX-License-Identifier: MIT
# weir-test: once: the browser is the same whatever weir is built with
# What users see: each pane of each kind of trace, of 10 and of 500,000 nodes, in small and large windows, light and dark.
# Pictures are in BUILD/screens (look-*.png), to be looked at; a script says what is cut off, overlaps, is blank or faint,
# and finds the hottest path, its callers, its line and its instructions.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"
need_browser "how the page looks"

cat >tokens.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	char word[16];
	long count;
};
static struct entry table[4096];

__attribute__((noinline)) static unsigned hash_of(const char *word)
{
	unsigned h = 5381;

	for (int round = 0; round < 40; round++)
		for (const char *p = word; *p; p++)
			h = h * 33 ^ (unsigned char)*p;
	return h % 4096;
}

__attribute__((noinline)) static void count_word(const char *word)
{
	unsigned i = hash_of(word);

	while (table[i].count && strcmp(table[i].word, word) != 0)
		i = (i + 1) % 4096;
	if (!table[i].count)
		strcpy(table[i].word, word);
	else if (table[i].count == -1)
		abort();
	table[i].count++;
}

__attribute__((noinline)) static int by_count(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : strcmp(x->word, y->word);
}

__attribute__((noinline)) static void report(int depth)
{
	if (depth)
		report(depth - 1);
	else
		qsort(table, 4096, sizeof(table[0]), by_count);
}

int main(int argc, char **argv)
{
	char word[16];

	for (int i = 0; i < (argc > 1 ? 20000 : 200000); i++) {
		snprintf(word, sizeof(word), "w%d", i * 7 % 997);
		count_word(word);
	}
	report(3);
	printf("%s %ld\n", table[0].word, table[0].count + !argv);
	return 0;
}
C
gcc -O1 -g -o tokens tokens.c
"$WEIR" record -q -o sampled.weir -- ./tokens >/dev/null
"$WEIR" record -q --functions 'count_word,report,by_count' -o merged.weir -- ./tokens >/dev/null
"$WEIR" count gcc -O1 -g -o counted tokens.c >/dev/null 2>&1 && ./counted few >/dev/null
"$WEIR" steps -q --max 20000 -o steps.weir -- ./tokens few >/dev/null 2>&1
mkdir after && sed 's/round < 40/round < 60/; s/by_count/order_of/' tokens.c >after.c && gcc -O1 -g -o after/tokens after.c
"$WEIR" record -q -o after.weir -- after/tokens >/dev/null
long='std::__detail::_Map_base<std::__cxx11::basic_string<char,std::allocator<char>>,std::pair<std::__cxx11::basic_string<char>const,long>>::operator[]'
for stack in 50,main,parse,read 30,main,parse 20,main,check 9,main,check,compare 4,main,write 11,main,parse,read,fill \
	3,main,parse,read,fill,wait 3,main,write,flush 60,main,check,compare,LONG; do
	yes "${stack#*,}" | head -n "${stack%%,*}" | tr , ' ' | sed "s/LONG/$long/"
done | "$WEIR" import samples - -o small.weir
python3 -c '
import itertools
for path in itertools.product(range(14), repeat=5):
    print("main", *("level%d_function_%d" % step for step in enumerate(path)))' | "$WEIR" import samples - -o large.weir

pages=() servers=()
view() { # NAME TRACE...: a '+' behind the name asks for all pictures
	start_view "${1%+}" "${@:2}"
	pages+=("$1=$url") servers+=("$pid")
}
looks() { # NAME=URL...
	timeout 280 node "$ROOT/tests/browser/looks.mjs" "$@" || not_ok "the test of ${1%%=*} ends well: status $?"
}
for name in sampled merged counted steps small+ large+; do view $name "${name%+}.weir"; done
view diff sampled.weir after.weir
together looks "${pages[@]:0:4}" "${pages[6]}" -- looks "${pages[@]:4:2}"
kill -INT "${servers[@]}"
wait "${servers[@]}"
