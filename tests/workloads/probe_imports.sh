# SPDX-License-Identifier: MIT
# weir-test: root: imports of trace scripts
# import, and #define with parameters.
. "$ROOT/tests/lib.sh"
umask 022
chmod 755 .

# gives SENTENCE EXPECTED ARGUMENTS...
gives() {
	local sentence=$1 expected=$2
	shift 2
	timeout 120 "$WEIR" probe -q "$@" >out.txt 2>err.txt
	rc=$?
	[ $rc = 0 ] && sed 's/^/  /' err.txt
	equal "$sentence" "$expected" "$(echo $(cat out.txt))"
}

mkdir -p kit/deep
cat >kit/words.wr <<'S'
import "deep/types.h"
macro greeting(x) { $n = sizeof(struct kit_pair) + x; $n }
begin { print("words"); @order++; }
S
cat >kit/deep/types.h <<'S'
struct kit_pair { char a; uint64_t b; };
#define KIT_LIMIT 40
#define KIT_SUM(a, b) ((a) + (b))
S
cat >kit/again.bt <<'S'
import "words.wr";
import "again.bt";
import "../main.wr";
fn kit_half($n : int64) : int64 { return $n / 2; }
S
echo 'not a script' >kit/README
cat >main.wr <<'S'
import "kit";
import "kit/words.wr";
begin { @order++; print((greeting(1), kit_half(KIT_LIMIT), KIT_SUM(KIT_LIMIT, 2), @order)); clear(@order); }
S
gives "a folder's scripts are there once each, whoever names them; paths are relative to who names them" \
	"words (17, 20, 42, 2)" main.wr
mkdir -p elsewhere
cd elsewhere
gives "also from another folder" "words (17, 20, 42, 2)" ../main.wr
cd ..
gives "a text's imports are relative to the working folder" "words 18 @order: 1" -e 'import "./kit/words.wr"; begin { print(greeting(2)); }'
gives "a script with the same import beside another one" "16 3 words @order: 1" -i kit/words.wr -e 'import "kit/words.wr"; begin { print(greeting(0)); print(3); }'

refused() { # SENTENCE TAG SCRIPT
	timeout 120 "$WEIR" probe -q -e "$3" >out.txt 2>err.txt
	equal "$1" "1 [$2]" "$? $(grep -o '\[[a-z-]*\]$' err.txt | head -n 1)"
}
refused "a file that is not there" not-found 'import "kit/none.wr"; begin { }'
refused "a folder without scripts" not-found 'import "elsewhere"; begin { }'
refused "compiled code" declaration 'import "kit/code.bpf.c"; begin { }'
head -c 64 /bin/true >kit/deep/binary.wr
refused "a file that is no text" not-found 'import "kit/deep/binary.wr"; begin { }'
echo 'config = { max_strlen = 9 }' >kit/deep/settings.wr
refused "settings in an imported script" config 'import "kit/deep/settings.wr"; begin { }'
echo 'begin { print("anybody"); }' >kit/deep/open.wr
chmod 666 kit/deep/open.wr
refused "a file that anybody can write" unsafe 'import "kit/deep/open.wr"; begin { }'
printf 'begin {\n\tprint(nobody_knows);\n}\n' >kit/deep/wrong.wr
timeout 120 "$WEIR" probe -q -e 'import "kit/deep/wrong.wr";' >out.txt 2>err.txt
equal "a message names the imported file" "kit/deep/wrong.wr:2:8" "$(sed -n 's/^\([^:]*:[0-9:]*\): error.*/\1/p' err.txt)"
timeout 120 "$WEIR" probe -q -o kept.wprobe main.wr && mv kit kit-gone && timeout 120 "$WEIR" probe -q kept.wprobe >out.txt 2>err.txt
equal "a compiled script needs the files no longer" "words (17, 20, 42, 2)" "$(echo $(cat out.txt))"

# --- #define with parameters ------------------------------------------------------------------------------------
cat >define.wr <<'S'
#define PAIR(x, y) ((x) * 100 + (y))
#define SWAPPED(x, y) PAIR(y, \
	x)
#define LEAST(cpu, n) ((cpu) < (n) ? (cpu) : (n)) // a parameter with the name of a builtin
#define PLAIN (7)
begin { print((PAIR(1, 2), SWAPPED(1, 2), PAIR(PAIR(0, 1), LEAST(9, PLAIN)), LEAST(cpu, -1), PAIR((1, 5).1, strlen("a,b)"))));
	$PAIR = 3; print($PAIR); }
S
gives "parameters of #define, in one another, over several lines" "(102, 201, 107, -1, 504) 3" define.wr
refused "an argument that is missing" expected '#define PAIR(x, y) ((x) + (y))
begin { print(PAIR(1)); }'
refused "an argument too many" expected '#define PAIR(x, y) ((x) + (y))
begin { print(PAIR(1, 2, 3)); }'
refused "#define in a circle" nesting '#define THERE(x) BACK(x)
#define BACK(x) THERE(x)
begin { print(BACK(1)); }'
