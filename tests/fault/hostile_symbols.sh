# SPDX-License-Identifier: MIT
# Files that were made to exhaust whoever reads symbols from them: each is read within the limits that
# weir-symbols(1) states under LIMITS, and the command ends by itself, with a sentence or a result.
# weir-test: patient
. "$ROOT/tests/lib.sh"
make=$ROOT/tests/fault/hostile_symbols.py
seconds=20 address_space=$((3 << 30))
free_kib=$((64 << 10)) times=64 # the limit of memory: 64 MiB and 64 times the file
if [ -n "${WEIR_SAN:-}" ]; then # its shadow memory is not ours, and it is slower
	seconds=120 address_space=0
fi
export WEIR_CATALOG=$PWD/none.wsym

n_cases=0

# judge FILE COMMAND...: what is wrong with how the command ended, or nothing.
judge() {
	local file=$1 status peak ms limit
	shift
	read -r status peak ms < <(python3 -SE "$make" run $seconds $address_space "$@")
	limit=$((free_kib + times * $(stat -c %s "$file") / 1024))
	case $status in
	0 | 3) [ -s out.txt ] || echo "it printed nothing" ;;
	1) [ "$(wc -l <err.txt)" -eq 1 ] && grep -q '^weir: ' err.txt || echo "no sentence: $(head -n 3 err.txt)" ;;
	124) echo "it did not end within $seconds seconds" ;;
	*) echo "status $status: $(head -n 3 err.txt)" ;;
	esac
	if grep -Eq 'Sanitizer|runtime error|out of memory' err.txt; then head -n 5 err.txt; fi
	if [ $address_space -ne 0 ] && [ "$peak" -gt $limit ]; then
		echo "it took $peak KiB in $ms ms, more than the limit of $limit"
	fi
}

# read_case CASE [NOTE]: makes the file and reads it in every way that fits. NOTE is what the image
# then says about what it lacks.
read_case() {
	local c=$1 file=$1.input wrong extra=() note=${2:-}
	# The limits are those of the plain program; every third file is enough for the sanitizers.
	[ -z "${WEIR_SAN:-}" ] || [ $((n_cases++ % 3)) -eq 0 ] || return
	case $c in
	perf_map*) file=perf-1.map ;; # they are known by their names
	kallsyms*) file=kallsyms ;;
	catalog_*) cp whole.wsym "$file.image" ;;
	esac
	python3 -SE "$make" make "$c" "$file" || { not_ok "$c is made" && return; }
	[ ! -e "$file.image" ] || extra=("$file.image")
	case $c in
	catalog_*)
		wrong=$(judge "$file" "$WEIR" symbols list --catalog "$file"
			judge "$file" "$WEIR" symbols show --symbols --catalog "$file" weir
			judge "$file" "$WEIR" symbols merge --no-search -o x.wsym "$file")
		;;
	ld_map* | lld_map* | nm* | perf_map* | kallsyms* | jitdump*)
		wrong=$(judge "$file" "$WEIR" symbols merge --no-search -o x.wsym "$file" "${extra[@]}")
		;;
	*)
		wrong=$(judge "$file" "$WEIR" symbols merge --no-search -o x.wsym "$file"
			judge "$file" "$WEIR" symbols resolve --image "./$file" 0x401008)
		;;
	esac
	if [ -z "$wrong" ] && [ -n "$note" ]; then
		"$WEIR" symbols show --catalog x.wsym "$file" >show.txt 2>&1
		grep -Eq "$note" show.txt || wrong="its notes lack '$note'"
	fi
	if [ -z "$wrong" ]; then ok "$c is read within the limits"; else not_ok "$c: $wrong"; fi
	rm -f "$file" "$file.image" x.wsym
}

# Compression
read_case claim_2_40 'would be 1099511627776 bytes, more than the limit'
read_case claim_2_40_zdebug 'would be 1099511627776 bytes'
read_case zlib_bomb_info 'would be 1073741824 bytes, more than the limit'
read_case zlib_bomb_str 'would be 1073741824 bytes, more than the limit'
read_case zstd_bomb_line 'would be 1073741824 bytes, more than the limit'
read_case zstd_bomb_info
read_case zdebug_bomb 'would be 1073741824 bytes'
read_case zlib_within_ratio
read_case xz_bomb 'gnu_debugdata is larger than'
read_case xz_dictionary 'gnu_debugdata needs too much memory'

# Sections and symbols
read_case sections_overlap
read_case section_names
read_case symbol_names 'symbols are left out: the names are too long for the file'
read_case symbol_names_endless
read_case symbols_of_one_address

# Entries
read_case nested_deep 'entries are nested too deeply'
read_case nested_inlines
read_case ranges_shared 'some ranges of the unit cannot be read'
read_case ranges_many_units 'units of 50000 are left out: they repeat names, ranges or lines too often'
read_case names_one_unit 'units of 1 are left out'
read_case names_many_units 'units of 50000 are left out'
read_case origin_cycle
read_case origin_chain
read_case origin_long_entries 'the unit has too many names'
read_case abbrev_attributes
read_case abbrev_attributes_uleb
read_case abbrev_overlap
read_case abbrev_codes
read_case units_overlap
read_case units_smallest
read_case units_empty

# Lines and files
read_case line_rows
read_case line_rows_unsorted
read_case line_advances
read_case line_sequences
read_case line_define_files
read_case files_of_no_bytes 'the list of files cannot be read'
read_case files_without_format 'the list of files cannot be read'
read_case files_of_one_byte
read_case files_long_names
read_case files_long_names_again
read_case files_in_long_folders

# Texts: one line of 100 MB, a million lines, one line a million times
for kind in ld_map lld_map nm perf_map kallsyms; do
	read_case ${kind}_one_line
	read_case ${kind}_many_lines
done
read_case nm_equal_lines
read_case perf_map_equal_lines

# jitdump
read_case jitdump_record_4g
read_case jitdump_record_0
read_case jitdump_lines_2_64
read_case jitdump_overlap
read_case jitdump_moves

# Merged symbol files
"$WEIR" symbols merge -q --no-search -o whole.wsym "$WEIR" || not_ok "a merged symbol file is made"
for c in $(python3 -SE "$make" cases | grep ^catalog_); do
	read_case "$c"
done
