# SPDX-License-Identifier: MIT
# The engine of the page: weir's own code for questions, for WebAssembly. Included by the Makefile; `make web`
# makes web/dist anew, and `make check` compares. Nothing else writes into web/dist: a build takes what is there,
# whatever is newer, because it needs neither clang nor npm.
WASM_SRC := $(addprefix src/,$(addsuffix .c,\
	$(addprefix base/,arena buf crc32c err json map mem nearest_names path_name sort span word_list) \
	$(addprefix trace/,chunk_load layout progress reader reader_images reader_runs reader_tables record_cursor) \
	$(addprefix calltree/,arcs build build_counts build_events build_hooks build_life build_nodes build_samples \
		call_costs calltree classes code_calls code_counts flat frame_names loss merge_stacks sample_walk \
		sample_weight thread timeline timeline_busy) \
	$(addprefix query/,call_graph graph_layout query query_functions query_nodes query_paths query_threads \
		query_waits transform tree_diff) \
	$(addprefix cmd/report/,arcs_report flat_report hooks_cost hooks_report loss_report modules_report \
		probes_report report_json rows table threads_report tree_lines tree_report) \
	$(addprefix cmd/view/,answer_diff answer_graph answer_matches answer_meta answer_names answer_report answer_timeline answer_tree drawn_tree engine kinds_of_answer \
		question view_arrays) \
	cmd/report/script_lines cmd/report/terminal $(addprefix symbols/catalog/,rung_name segment_match) $(addprefix symbols/resolve/,module_map module_replay module_rows module_tree) wasm/engine_main wasm/stand_in))
WASM_FLAGS := --target=wasm32-wasi --sysroot=/usr -mexec-model=reactor -std=gnu17 -Oz -D_GNU_SOURCE \
	-DWEIR_VERSION='"$(VERSION)"' -DNDEBUG -Isrc/wasm/include -Isrc -ffunction-sections -fdata-sections \
	-Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=1048576
WEB_ENGINE ?= build-web/engine.wasm

$(WEB_ENGINE): $(WASM_SRC) web/engine.mk $(wildcard src/wasm/include/*.h)
	@mkdir -p $(@D)
	clang $(WASM_FLAGS) -o $@ $(WASM_SRC)

# The packages of web/package-lock.json, and nothing else.
web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --ignore-scripts --silent
