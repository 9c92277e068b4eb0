# SPDX-License-Identifier: MIT
# weir-test: root: the probe language
# Every feature of the probe language, a case each; those that need no traced program are one script.
. "$ROOT/tests/lib.sh"

# --- cases of tests/fixtures/probe/language/ ----------------------------------------------------------------
cat >cases.py <<'E'
import re, subprocess, sys
cases, sections = [], []
for line in (line for path in sys.argv[2:] for line in open(path, encoding="utf-8")):
    if line.startswith("# ---"):
        sections.append([])  # each is a script: the verifier has limits for a program
    if line.strip() and not line.startswith("#"):
        name, rest = line.rstrip("\n").split(" :: ", 1)
        body, expected = rest.split(" => ", 1)
        sections[-1].append((name, body, expected.replace("\\n", "\n")))
declarations = """struct lang_pair { char a; uint64_t b; };
struct lang_bits { unsigned a : 3; unsigned b : 30; };
enum lang { LANG_ONE = 1, LANG_TWO = 42, LANG_NEXT };
"""


def script(some):
    text = declarations
    for name, body, _ in some:
        text += 'begin { printf("## %s\\n"); }\nbegin {\n%s\n}\n' % (name, body)
    return text


def run(some):
    open("cases.wr", "w", encoding="utf-8").write(script(some))
    return subprocess.run([sys.argv[1], "probe", "-q", "-i", "cases.wr", "42", "hello", "0x1f"], capture_output=True,
                          encoding="utf-8", timeout=60)


def split(out):
    found, name = {}, None
    for line in out.split("\n"):
        if line.startswith("## "):
            name = line[3:]
            found[name] = []
        elif name:
            found[name].append(line)
    return {k: "\n".join(v).rstrip("\n") for k, v in found.items()}


def is_right(expected, got):
    e = re.escape(expected[:-2] + " " if expected.endswith(" $") else expected)
    if expected.startswith("[0-9]"):
        e = expected
    return any(re.fullmatch(x, got) for x in [e] + [re.escape(p) for p in expected.split("|")])


def run_section(cases):
    whole = run(cases)
    bad = []
    if "error:" in whole.stderr or whole.returncode == 1:
        # Something does not compile: find out which, so that the others are still looked at.
        for case in cases:
            one = run([case])
            if "error:" in one.stderr or one.returncode == 1:
                bad.append(case[0])
                print("not ok %s: %s" % (case[0], next((l for l in one.stderr.split("\n") if "warning" not in l), "")))
        whole = run([c for c in cases if c[0] not in bad])
    found = split(whole.stdout)
    for name, body, expected in cases:
        if name in bad:
            continue
        got = found.get(name)
        if got is not None and is_right(expected, re.split(r"\n+@", got)[0] if name == cases[-1][0] else got):
            print("ok", name)
        else:
            print("not ok %s: expected %r, got %r" % (name, expected, got))
    losses = [l for l in whole.stderr.split("\n") if l.startswith("weir:")]
    print("not ok" if losses else "ok", "cases from %s on lose nothing" % cases[0][0], *losses)


for section in sections:
    run_section(section)
E
python3 cases.py "$WEIR" "$ROOT"/tests/fixtures/probe/language/*.txt || not_ok "the cases run"

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe -q "$@" >"$name.txt" 2>"$name.err"
	rc=$?
	[ -s "$name.err" ] && sed "s/^/  $name: /" "$name.err"
}

# --- aggregations and maps at the end -----------------------------------------------------------------------
probe aggregations 'begin {
	@count = count(); @count = count();
	@sum = sum(10); @sum = sum(-3); @avg = avg(10); @avg = avg(21); @min = min(5); @min = min(-2); @max = max(5); @max = max(9);
	@stats["k"] = stats(10); @stats["k"] = stats(20);
	@hist = hist(0); @hist = hist(1); @hist = hist(5); @hist = hist(5); @hist = hist(-3); @hist = hist(1024);
	@lhist = lhist(-1, 0, 100, 10); @lhist = lhist(0, 0, 100, 10); @lhist = lhist(15, 0, 100, 10); @lhist = lhist(100, 0, 100, 10);
	@keys[3, "c"] = 30; @keys[1, "a"] = 10; @keys[2, "b"] = 20;
	@text["x"] = "value"; @tuple[(1, 2)] = (3, "four"); @empty[1] = 1; delete(@empty[1]);
}'
equal "count, sum, avg, min, max, stats" "@count: 2
@sum: 7
@avg: 15
@min: -2
@max: 9
@stats[k]: { .count = 2, .average = 15, .total = 30 }" "$(grep '^@\(count\|sum\|avg\|min\|max\|stats\)' aggregations.txt)"
equal "hist has power-of-2 rows between its ends" "(..., 0) 1
[0] 1
[1] 1
[2, 4) 0
[4, 8) 2
[8, 16) 0
[16, 32) 0
[32, 64) 0
[64, 128) 0
[128, 256) 0
[256, 512) 0
[512, 1K) 0
[1K, 2K) 1" "$(sed -n '/^@hist:/,/^$/p' aggregations.txt | sed '1d;$d' | sed 's/ *|.*//; s/  */ /g')"
equal "lhist has rows of one step, and its ends" "(..., 0) 1
[0, 10) 1
[10, 20) 1
[20, 30) 0
[30, 40) 0
[40, 50) 0
[50, 60) 0
[60, 70) 0
[70, 80) 0
[80, 90) 0
[90, 100) 0
[100, ...) 1" "$(sed -n '/^@lhist:/,/^$/p' aggregations.txt | sed '1d;$d' | sed 's/ *|.*//; s/  */ /g')"
equal "maps are printed at the end, sorted by value" "@keys[1, a]: 10
@keys[2, b]: 20
@keys[3, c]: 30
@text[x]: value
@tuple[1, 2]: (3, four)" "$(grep '^@\(keys\|text\|tuple\|empty\)' aggregations.txt)"

# --- print of maps with top and div, clear, zero; clauses in order; end; exit status --------------------------
probe printing -e 'begin { @a["a"] = 10; @a["b"] = 20; @a["c"] = 30; @a["d"] = 40; print(@a, 2, 10); }
begin { @n[1] = count(); @z[1] = 5; @c[1] = 5; @h[1] = hist(3); clear(@c); zero(@z); clear(@h); }' \
	-e 'interval:ms:20 { printf("tick\n"); exit(7); printf("not printed\n"); } end { printf("end %s\n", probe); clear(@a); }'
equal "print with top and div" "@a[c]: 3
@a[d]: 4" "$(grep '^@a' printing.txt)"
equal "exit ends the clause, end runs, the status is passed on" "7 tick end end" "$rc $(echo $(grep '^tick\|^end\|^not' printing.txt))"
equal "clear empties, zero keeps keys" "@n[1]: 1
@z[1]: 0" "$(grep '^@[nzch]' printing.txt)"

# --- scripts from files, standard input, several at once; declarations first; short and old forms ------------
printf '#!/usr/bin/env -S weir probe\n// a comment\nBEGIN { printf("file %%d\\n", $1); @shared = 3; }\nEND { printf("bye\\n"); }\n' >file.wr
probe file file.wr 5
equal "a script is a file with a first line for the shell, BEGIN and END" "file 5 bye @shared: 3" "$(echo $(cat file.txt))"
probe standard - <file.wr
equal "a script is standard input" "file 0 bye @shared: 3" "$(echo $(cat standard.txt))"
probe several -i file.wr -e 'i:ms:30 { print(@shared + 1); exit(); }'
equal "several scripts have the same maps" "file 0 4 bye @shared: 3" "$(echo $(cat several.txt))"
probe periods 'i:ms:10 { @ms = count(); } interval:hz:100 { @hz = count(); } interval:us:20000 { @us = count(); } profile:hz:200 { @p[cpu] = count(); @is_sampled = 1; } interval:ms:100 { if (@is_sampled) { @tenths = elapsed / 10000000; exit(); } }' -c 'sh -c "while :; do :; done"'
# On a busy machine it takes longer than 100 ms until the command was sampled; each interval has been due the more often.
check "intervals and profile come as often as they should" awk -F ': ' '
	{ n[$1] = $2 } /^@p\[/ { samples += $2 }
	END { t = n["@tenths"]; for (i in n) if (i ~ /^@[a-z_]+$/) print i, n[i]
		exit !(t >= 10 && n["@ms"] >= t - 5 && n["@ms"] <= t + 1 && n["@hz"] >= t - 5 && n["@hz"] <= t + 1 &&
			n["@us"] >= t / 2 - 3 && n["@us"] <= t / 2 + 1 && samples > 0) }' periods.txt

# --- structures, arrays, pointers, globals of a traced program ------------------------------------------------
gcc -m64 -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -o shapes "$ROOT/tests/fixtures/probe/shapes.c" || not_ok "the program compiles"
strip -g -o bare shapes
second=$(objdump -d --no-show-raw-insn shapes | awk '/<outer_function>:/ { getline a; getline b; split(a, x, ":"); split(b, y, ":"); print "$((0x" y[1] " - 0x" x[1] "))" }' | tr -d ' ' | sed 's/.*/echo "&"/' | bash)
cat >shapes.wr <<'E'
u:./shapes:takes_shapes /args.n == 0/ {
	$s = args.s;
	print(("numbers", $s->numbers[1] + $s->numbers[3], $s->grid[1][0], $s->points[1].y));
	print($s->numbers);
	print($s->grid);
	print(*$s->origin);
	print($s->points[0]);
	printf("text %s %s\n", $s->text, $s->text);
	printf("names %s %s\n", str($s->names[0]), str($s->names[1]));
	printf("bytes %rh %r\n", buf($s->mac), buf($s->text, 5));
	printf("words %d %d %d\n", $s->words[0], $s->words[1], $s->words[2]);
	printf("big %d %d %d\n", $s->big, $s->is_true, $s->colour);
	printf("step %d %d\n", *($s->origin.x == -1 ? &$s->numbers[2] : &$s->numbers[0]), (&$s->points[1] - &$s->points[0]));
	printf("globals 0x%x %d 0x%x\n", global_a, global_b, *uaddr("global_a"));
	printf("func %s %s\n", func, probe);
	printf("usym %s %s\n", usym(reg("ip")), usym(0));
	@array[$s->points[0].x] = $s->numbers[3];
	@structure = $s->points[1];
	$p = (uint8 *)&$s->mac; printf("cast %x %x\n", *($p + 3), $p[5]);
	self->n = 1;
}
ur:./shapes:takes_shapes /self->n/ { printf("returned %d %d\n", retval, self->n); self->n = 0; }
u:./shapes:inner_function /args.n == 1/ {
	printf("stack%s\n", ustack(3));
	printf("offset %s\n", func);
	printf("lengths [%s] [%s] [%s] [%s]\n", str(args.text, 5), str(args.text, args.n + 3), str(args.text, args.n - 1), str(args.text, 1000 * args.n));
	@stacks[ustack(2)] = count();
}
uprobe:./shapes:outer_function+OFFSET { @offset = count(); }
uprobe:./shapes:*_function { @glob[func] = count(); }
E
sed -i "s/OFFSET/$second/" shapes.wr
probe shapes shapes.wr -c ./shapes
equal "structures, arrays, pointers, globals, symbols, stacks" "(numbers, 6, 7, 13)
[1,2,3,4]
[[5,6],[7,8]]
{ .x = -1, .y = -2 }
{ .x = 10, .y = 11 }
text hello hello
names zero one
bytes 01 02 03 aa bb cc hello
words 9 10 11
big -1234567890123 1 7
step 3 1
globals 0x55555555 -2 0x55555555
func takes_shapes uprobe:./shapes:takes_shapes
usym takes_shapes 0x0
cast aa cc
returned 1 1
stack
        inner_function+0
        outer_function+N
        main+N

offset inner_function
lengths [inner] [inne] [] [inner text]
@array[10]: 4
@structure: { .x = 12, .y = 13 }
@stacks[
    inner_function+0
    outer_function+N
]: 1
@offset: 3
@glob[inner_function]: 3
@glob[outer_function]: 3" "$(sed 's/@\/.*:[0-9]*$//; s/+[1-9][0-9]*$/+N/; s/+0x0$/+0/' shapes.txt | grep -v '^$' | sed 's/^offset/\n&/')"

# --- actions of weir itself -----------------------------------------------------------------------------------
echo "content of a file" >cat-me.txt
probe actions --unsafe 'begin { cat("cat-%s.txt", "me"); system("echo system %d", 5); }
t:syscalls:sys_enter_execve { join(args.argv); join(args.argv, ","); printf("exec %s\n", str(args.filename)); }' -c '/usr/bin/env /bin/true one two'
equal "cat, system, join" "content of a file
system 5
/usr/bin/env /bin/true one two
/usr/bin/env,/bin/true,one,two
/bin/true one two
/bin/true,one,two" "$(grep -v '^exec' actions.txt)"
probe unsafe 'begin { system("id"); }' >/dev/null
equal "system needs --unsafe" "1 [unsafe]" "$rc $(grep -o '\[unsafe\]' unsafe.err | head -n 1)"
cat >signal.wr <<'E'
uprobe:./shapes:inner_function /args.n == 2/ { signal("SIGUSR1"); printf("sent\n"); }
E
probe signal --unsafe -i signal.wr -c 'sh -c "./shapes 2>/dev/null; echo status $? >signal-status" 2>/dev/null'
equal "signal reaches the traced program" "sent status 138" "$(cat signal.txt) $(cat signal-status)"

# --- JSON -----------------------------------------------------------------------------------------------------
timeout 120 "$WEIR" probe -f json 2>json.err >json.txt 'begin { printf("text %d\n", 5); print((1, "a")); @m["k"] = 3; @n = 4; @h = hist(5); @s = stats(4); @l = lhist(5, 0, 10, 5); time("%Y\n"); }'
python3 - <<'PY' || not_ok "JSON lines are read"
import json
rows = [json.loads(l) for l in open("json.txt")]
by = {}
for r in rows:
    by.setdefault(r["type"], []).append(r["data"])
def is_(sentence, expected, got):
    print("ok" if expected == got else "not ok", "JSON:", sentence, "" if expected == got else "%r != %r" % (expected, got))
is_("attached_probes", [{"probes": 1}], by.get("attached_probes"))
is_("printf", ["text 5\n"], by.get("printf"))
is_("value", [[1, "a"]], by.get("value"))
maps = {k: v for d in by.get("map", []) for k, v in d.items()}
is_("maps", ({"k": 3}, 4), (maps.get("@m"), maps.get("@n")))
hist = {k: v for d in by.get("hist", []) for k, v in d.items()}
is_("hist", [{"min": 4, "max": 7, "count": 1}], hist.get("@h"))
is_("lhist", [{"min": 5, "max": 9, "count": 1}], hist.get("@l"))
stats = {k: v for d in by.get("stats", []) for k, v in d.items()}
is_("stats", {"count": 1, "average": 4, "total": 4}, stats.get("@s"))
is_("time", 1, len(by.get("time", [])))
PY

# --- listing, dry run, dump, streams, clauses switched while running ------------------------------------------
timeout 120 "$WEIR" probe -l 'uprobe:./shapes:*_function' >list.txt 2>&1
equal "-l lists functions by glob" "uprobe:./shapes:inner_function uprobe:./shapes:outer_function" "$(echo $(sort list.txt))"
for kind in tracepoint:sched:sched_sw 'software:*' 'interval:*' 'profile:*' 'rawtracepoint:sched_sw*' 'hardware:*'; do
	timeout 120 "$WEIR" probe -l "$kind*" >list.txt 2>&1
	check "-l lists $kind" grep -q "^${kind%%:*}:" list.txt
done
probe stream -o shapes.wprobe -e 'uprobe:./shapes:inner_function { printf("%d %s\n", arg1, str(arg0)); }'
probe replay shapes.wprobe -c ./shapes
equal "a stream that was written runs" "0 inner text 1 inner text 2 inner text" "$(echo $(cat replay.txt))"
probe plan --dry-run 'uprobe:./shapes:inner_function { exit(); }'
check "--dry-run names the site and runs nothing" grep -q inner_function plan.txt
probe dump --dump 'uprobe:./shapes:inner_function { @ = count(); }'
check "--dump shows code beside the script" grep -q 'call' dump.txt
probe clauses 'interval:ms:10 { @a = count(); if (@ticks++ == 3) { disable(1); enable(3); } } interval:ms:10 { @b = count(); }
interval:ms:10 { @c = count(); } begin { disable(3); } interval:ms:120 { exit(); }' >/dev/null
a=$(sed -n 's/^@a: //p' clauses.txt) b=$(sed -n 's/^@b: //p' clauses.txt) c=$(sed -n 's/^@c: //p' clauses.txt)
check "clauses are switched off and on while it runs ($a, $b, $c)" [ "${a:-0}" -lt "${b:-0}" -a "${c:-0}" -lt "${b:-0}" -a "${c:-0}" -gt 0 ]

# --- what is not there yet says so -----------------------------------------------------------------------------
refused() { # TAG SCRIPT
	timeout 120 "$WEIR" probe -q "$2" >refused.txt 2>refused.err
	equal "refused: $2" "1 [$1]" "$? $(grep -o '\[[a-z-]*\]$' refused.err | head -n 1)"
}
refused aggregation 'begin { @a = hist(1); print(@a + 1); }'

# --- settings --------------------------------------------------------------------------------------------------
timeout 120 "$WEIR" probe 'config = { max_strlen = 4; max_map_keys = 2; lazy_symbolication = 1 } begin { @a[1] = 1; @a[2] = 2; @a[3] = 3; print(str($1)); }' abcdef >config.txt 2>config.err
rc=$?
equal "config: lengths and entries are set, others are warned about" "3 2 1" \
	"$rc $(grep -c '^@a' config.txt) $(grep -c "'lazy_symbolication' has no effect here \[config\]" config.err)"

# --- docs/probe-language.md ------------------------------------------------------------------------------------
cat >document.py <<'E'
import re, subprocess, sys
weir, root = sys.argv[1:]
text = open(root + "/docs/probe-language.md").read()
for n, block in enumerate(re.findall(r"^```weir\n(.*?)^```", text, flags=re.M | re.S)):
    open("block.wr", "w").write(block)
    run = subprocess.run([weir, "probe", "-q", "--dump", "-i", "block.wr"], capture_output=True, text=True)
    first = block.split("\n")[0]
    print("ok" if run.returncode == 0 else "not ok", "the document's script %d compiles: %s" % (n + 1, first))
    if run.returncode:
        print(run.stderr)
source = open(root + "/src/probe/script/diag.c").read()
tags = re.findall(r'"([a-z0-9-]+)"', re.search(r"diag_tags\[\] = \{(.*?)\}", source, flags=re.S).group(1))
told = re.findall(r"^\| `([a-z0-9-]+)` \|", text.split("## Messages")[1].split("## Limits")[0], flags=re.M)
print("ok" if tags == told else "not ok", "the document has the tags of messages", set(tags) ^ set(told) or "")
builtins = open(root + "/src/probe/compile/builtins.c").read()
names = set(re.findall(r'^\t\{"([a-z_]+)", (?:BUILTIN|FUNCTION)_', builtins, flags=re.M))
unnamed = sorted(n for n in names if not re.search(r"\b%s\b" % n, text))
print("not ok" if unnamed else "ok", "the document names all %d builtins and functions" % len(names), *unnamed)
E
python3 document.py "$WEIR" "$ROOT" || not_ok "the document is read"
