# SPDX-License-Identifier: MIT
# weir-test: once: the browser is the same whatever weir is built with
# Names that are HTML or script show as text, from a server and in a file; and who cannot see or has no mouse gets all.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"
need_browser "hostile names, and access to the page"

image='<img/src=x/onerror=alert(1)>' turned=$'evil\xe2\x80\xaeniam' script="</script><script>document.title='taken'</script>"
cat >events.txt <<E
0 enter main
10 enter $image
20 enter $script
60 leave $script
90 leave $image
100 enter <!--
200 leave <!--
202 enter $turned
208 leave $turned
210 hook <b>hooked</b> jump 7 .
220 leave main
E
"$WEIR" import events events.txt -o hostile.weir >/dev/null 2>&1 || not_ok "the events are imported"
mkdir '<b>folder'
cat >'<b>folder/prog.c' <<'E'
static volatile int n; /* </script><script>document.title='taken'</script><img src=x onerror=alert(1)> */
int main(void)
{
	for (int i = 0; i < 1000; i++)
		n += i; /* </script><script>document.title='taken'</script> <!-- <script> */
	return 0;
}
E
"$WEIR" count gcc -O0 -g -o counted '<b>folder/prog.c' >/dev/null 2>&1 && ./counted
"$WEIR" report --html counted.html counted.weir || not_ok "a page of a program with hostile source is written"
check "a source line ends no part of the file" [ "$(grep -o '</script' counted.html | wc -l)" = "$(grep -o '<script' counted.html | wc -l)" ]

hostile() { # NAME URL
	timeout 240 node "$ROOT/tests/browser/hostile.mjs" "$1" "$2" || not_ok "$1: its test ends well: status $?"
}
access() { # NAME URL
	timeout 240 node "$ROOT/tests/browser/access.mjs" "$1" "$2" || not_ok "$1: its test ends well: status $?"
}
"$WEIR" report --html hostile.html hostile.weir
start_view hostile hostile.weir
hostile_url=$url hostile_pid=$pid
start_view counted counted.weir
counted_url=$url counted_pid=$pid
printf '%s\n' '0 enter main' '10 enter write' '60 leave write' '90 leave main' | "$WEIR" import events - -o was.weir
printf '%s\n' '0 enter main' '10 enter read' '20 leave read' '20 enter write' '50 leave write' '70 leave main' | "$WEIR" import events - -o is.weir
start_view diff was.weir is.weir
together hostile names "$hostile_url" -- hostile names-file "file://$PWD/hostile.html" -- access events "$hostile_url" -- access counted "$counted_url" -- \
	access diff "$url"
kill -INT $pid $hostile_pid $counted_pid
wait $pid $hostile_pid $counted_pid
