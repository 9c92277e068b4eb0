# SPDX-License-Identifier: MIT
# An option that a kind of report or a format does not know is refused with the kinds that know it.
# weir-test: once: nothing is done but to refuse
. "$ROOT/tests/lib.sh"

all='sort limit filter metric thread from to catalog cpu exe human percent elapsed blocks asm at back interleave fold syntax source returns color json'
value() { # of the option for that kind
	case $1 in
	sort) case $2 in hooks) echo hits ;; branches) echo executed ;; *) echo name ;; esac ;;
	limit | at | back | from | to) echo 3 ;;
	syntax) echo intel ;;
	filter | metric | thread | catalog | cpu | exe) echo main ;;
	esac
}

# What the manual says that a kind knows.
known() {
	printf ' json color catalog thread from to '
	case $1 in steps | branches | mix) ;; *) printf 'metric cpu exe ' ;; esac
	sed -n '/^\.SH OPTIONS BY KIND/,/^\.SH/p' "$ROOT/docs/man/weir-report.1" | sed 's/\\-/-/g' |
		grep -E "^([a-z]+, )*$1(, [a-z]+)*: " | sed 's/.*: //; s/--//g' | tr '\n' ' '
}

for kind in summary flat tree arcs samples threads modules hooks probes loss source coverage steps branches mix; do
	knows="$(known $kind)" wrong=
	for option in $all; do
		set -- $kind
		[ $kind != source ] || set -- $kind main
		# The trace is not there: what is not wrong usage fails for that.
		"$WEIR" report "$@" none.weir --$option $(value $option $kind) >out.txt 2>err.txt
		status=$?
		case "$knows" in *" $option "*)
			[ $status = 1 ] || wrong+=" $option($status)"
			continue
			;;
		esac
		[ $status = 2 ] && [ ! -s out.txt ] || wrong+=" $option($status)"
		[ $option = sort ] || grep -q "^weir: report: --$option is not an option of $kind (but of [a-z, ]*)" err.txt || wrong+=" $option"
	done
	equal "$kind knows what the manual says, and refuses all else" "" "$wrong"
done

printf '%s\n' '0 enter main' '9 leave main' | "$WEIR" import events - -o events.weir
fails "one sentence names the option, the kind and who knows it" 2 \
	"^weir: report: --at is not an option of flat \(but of steps, branches and mix\) \('weir help report' tells more\)$" \
	"$WEIR" report flat events.weir --at 5 --fold --syntax intel
fails "an option that is given its default is refused, too" 2 "^weir: [a-z]*: --at is not an option of flat" "$WEIR" report flat events.weir --at 0
fails "the default kind is named" 2 "^weir: [a-z]*: --fold is not an option of summary \(but of steps\)" "$WEIR" report events.weir --fold

fails "lcov has no metric" 2 "^weir: export: --metric is not an option of lcov \(but of folded, pprof, .* and callgrind\)" \
	"$WEIR" export lcov events.weir --metric calls
fails "lcov is over all threads" 2 "^weir: [a-z]*: --thread is not an option of lcov" "$WEIR" export lcov events.weir --thread main
for format in steps step-stream; do
	fails "$format takes no --cpu" 2 "^weir: [a-z]*: --cpu is not an option of $format" "$WEIR" export $format events.weir --cpu zen4
done
fails "only counts have a processor" 2 "^weir: import: --cpu is not an option of events \(but of counts\)" \
	"$WEIR" import events none.txt --cpu zen4
