# SPDX-License-Identifier: MIT
# What may cross a weir view: another one of the same trace, a trace that is deleted, overwritten, cut or still being
# recorded, one that cannot be read or is somebody else's, two that cannot be compared, signals.
. "$ROOT/tests/lib.sh"

printf '%s\n' '0 enter main' '5 enter a' '25 leave a' '40 leave main' | "$WEIR" import events - -o one.weir >/dev/null 2>&1
python3 - >events.txt <<'P'
time = 0
for i in range(20000):
    print(time, "enter", "f%d" % (i % 90)); time += i % 7
    print(time, "leave", "f%d" % (i % 90)); time += 1
P
"$WEIR" import events events.txt -o many.weir >/dev/null 2>&1 || not_ok "the events are imported"
echo 'main a' | "$WEIR" import samples - -o samples.weir >/dev/null 2>&1

cat >ask.py <<'P'
# ask.py URL QUESTION EXPRESSION: what the answer `j` says; of a refusal its sentence.
import json, sys, urllib.request, urllib.error
try:
    j = json.load(urllib.request.urlopen(sys.argv[1] + "q/" + sys.argv[2], timeout=60))
    print(eval(sys.argv[3]))
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode().strip())
P
ask() { python3 ask.py "$@"; }
start_view() { # ARGUMENTS...: $pid, $url
	rm -f view.out # of the one before
	"$WEIR" view "$@" >view.out 2>view.err &
	pid=$! url=
	for _ in $(seq 200); do
		url=$(grep -o 'http://127[^ ]*' view.out | head -n 1)
		[ -z "$url" ] || return 0
		sleep 0.1
	done
	not_ok "weir view says its address: $(cat view.err)"
}
end_view() { # [SIGNAL]: $status
	kill "-${1:-TERM}" $pid
	wait $pid
	status=$?
}

# --- two of one trace
start_view one.weir
first=$url first_pid=$pid
start_view one.weir
check "two views of one trace have addresses of their own" [ "$first" != "$url" ]
equal "both answer" "40 40" "$(ask "$first" meta 'j["total"]') $(ask "$url" meta 'j["total"]')"
end_view HUP
check "SIGHUP ends it with status 0" [ $status = 0 ]
equal "the other one goes on" 40 "$(ask "$first" meta 'j["total"]')"
pid=$first_pid
end_view TERM
check "SIGTERM ends it with status 0" [ $status = 0 ]

# --- the file goes away, or becomes another one
cp many.weir gone.weir
start_view gone.weir
total=$(ask "$url" meta 'j["total"]')
rm gone.weir
equal "a trace that is deleted is shown as it was" "$total 20000" "$(ask "$url" 'meta?from=0' 'j["total"]') $(ask "$url" 'report/flat?metric=calls' 'j["total"]')"
end_view

cp many.weir other.weir
start_view other.weir
"$WEIR" import events - -o other.weir >/dev/null 2>&1 < <(printf '%s\n' '0 enter x' '9 leave x')
equal "one that weir writes anew is shown as it was" "$total" "$(ask "$url" 'meta?thread=0' 'j["total"]')"
end_view

cp many.weir over.weir
start_view over.weir
cat one.weir >over.weir
said=$(ask "$url" 'report/loss?metric=calls' 'j["loss"]["cut"], sum(j["loss"]["reasons"].values()) > 0')
check "what is overwritten under it is no figure: it is missing, or refused" grep -qE '^\(True, True\)$|^4[0-9][0-9] ' <<<"$said"
: >over.weir
said=$(ask "$url" 'report/loss?metric=samples&from=1' 'j["loss"]["cut"]')
check "nor what is cut to nothing" grep -qE '^True$|^4[0-9][0-9] ' <<<"$said"
check "and it still serves" [ "$(ask "$url" nothing 0 | cut -c1-3)" = 404 ]
end_view
check "and ends well" [ $status = 0 ]

# --- while it is recorded
"$WEIR" record -q -o live.weir -- sh -c 'kill -STOP $$; exit 0' >/dev/null 2>live.err &
recorder=$!
for _ in $(seq 100); do [ -s live.weir ] && break || sleep 0.1; done
if [ -s live.weir ]; then
	sleep 1.5 # a flush
	start_view live.weir
	equal "a trace that is being recorded is shown, and said to have no end" True "$(ask "$url" meta 'j["loss"]["cut"]')"
	end_view
	pkill -CONT -P $recorder
	wait $recorder
	start_view live.weir
	equal "when it is over it has one" False "$(ask "$url" meta 'j["loss"]["cut"]')"
	end_view
else
	skip "a trace that is being recorded: $(cat live.err)"
fi

# --- what is no trace
: >empty.weir
echo 'no trace at all' >text.weir
mkdir folder
fails "an empty file is refused" 1 "^weir: 'empty.weir': is not a weir trace" "$WEIR" view empty.weir
fails "so is a text" 1 "^weir: 'text.weir': is not a weir trace" "$WEIR" view text.weir
fails "so is a folder" 1 "^weir: 'folder': is a directory" "$WEIR" view folder
fails "of two, the one that cannot be read is named" 1 "^weir: 'text.weir': is not a weir trace" "$WEIR" view text.weir one.weir
fails "three are one too many" 2 "more than two traces" "$WEIR" view one.weir one.weir one.weir

# --- two of different kinds
start_view samples.weir one.weir
equal "both of two kinds can be looked at" "1 40" "$(ask "$url" 'meta?trace=1' 'j["total"]') $(ask "$url" meta 'j["total"]')"
said=$(ask "$url" diff-functions 'j["total"]')
check "that they have nothing to compare is a sentence" grep -qE "^404 before, in 'samples.weir': .*has no metric 'time'" <<<"$said"
end_view

# --- somebody else's
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	chmod 755 .
	cp one.weir theirs.weir
	chown 65534:65534 theirs.weir
	chmod 600 theirs.weir
	before=$(stat -c '%u %g %a %s %Y' theirs.weir)
	start_view theirs.weir
	equal "root looks at another user's trace" 40 "$(ask "$url" meta 'j["total"]')"
	end_view
	equal "which is as it was" "$before" "$(stat -c '%u %g %a %s %Y' theirs.weir)"
	cp one.weir ours.weir
	chmod 600 ours.weir
	if nobody "$WEIR" --version >/dev/null 2>&1; then
		nobody "$WEIR" view ours.weir >/dev/null 2>denied.err
		check "a user does not look at root's: status 1" [ $? = 1 ]
		check "with a sentence" grep -q "^weir: 'ours.weir': .*ermission denied" denied.err
	else
		skip "a user does not look at root's: weir is not where others may run it"
	fi
else
	skip "another user's trace: this is not root"
fi
