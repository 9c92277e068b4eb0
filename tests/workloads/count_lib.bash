# SPDX-License-Identifier: MIT
# Sourced by the tests of counted programs: builds fixtures as plain/NAME and counted/NAME from the same
# object, runs both, compares what they print and how they end.
count_fixtures=$ROOT/tests/fixtures/count_programs
export WEIR_CACHE=${WEIR_CACHE:-$PWD/cache}
# Copies that another build has made would not show what this one does.
[ -z "$WEIR_SAN" ] || WEIR_CACHE=$PWD/cache
unset WEIR_OUT WEIR_SITES
mkdir -p plain counted objects
libraries_of_links=()

# The programs are the same under sanitizers, and the inserter sees enough of them by fewer cases.
more() { [ -z "$WEIR_SAN" ]; }

# build NAME SOURCE FLAGS...: false when the plain program cannot be built (what the compiler says is in
# build.txt); a verdict when the counted one cannot. COMPILER= is used instead of gcc or g++;
# libraries come from libraries_of_links. OBJECT= is linked instead of compiling once more.
build() {
	local name=$1 source=$count_fixtures/$2 compiler=${COMPILER:-gcc} object=${OBJECT:-objects/$1.o}
	shift 2
	case $source in *.cc) compiler=${COMPILER:-g++} ;; esac
	rm -f plain/"$name" counted/"$name"
	[ -n "${OBJECT:-}" ] || $compiler -w "$@" -c -o "$object" "$source" 2>build.txt || return 1
	$compiler -w "$@" -o plain/"$name" "$object" "${libraries_of_links[@]}" -lpthread 2>build.txt || return 1
	timeout 300 "$WEIR" count ${count_options:--q} $compiler -w "$@" -o counted/"$name" "$object" \
		"${libraries_of_links[@]}" -lpthread >build.txt 2>&1 && return 0
	not_ok "$name is linked by weir count"
	head -n 5 build.txt
	return 0
}

# same SENTENCE NAME ARGUMENTS...: plain and counted say the same and end the same, and there is a count
# file that can be read.
same() {
	local sentence=$1 name=$2 side status_plain status_counted
	shift 2
	[ -x counted/"$name" ] || return 1
	rm -f counted/"$name".weir*
	for side in plain counted; do
		# In braces, because the shell itself says so when a program dies of a signal.
		{ (cd $side && exec timeout 120 ./"$name" "$@" >out.txt 2>err.txt </dev/null); } 2>/dev/null
		eval "status_$side=$?"
	done
	if [ $status_plain -eq $status_counted ] && cmp -s plain/out.txt counted/out.txt &&
		cmp -s plain/err.txt counted/err.txt; then
		if { "$WEIR" report flat counted/"$name".weir --json >flat.json 2>report.txt || [ $? -eq 3 ]; } && grep -q '"total": [1-9]' flat.json; then
			ok "$sentence"
		else
			not_ok "$sentence: the count file has instructions: $(head -n 1 report.txt)"
		fi
	else
		not_ok "$sentence: status $status_plain, counted $status_counted"
		diff plain/out.txt counted/out.txt | head -n 5
		diff plain/err.txt counted/err.txt | head -n 5
	fi
}

# calls_of FUNCTION, base_of FUNCTION: from flat.json
calls_of() { json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name'].split('(')[0] == '$1')"; }
base_of() { json flat.json "sum(r['base'] or 0 for r in j['rows'] if r['name'].split('(')[0] == '$1')"; }

static_library() { # NAME: the path of libNAME.a, or false
	local path
	path=$(gcc -print-file-name="lib$1.a")
	[[ $path == /* ]] && echo "$path"
}

# exact NAME ARGUMENTS...: each function has the instructions and calls that callgrind sees in the plain program;
# left_alone.txt is what `weir count -v` said.
exact() {
	local name=$1
	shift
	if ! command -v valgrind >/dev/null; then
		skip "$name: each function has the instructions and calls of callgrind: valgrind is not installed"
		return
	fi
	"$WEIR" report flat counted/"$name".weir --json >flat.json 2>/dev/null
	(cd plain && timeout 200 valgrind -q --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no \
		--skip-plt=no --callgrind-out-file="$name".callgrind ./"$name" "$@") >/dev/null 2>valgrind.txt
	python3 -B "$count_fixtures/callgrind_compare.py" "$name: each function has the instructions and calls of callgrind" \
		flat.json plain/"$name".callgrind plain/"$name" left_alone.txt >compared.txt ||
		not_ok "$name: what callgrind has seen is read: $(head -n 1 valgrind.txt)"
	cat compared.txt
}

# places SENTENCE NAME ARGUMENTS...: behind `same`
places() {
	local sentence=$1 name=$2 kind
	shift 2
	for kind in flat coverage loss summary; do
		"$WEIR" report $kind counted/"$name".weir --json >$kind.json 2>report.txt || [ $? -eq 3 ] || not_ok "$sentence: $(head -n 1 report.txt)"
	done
	"$WEIR" report counted/"$name".weir >summary.txt
	(cd plain && timeout 200 valgrind -q --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no \
		--skip-plt=no --callgrind-out-file="$name".callgrind ./"$name" "$@") >/dev/null 2>valgrind.txt
	"$WEIR" import counts counted/"$name".weir -o counts.trace && python3 "$ROOT/tests/format/read_trace.py" --counts counts.trace >counts.json
	python3 -B "$count_fixtures/callgrind_places.py" "$sentence" counts.json flat.json coverage.json loss.json plain/"$name".callgrind plain/"$name" ||
		not_ok "$sentence: what callgrind has seen is read: $(head -n 1 valgrind.txt)"
}
not_known() { json coverage.json '" ".join(sorted(r["function"] for r in j["rows"] if r["state"] == "not known"))'; }
misplaced() { json loss.json 'sum(r["count"] for r in j["rows"] if "jumped into the midst" in r.get("reason", ""))'; }

# shape NAME SOURCE COMPILER FLAGS: compared, and nothing is left alone or misplaced
shape() {
	local name=$1 source=$2 compiler=$3 flags=$4
	# shellcheck disable=SC2086
	COMPILER=$compiler build "$name" "$source" $flags || { skip "$name: $(head -n 1 build.txt)" && return; }
	same "$name: the program does the same" "$name" || return
	places "$name: each function has the instructions of callgrind" "$name"
	equal "$name: nothing is left alone or in the cost of others" " 0" "$(not_known) $(misplaced)"
	check "$name: and it is said to be exact" grep -q '^  counted exactly: ' summary.txt
}
