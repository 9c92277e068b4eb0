# SPDX-License-Identifier: MIT
# --host where little is there: another user without privileges, a root folder without any libc, no gzip; and what
# docker and kubectl are told.
# weir-test: once: the agent is a copy of weir, which is ten times as large with sanitizers
# weir-test: root: it makes users and root folders of its own, seen by its sshd alone
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/remote.sh"
if ! unshare -m true 2>/dev/null; then
	skip "users and root folders of other machines: no mount namespace can be made"
	finish
fi

place=$(mktemp -d /tmp/weir-places.XXXXXX) && cd "$place" || exit 1 # others enter it, too
chmod 755 .

# The sshd sees two more users, and at /mnt a root folder with a static busybox and nothing else.
mkdir -p there home root/bin root/tmp root/proc && chmod 1777 there root/tmp && chown 23456 home && chmod 755 . home root
cp /etc/passwd passwd
printf '%s\n' "weirtest:x:23456:23456::$PWD/home:/bin/sh" "weirbare:x:0:0::/:/bin/sh" >>passwd
busybox=$(type -P busybox)
has_bare=
if [ -n "$busybox" ] && ! ldd "$busybox" >/dev/null 2>&1; then
	has_bare=1
	cp "$busybox" root/bin/busybox
	for tool in sh dd head gzip uname id ls mkdir rm mv ln chmod wc sha256sum cat true; do
		ln -s busybox root/bin/$tool
	done
fi
cat >enter.sh <<'SH'
mount --bind passwd /etc/passwd && mount --bind root /mnt && mount -t proc proc /mnt/proc || exit 1
exec "$@"
SH
BEFORE=(unshare -m --propagation private sh "$PWD/enter.sh")
trap 'rm -rf "$place"' EXIT
start_sshd "Match User weirbare" "ChrootDirectory /mnt"
trap 'kill $SSHD_PID 2>/dev/null; cd / && rm -rf "$place"' EXIT
record() { timeout 60 "$WEIR" record "$@"; }

# Another user.
export TMPDIR=$PWD/there
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
record --host weirtest@box -o t.weir -- "$PWD/split" split >out.txt 2>err.txt
if ! "$WEIR" report flat t.weir --json >t.json 2>/dev/null; then
	skip "a recording as another user: $(head -n 1 err.txt)"
else
	check "another user records own programs" test "$(json t.json '[r["samples"] for r in j["rows"] if r["name"] == "seventy"][0] > 20')" = True
	equal "who it is" "23456 $PWD/home" "$(record -q --host weirtest@box -o t.weir -- sh -c 'id -u; pwd' | paste -sd ' ')"
	sleep 60 &
	sleeper=$!
	fails "what is not permitted there is a sentence of the other side" 1 '^weir: weirtest@box: process [0-9]*: belongs to somebody else' record -q --host weirtest@box -o p.weir -p $sleeper
	kill $sleeper
	mkdir -m 700 there/weir-agent-23456
	fails "a folder of somebody else is not used" 1 "^weir: weirtest@box: '.*/weir-agent-23456': is not a folder of yours alone" \
		record -q --keep --host weirtest@box -o t.weir -- true
	rmdir there/weir-agent-23456
	mkdir -m 777 open
	equal "nor is one in which everybody may replace files" "0 " "$(TMPDIR=$PWD/open record -q --host weirtest@box -o t.weir -- true 2>&1; echo $?) $(ls -A open)"
fi
equal "nothing is left there" "" "$(left_in there)"

# No libc, no compiler, no shell but busybox.
export TMPDIR=/tmp
if [ -n "$has_bare" ]; then
	record --host weirbare@box -o b.weir -- /bin/sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo said; exit 4' >out.txt 2>err.txt
	equal "in a root folder without any libc a command is recorded" "4 said" "$? $(cat out.txt)"
	"$WEIR" report flat b.weir --json >b.json
	check "and sampled" test "$(json b.json 'sum(r["samples"] for r in j["rows"]) > 20')" = True
	check "weir doctor runs there" sh -c "timeout 60 '$WEIR' doctor --host weirbare@box | grep -q ' kernel '"
	record -q --keep --host weirbare@box -o b.weir -- true
	inode=$(stat -c %i root/tmp/weir-agent-0/*/weir-agent)
	equal "what is kept there is used again" "0 $inode" "$(record -q --host weirbare@box -o b.weir -- true; echo $?) $(stat -c %i root/tmp/weir-agent-0/*/weir-agent)"
	rm -r root/tmp/weir-agent-0
	equal "nothing is left there" "" "$(left_in root/tmp)"
else
	skip "a root folder without any libc: busybox-static is not installed"
fi

# No engine runs here: stand-ins take the arguments of docker and kubectl, show them and run the shell themselves. They
# test what is passed on, not the engines.
unset WEIR_SSH
cat >engine <<'SH'
#!/bin/sh
name=${0##*/}
printf '%s|' "$name" "$@" >"$name.txt"
while [ "$1" != sh ]; do shift; done
exec "$@"
SH
chmod 755 engine && ln -s engine docker && ln -s engine kubectl
export TMPDIR=$PWD/there
PATH=$PWD:$PATH record -q --host docker:box1 -o d.weir -- sh -c 'echo said; exit 3' >out.txt
equal "docker:NAME is docker exec" "3 said" "$? $(cat out.txt)"
equal "with its standard input, and no terminal" "docker|exec|-i|box1|sh|-c" "$(cut -d '|' -f 1-6 docker.txt | head -n 1)"
equal "kubectl:POD is kubectl exec" 5 "$(PATH=$PWD:$PATH record -q --host kubectl:pod/a-b -o d.weir -- sh -c 'exit 5'; echo $?)"
equal "with what separates its own options" "kubectl|exec|-i|pod/a-b|--|sh|-c" "$(cut -d '|' -f 1-7 kubectl.txt | head -n 1)"
equal "--ssh has further words for it" "kubectl|-n|a space|exec|-i|pod|--|sh" \
	"$(PATH=$PWD:$PATH record -q --host kubectl:pod --ssh "kubectl -n 'a space'" -o d.weir -- true; cut -d '|' -f 1-8 kubectl.txt | head -n 1)"
mkdir few
for tool in sh dd head uname id ls mkdir rm mv ln chmod wc cat; do
	ln -s "$(type -P $tool)" few/$tool
done
printf '#!/bin/sh\nPATH=%s/few\nshift 3\nexec "$@"\n' "$PWD" >bare && chmod 755 bare
equal "without gzip the agent comes as it is, and without sha256sum nothing is kept" "0 /few" \
	"$(record -q --keep --host docker:box1 --ssh "$PWD/bare" -o d.weir -- sh -c 'echo "$PATH"' >out.txt; echo $?) $(grep -o '/few$' out.txt)"
mkdir other && printf '#!/bin/sh\n[ "$1" = -m ] && echo aarch64 || echo Linux\n' >other/uname && chmod 755 other/uname
PATH=$PWD/other:$PWD:$PATH fails "another architecture is a sentence" 1 '^weir: docker:box1: is a Linux on aarch64: weir is for Linux on x86_64' \
	record -q --host docker:box1 -o d.weir -- true
equal "nothing is left there either" "" "$(left_in there)"
finish
