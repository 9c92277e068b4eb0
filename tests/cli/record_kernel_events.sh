# SPDX-License-Identifier: MIT
# System calls, page faults and interrupts as events; which kinds of record --hooks makes.
# weir-test: alone: counts events of the whole machine
. "$ROOT/tests/lib.sh"
gcc -O2 -o calls64 "$ROOT/tests/workloads/system_calls.c" -lpthread || exit 1
gcc -m32 -O2 -o calls32 "$ROOT/tests/workloads/system_calls.c" -lpthread 2>/dev/null ||
	skip "32-bit: the same: gcc -m32 does not work here"

# "CALLS NAME" of each system call of a trace, but for those that are named
calls_but() { # PATTERN TRACE
	"$WEIR" report flat "$2" --json >flat.json
	json flat.json "'\n'.join('%d %s' % (r['calls'], r['name']) for r in j['rows'] if r['image'] == '[system calls]')" |
		grep -vE " ($1)$" | sort -k 2
}
count() { # NAME TRACE
	calls_but none "$2" | awk -v name="$1" '$2==name {print $1}'
}
# How many records have this major code
records() { # TRACE MAJOR
	python3 "$ROOT/tests/format/read_trace.py" "$1" >trace.json && json trace.json "sum(r[2] == $2 for r in j['records'])"
}
loss() { # TRACE: what is imperfect
	"$WEIR" report loss "$1" --json >loss.json
	json loss.json "(j['loss']['events_lost'], j['loss']['records_unknown'], j['loss']['reasons'])"
}

untraced=$("$WEIR" record --hooks syscall -o note.weir -- true 2>&1 | grep -o 'system calls are not recorded.*')
if [ -n "$untraced" ]; then
	skip "system calls are counted exactly: $untraced"
else
	for bits in 64 32; do
		[ -x calls$bits ] || continue
		"$WEIR" record -q --hooks syscall -o calls.weir -- ./calls$bits calls 1000
		equal "$bits-bit: known calls are counted exactly" "1011 37 1 1" \
			"$(for name in getppid write exit exit_group; do count $name calls.weir; done | xargs)"
		equal "$bits-bit: signal handlers return" 5 \
			"$(calls_but none calls.weir | awk '$2 ~ /^(rt_)?sigreturn$/ {print $1}')"
		equal "$bits-bit: nothing is lost, every call ends" "(0, 0, {})" "$(loss calls.weir)"
		# strace does not count what never returns; whether join must wait is chance; the command's
		# own exec is before the recording.
		odd='exit|exit_group|execve|futex|futex_time64'
		if command -v strace >/dev/null && strace -f -c -o strace.txt ./calls$bits calls 1000 2>/dev/null; then
			equal "$bits-bit: all calls are those that strace counts" \
				"$(awk '$1 ~ /^[0-9.]+$/ && $NF != "total" {print $4, $NF}' strace.txt | grep -vE " ($odd)$" | sort -k 2)" \
				"$(calls_but "$odd" calls.weir)"
		else
			skip "$bits-bit: all calls are those that strace counts: strace does not work here"
		fi
	done
	for other in "64 32" "32 64"; do
		set -- $other
		[ -x calls$1 ] && [ -x calls$2 ] || continue
		"$WEIR" record -q --hooks syscall -o exec.weir -- ./calls$1 exec ./calls$2
		equal "a $1-bit program becomes a $2-bit one: the calls of both have their names" "1 3 2" \
			"$(for name in execve getppid exit_group; do count $name exec.weir; done | xargs)"
		equal "and each call ends" "(0, 0, {})" "$(loss exec.weir)"
	done
	"$WEIR" record -q --hooks +syscall -o both.weir -- ./calls64 calls 20000
	equal "with samples: calls are counted as without" 20011 "$(count getppid both.weir)"
	check "with samples: there are some" test "$(records both.weir 0x40)" -gt 0
	./calls64 forever &
	pid=$!
	"$WEIR" record -q --hooks syscall,switch -p $pid --duration 0.2 -o attach.weir
	kill -9 $pid
	wait $pid 2>/dev/null
	equal "attached in the middle of calls: only those are there" getppid \
		"$(calls_but none attach.weir | cut -d' ' -f2)"
	if [ "$(id -u)" = 0 ]; then
		"$WEIR" record -q -a --hooks syscall --duration 0.5 -o all.weir
		"$WEIR" report loss all.weir --json >loss.json
		equal "system-wide: every call that begins ends" 0 \
			"$(json loss.json "j['loss']['reasons'].get('the end of a system call is not known: it ends where the next begins', 0)")"
	else
		skip "system-wide: every call that begins ends: not permitted here"
	fi
fi

n=500
"$WEIR" record -q --hooks fault -o faults.weir -- ./calls64 pages $n
"$WEIR" report flat faults.weir --metric faults --json >flat.json
check "a fault for each fresh page" test "$(json flat.json 'j["total"]')" -ge $n
"$WEIR" record -q --hooks fault -o few.weir -- ./calls64 child
"$WEIR" report flat few.weir --metric faults --json >flat.json
check "and few without" test "$(json flat.json 'j["total"]')" -lt $n
if [ "$(id -u)" = 0 ] && [ -z "$untraced" ]; then
	"$WEIR" record -q --hooks fault,syscall -o into.weir -- ./calls64 into $n
	"$WEIR" report flat into.weir --metric faults --json >flat.json
	check "pages that a call touches are the call's faults" \
		test "$(json flat.json 'sum(r["base"] for r in j["rows"] if r["name"]=="read")')" -ge $n
	"$WEIR" record -q --user-only --hooks fault,syscall -o into.weir -- ./calls64 into $n
	"$WEIR" report flat into.weir --metric faults --json >flat.json
	equal "--user-only leaves them out" 0 "$(json flat.json 'sum(r["base"] for r in j["rows"] if r["name"]=="read")')"
else
	skip "pages that a call touches are the call's faults: not permitted here"
fi

"$WEIR" record --hooks +interrupt -o irq.weir -- perl -e '1 for 1..1e7' 2>err.txt
if grep -q 'interrupts are not recorded' err.txt; then
	skip "interrupts begin and end: $(grep -o 'interrupts are not recorded.*' err.txt)"
elif [ "$(records irq.weir 4)" = 0 ]; then
	skip "interrupts begin and end: this machine's tracepoints told of none"
else
	equal "interrupts begin as often as they end" 0 \
		"$(json trace.json "sum(1 if r[3] < 2**31 else -1 for r in j['records'] if r[2] == 4)")"
	equal "and do not pile up" True \
		"$(json trace.json "all(1 <= int(r[4], 16) <= 4 for r in j['records'] if r[2] == 4)")"
	equal "and are in the streams of CPUs" "{2}" \
		"$(json trace.json "set(s[0] for i, s in enumerate(j['streams']) if any(r[1] == i + 1 and r[2] == 4 for r in j['records']))")"
fi

# what is recorded at all
kinds() { # LIST: whether there are samples, switches, modules
	"$WEIR" record -q --all-modules --hooks="$1" -o kinds.weir -- perl -e 'select undef, undef, undef, 0.01; 1 for 1..1e6'
	for major in 0x40 0x61 0x19; do [ "$(records kinds.weir $major)" = 0 ] && echo -n - || echo -n +; done
}
equal "the defaults are samples, switches and modules" +++ "$(kinds +fault)"
equal "a plain list stands for itself" "+--" "$(kinds stack)"
equal "codes do, too" "+--" "$(kinds 0x30,0x40/0x7fffffff)"
equal "what has a minus is left out" "-++" "$(kinds -stack)"
equal "what has a no is left out" "+-+" "$(kinds no-switch)"
equal "modules can be left out" "++-" "$(kinds -0x19)"
fails "an unknown name is a usage error with all names" 2 \
	"^weir: record: --hooks: 'sycall' is not known \(there are method, stack, stack-at, switch, syscall, fault, alloc, heap, bytecode, interrupt, module, and codes" \
	"$WEIR" record --hooks stack,sycall -- true
fails "method needs to know which functions" 2 "^weir: record: --hooks: method: which functions\\? give --events" \
	"$WEIR" record --hooks +method -- true
fails "waiting cannot be measured without switches" 2 "^weir: record: -e wall: .* --hooks leaves out" \
	"$WEIR" record -e wall --hooks stack -- true

# without privilege
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	mkdir pub && cp "$WEIR" pub/weir-copy && cp calls64 pub && chmod 777 pub
	chmod a+x . ..
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -C "$PWD/pub" "$@"; }
	if as_nobody test -r /sys/kernel/tracing/events; then
		skip "without privilege a sentence says what is missing: everybody may read tracefs here"
	elif as_nobody true 2>/dev/null && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
		as_nobody ./weir-copy record --hooks +syscall,+interrupt,+fault -o n.weir -- ./calls64 pages $n 2>err.txt
		equal "without privilege the command runs and its status is passed on" 0 $?
		check "a sentence says that system calls are missing, and who may have them" \
			grep -q '^weir: note: system calls are not recorded (tracefs cannot be read; root may)$' err.txt
		check "another that interrupts are" grep -q '^weir: note: interrupts are not recorded (.*root may)$' err.txt
		"$WEIR" report flat pub/n.weir --metric faults --json >flat.json
		check "the rest is recorded" test "$(json flat.json 'j["total"]')" -ge $n
	else
		skip "without privilege a sentence says what is missing: nobody cannot enter here, or paranoid is above 2"
	fi
else
	skip "without privilege a sentence says what is missing: needs root to become nobody"
fi
