# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Where counts go, and what is never touched: whatever is no count file keeps its name, and the program
# runs as before.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

build life life.c -O2 && build places places.c -O2 || exit 1
mkdir -p work && cd work || exit 1

# counts FILE: calls of unit
counts() { "$WEIR" report flat "$1" --json 2>/dev/null | python3 -c '
import json, sys
print(sum(r["calls"] for r in json.load(sys.stdin)["rows"] if r["name"] == "unit"))'; }

# run NAME N: counts into NAME; $status, out.txt, err.txt
run() {
	WEIR_OUT=$1 timeout 60 ../counted/life exit "$2" >out.txt 2>err.txt
	status=$?
}
told() { grep -cE "^weir: $1\$" err.txt; }
made() { ls | grep -v -e '^out.txt$' -e '^err.txt$' | xargs; }

# --- a file of the user's
echo precious >data.txt
for i in 1 2 3; do run data.txt $i; done
equal "a file that is no count file stays after three runs" "precious 11" "$(cat data.txt) $status"
equal "the counts are beside it, and the program says so" "1 1 2 3" \
	"$(told ".*/data.txt: not a count file, and left as it is; counts go to .*/data.txt.[0-9]+.weir") $(for f in data.txt.*.weir; do counts "$f"; done | sort -n | xargs)"
rm -f data.txt*
run own.weir 1
run own.weir 2
equal "a count file makes room, without a word" "2 1 0" "$(counts own.weir) $(counts own.weir.old) $(wc -l <err.txt)"
echo precious >own.weir.old
run own.weir 3
equal "the older one does not take the place of what is no count file" "precious 2 3 1" \
	"$(cat own.weir.old) $(counts own.weir) $(counts own.[0-9]*.weir) $(told '.*/own.weir.old: not a count file, and left as it is; counts go to .*')"
rm -f own*

# --- what is no file
mkfifo pipe
run pipe 1
equal "a FIFO stays, and nothing is recorded" "pipe 10 1" \
	"$(made) $status $(told '.*/pipe: cannot be created: what has that name is no count file; nothing is recorded')"
rm pipe
if mknod node c 1 3 2>/dev/null; then
	run node 1
	equal "a device node stays, and nothing is recorded" "node 10 1" \
		"$([ -c node ] && made) $status $(told '.*/node: cannot be created: .*; nothing is recorded')"
	rm node
else
	skip "a device node stays: making one needs root"
fi

# --- links
ln -s real.weir link.weir
run link.weir 1
run link.weir 2
equal "a link stays, and its target is the count file" "link.weir real.weir real.weir.old 2 1" \
	"$(made) $(counts real.weir) $(counts real.weir.old)"
rm real*
echo precious >real.weir
run link.weir 3
equal "a link to what is no count file: both stay" "real.weir precious 3 1" \
	"$(readlink link.weir) $(cat real.weir) $(counts real.[0-9]*.weir) $(told '.*/real.weir: not a count file, .*')"
rm -f link* real*
ln -s loop loop
run loop 1
equal "a link to itself stays" "loop 10" "$(readlink loop) $status"
rm -f loop*

# --- the program's standard error is its own
run_closed() { WEIR_OUT=nowhere/x ../counted/life exit 9 2>&-; }
run_closed
equal "without standard error the program ends as it would" 10 $?
mkdir places_folder && cp ../counted/places places_folder
(cd places_folder && ./places number2 >/dev/null)
equal "a sentence that has nowhere to go is not written to the program's own file" "7 0 1" \
	"$? $(wc -c <places_gone/own.txt) $(ls places_gone/*.weir | wc -l)"
rm -rf places_*

# --- limits
for limit in "-v 40000" "-v 20000" "-f 1" "-n 4" "-s 100"; do
	# shellcheck disable=SC2086
	plain=$(bash -c "ulimit $limit; exec ../plain/life exit 50" 2>/dev/null; echo $?)
	equal "ulimit $limit: the program ends as it would" "$plain" \
		"$(bash -c "ulimit $limit; exec ../counted/life exit 50" 2>err.txt; echo $?)"
	check "ulimit $limit: there are counts, or a sentence" \
		[ "$(counts life.weir 2>/dev/null)$(grep -c 'nothing is recorded' err.txt)" != 0 ]
	rm -f life.weir*
done

# --- who it is, and what it sees
if [ "$(id -u)" -ne 0 ]; then
	skip "programs that give up rights, or change their root: needs root"
else
	chmod 755 .
	for mode in chroot nobody pids; do
		rm -f ./*.weir
		../plain/places $mode >/dev/null 2>&1
		plain=$?
		../counted/places $mode >out.txt 2>err.txt
		equal "$mode: the program ends as it would, with its own counts" "$plain 1000" "$? $(counts places.weir)"
		check "$mode: the child has counts, or a sentence says why not" \
			[ "$(counts places.[0-9]*.weir 2>/dev/null) $(grep -c 'nothing is recorded' err.txt)" != " 0" ]
	done
fi
