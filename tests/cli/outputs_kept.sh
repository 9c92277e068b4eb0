# SPDX-License-Identifier: MIT
# What stands where an output is to go: only files of ours, or none, are moved, replaced or removed. A
# table of commands that write, crossed with what may be in their way.
. "$ROOT/tests/lib.sh"

echo 'int main(void) { return 0; }' >p.c
gcc -c -o p.o p.c || exit 1
gcc -o p p.o || exit 1
printf '#!/no/such/interpreter\n' >bad
chmod +x bad
printf '1 enter a\n2 leave a\n' >events.txt
printf '1 enter a\n' >unended.txt
printf 'BEGIN { exit(); }\n' >ok.wr
"$WEIR" import events events.txt -o good.weir || exit 1

# NAME | KIND | COMMAND, whose output is $o. Kinds: trace (keeps an older one as .old), whole (takes
# the place of its own kind), text (overwrites what it is told to).
cat >commands.txt <<'END'
record|trace|"$WEIR" record -q -o $o -- ./p
record of a bad command|stillborn|"$WEIR" record -q -o $o -- ./bad
steps|trace|"$WEIR" steps -q --max 100 -o $o -- ./p
steps of a bad command|stillborn|"$WEIR" steps -q -o $o -- ./bad
import events|trace|"$WEIR" import events events.txt -o $o
probe -o|whole|"$WEIR" probe -o $o ok.wr
symbols merge|file|"$WEIR" symbols merge -o $o ./p
insert|object|"$WEIR" insert -q p.o -o $o
export folded|text|"$WEIR" export folded good.weir -o $o
export pprof|text|"$WEIR" export pprof good.weir -o $o
export callgrind|text|"$WEIR" export callgrind good.weir -o $o
probe -O|text|"$WEIR" probe --dump -O $o ok.wr
END

# try COMMAND: the status is in $rc, what was said in said.txt; FIFOs have a reader.
try() { eval "$1" >out.txt 2>said.txt; rc=$?; }

id_of() { stat -c '%d:%i:%F:%a' "$1"; }

reader() { # of a FIFO: what came is in through.bin
	timeout 20 cat "$1" >through.bin &
	cat_pid=$!
}

while IFS='|' read -r name kind command; do
	rm -rf d && mkdir d
	o=d/fifo
	mkfifo $o
	before=$(id_of $o)
	reader $o
	try "$command"
	exec 9<>$o 9>&- # a reader that is still waiting for a writer ends
	wait $cat_pid
	equal "$name: a FIFO stays" "$before" "$(id_of $o 2>&1)"
	case $kind in
	trace | whole | object | text) check "$name: and gets the bytes (status $rc)" test -s through.bin -a $rc -eq 0 ;;
	esac
	if [ "$(id -u)" = 0 ]; then
		o=d/node
		if mknod $o c 1 3 2>/dev/null && echo >$o 2>/dev/null; then
			before=$(id_of $o)
			try "$command"
			equal "$name: a device node stays" "$before" "$(id_of $o 2>&1)"
		else
			skip "$name: a device node stays: none can be used in this folder"
		fi
	else
		skip "$name: a device node stays: only root makes one"
	fi
	echo 'years of work' >d/data.txt
	o=d/data.txt
	before=$(id_of $o)
	try "$command"
	if [ $kind = text ]; then
		equal "$name: a text that it is told to overwrite is the same file" "0 $before" "$rc $(id_of $o)"
		check "$name: with other contents" test "$(cat $o | tr -d '\0')" != 'years of work'
	else
		equal "$name: a file of somebody else is as before" "years of work $before" "$(cat $o) $(id_of $o)"
		check "$name: and refused with a sentence (status $rc)" grep -q "d/data.txt': exists and is " said.txt
		check "$name: which is a failure" test $rc -ne 0
	fi
	echo 'years of work' >d/data.txt
	ln -s data.txt d/link
	o=d/link
	try "$command"
	equal "$name: a link stays" data.txt "$(readlink d/link)"
	[ $kind = text ] || equal "$name: and what it leads to" 'years of work' "$(cat d/data.txt)"
	ln -s fresh d/dangling
	o=d/dangling
	try "$command"
	equal "$name: a link to nothing stays" fresh "$(readlink d/dangling)"
	[ $kind = stillborn ] && check "$name: and it leads to nothing" test ! -e d/fresh
	equal "$name: nothing else is left" "" "$(ls -A d | grep -Ev '^(fifo|node|data.txt|link|dangling|fresh)$')"
done <commands.txt

# What is ours is kept or replaced as before.
rm -rf d && mkdir d
while IFS='|' read -r name kind command; do
	o=d/x.weir
	case $kind in
	trace)
		rm -f d/*
		cp good.weir $o
		try "$command"
		check "$name: an older trace is kept as .old (status $rc)" cmp -s good.weir $o.old
		check "$name: and the new one is there" test $rc -eq 0 -a -s $o
		echo 'years of work' >$o.old
		try "$command"
		equal "$name: a file of somebody else at .old is refused" 'years of work' "$(cat $o.old)"
		check "$name: with a sentence (status $rc)" grep -q "'d/x.weir.old': exists and is no weir file" said.txt
		rm -f d/*
		cp good.weir d/y.weir
		ln -s y.weir $o
		try "$command"
		equal "$name: of a link the trace that it leads to is kept" "y.weir yes" \
			"$(readlink $o) $(cmp -s good.weir d/y.weir.old && echo yes)"
		rm -f d/*
		: >$o
		before=$(stat -c %i $o)
		try "$command"
		equal "$name: an empty file is filled" "0 $before" "$rc $(stat -c %i $o)"
		;;
	stillborn)
		rm -f d/*
		cp good.weir $o
		try "$command"
		check "$name: leaves the older trace where it was" cmp -s good.weir $o
		equal "$name: and nothing beside it" x.weir "$(ls -A d)"
		rm -f d/*
		: >$o
		try "$command"
		equal "$name: an empty file stays empty" 0 "$(stat -c %s $o)"
		;;
	whole | file | object)
		rm -f d/*
		try "$command"
		try "$command"
		check "$name: its own earlier output is replaced (status $rc)" test $rc -eq 0 -a -s $o
		equal "$name: and nothing else is left" x.weir "$(ls -A d)"
		;;
	esac
done <commands.txt

rm -rf d && mkdir d
"$WEIR" import counts p.c -o d/a.weir 2>/dev/null
"$WEIR" import events unended.txt -o d/b.weir 2>/dev/null
"$WEIR" import events p.c -o d/c.weir 2>/dev/null
equal "an import that fails leaves nothing" "" "$(ls -A d | grep -v b.weir)"
echo 'years of work' >d/out.txt
"$WEIR" probe -O d/out.txt -e 'nonsense' 2>/dev/null
equal "a wrong script leaves the output of another run alone" 'years of work' "$(cat d/out.txt)"
echo 'years of work' >d/cat2.wsym.new
"$WEIR" symbols merge -o d/cat2.wsym ./p 2>said.txt
equal "a file of somebody else where a catalog is prepared is left alone" 'years of work' "$(cat d/cat2.wsym.new)"
check "with a sentence" grep -q "'d/cat2.wsym.new': is in the way" said.txt
: >d/empty.wsym
"$WEIR" symbols merge -o d/empty.wsym ./p >out.txt
equal "an empty file may become a catalog" 0 $?
ln -s /proc/self/fd/1 d/stdout # as /dev/stdout is, which a failure would move
"$WEIR" record -q -o d/stdout -- ./p >d/redirected.weir
check "standard output is written through to a file" "$WEIR" report loss d/redirected.weir >/dev/null
check "its link stays" test -L d/stdout
"$WEIR" record -q -o d/stdout -- ./p | cat >d/piped.weir
check "and to a pipe" "$WEIR" report loss d/piped.weir >/dev/null
