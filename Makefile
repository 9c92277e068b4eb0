# SPDX-License-Identifier: MIT
# One non-recursive Makefile, no configure step.
#
#   make              build/weir
#   make demo         install what is missing, build, profile a real program, print the report
#   make check        install what is missing, run every test: under ASan and UBSan what can be, the
#                     rest without, and what has threads under TSan, too
#   make check-slow   the long versions of the tests, and the README's commands in a new Debian
#   make bench        side by side with the peers; writes bench/RESULTS.md
#   make fuzz         libFuzzer builds of the fuzz targets (clang)
#   make web          web/dist anew: the page and its engine (npm, clang, wasi-libc)
#   make install PREFIX=/usr/local
#   SAN=address,undefined   build into build-san with sanitizers
#   SAN=thread              build into build-tsan with ThreadSanitizer

SHELL   := /bin/bash
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= gcc
SAN     ?=
OPT     ?= $(if $(SAN),-O1,-O2)
# Tests compile in a third of the time without; what they test is optimized all the same. Hundreds of them
# are linked, for which lld takes a fifth of the time.
TEST_OPT = $(if $(SAN),-O0,-O1) -g $(TEST_LD)
TEST_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld)
BUILD   ?= $(if $(SAN),$(if $(filter thread,$(SAN)),build-tsan,build-san),build)
# Where that is which no sanitizer is in: builds with one take it from there.
PLAIN   := $(if $(SAN),build,$(BUILD))
VERSION := 0.1.0
# Of the builds that check, demo and bench begin.
JOBS    := -j$(shell expr $$(nproc) + 1)

WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings \
	   -Wno-format-truncation
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined -fno-omit-frame-pointer) \
	   $(if $(filter thread,$(SAN)),-Wno-tsan)
# With AddressSanitizer it is started thousands of times, in less time where nothing is relocated.
SAN_LD  := $(if $(SAN),$(TEST_LD)) $(if $(findstring address,$(SAN)),-no-pie)
# Builds with sanitizers are for tests: functions and lines are all that a report of theirs names.
CFLAGS_ANY := -std=gnu17 $(WARN) -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -Isrc -MMD -MP $(CFLAGS)
CFLAGS_ALL := $(OPT) $(if $(SAN),-g1,-g) $(CFLAGS_ANY) $(SANFLAGS)
CFLAGS_PLAIN := -O2 -g $(CFLAGS_ANY)
LDLIBS_ALL := -lzstd -llzma -lz -ldeflate -liberty -lZydis -lpthread -lm $(LDLIBS)

# Everything but cmd/ is the library that tests link; cmd/ is the program.
LIB_SRC := $(sort $(foreach d,base arch classfile elf trace bpf dwarf calltree query symbols unwind insert process run record remote perfdata formats probe steps translate serve jvm,\
	   $(wildcard src/$(d)/*.c src/$(d)/*/*.c)))
CMD_SRC := $(sort $(wildcard src/cmd/*.c src/cmd/*/*.c))
# What one thread does alone is nothing that ThreadSanitizer could judge; it has neither threads nor atomics.
ONE_THREAD := $(if $(filter thread,$(SAN)),$(addprefix src/,arch calltree query query/diff insert insert/cost formats cmd/report \
	   probe/script probe/compile probe/stream steps/calls steps/engine steps/read steps/record steps/stream steps/tables))
objects = $(foreach f,$(1),$(if $(filter $(ONE_THREAD:=/),$(dir $(f))),$(PLAIN),$(BUILD))/$(f:.c=.o))
LIB_OBJ := $(call objects,$(LIB_SRC))
CMD_OBJ := $(call objects,$(CMD_SRC))
CORE    := $(BUILD)/libweircore.a

UNIT_SRC := $(sort $(shell find tests/unit -name '*_test.c'))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/unit/%)
FUZZ_SRC := $(sort $(wildcard tests/fuzz/*_fuzz.c))
FUZZ_REPLAY := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/tests/fuzz/%)
# Developer and oracle programs that link the library: tests/oracle/*.c
ORACLE_SRC := $(sort $(wildcard tests/oracle/*.c))
ORACLE_BIN := $(ORACLE_SRC:tests/oracle/%.c=$(BUILD)/tests/oracle/%)

# What runs inside other programs: no libc, general registers only, nothing of the rest of the tree.
RT_FLAGS := -std=gnu17 -O2 -g $(WARN) -D_GNU_SOURCE -fPIC -fvisibility=hidden -ffreestanding \
	   -mgeneral-regs-only -fno-stack-protector -fno-tree-loop-distribute-patterns -fno-strict-aliasing \
	   -fcf-protection=none -fasynchronous-unwind-tables
RT_SRC  := $(sort $(wildcard src/rt/base/*.c))
RT_H    := $(wildcard src/rt/base/*.h)

# The hook library in traced programs: never unloaded once it has hooked something.
HOOK_SRC := $(sort $(wildcard src/rt/hook/*.c)) src/rt/hook/entry.S $(sort $(wildcard src/rt/java/*.c)) $(RT_SRC)
HOOK_LIB := $(addsuffix /libweir.so,$(addprefix $(BUILD)/,lib/x86_64-linux-gnu lib/i386-linux-gnu lib64 lib32))
HOOK_FLAGS := $(RT_FLAGS) -ftls-model=initial-exec -shared -nostdlib -Wl,-soname,libweir.so -Wl,-z,defs -Wl,-z,now

# The translator in programs that `weir count -- CMD` runs: put there by its recorder, without the loader.
TRANSLATE_SRC := $(sort $(wildcard src/rt/translate/*.c)) src/rt/translate/entry.S $(filter src/rt/base/proc_%,$(RT_SRC))
TRANSLATE_LIB := $(BUILD)/lib/x86_64-linux-gnu/libweirtranslate.so
TRANSLATE_FLAGS := $(RT_FLAGS) -fno-jump-tables -fno-tree-switch-conversion -shared -nostdlib \
	   -Wl,-soname,libweirtranslate.so -Wl,-z,defs -Wl,-z,now -Wl,-z,norelro -Wl,-z,separate-code

# `weir count` puts these in the way of compilers: the program itself under the names of linkers and compilers, and
# under one of its own that linkers find in the place of lto-wrapper.
LINKER_LINKS := $(addprefix $(BUILD)/libexec/weir/,ld ld.bfd ld.gold ld.lld ld.mold \
	   cc gcc c++ g++ clang clang++ gfortran weir-lto-wrapper)

# What counted programs are linked with, and no more of the base than it needs: one object, whose only names
# outside are weir_count_*.
COUNT_SRC := $(sort $(wildcard src/rt/count/*.c)) src/rt/count/entry.S $(filter-out %/proc_self.c,$(RT_SRC))
COUNT_LIB := $(BUILD)/lib/x86_64-linux-gnu/libweircount.a
COUNT_FLAGS := $(RT_FLAGS) -fno-jump-tables -fno-tree-switch-conversion

.PHONY: all demo check check-once check-slow bench fuzz web install clean deps-build deps-check web-deps judge-deps tests
all: $(BUILD)/weir $(HOOK_LIB) $(COUNT_LIB) $(TRANSLATE_LIB) $(LINKER_LINKS)

$(BUILD)/weir: $(CMD_OBJ) $(CORE)
	$(CC) $(SANFLAGS) $(SAN_LD) $(LDFLAGS) -o $@ $(CMD_OBJ) $(CORE) $(LDLIBS_ALL)

$(LINKER_LINKS): | $(BUILD)/weir
	@mkdir -p $(@D)
	@ln -sf ../../weir $@

# The loader's token $LIB finds them: on Debian lib/x86_64-linux-gnu and lib/i386-linux-gnu, or lib32
# where the 32-bit libc is that of libc6-i386; elsewhere lib64.
$(PLAIN)/lib/x86_64-linux-gnu/libweir.so: $(HOOK_SRC) $(RT_H) $(wildcard src/rt/hook/*.h src/rt/java/*.h)
	@mkdir -p $(@D)
	$(CC) $(HOOK_FLAGS) -o $@ $(HOOK_SRC)

$(PLAIN)/lib/i386-linux-gnu/libweir.so: $(HOOK_SRC) $(RT_H) $(wildcard src/rt/hook/*.h src/rt/java/*.h)
	@mkdir -p $(@D)
	$(CC) -m32 $(HOOK_FLAGS) -o $@ $(HOOK_SRC)

$(PLAIN)/lib/x86_64-linux-gnu/libweirtranslate.so: $(TRANSLATE_SRC) $(RT_H) $(wildcard src/rt/translate/*.h)
	@mkdir -p $(@D)
	$(CC) $(TRANSLATE_FLAGS) -o $@ $(TRANSLATE_SRC)

$(BUILD)/lib64/libweir.so: | $(BUILD)/lib/x86_64-linux-gnu/libweir.so
	@mkdir -p $(@D) && ln -sf ../lib/x86_64-linux-gnu/libweir.so $@
$(BUILD)/lib32/libweir.so: | $(BUILD)/lib/i386-linux-gnu/libweir.so
	@mkdir -p $(@D) && ln -sf ../lib/i386-linux-gnu/libweir.so $@

$(PLAIN)/lib/x86_64-linux-gnu/libweircount.a: $(COUNT_SRC) $(RT_H) $(wildcard src/rt/count/*.h)
	@mkdir -p $(@D)
	$(CC) $(COUNT_FLAGS) -r -nostdlib -o $(@:.a=.o) $(COUNT_SRC)
	objcopy -w --keep-global-symbol='weir_count_*' $(@:.a=.o)
	@rm -f $@ && $(AR) rcs $@ $(@:.a=.o) && rm $(@:.a=.o)

ifneq ($(BUILD),$(PLAIN))
$(BUILD)/lib/%: $(PLAIN)/lib/%
	@mkdir -p $(@D) && cp $< $@

$(PLAIN)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_PLAIN) -c -o $@ $<
endif

# The page is in the program; whoever changes it runs `make web`.
$(BUILD)/src/cmd/view/page_files.o: CFLAGS_ALL += -DWEIR_WEB='"web/dist"'
$(BUILD)/src/cmd/view/page_files.o: $(wildcard web/dist/*)

# What the other machine's shell runs is in the program.
$(BUILD)/src/remote/bootstrap.o: src/remote/bootstrap.sh

# Renderers and option tables are tested without running the program, so they are in an archive too.
$(BUILD)/libweircmd.a: $(filter-out $(BUILD)/src/cmd/main.o,$(CMD_OBJ))
	@rm -f $@ && $(AR) rcs $@ $^

$(CORE): $(LIB_OBJ)
	@rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -c -o $@ $<

# Each of its instructions is stepped through.
$(BUILD)/tests/unit/rt/hook/hook_tree_test: TEST_OPT = $(OPT) -g
$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libweircmd.a $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(TEST_OPT) -Itests/unit -o $@ $< $(BUILD)/libweircmd.a $(CORE) $(LDLIBS_ALL)

$(BUILD)/tests/fuzz/%_fuzz: tests/fuzz/%_fuzz.c tests/fuzz/replay.c $(BUILD)/libweircmd.a $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(TEST_OPT) -o $@ $< tests/fuzz/replay.c $(BUILD)/libweircmd.a $(CORE) $(LDLIBS_ALL)

$(BUILD)/tests/oracle/%: tests/oracle/%.c $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -g $(TEST_LD) -o $@ $< $(CORE) $(LDLIBS_ALL)

# ThreadSanitizer is for what has threads: the unit tests that say so, no fuzz targets.
ifeq ($(SAN),thread)
UNIT_BIN := $(filter $(patsubst %.c,$(BUILD)/%,$(shell grep -l 'weir-test: tsan' $(UNIT_SRC))),$(UNIT_BIN))
FUZZ_REPLAY :=
ORACLE_BIN :=
endif
tests: $(BUILD)/weir $(HOOK_LIB) $(COUNT_LIB) $(TRANSLATE_LIB) $(LINKER_LINKS) $(UNIT_BIN) $(FUZZ_REPLAY) $(ORACLE_BIN)

deps-build:
	@tools/deps build
deps-check:
	@tools/deps build check
	@$(MAKE) --no-print-directory -s web-deps judge-deps
# What needs them is skipped, with that reason, where they cannot be had.
web-deps:
	@timeout 300 $(MAKE) --no-print-directory -s web/node_modules/.package-lock.json || \
	  echo "weir: npm ci could not get the packages of web/: tests of the page in a browser will be skipped" >&2
# Other tools that read exports. One of them asks for a newer node than Debian's, and works with that.
judge-deps:
	@timeout 300 $(MAKE) --no-print-directory -s tests/judges/node_modules/.package-lock.json || \
	  echo "weir: npm ci could not get the packages of tests/judges: what they judge will be skipped" >&2
tests/judges/node_modules/.package-lock.json: tests/judges/package.json tests/judges/package-lock.json
	cd tests/judges && npm ci --no-audit --no-fund --ignore-scripts --silent

demo: deps-build
	@$(MAKE) --no-print-directory -s $(JOBS) all
	@BUILD=$(BUILD) tools/demo

# What is in C runs under the sanitizers, which see more; without them only what does less there, and what
# shell tests start.
UNIT_PLAIN := $(patsubst tests/%.c,build/tests/%,$(shell grep -lE '__SANITIZE|weir-test: once' $(UNIT_SRC)) \
	   tests/unit/process/ptrace/inject_test.c)
check: deps-check
	@$(MAKE) --no-print-directory -s $(JOBS) FUZZ_REPLAY= UNIT_BIN='$(UNIT_PLAIN)' tests
	@$(MAKE) --no-print-directory -s $(JOBS) SAN=address,undefined BUILD=build-san tests
	@$(MAKE) --no-print-directory -s $(JOBS) SAN=thread BUILD=build-tsan tests
	@tests/run build build-san build-tsan

# One build only, no installation: for the edit-test cycle. T=pattern picks tests.
check-once: tests
	@tests/run $(BUILD)

check-slow:
	@tools/deps build check slow
	@$(MAKE) --no-print-directory -s $(JOBS) tests
	@WEIR_SLOW=1 tests/run build
	@tools/bare-check

bench: deps-build
	@tools/deps bench
	@$(MAKE) --no-print-directory -s web-deps
	@$(MAKE) --no-print-directory -s $(JOBS) all
	@BUILD=$(BUILD) bench/run

fuzz:
	@mkdir -p build-fuzz
	@for f in $(FUZZ_SRC); do n=$$(basename $$f .c); echo "build-fuzz/$$n"; \
	  clang -std=gnu17 -O1 -g -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -Isrc \
	    -DWEIR_WEB='"web/dist"' -fsanitize=fuzzer,address,undefined -o build-fuzz/$$n $$f \
	    $(filter-out src/cmd/main.c,$(CMD_SRC)) $(LIB_SRC) $(LDLIBS_ALL) || exit 1; done

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(BUILD)/weir $(DESTDIR)$(PREFIX)/bin/weir
	for a in x86_64 i386; do \
	  install -D -m 755 $(BUILD)/lib/$$a-linux-gnu/libweir.so \
	    $(DESTDIR)$(PREFIX)/lib/weir/lib/$$a-linux-gnu/libweir.so || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/libexec/weir
	for l in $(notdir $(LINKER_LINKS)); do ln -sf ../../bin/weir $(DESTDIR)$(PREFIX)/libexec/weir/$$l; done
	install -m 644 $(COUNT_LIB) $(DESTDIR)$(PREFIX)/lib/weir/lib/x86_64-linux-gnu/libweircount.a
	install -m 755 $(TRANSLATE_LIB) $(DESTDIR)$(PREFIX)/lib/weir/lib/x86_64-linux-gnu/libweirtranslate.so
	cp -P -R $(BUILD)/lib32 $(BUILD)/lib64 $(DESTDIR)$(PREFIX)/lib/weir/
	install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/

clean:
	rm -rf build build-san build-tsan build-fuzz build-web

include web/engine.mk

web: web/node_modules/.package-lock.json $(WEB_ENGINE)
	cd web && node_modules/.bin/tsc --noEmit -p . && node build.mjs dist
	cp $(WEB_ENGINE) web/dist/

-include $(shell find $(sort $(BUILD) $(PLAIN)) -name '*.d' 2>/dev/null)
