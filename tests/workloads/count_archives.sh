# SPDX-License-Identifier: MIT
# The archives of the system pass through weir insert: nothing crashes, nearly all functions are inserted and
# the rest have reasons, readers and linkers take what comes out, and inserting nothing changes no byte.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# least percentage of the functions that is inserted; libcrypto, libm and libc have some made by hand
declare -A least=([z]=99 [sqlite3]=99 [stdc++]=99 [crypto]=99 [m-2.36]=98 [c]=98)
libraries=(z sqlite3 stdc++ crypto m-2.36 c)

# sample ARCHIVE N: names of about N members, spread evenly; all when N is 0
sample() { ar t "$1" | grep '\.o$' | sort -u | awk -v n="$2" '{ m[NR] = $0 } END { s = n && NR > n ? NR / n : 1; for (i = 1; i <= NR; i += s) print m[int(i)] }'; }

# insert_quietly OPTIONS: the status counts, and what a sanitizer says
insert_quietly() {
	timeout 300 "$WEIR" insert "$@" >insert.json 2>insert.txt
	local rc=$?
	[ $rc -eq 0 ] && ! grep -q 'runtime error\|Sanitizer' insert.txt && return 0
	echo "  $*: status $rc: $(head -n 1 insert.txt)"
	return 1
}

whole_archive() { # NAME ARCHIVE
	local name=$1 archive=$2
	insert_quietly --json "$archive" -o "$name.w.a" || { not_ok "lib$name.a is inserted" && return; }
	readelf -sW "$archive" >symbols.txt 2>/dev/null
	python3 - "$name" "${least[$name]}" <<'PY' || not_ok "lib$name.a: what --json says is read"
import json, sys
j, name, least = json.load(open("insert.json")), sys.argv[1], int(sys.argv[2])
member, places = 0, set()
for line in open("symbols.txt", errors="replace"):
    field = line.split()
    member += line.startswith("File:")
    if len(field) > 7 and field[3] in ("FUNC", "IFUNC") and field[6].isdigit():
        places.add((member, field[6], field[1]))
print("ok" if abs(len(places) - j["functions"]) * 1000 <= len(places) else "not ok",
      f"lib{name}.a: {j['functions']} functions are known, readelf has {len(places)} (to 1 in 1,000)")
share = 100 * j["inserted"] / max(1, j["functions"])
left = j["functions"] - j["inserted"]
reasons = sum(r["count"] for r in j["reasons"]) if isinstance(j["reasons"], list) else sum(j["reasons"].values())
print("ok" if share >= least and j["functions"] else "not ok",
      f"lib{name}.a: {j['inserted']} of {j['functions']} functions inserted, {share:.2f} % (at least {least} %)")
print("ok" if reasons == left and all(r["reason"] for r in j["rows"] if not r["inserted"]) else "not ok",
      f"lib{name}.a: each of the {left} functions left alone has a reason: {j['reasons']}")
PY
	equal "lib$name.a: the same members in the same order" "$(ar t "$archive")" "$(ar t "$name.w.a")"
	insert_quietly --mode nothing "$archive" -o nothing.a &&
		check "lib$name.a: inserting nothing changes no byte of a member" cmp <(ar p "$archive") <(ar p nothing.a)
	rm -f nothing.a
}

# readelf has nothing to say about a sample of the members, and no section of them overlaps.
members_reread() { # NAME N
	local name=$1 m warnings=
	rm -rf members && mkdir members
	mapfile -t sampled < <(sample "$name.w.a" "$2")
	(cd members && ar x ../"$name.w.a" "${sampled[@]}")
	warnings=$(cd members && printf '%s\n' "${sampled[@]}" | xargs -d '\n' readelf -aW 2>&1 >/dev/null | head -n 5)
	equal "lib$name.a: readelf takes ${#sampled[@]} members" "" "$warnings"
}

# each_member NAME ARCHIVE N: N members one by one, in both modes of tests
each_member() {
	local name=$1 archive=$2 m bad=0 n=0
	rm -rf members && mkdir members
	mapfile -t sampled < <(sample "$archive" "$3")
	(cd members && ar x "$archive" "${sampled[@]}")
	for m in "${sampled[@]}"; do
		n=$((n + 1))
		insert_quietly "members/$m" -o one.o || bad=$((bad + 1))
		insert_quietly --mode nothing "members/$m" -o one.o && cmp -s "members/$m" one.o || bad=$((bad + 1))
		readelf -aW one.o 2>&1 >/dev/null | grep -q . && bad=$((bad + 1))
	done
	equal "lib$name.a: $n members one by one, inserted and with nothing inserted" 0 "$bad"
}

found=()
for name in "${libraries[@]}"; do
	archive=$(static_library "$name") || { skip "lib$name.a: not installed" && continue; }
	found+=("$name")
	if ! more && [ "$name" != z ]; then
		each_member "$name" "$archive" 6
		continue
	fi
	whole_archive "$name" "$archive"
	if [ -n "${WEIR_SLOW:-}" ]; then
		members_reread "$name" 0
		each_member "$name" "$archive" 0
	else
		members_reread "$name" 25
	fi
done

# --- linkers take the whole of each archive
count_library=$BUILD/lib/x86_64-linux-gnu/libweircount.a
echo 'int main(void) { return 0; }' >empty.c && gcc -c empty.c
for linker in bfd lld; do
	command -v ld.$linker >/dev/null || { skip "ld.$linker links whole archives: not installed" && continue; }
	for name in z sqlite3 stdc++ crypto; do
		[ -f "$name.w.a" ] || continue
		if gcc -fuse-ld=$linker -o all empty.o -Wl,--whole-archive "$name.w.a" -Wl,--no-whole-archive "$count_library" \
			-lm -ldl -lpthread >link.txt 2>&1 && [ ! -s link.txt ]; then
			equal "ld.$linker links all of lib$name.a, and it runs" 0 "$(./all >/dev/null 2>&1; echo $?)"
		else
			not_ok "ld.$linker links all of lib$name.a"
			head -n 5 link.txt
		fi
	done
done

# --- one-byte nops at the head of each block leave programs as they are
nops() { # NAME SOURCE LIBRARIES...: what it says with a size
	local name=$1 source=$2 l archive archives=() inserted=()
	shift 2
	gcc -w -O2 -c -o plain.o "$count_fixtures/$source" || { skip "nops in $name: headers are not installed" && return; }
	"$WEIR" insert -q --mode nops plain.o -o nops.o
	for l in "$@"; do
		archive=$(static_library "$l") || { skip "nops in $name: lib$l.a is not installed" && return; }
		"$WEIR" insert -q --mode nops "$archive" -o "$l.nops.a" || not_ok "nops in $name: lib$l.a is inserted"
		archives+=("$archive")
		inserted+=("$l.nops.a")
	done
	gcc -o program plain.o "${archives[@]}" -lm 2>link.txt && gcc -o program_nops nops.o "${inserted[@]}" -lm 2>link.txt ||
		{ not_ok "nops in $name: it is linked: $(head -n 1 link.txt)" && return; }
	equal "nops in $name: the program does the same" "$(timeout 60 ./program 2000 2>&1; echo $?)" "$(timeout 60 ./program_nops 2000 2>&1; echo $?)"
}
nops zlib drive_zlib.c z
more || finish
nops "control flow" control_flow.c
nops sqlite3 drive_sqlite.c sqlite3
nops libcrypto drive_crypto.c crypto
