# SPDX-License-Identifier: MIT
# weir-test: once: it is of the tree, whatever weir is built with
# The page in the tree is what its source makes, byte for byte, so that a build without npm and clang has the same.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"

# Files of a clone are as old as chance has it, and a machine that only builds has no compiler for the engine.
make -C "$ROOT" -n -W src/wasm/engine_main.c -W src/base/err.c BUILD="$BUILD" all >made.txt 2>&1 || not_ok "make -n: $(tail -n 3 made.txt)"
check "a build compiles what is newer" grep -q 'err\.o' made.txt
check "but takes the page and its engine as they are in the tree" [ "$(grep -cE 'wasm32|build\.mjs' made.txt)" = 0 ]
need_packages "the page is made of its source"

(cd "$ROOT/web" && node_modules/.bin/tsc --noEmit -p .) >tsc.out 2>&1 ||
	not_ok "the page's source is strictly typed: $(head -n 3 tsc.out)"
(cd "$ROOT/web" && node build.mjs "$OLDPWD/dist") >build.out 2>&1 || not_ok "the page is made: $(head -n 3 build.out)"
for file in page.js page.css page.html; do
	check "$file is what its source makes (make web)" cmp "dist/$file" "$ROOT/web/dist/$file"
done
check "nothing in it ends its place in a file of weir report --html" [ "$(grep -ciE '</script|<!--|</style' "$ROOT"/web/dist/page.js "$ROOT"/web/dist/page.css | grep -cv ':0$')" = 0 ]
bytes=$(cat "$ROOT"/web/dist/page.* | wc -c)
check "the page has at most 300 kB: $bytes bytes" [ "$bytes" -le 300000 ]

# Other versions of the compiler make other code of the same source.
clang --version 2>/dev/null | grep -q 'version 14\.' || { skip "the engine is made of its source: clang 14 is not here" && finish; }
[ -e /usr/lib/wasm32-wasi/libc.a ] || { skip "the engine is made of its source: wasi-libc is not here" && finish; }
[ -e "$(clang --target=wasm32-wasi -print-libgcc-file-name)" ] ||
	{ skip "the engine is made of its source: libclang-rt-14-dev-wasm32 is not here" && finish; }
make -s -C "$ROOT" BUILD="$BUILD" WEB_ENGINE="$PWD/dist/engine.wasm" "$PWD/dist/engine.wasm" >make.out 2>&1 || not_ok "the engine is made: $(tail -n 3 make.out)"
check "engine.wasm is what its source makes (make web)" cmp dist/engine.wasm "$ROOT/web/dist/engine.wasm"
