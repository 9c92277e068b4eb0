#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir-test: patient
# The golden vectors through the program: import, then each report against the expected rows, which
# come from the vectors or from model.py, a second and naive model.
. "$ROOT/tests/lib.sh"
golden=$ROOT/tests/golden
model="python3 $golden/model.py"

# rows KIND TRACE [OPTIONS]: the report without its head line, blanks made one.
rows() { "$WEIR" report "$@" | tail -n +2 | sed -E 's/^ +//; s/ +/ /g'; }
expected() { grep -v '^#' "$golden/$1"; }

"$WEIR" import events "$golden/events.txt" -o g.weir || not_ok "imports the golden events"
for kind in tree flat arcs; do
	equal "$kind of the golden events has exactly the golden rows" "$(expected $kind.txt)" "$(rows $kind g.weir)"
done

# The model must know the golden rows too, or it proves nothing.
for kind in tree flat arcs; do
	equal "the second model gives the golden $kind" "$(expected $kind.txt)" "$($model $kind events "$golden/events.txt")"
done

"$WEIR" import samples "$golden/samples.txt" -o s.weir || not_ok "imports the golden samples"
for kind in tree flat arcs; do
	equal "$kind of the golden samples agrees with the second model" \
		"$($model $kind samples "$golden/samples.txt")" "$(rows $kind s.weir)"
done

bad=
for seed in $(seq 1 12); do
	$model random "$seed" >random.txt
	rm -f random.weir*
	"$WEIR" import events random.txt -o random.weir || bad="$bad $seed(import)"
	for kind in tree flat arcs; do
		[ "$($model $kind events random.txt)" = "$(rows $kind random.weir)" ] || bad="$bad $seed($kind)"
	done
	"$WEIR" report arcs random.weir --json >random.json && $model check-arcs random.json || bad="$bad $seed(sums)"
done
equal "12 random runs of three threads agree with the second model" "" "$bad"

# With samples below the events, switches, and two stacks for each thread. The marker lines have a test
# of their own below.
bad=
for seed in $(seq 1 12); do
	$model random-merged "$seed" >random.txt
	rm -f random.weir*
	"$WEIR" import events random.txt -o random.weir || bad="$bad $seed(import)"
	for kind in tree flat arcs; do
		[ "$($model $kind events random.txt)" = "$(rows $kind random.weir | grep -v stack_0x40)" ] || bad="$bad $seed($kind)"
	done
	"$WEIR" report arcs random.weir --json >random.json && $model check-arcs random.json || bad="$bad $seed(sums)"
done
equal "12 random runs with samples, switches and coroutines agree with the second model" "" "$bad"

for t in g s; do
	"$WEIR" report arcs $t.weir --json >arcs.json
	check "every stanza of $t.weir keeps its sums" $model check-arcs arcs.json
done

# times.txt, figure 18D: one unit of interrupt in the middle of B; and the disk transfers.
cat >times.txt <<'END'
0 enter A
1 enter B
5 switch-out
6 switch-in
10 leave B
11 leave A
END
"$WEIR" import events times.txt -o t.weir && "$WEIR" report flat t.weir --json >t.json
equal "time that is taken away counts as elapsed only" "A 2 10 11, B 8 8 9" "$(json t.json \
	'", ".join("%s %d %d %d" % (r["name"], r["base"], r["cum"], r["elapsed"]) for r in j["rows"] if r["kind"] == "native")')"
cat >io.txt <<'END'
0 enter A
1 add io 1
2 enter B
3 add io 3
4 leave B
5 add io 1
6 leave A
END
"$WEIR" import events io.txt -o io.weir && "$WEIR" report flat io.weir --metric io --json >io.json
equal "a resource is charged to the routine that uses it" "A 2 5 None, B 3 3 None" "$(json io.json \
	'", ".join("%s %d %d %s" % (r["name"], r["base"], r["cum"], r["elapsed"]) for r in j["rows"] if r["kind"] == "native")')"

# average.txt: B's 40 calls of D take three quarters of D's 40 s. Tenths of seconds.
python3 - >average.events <<'END'
t = 0
def at(d, what, name):
    global t
    t += d
    print(t, what, name)
at(0, "enter", "start"); at(1, "enter", "main"); at(10, "enter", "A"); at(100, "enter", "B")
for i in range(40):
    at(5, "enter", "D"); at(7 + i % 2, "leave", "D")
at(0, "leave", "B"); at(0, "enter", "C")
for i in range(40):
    at(7 + i % 2, "enter", "D"); at(2 + i % 2, "leave", "D")
at(0, "leave", "C"); at(0, "leave", "A"); at(0, "leave", "main"); at(0, "leave", "start")
END
"$WEIR" import events average.events -o average.weir && "$WEIR" report flat average.weir --json >average.json
equal "costs are exact where an average over calls would be wrong" \
	"$(expected average.txt | awk '{print $1, $2, $4}')" "$(json average.json \
	'"\n".join("%s %.1f %.1f" % (r["name"], r["base"] / 10, r["cum"] / 10) for n in ["start", "main", "A", "B", "C", "D"] for r in j["rows"] if r["name"] == n)')"

# merge.txt: a sampled stack below the events that are open.
cat >merge.events <<'END'
0 enter Event1
1 enter Event2
2 sample Event1 SampleA SampleB Event2 SampleC SampleD SampleE
3 leave Event2
4 leave Event1
END
"$WEIR" import events merge.events -o m.weir
equal "samples hang below the events that enclose them" "$(expected merge.txt)" \
	"$(rows tree m.weir | grep -v stack_0x40 | sed -n 's/^\([0-9]*\) .* \(- \)*\([^ ]*\)$/\1 \3/p' |
		awk '$1 > 0 {printf "%*s%s\n", ($1 - 1) * 2, "", $2}')"
equal "a marker shows where each chain of samples begins" "3 . . . . - - - stack_0x40
2 . . . . - - stack_0x40" "$(rows tree m.weir | grep stack_0x40)"
