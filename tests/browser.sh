# SPDX-License-Identifier: MIT
# Sourced by the browser's tests, behind tests/lib.sh.
export BUILD

# need_packages SENTENCE: what npm brings is here.
need_packages() {
	command -v node >/dev/null || { skip "$1: node is not here (tools/deps check installs it)" && finish; }
	[ -d "$ROOT/web/node_modules/playwright-core" ] ||
		{ skip "$1: web/node_modules is not here (make web-deps gets it by npm ci)" && finish; }
}
need_browser() {
	need_packages "$1"
	command -v "${CHROMIUM:-chromium}" >/dev/null ||
		{ skip "$1: chromium is not here (tools/deps check installs it)" && finish; }
}

# start_view NAME ARGUMENTS...: weir view in the background: $pid, $url; what it says is in NAME.out.
start_view() {
	local name=$1
	shift
	"$WEIR" view "$@" >"$name.out" 2>&1 &
	pid=$! url=
	for _ in $(seq 100); do
		url=$(grep -o 'http://127[^ ]*' "$name.out" | head -n 1)
		[ -z "$url" ] || return 0
		sleep 0.1
	done
	not_ok "$name: weir view says its address: $(cat "$name.out")"
}

# together COMMAND [-- COMMAND]...: all at once; what they print comes in their order.
together() {
	local command=() pids=() n=0 word k
	for word in "$@" --; do
		if [ "$word" != -- ]; then
			command+=("$word")
			continue
		fi
		"${command[@]}" >"together.$n" 2>&1 &
		pids+=($!)
		command=() n=$((n + 1))
	done
	wait "${pids[@]}"
	for ((k = 0; k < n; k++)); do cat "together.$k"; done
}
