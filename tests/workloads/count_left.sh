# SPDX-License-Identifier: MIT
# Calls that do not come back (exceptions, longjmp, exit, the end of a thread) and those that come back twice
# (setjmp, fork): what stands behind them in their blocks is counted as often as it was executed, which
# callgrind tells of the plain program.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"
count_options=-v

command -v valgrind >/dev/null || { skip "what callgrind has seen: valgrind is not installed" && finish; }

# judge NAME SENTENCE ARGUMENT: each function has callgrind's instructions and calls
judge() {
	local name=$1 sentence=$2
	shift 2
	"$WEIR" report flat counted/"$name".weir --json >flat.json 2>/dev/null
	(cd plain && timeout 200 valgrind -q --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no \
		--skip-plt=no --callgrind-out-file="$name".callgrind.%p ./"$name" "$@") >/dev/null 2>valgrind.txt
	# Of a program that forks, the parent's file is that of the lower number.
	mapfile -t files < <(find plain -name "$name.callgrind.*" | sort -t. -k3n)
	python3 -B "$count_fixtures/callgrind_compare.py" "$sentence: each function has the instructions and calls of callgrind" \
		flat.json "${files[0]}" plain/"$name" left_alone.txt >compared.txt ||
		not_ok "$sentence: what callgrind has seen is read: $(head -n 1 valgrind.txt)"
	cat compared.txt
}

# ways NAME SOURCE FLAGS WAYS...
ways() {
	local name=$1 source=$2 flags=$3 way
	shift 3
	# shellcheck disable=SC2086
	build "$name" "$source" $flags || { skip "$name: $(head -n 1 build.txt)" && return; }
	mv build.txt left_alone.txt
	for way in "$@"; do
		rm -f plain/"$name".callgrind*
		same "$name $flags $way does the same" "$name" "$way" || continue
		judge "$name" "$name $flags $way" "$way"
		equal "$name $flags $way: nodes and blocks add up to the same" fine \
			"$(python3 -B "$ROOT/tests/fixtures/count_runtime/read_counts.py" counted/"$name".weir check)"
		"$WEIR" report loss counted/"$name".weir >loss.txt
		equal "$name $flags $way: trees have no more than blocks" 0 "$(grep -c "more instructions" loss.txt)"
	done
}

for flags in -O2 -O0; do
	ways exceptions_left left.cc "$flags" recursion destructors middle rethrow sometimes callback noexcept
	ways jumps_left left.c "$flags" longjmp setjmp siglongjmp exit thread fork
	more || break
done

# --- a child of fork: what it executes of blocks that its parent has begun, too
if [ -x counted/jumps_left ]; then
	rm -f counted/jumps_left*.weir* plain/child.*
	(cd counted && timeout 60 ./jumps_left fork) >/dev/null
	"$WEIR" report flat counted/jumps_left.[0-9]*.weir --json >flat.json 2>/dev/null
	# Costs from before fork are dumped then; the child's file has those from there on.
	(cd plain && timeout 200 valgrind -q --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no \
		--skip-plt=no --dump-before=fork --callgrind-out-file=child.%p ./jumps_left fork) >/dev/null 2>valgrind.txt
	for file in plain/child.*; do
		# The parent has waited.
		case $file in *.*.*) ;; *) grep -q waitpid "$file" || break ;; esac
	done
	python3 -B "$count_fixtures/callgrind_compare.py" "a child of fork has the instructions of callgrind from there on" \
		flat.json "$file" plain/jumps_left left_alone.txt || not_ok "what callgrind has seen of the child is read"
	equal "the child's nodes and blocks add up to the same" fine \
		"$(python3 -B "$ROOT/tests/fixtures/count_runtime/read_counts.py" counted/jumps_left.[0-9]*.weir check)"
fi

# --- without a call tree it is not known which calls were left, and that is told
count_options="-q --counts" build counted_only left.cc -O2 &&
	same "the counted program does the same without a tree" counted_only recursion
"$WEIR" report loss counted/counted_only.weir --json >loss.json
equal "landings without a call tree are told: one for each exception" 10 \
	"$(json loss.json '[l["count"] for l in j["rows"] if "it left" in l["reason"]][0]')"
count_options="-q --counts" build counted_only left.c -O0 &&
	same "the counted program does the same without a tree" counted_only setjmp
"$WEIR" report loss counted/counted_only.weir --json >loss.json
equal "second returns without a call tree are told" 9 \
	"$(json loss.json '[l["count"] for l in j["rows"] if "it left" in l["reason"]][0]')"
