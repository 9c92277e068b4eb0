# SPDX-License-Identifier: MIT
# Runs in the shell of the other machine, behind lines that set weir_nonce, weir_hash, weir_keep, weir_bytes, weir_sums
# and the function weir_unpack, which calls weir_part for each file. docs/format/remote.md has the conversation.
# Nothing is exported, and no name but weir_* is used: the command gets the environment as it is. There may be no
# /dev/null.
weir_own=
weir_say() { printf 'weir:%s %s\n' "$weir_nonce" "$*"; }
weir_fail() {
	weir_say fail "$(printf '%s' "$*" | tr -s '\n' ' ')"
	exit 1
}
weir_clean() { [ -z "$weir_own" ] || rm -rf "$weir_own"; }
trap weir_clean EXIT
trap 'exit 129' HUP INT TERM PIPE # caught, not ignored: the command begins with the default

# A folder of ours that nobody else can write.
weir_is_ours() {
	[ -d "$1" ] && [ ! -L "$1" ] || return 1
	# shellcheck disable=SC2012,SC2046
	set -- $(LC_ALL=C ls -ldn "$1")
	case $1:$3 in drwx--[-x]--[-x]*:"$weir_uid") ;; *) return 1 ;; esac
}

# A folder in which nobody else can replace what is ours, and whose name ld.so takes as it is.
weir_is_safe() {
	case $1 in *[:\;\$]* | [!/]* | '') return 1 ;; esac
	[ -d "$1/." ] || return 1
	# shellcheck disable=SC2012,SC2046
	set -- $(LC_ALL=C ls -ldn "$1/.")
	case $1 in d???????[!w]* | d????????[tT]*) ;; *) return 1 ;; esac
	case $1 in d????[!w]* | d????????[tT]*) ;; *) [ "$3:$4" = "$weir_uid:$(id -g)" ] || return 1 ;; esac
	case $3 in 0 | "$weir_uid") ;; *) return 1 ;; esac
}

# Sets weir_at and weir_own: a new folder, in which programs can be run.
weir_make() {
	weir_why=
	for weir_at in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
		weir_is_safe "$weir_at" || { weir_why="$weir_why; '$weir_at' is not there, or others could change what is in it" && continue; }
		weir_own=$weir_at/weir-agent-$weir_nonce
		weir_e=$(LC_ALL=C mkdir "$weir_own" 2>&1) || { weir_own= weir_why="$weir_why; $weir_e" && continue; }
		weir_e=$({ printf '#!/bin/sh\nexit 0\n' >"$weir_own/try" && chmod 700 "$weir_own/try" && "$weir_own/try"; } 2>&1) && return
		weir_why="$weir_why; $weir_e"
		rm -rf "$weir_own"
		weir_own=
	done
	weir_fail "no folder for temporary files takes the agent: ${weir_why#; }"
}

weir_is_whole() { weir_e=$({ cd "$1" && printf '%s' "$weir_sums" | sha256sum -c; } 2>&1); }

# FIRST COUNT NAME: blocks of 4096 bytes of all that came.
weir_part() {
	case $3 in */*) mkdir -p "$weir_own/${3%/*}" ;; esac
	weir_e=$(LC_ALL=C dd if="$weir_own/all" of="$weir_own/$3" bs=4096 skip="$1" count="$2" 2>&1) ||
		weir_fail "the agent cannot be put into '$weir_own': $(printf '%s' "$weir_e" | head -n 1)" # its count follows
}

weir_copy() {
	if [ -n "$(command -v gzip)" ]; then
		weir_say need gzip
		read -r weir_n || exit 1
		weir_e=$({ head -c "$weir_n" | gzip -dc >"$weir_own/all"; } 2>&1)
	else
		weir_say need plain
		read -r weir_n || exit 1
		weir_e=$({ head -c "$weir_n" >"$weir_own/all"; } 2>&1)
	fi || weir_fail "the agent cannot be put into '$weir_own': $weir_e"
	[ $(($(wc -c <"$weir_own/all"))) = "$weir_bytes" ] || weir_fail "the agent did not arrive as a whole in '$weir_own'"
	weir_unpack
	rm -f "$weir_own/all" "$weir_own/try"
	ln -s lib/x86_64-linux-gnu "$weir_own/lib64" && ln -s lib/i386-linux-gnu "$weir_own/lib32"
	if [ -n "$(command -v sha256sum)" ]; then
		weir_is_whole "$weir_own" || weir_fail "the agent in '$weir_own' is not what was sent"
	fi
	chmod -R u+x "$weir_own"
	# Programs of other users that root records load the library from there.
	[ "$weir_uid" != 0 ] || { chmod -R go+rX "$weir_own" && chmod 711 "$weir_own"; }
}

# What --keep left is used only when it is all there, by its sums.
weir_find() {
	weir_dir=$weir_at/weir-agent-$weir_uid/$weir_hash
	weir_is_ours "$weir_at/weir-agent-$weir_uid" && weir_is_ours "$weir_dir" && weir_is_whole "$weir_dir"
}

# What another one has kept meanwhile is as good, and in use. Where no sums can be made nothing is kept, since nobody could
# use it.
weir_store() {
	[ -n "$(command -v sha256sum)" ] || return
	if weir_find; then
		weir_clean
		weir_own=
		return
	fi
	weir_dir=$weir_at/weir-agent-$weir_uid
	weir_e=$(mkdir "$weir_dir" 2>&1)
	weir_is_ours "$weir_dir" || weir_fail "'$weir_dir': is not a folder of yours alone: the agent cannot be kept there"
	[ "$weir_uid" != 0 ] || chmod 711 "$weir_dir"
	rm -rf "${weir_dir:?}/$weir_hash"
	mv "$weir_own" "$weir_dir/$weir_hash" || weir_fail "'$weir_dir': the agent cannot be kept there"
	rm -rf "$weir_dir/$weir_hash/${weir_own##*/}"
	weir_own=
	weir_dir=$weir_dir/$weir_hash
}

case $(uname -s):$(uname -m) in Linux:x86_64) ;; *) weir_fail "is a $(uname -s) on $(uname -m): weir is for Linux on x86_64" ;; esac
weir_uid=$(id -u)
weir_umask=$(umask)
umask 077
weir_make
if weir_find; then
	weir_clean
	weir_own=
	weir_say have
else
	weir_copy
	[ "$weir_keep" = 0 ] || weir_store
	[ -z "$weir_own" ] || weir_dir=$weir_own
fi
umask "$weir_umask"
weir_say run
"$weir_dir/ld-linux-x86-64.so.2" --inhibit-cache --library-path "$weir_dir" "$weir_dir/weir-agent"
