# SPDX-License-Identifier: MIT
# weir steps and weir count of programs that become another user, and with no room left for their trace.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
# weir-test: root: a file system that is full has to be mounted, and another user become
. "$ROOT/tests/lib.sh"
"$WEIR" steps -q --engine translate -o there.weir -- true 2>there.txt ||
	{ skip "the engine translate: $(head -n 1 there.txt)" && finish; }
work='i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done; ls /usr/bin | sort | md5sum'
expected=$(sh -c "$work")

# --- a disk that fills up
mkdir full
if mount -t tmpfs -o size=200k tmpfs full 2>mount.txt; then
	"$WEIR" steps --engine translate -o full/t.weir -- sh -c "$work" >out.txt 2>err.txt
	equal "a full disk: weir steps fails" 1 $?
	equal "a full disk: the program does not notice" "$expected" "$(cat out.txt)"
	equal "a full disk: one sentence tells it" 1 \
		"$(grep -c "^weir: 'full/t.weir': cannot write after [0-9]* bytes: No space left on device$" err.txt)"
	equal "a full disk: and there is no other" 1 "$(wc -l <err.txt)"
	umount full
else
	skip "a full disk: $(head -n 1 mount.txt)"
fi

# --- another user
if ! setpriv --reuid 65534 --clear-groups true 2>setpriv.txt; then
	skip "another user: $(head -n 1 setpriv.txt)"
	finish
fi
for command in "steps --engine translate" count; do
	# shellcheck disable=SC2086
	equal "weir $command: a program that becomes another user is one" "65534: 0" \
		"$("$WEIR" $command -q -o user.weir -- setpriv --reuid 65534 --clear-groups id -u 2>&1): $?"
	"$WEIR" report flat --json user.weir >flat.json
	equal "weir $command: and what it executes as that is recorded" True \
		"$(json flat.json 'sum(r["base"] for r in j["rows"] if (r["image"] or "").endswith("/id")) > 100')"
done
