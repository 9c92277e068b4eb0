# SPDX-License-Identifier: MIT
# Functions that are asked for, and are in programs that cannot be hooked: that they are there is said, and why they are
# not counted, and what counts them.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

# unhooked NAME FUNCTION REASON COMMAND...: its program runs, and the recording says the reason.
unhooked() {
	local name=$1 function=$2 reason=$3 status
	shift 3
	"$WEIR" record --no-sample --events "$function" -o t.weir -- "$@" >out.txt 2>said.txt
	status=$?
	"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
	equal "$name: the function is known, and why it is not hooked" "0 refused $reason" \
		"$status $(json hooks.json "' '.join(sorted({r['method'] + ' ' + r['reason'] for r in j['rows'] if r['function'].split('(')[0] == '$function'}))")"
	check "$name: nobody says that there is no such function" sh -c '! grep -q "no function" said.txt'
	check "$name: weir says what counts its calls" grep -q "weir: note: program .* was not hooked: .*'weir steps --around $function' and 'weir probe' count its calls" said.txt
}

build dynamic limited.c -O2 || exit 1
if build static limited.c -O2 -static; then
	unhooked "a static program" step "it is statically linked" ./static
	"$WEIR" steps -q --around step -o s.weir -- ./static >out.txt 2>err.txt
	"$WEIR" report flat s.weir --json >flat.json 2>err.txt
	equal "and it is true: steps count its calls" 1000 "$(json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='step')")"
	"$WEIR" record --no-sample --events stepp -o t.weir -- ./static >out.txt 2>said.txt
	check "what is not in it is not found, and names near to it are" grep -q "no function matches 'stepp'; is it .*'step'" said.txt
else
	skip "a static program: gcc -static does not work here ($(head -n 1 build.txt))"
fi
if musl-gcc -w -O2 -o musl "$hook_fixtures/limited.c" 2>build.txt; then
	unhooked "a program of musl" step "its loader is musl's, and libweir.so is for that of glibc" ./musl
else
	skip "a program of musl: musl-gcc does not work here ($(head -n 1 build.txt))"
fi
cat >go.go <<'GO'
package main

//go:noinline
func work(x int) int {
	s := 0
	for i := 0; i < x%7; i++ {
		s += i
	}
	return s
}

func main() {
	for i := 0; i < 1000; i++ {
		work(i)
	}
}
GO
if GOCACHE=$PWD/cache GO111MODULE=off HOME=$PWD go build -o go go.go 2>build.txt; then
	unhooked "a Go program" main.work "Go moves its stacks" ./go
else
	skip "a Go program: go build does not work here ($(head -n 1 build.txt))"
fi
unhooked "a limit on the address space" step "the limit on its address space (ulimit -v) leaves no room for libweir.so" \
	sh -c 'ulimit -v 100000; exec ./dynamic wait'
unhooked "another environment" step \
	"libweir.so was not preloaded (another environment or root folder, a limit on memory, or the file may not be read there)" \
	env -i ./dynamic wait
if [ "$(id -u)" = 0 ]; then
	mkdir root && cp dynamic root
	for library in $(ldd dynamic | grep -o '/[^ ]*'); do
		mkdir -p "root${library%/*}" && cp "$library" "root$library"
	done
	unhooked "another root folder" step "there is no libweir.so below its root folder" chroot root /dynamic wait
	# One that ends at once may be gone before its file could be read.
	"$WEIR" record --no-sample --events step -o t.weir -- chroot root /dynamic >out.txt 2>said.txt
	check "of a file that cannot be read nobody says what is not in it" sh -c '! grep -q "no function matches" said.txt'
else
	skip "another root folder: only root may have one"
fi
"$WEIR" record --no-sample --events step -o t.weir -- sh -c 'ulimit -n 4; exec ./dynamic' >out.txt 2>said.txt
"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
equal "a program that could not begin has its reason" "refused it may not open two more files" \
	"$(json hooks.json "' '.join(r['method'] + ' ' + r['reason'] for r in j['rows'])")"
