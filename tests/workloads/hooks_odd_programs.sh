# SPDX-License-Identifier: MIT
# Programs that do what breaks other tools, with all their functions hooked: they print the same, end
# the same, and each function has as many calls as the program itself has counted.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

has_32=1
build probe32 deep.c -m32 || { has_32= && skip "32-bit programs: gcc -m32 does not work here ($(head -n 1 build.txt))"; }

# The hook library and the programs are the same under sanitizers: the recorder sees enough of them by
# fewer cases then.
more() { [ -z "$WEIR_SAN" ]; }

# --- shapes of functions, by compiler flags
flags=(-O0 -O2 -Os "-O2 -fcf-protection=full" "-O2 -no-pie")
if grep -qw avx /proc/cpuinfo; then flags+=("-O3 -mavx"); else skip "vector arguments: no AVX here"; fi
[ -z "$has_32" ] || flags+=("-O2 -m32" "-O0 -m32")
more || flags=(-O2)
[ -z "${WEIR_SLOW:-}" ] || flags+=(-O1 -O3 "-O2 -fno-omit-frame-pointer" "-O2 -m32 -no-pie" "-Os -m32" "-O2 -fno-ipa-ra" "-O2 -fno-plt")
for f in "${flags[@]}"; do
	build shapes shapes.c $f && same "functions of odd shapes, $f" '*' ./shapes
done

# --- exits without return
build jumps jumps.c -O2 && same "longjmp through hooked frames" '*' ./jumps
# One object, linked in two ways: it takes a second to compile.
if build throws.o throws.cpp -O2 -c && g++ -o throws throws.o -lpthread 2>build.txt; then
	same "exceptions through hooked frames" '*' ./throws
	same "exceptions through hooked frames of every image" '*,*:*' ./throws
	same "an exception that nobody catches" '*' ./throws terminate
	more && g++ -static-libgcc -static-libstdc++ -o throws throws.o -lpthread && same "exceptions, with libgcc in the program" '*' ./throws
	more && build throws throws.cpp -O2 -no-pie -fcf-protection=full && same "exceptions, not position independent, endbr" '*' ./throws
else
	skip "exceptions: no g++ here"
fi
if build throws throws.cpp -O2 -m32; then
	same "exceptions, 32-bit" '*' ./throws
else
	skip "exceptions, 32-bit: g++ -m32 does not work here ($(grep -m1 error: build.txt))"
fi
build deep deep.c -O2 && same "a recursion of 100,000 calls and a million tail calls" '*' ./deep
build threads threads.c -O2 && same "threads that end in every way" '*' ./threads
more && same "threads, with every function of every image" '*,*:*' ./threads 2
build signals signals.c -O2 && same "signal handlers at any moment" '*' ./signals 200
same "signal handlers, with every function of every image" '*,*:*' ./signals 100
more && same "a signal stack in a local array" '*' ./signals 100 local

# --- stack switching
build coroutines coroutines.c -O2
for mode in context large fiber inside churn migrate; do
	case $mode in
	context) what="contexts on adjacent small stacks" ;;
	large) what="fibers by assembly on stacks from malloc" ;;
	fiber) what="fibers on stacks of 4 kB, close to each other" ;;
	inside) what="contexts on a local array" ;;
	churn) what="contexts of several sizes in the same place" ;;
	migrate) what="fibers that two threads run in turn" ;;
	esac
	same "$what" '*' ./coroutines $mode
done

# --- stacks and mappings close to each other
if setarch -R true 2>/dev/null; then
	same "fibers, with addresses that are not random" '*' setarch -R ./coroutines large
	more && same "threads, with addresses that are not random" '*' setarch -R ./threads 2
else
	skip "addresses that are not random: setarch -R does not work here"
fi
more && same "threads, with a stack that has no limit" '*' bash -c 'ulimit -s unlimited; exec ./threads 2'

# --- with the stack at each entry
record_options=(--stack-at '*')
same "a stack at each entry" 'quiet' ./jumps
build edge_stack edge_stack.c -O2 && same "a stack at each entry, where nothing is mapped behind it" '*' ./edge_stack
[ -z "$has_32" ] || { build edge_stack32 edge_stack.c -O2 -m32 && same "the same, 32-bit" '*' ./edge_stack32; }
record_options=()

# --- processes
build processes processes.c -O2 || exit 1
for mode in fork vfork spawn thread _exit abort kill trap fault; do
	same "a program that ends or goes on by $mode" '*' ./processes $mode
done
same "fork, with every function of every image" '*,*:*' ./processes fork
more && same "posix_spawn, with every function of every image" '*,*:*' ./processes spawn

# --- libraries that come and go
build host plugin_host.c -O2 && build one.so plugin.c -O2 -shared -fPIC && cp one.so two.so
same "libraries loaded and unloaded in a loop" '*,*:*' ./host 300 ./one.so ./two.so

if [ -n "$has_32" ]; then
	build processes32 processes.c -O2 -m32
	same "exec of a 32-bit program, and back" '*' ./processes exec ./processes32 exec ./processes leaf
	same "fork, 32-bit" '*' ./processes32 fork
	same "fork from a thread, 32-bit" '*' ./processes32 thread
	build jumps32 jumps.c -O2 -m32 && same "longjmp, 32-bit" '*' ./jumps32
	build threads32 threads.c -O2 -m32 && same "threads, 32-bit" '*' ./threads32 3
	build signals32 signals.c -O2 -m32 && same "signal handlers, 32-bit" '*' ./signals32 100
	more && same "signal handlers, 32-bit, with every function of every image" '*,*:*' ./signals32 100
	build coroutines32 coroutines.c -O2 -m32 && same "contexts, 32-bit" '*' ./coroutines32 context
	more && same "fibers, 32-bit" '*' ./coroutines32 large
	build deep32 deep.c -O2 -m32 && same "a deep recursion, 32-bit" '*' ./deep32 100000 100000
fi
judge_counts

# backtrace() sees one frame more for each hooked call, and every true one in its place.
build backtraces backtraces.c -O1 -rdynamic
./backtraces >plain.txt 2>/dev/null
"$WEIR" record -q --events '*' -o t.weir -- ./backtraces >hooked.txt 2>frames.txt
equal "backtrace() names the same functions in the same order" "$(cat plain.txt)" "$(cat hooked.txt)"
