# SPDX-License-Identifier: MIT
# --host over a real sshd on loopback: what runs there, what comes back, what is wrong usage.
# weir-test: once: the agent is a copy of weir, which is ten times as large with sanitizers; what parses is fuzzed
# weir-test: long
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/remote.sh"
mkdir there && chmod 1777 there
export TMPDIR=$PWD/there # ssh sends it
start_sshd
keep=
record() { timeout 60 "$WEIR" record --host box $keep "$@"; }

# Three channels and the status.
cat >say.py <<'PY'
import sys
print([a.encode("utf8", "surrogateescape") for a in sys.argv[1:]])
sys.stderr.write("an error\nweir: not ours\n")
sum(i * i for i in range(2000000))
sys.exit(7)
PY
odd=("a'b" 'c"d' $'e\nf' '$HOME' '' '`ls`' '\' $'\xff\x01' '!!' '*' '-x' 'a  b' "';rm x;'")
record -o t.weir -- python3 "$PWD/say.py" "${odd[@]}" >out.txt 2>err.txt
equal "the command's status is weir's" 7 $?
python3 say.py "${odd[@]}" >expected.txt 2>/dev/null
equal "every byte of its arguments arrives, and its output comes back" "$(cat expected.txt)" "$(cat out.txt)"
equal "its standard error comes back as it is" $'an error\nweir: not ours' "$(grep -v '^weir: box: ' err.txt)"
if ! "$WEIR" report flat t.weir --json >t.json 2>/dev/null; then
	skip "a recording on another machine: $(grep '^weir: box: ' err.txt | head -n 1)"
	finish
fi
check "what weir says there has the host in front" grep -q "^weir: box: 't.weir': [0-9]* samples" err.txt
check "a second reader of the format finds the trace whole" sh -c "python3 '$ROOT/tests/format/read_trace.py' t.weir >second.txt 2>&1"
check "it has names" test "$(json t.json 'sum(r["samples"] for r in j["rows"] if "PyEval" in r["name"] or "python" in r["name"] or "main" in r["name"]) > 0')" = True
equal "nothing is left there" "" "$(left_in there)"
keep=--keep # the rest comes sooner
equal "no argument of the command is one of ssh's" "" \
	"$(record -q -o t.weir --ssh "sh -c 'echo \"\$*\" >argv.txt; exec $WEIR_SSH \"\$@\"' -" -- true secret-word; grep -o secret-word argv.txt)"

head -c 10000000 /dev/urandom >big
equal "10 MB of standard output are the same there and here" 0 "$(record -q -o t.weir -- cat "$PWD/big" | cmp - big >&2; echo $?)"
equal "and of standard input" 0 "$(record -q -o t.weir -- sha256sum <big | cut -d ' ' -f 1 | grep -qx "$(sha256sum <big | cut -d ' ' -f 1)"; echo $?)"
equal "input that the command does not read does not keep it" 0 "$(record -q -o t.weir -- true <big; echo $?)"
record -q -o k.weir -- sh -c 'kill -USR1 $$' 2>/dev/null
equal "a command that dies of a signal makes weir die of it" 138 $?
record -o - -- echo said 2>err.txt >p.weir
equal "-o - streams the trace; the output goes to standard error" "0 said" "$("$WEIR" report flat - <p.weir >/dev/null 2>&1; echo $?) $(grep -v '^weir:' err.txt)"
cp t.weir before.weir
fails "a command that is not there is a sentence of the other side" 1 "^weir: box: '/no/where': cannot run: No such file" record -o t.weir -- /no/where
check "and the older trace stays" cmp -s t.weir before.weir
"$WEIR" record -q -o before.weir --host box -- true
check "a newer one keeps it as .old" [ -s before.weir.old ]

# Login scripts that print, also what looks like ours.
cat >noisy.sh <<SH
echo 'Welcome'; echo 'weir:0000000000000000 fail no'; printf '\\000\\001\\n'
exec $WEIR_SSH "\$@"
SH
equal "what login scripts print is passed over" $'said\n0' "$(record -q -o t.weir --ssh "sh $PWD/noisy.sh" -- echo said; echo $?)"
fails "a machine that never stops talking is not listened to for ever" 1 '^weir: box: what comes is not from a shell' \
	record -o t.weir --ssh "sh -c yes" -- true

# Functions of both word sizes.
cat >work.c <<'C'
__attribute__((noinline)) int work(int x) { volatile int s = 0; for (int i = 0; i < 100; i++) s += i * x; return s; }
int main(void) { int s = 0; for (int i = 0; i < 500; i++) s += work(i); return s == 1; }
C
for bits in 64 32; do
	if gcc -m$bits -O1 -o work$bits work.c 2>/dev/null; then
		record -q --functions work -o f.weir -- "$PWD/work$bits"
		"$WEIR" report flat f.weir --json >f.json
		equal "every call of a function of a $bits-bit program is there" 500 "$(json f.json '[r["calls"] for r in j["rows"] if r["name"] == "work"][0]')"
	else
		skip "functions of a $bits-bit program: gcc -m$bits cannot link"
	fi
done

# Running processes, the machine.
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
./split forever &
pid=$!
trap 'kill -9 $pid $SSHD_PID 2>/dev/null' EXIT
record -q -p $pid --duration 0.5 -o p.weir
equal "-p records a process there" "0 True" "$? $("$WEIR" report flat p.weir --json >p.json; json p.json 'any(r["name"] == "heavy" or r["samples"] > 10 for r in j["rows"])')"
fails "one that is not there is a sentence" 1 '^weir: box: process 4194303: there is no such process$' record -p 4194303 -o p.weir
if record -q -a --duration 0.5 -o a.weir 2>err.txt; then
	ok "-a records the machine there"
else
	skip "-a: $(head -n 1 err.txt)"
fi
kill -9 $pid
wait $pid 2>/dev/null

# The other commands.
timeout 60 "$WEIR" doctor --host box >doctor.txt
equal "weir doctor tells what the other machine permits" "$("$WEIR" doctor | cut -c 1-23)" "$(cut -c 1-23 doctor.txt)"
timeout 60 "$WEIR" doctor --json --host box >doctor.json
equal "also as JSON" doctor "$(json doctor.json 'j["kind"]')"
printf 'uprobe:%s:work { @calls = count(); }\n' "$PWD/work64" >calls.wr
if [ "$(id -u)" = 0 ]; then
	timeout 60 "$WEIR" probe -q --host box -c "$PWD/work64" calls.wr >probe.txt 2>err.txt
	equal "a script that is here counts there" "0 @calls: 500" "$? $(grep . probe.txt)"
	record -q --probe calls.wr -o s.weir -- "$PWD/work64"
	check "also beside a recording" sh -c "'$WEIR' report probes s.weir | grep -q 500"
	fails "what is wrong with a script is told by the other side" 1 '' timeout 60 "$WEIR" probe -f json --host box 'nonsense { }'
else
	skip "weir probe --host: needs root"
fi

# What is kept is used again, if it is what it was.
rm -rf "$TMPDIR"/weir-agent-* && keep=
equal "--keep leaves the agent, for its owner alone" "0 drwx--" "$(record -q --keep -o t.weir -- true; echo $?) $(stat -c %A there/weir-agent-* | cut -c 1-6)"
kept=$(echo there/weir-agent-*/*)
before=$(stat -c '%i %Z' "$kept/weir-agent")
equal "it is used by the next one, and stays" "0 $before" "$(record -q -o t.weir -- true; echo $?) $(stat -c '%i %Z' "$kept/weir-agent")"
printf 'x' | dd of="$kept/libc.so.6" bs=1 seek=4096 conv=notrunc 2>/dev/null
equal "one that somebody changed is not" 0 "$(record -q --keep -o t.weir -- true; echo $?)"
check "and is replaced" [ "$(stat -c '%i %Z' "$kept/weir-agent")" != "$before" ]
rm -rf "$TMPDIR"/weir-agent-*
mkdir elsewhere && ln -s "$PWD/elsewhere" "there/weir-agent-$(id -u)"
fails "a link in its place is not followed" 1 "^weir: box: '$TMPDIR/weir-agent-$(id -u)': is not a folder of yours alone" record --keep -o t.weir -- true
equal "and nothing is written through it" "" "$(ls -A elsewhere)"
rm "there/weir-agent-$(id -u)"
equal "nothing else is left there" "" "$(left_in there)"

# Wrong usage is said here: ssh is not even asked.
export WEIR_SSH=/bin/false
fails "a wrong option is" 2 '^weir: record: -F: must be from 1' record -F 0 -- true
fails "no command is" 2 '^weir: record: nothing to record' record -o t.weir
fails "an event that nobody knows is" 1 "'nonsense': is not a known event" record -e nonsense -- true
fails "an option as a host is" 2 "^weir: record: --host: '-oProxyCommand=x' is not a host" "$WEIR" record --host -oProxyCommand=x -- true
fails "a container without a name is" 2 "^weir: doctor: --host: 'docker:' is not a host" "$WEIR" doctor --host docker:
fails "--keep without a host is" 2 '^weir: record: --keep: on which host' "$WEIR" record --keep -- true
fails "a snapshot there is" 2 '^weir: record: --snapshot-of: records nothing' record --snapshot-of 1
fails "-O of probe is" 2 '^weir: probe: --host and -O exclude each other' "$WEIR" probe --host box -O x calls.wr
fails "a script that is not there is" 1 "^weir: 'gone.wr': is neither a file nor a script" "$WEIR" probe --host box gone.wr
fails "an output of somebody else is refused before anything runs" 1 "^weir: 'say.py': " record -o say.py -- true
fails "a transport that ends at once is a sentence" 1 '^weir: box: the connection was lost$' record -o t.weir -- true
fails "one that is not there, too" 1 "^weir: box: 'no-such-ssh': cannot run: No such file" record --ssh no-such-ssh -o t.weir -- true
finish
