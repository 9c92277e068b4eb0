# SPDX-License-Identifier: MIT
# A host that loads, uses and unloads a hundred plug-ins in turn, all at one address: each sample
# belongs to the one that was there then, and the times are right.
# weir-test: alone: shares of samples depend on the load
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/make_plugins.bash"
make_plugins plug 100 || exit 1
for ((i = 0; i < 100; i++)); do printf 'load %d\nburn %d 12\nunload %d\n' $i $i $i; done >script.txt

history() { # COMMAND TRACE ...: of tests/format/module_history.py
	local command=$1 trace=$2
	shift 2
	python3 "$ROOT/tests/format/read_trace.py" "$trace" >trace.json &&
		python3 "$ROOT/tests/format/module_history.py" "$command" trace.json "$@"
}

# "" or why munmap calls are not recorded here
untraced=$("$WEIR" record -o note.weir -- true 2>&1 | grep -o 'munmap calls are not recorded.*')

"$WEIR" record -q -o p.weir -- ./plugin_host plug <script.txt >log.txt
equal "all plug-ins were loaded at one address" 1 "$(awk '$1=="burn"{print $3}' log.txt | sort -u | wc -l)"
if [ -n "$untraced" ]; then
	skip "each span ends by munmap: $untraced"
else
	history plugins p.weir log.txt
	history records p.weir >records.txt
	equal "a load and an unload record for each, in turn" "load unload" \
		"$(awk '$5 ~ /^lib[0-9]+[.]so$/ && $1 ~ /load/ {print $5, $1}' records.txt | awk '{a[$1]=a[$1] " " $2} END {for (k in a) print substr(a[k], 2)}' | sort -u)"
	check "their unload records say munmap" test "$(grep -cE '^unload .* lib[0-9]+[.]so munmap$' records.txt)" -ge 95
	check "those of the program say exit" grep -qE '^unload .* plugin_host exit$' records.txt
	check "the last state of the process is a snapshot" grep -qE '^end .* plugin_host' records.txt
	check "which has no plug-in any more" test -z "$(grep -E '^end .* lib[0-9]+[.]so' records.txt)"
fi

WEIR_NO_MUNMAP=1 "$WEIR" record -q -o o.weir -- ./plugin_host plug <script.txt >log.txt
history plugins o.weir log.txt

# The same library again is a new load.
printf 'load 7\nburn 7 30\nunload 7\n%.0s' 1 2 3 >again.txt
for setting in "" WEIR_NO_MUNMAP=1; do
	env $setting "$WEIR" record -q -o again.weir -- ./plugin_host plug <again.txt >log.txt
	equal "a library that is loaded three times has three loads${setting:+ (by overlap)}" "3 3" \
		"$(history records again.weir | awk '$5=="lib7.so"{n[$1]++} END {print n["load"], n["unload"]}')"
done

# A program that unmaps all the time is let go.
printf 'load 3\nburn 3 20\nmunmap 200000\nburn 3 50\nmunmap 100\nunload 3\n' >flood.txt
"$WEIR" record -q -o flood.weir -- ./plugin_host plug <flood.txt >log.txt
if [ -n "$untraced" ]; then
	skip "a flood of munmap calls ends their recording: $untraced"
else
	python3 "$ROOT/tests/format/read_trace.py" flood.weir | tr ',' '\n' >flood.json
	check "a flood of munmap calls ends their recording, with a note that says when" \
		grep -q 'more than 20000 munmap calls in a second: not recorded from [0-9.]* s on' flood.json
	equal "what is unloaded after that is known at the exit" exit "$(history table flood.weir lib3.so | cut -d' ' -f4)"
fi
