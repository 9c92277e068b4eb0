# SPDX-License-Identifier: MIT
# Sourced by tests of --host, after lib.sh: a real sshd on loopback, with keys and settings of its own, that ends with
# the test. WEIR_SSH leads to it, as host "box" and the user who tests.

# start_sshd [SETTING...]: further lines of its configuration. BEFORE (an array) are words to run it with.
start_sshd() {
	local i sshd=/usr/sbin/sshd
	if [ ! -x $sshd ] || ! command -v ssh >/dev/null; then
		skip "another machine over ssh: openssh-server or openssh-client is not installed"
		finish
	fi
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd # what its package makes when the service starts
	ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key || exit 1
	chmod 755 . && cp key.pub authorized_keys && chmod 644 authorized_keys
	SSHD_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	printf '%s\n' "Port $SSHD_PORT" "ListenAddress 127.0.0.1" "HostKey $PWD/host_key" "AuthorizedKeysFile $PWD/authorized_keys" \
		"UsePAM no" "PasswordAuthentication no" "StrictModes no" "PermitRootLogin yes" "PidFile none" \
		"MaxStartups 100" "LogLevel ERROR" "AcceptEnv TMPDIR" "$@" >sshd_config
	printf '%s\n' "Host box" "HostName 127.0.0.1" "Port $SSHD_PORT" "IdentityFile $PWD/key" "IdentitiesOnly yes" \
		"StrictHostKeyChecking no" "UserKnownHostsFile /dev/null" "LogLevel ERROR" "SendEnv TMPDIR" >ssh_config
	"${BEFORE[@]}" $sshd -D -f "$PWD/sshd_config" -E sshd.log &
	SSHD_PID=$!
	trap 'kill $SSHD_PID 2>/dev/null' EXIT
	export WEIR_SSH="ssh -F $PWD/ssh_config"
	for ((i = 0; i < 100; i++)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$SSHD_PORT") 2>/dev/null && return
		kill -0 $SSHD_PID 2>/dev/null || break
		sleep 0.05
	done
	skip "another machine over ssh: sshd does not start: $(head -n 1 sshd.log)"
	finish
}

# left_in FOLDER: what is ours there, for up to 20 s as long as there is any.
left_in() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ -n "$(ls -A "$1")" ] || return
		sleep 0.1
	done
	ls -A "$1"
}

# agents PATTERN: processes of agents and of what they run, for up to 20 s as long as there are any; their command lines
# have the folder's name.
agents() {
	local i
	for ((i = 0; i < 200; i++)); do
		pgrep -f "$1" >/dev/null || return
		sleep 0.1
	done
	pgrep -af "$1"
}
