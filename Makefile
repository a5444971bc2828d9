# betonfs - mount FFCV datasets, and load them.
#
# make [TARGET] [VARIABLE=VALUE]...
#
#   all                    betonfs, mkfs.beton, beton, libbeton.a, libbeton.so (default)
#   help                   print this list
#   python                 the Python package in build/python, for PYTHONPATH
#   check                  lint, unit and e2e
#   lint                   check includes, headers, symbols, pages, versions
#   unit                   run unit tests, and replay the fuzzers' corpora
#   e2e                    test programs and Python; mounts need /dev/fuse
#   pictures               draw the pictures of the documentation again
#   bench                  build what contrib/bench/gpu runs, with its tests
#   fuzz                   run libFuzzer for 60 s per harness; needs clang
#   format                 run clang-format on all tracked C files
#   compile_commands.json  write the commands for editors; needs bear
#   install                install into DESTDIR and PREFIX
#   clean                  remove build/, build-*/ and compile_commands.json
#
#   V=1                    show commands
#   WERROR=1               treat warnings as errors
#   DEBUG=1                compile with -O0 -g3, into build-debug/
#   SAN=LIST               use sanitizers: address,undefined or thread
#   BUILD=DIR              write all outputs below this directory (default: build)
#   CC=COMPILER            C compiler, gcc or clang (default: cc)
#   EMULATOR=PROGRAM       run programs that were built for another CPU
#   PYTHON=PATH            interpreter for the tests and the package
#   PYTEST=OPTIONS         options of pytest for e2e, for example '-k order -x'
#   FUZZ=OPTIONS           options of libFuzzer; -runs=0 only replays the corpora
#   PREFIX=DIR             install below this directory (default: /usr/local)
#   DESTDIR=DIR            prepend this to each installed path, for packages
#
# One makefile, no recursion: every rule can see every dependency.

PREFIX ?= /usr/local
bindir  ?= $(PREFIX)/bin
sbindir ?= $(PREFIX)/sbin
libdir  ?= $(PREFIX)/lib
incdir  ?= $(PREFIX)/include
mandir  ?= $(PREFIX)/share/man

comma := ,
# Harnesses, and what they are linked with, are compiled by clang for libFuzzer.
# A run ends with the first report of a sanitizer. gcc gives the warnings.
ifneq ($(filter fuzz build-fuzz/%,$(MAKECMDGOALS)),)
CC := clang
SAN := fuzzer-no-link,address,undefined
CFLAGS ?= -O1 -g -fno-sanitize-recover=all -w
BUILD := build-fuzz
endif
BUILD ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(DEBUG),-debug)
PKG_CONFIG ?= pkg-config
pkg = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
VERSION := 0.1.0
SONAME := libbeton.so.0

CFLAGS ?= $(if $(DEBUG),-O0 -g3,-O2 -g)
WARN   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
          -Wpointer-arith -Wundef -Wwrite-strings -Wvla $(if $(WERROR),-Werror)
# No contraction: a multiply-add is rounded twice on every machine, so that
# pixels do not depend on the compiler (beton-transforms(7)).
ALL_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden -ffp-contract=off \
             -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -I. -I$(BUILD) \
             $(WARN) $(CPPFLAGS) $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
ALL_LDFLAGS = $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))
# The first Python that has what the tests need. It only looks for the packages:
# importing them takes half a second, which every call of make would pay.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(or $(shell for p in python3 /usr/bin/python3; do \
            $$p -c 'import sys; from importlib.util import find_spec as f; sys.exit(not (f("pytest") and f("numpy") and f("PIL")))' \
            2>/dev/null && echo $$p && break; done),python3)
endif
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $@)

# --- what is built from what -------------------------------------------------

# The sources of a list of folders: a new file needs no line here.
in = $(sort $(wildcard $(addsuffix /*.c,$(1))))

# The library: the engine, which is the half of fs/ that knows no FUSE, and the
# loader. tests/lint/layers.py has the order of the folders.
lib_src    := $(call in,$(addprefix fs/,util memory metrics order dataset cache engine) \
              loader $(addprefix loader/,util jpeg codec resize pixels policy list text graph grid ops jit feed pipeline gpu run))
# Folders named isa/ are compiled once for each instruction set.
isa_src    := $(call in,$(wildcard loader/*/isa))
ops_src    := $(call in,loader/ops)
# The programs. Each takes of these what it refers to.
prog_src   := $(call in,fs/namespace fs/zerocopy fs/mount \
              $(addprefix loader/tools/,ui machine mkfs top gallery doctor beton))
unit_src   := $(sort $(wildcard tests/unit/test_*.c))
fuzz_src   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
man        := $(sort $(wildcard $(foreach n,1 5 7 8,fs/*/*.$n loader/*/*.$n loader/tools/*/*.$n)))

have_webp  := $(shell $(PKG_CONFIG) --exists libwebp && echo y)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
lib   := $(BUILD)/libbeton.a
so    := $(BUILD)/libbeton.so
parts := $(BUILD)/programs.a
progs := $(BUILD)/betonfs $(BUILD)/mkfs.beton $(BUILD)/beton
# Completions for shells, in a tree as below PREFIX/share.
bash_dir := $(BUILD)/completions/bash-completion/completions
zsh_dir  := $(BUILD)/completions/zsh/site-functions
fish_dir := $(BUILD)/completions/fish/vendor_completions.d
completions := $(foreach p,$(notdir $(progs)),$(bash_dir)/$p $(zsh_dir)/_$p $(fish_dir)/$p.fish)
units := $(patsubst tests/unit/%.c,$(BUILD)/%,$(unit_src))
# Libraries of machines with GPUs, as the tests see them elsewhere.
standins := $(patsubst tests/standin/%.c,$(BUILD)/standin/%.so,$(wildcard tests/standin/*.c))
# What contrib/bench/gpu runs.
bench := $(BUILD)/bench_gpu
mutants := $(BUILD)/mutants
fuzzers := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(fuzz_src))
replays := $(patsubst tests/fuzz/%.c,$(BUILD)/replay_%,$(fuzz_src))
# Compiled once for each instruction set: as any machine, and as most have.
isas      := plain $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),v3)
isa_objs  := $(foreach i,$(isas),$(patsubst %.c,$(BUILD)/kernels/$i/%.o,$(isa_src)) $(BUILD)/kernels/$i/prebuilt.o)
v3_flags  := -mavx2 -mf16c
lib_objs := $(call obj,$(lib_src)) $(isa_objs)
# The Python package, for interpreters of 3.11 and later; nothing without one
# that has its headers. Free-threaded ones need it built by themselves.
python_dir := $(BUILD)/python/betonfs
python_include := $(shell $(PYTHON) -c 'import os, sys, sysconfig; p = sysconfig.get_path("include"); sys.version_info >= (3, 11) and os.path.exists(p + "/Python.h") and print(p)' 2>/dev/null)
python_suffix := $(shell $(PYTHON) -c 'import sysconfig as s; print(s.get_config_var("EXT_SUFFIX") if s.get_config_var("Py_GIL_DISABLED") else ".abi3.so")' 2>/dev/null)
python_src := $(sort $(wildcard contrib/python/src/*.c))
python_files := $(patsubst contrib/python/betonfs/%,$(python_dir)/%,$(sort $(shell find contrib/python/betonfs -name '*.py' -o -name '*.pyi' -o -name py.typed)))
python_objs := $(call obj,$(python_src))
objs  := $(sort $(lib_objs) $(call obj,$(prog_src) $(unit_src) loader/jit/prebuild/prebuild.c contrib/bench/gpu.c) $(python_objs))

all: $(lib) $(so) $(progs) $(BUILD)/beton.pc $(BUILD)/man/man3/stamp $(completions)

$(lib): $(lib_objs)
# Objects, not the archive: an archive drops members nothing refers to.
$(so): $(lib_objs)
$(parts): $(call obj,$(prog_src))
$(BUILD)/betonfs: $(call obj,fs/mount/betonfs.c) $(parts) $(lib)
$(BUILD)/mkfs.beton: $(call obj,loader/tools/mkfs/mkfs.c) $(parts) $(lib)
$(BUILD)/beton: $(call obj,loader/tools/beton/beton.c) $(parts) $(lib)
$(addprefix $(BUILD)/test_,cuda upload device_batch gpu_loader callback machine): | $(standins)
$(bench): $(call obj,contrib/bench/gpu.c) $(lib)
$(units): $(BUILD)/%: $(BUILD)/tests/unit/%.o $(parts) $(lib)

$(call obj,$(call in,fs/mount)): private CPPFLAGS += $(call pkg,--cflags,fuse3)
$(call obj,$(call in,loader/tools/mkfs loader/tools/ui)) $(fuzzers) $(replays): private CPPFLAGS += $(if $(have_webp),-DHAVE_WEBP)

fuzz_libs = $(base_libs) $(call pkg,--libs,libpng) $(if $(have_webp),$(call pkg,--libs,libwebp))
base_libs := $(call pkg,--libs,libjpeg libpng jansson liblz4) -ldl -lm -lpthread
$(so) $(python_dir)/$(SONAME): private LDFLAGS += -Wl,-soname,$(SONAME) $(if $(SAN),,-Wl$(comma)-z$(comma)defs)
$(BUILD)/betonfs: private LDLIBS += $(call pkg,--libs,fuse3)
$(BUILD)/mkfs.beton: private LDLIBS += $(call pkg,--libs,libpng) $(if $(have_webp),$(call pkg,--libs,libwebp))
$(so) $(python_dir)/$(SONAME) $(progs) $(units) $(bench): private LDLIBS += $(base_libs)

$(python_objs): $(BUILD)/python.flags
$(python_objs): private CPPFLAGS += -isystem $(python_include)
# The library beside the extension, and what it needs beside that, wherever they
# are put.
$(python_dir)/_beton$(python_suffix) $(python_dir)/$(SONAME): private LDFLAGS += -Wl,-rpath,'$$ORIGIN'

# --- how ---------------------------------------------------------------------

$(lib) $(parts) $(BUILD)/generator.a:
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(so):
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $^ $(LDLIBS)
	$(Q)ln -sf libbeton.so $(BUILD)/$(SONAME)
$(progs) $(units) $(bench):
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

complete = @mkdir -p $(@D) && $(BUILD)/$1 --completions | awk -f contrib/completions -v shell=$2 -v program=$1 > $@.tmp && mv $@.tmp $@
$(filter $(bash_dir)/%,$(completions)): $(bash_dir)/%: $(BUILD)/% contrib/completions ; $(call complete,$*,bash)
$(filter $(zsh_dir)/%,$(completions)): $(zsh_dir)/_%: $(BUILD)/% contrib/completions ; $(call complete,$*,zsh)
$(filter $(fish_dir)/%,$(completions)): $(fish_dir)/%.fish: $(BUILD)/% contrib/completions ; $(call complete,$*,fish)

python: $(if $(python_include),$(python_files) $(python_dir)/_beton$(python_suffix))
$(python_dir)/_beton$(python_suffix): $(python_objs) $(python_dir)/$(SONAME)
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $(python_objs) $(python_dir)/$(SONAME)
$(python_dir)/$(SONAME): $(lib_objs)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $^ $(LDLIBS)
$(python_files): $(python_dir)/%: contrib/python/betonfs/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Its functions are declared where they are called.
$(standins): $(BUILD)/standin/%.so: tests/standin/%.c tests/standin/cuda.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-missing-prototypes $(ALL_LDFLAGS) -shared -o $@ $< -ldl -lpthread

$(BUILD)/%.o: %.c $(BUILD)/flags Makefile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Rewritten only when their content changes, so nothing rebuilds needlessly.
update = @mkdir -p $(@D); { $(1); } | cmp -s - $@ || { $(1); } > $@
$(BUILD)/flags: FORCE
	$(call update,echo '$(CC) $(ALL_CFLAGS) webp=$(have_webp)')
# Objects for one interpreter are none for another.
$(BUILD)/python.flags: FORCE
	$(call update,echo '$(python_include) $(python_suffix)')

# The registry of operations is the directory listing of loader/ops.
$(BUILD)/ops.inc: FORCE
	$(call update,printf 'OP(%s)\n' $(basename $(notdir $(ops_src))))
$(call obj,loader/graph/op.c): $(BUILD)/ops.inc

# Pages and styles lie as files beside the programs that write them, and a C file
# that has FILE as a string includes FILE.inc. Once it did, its .d file knows.
strings := $(patsubst %,$(BUILD)/%.inc,$(wildcard loader/tools/*/*.html loader/tools/*/*.css))
$(strings): $(BUILD)/%.inc: % Makefile
	@mkdir -p $(@D)
	$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< > $@.tmp && mv $@.tmp $@
$(call obj,$(prog_src)): | $(strings)

# Kernels of the standard pipelines, written by the code generator itself. The
# flags are those of loader/jit/compiler.c.
kernel_flags := -O3 -fno-math-errno -fno-trapping-math
# Operations on whole images are loops over their pixels, too.
$(call obj,$(ops_src) $(call in,loader/grid)): private ALL_CFLAGS += $(kernel_flags)
# It is linked with what knows pipelines, and needs no kernels itself.
generator_src := $(call in,fs/util $(addprefix loader/,util resize pixels policy list text graph grid ops jit))
generator_isa := $(foreach i,$(isas),$(patsubst %.c,$(BUILD)/kernels/$i/%.o,$(call in,loader/pixels/isa)))
$(BUILD)/generator.a: $(call obj,$(generator_src)) $(generator_isa)
$(BUILD)/prebuild: $(call obj,loader/jit/prebuild/prebuild.c) $(BUILD)/generator.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm
$(BUILD)/prebuilt.new: $(BUILD)/prebuild
	$(call say,GEN)
	$(Q)$(EMULATOR) $< > $@.tmp && mv $@.tmp $@
# Its kernels take seconds to compile: only when their text changes.
$(BUILD)/prebuilt.c: $(BUILD)/prebuilt.new
	$(Q)cmp -s $< $@ || cp $< $@
# Short loops run up to a fifth slower where they are not aligned.
isa_align := -falign-loops=32
define isa_rules
$(BUILD)/kernels/$1/prebuilt.o: $(BUILD)/prebuilt.c
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $$(kernel_flags) $$($1_flags) -DISA=$1 -MMD -MP -c -o $$@ $$<
$(BUILD)/kernels/$1/%.o: %.c $(BUILD)/flags Makefile
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $$(kernel_flags) $$($1_flags) $$(isa_align) -DISA=$1 -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(isas),$(eval $(call isa_rules,$i)))

$(BUILD)/beton.pc: FORCE
	$(call update,printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(libdir)' 'includedir=$(incdir)' '' 'Name: beton' 'Description: loader of FFCV datasets' 'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lbeton' 'Libs.private: $(base_libs)')

# Manual pages of the C API, out of the public headers; nothing without Python.
$(BUILD)/man/man3/stamp: contrib/man3 $(wildcard include/beton/*.h)
	$(call say,GEN)
	$(Q)mkdir -p $(@D) && rm -f $(@D)/*.3
	$(Q)! command -v $(PYTHON) >/dev/null || $(PYTHON) contrib/man3 $(@D) $(filter %.h,$^)
	$(Q)touch $@

-include $(objs:.o=.d)

# --- checks ------------------------------------------------------------------

check: lint unit e2e
unit: $(units) $(replays) $(standins)
	@for t in $(units); do $(EMULATOR) $$t || { echo "FAILED: $$t"; exit 1; }; done
	@for t in $(replays); do n=$${t##*/replay_fuzz_}; \
	  $(EMULATOR) $$t $$(find tests/fuzz/corpus/$$n -type f 2>/dev/null) || { echo "FAILED: $$t"; exit 1; }; done
	@echo "unit: $(words $(units)) programs, $(words $(replays)) corpora passed"
lint: all
	@python3 tests/lint/layers.py
	@sh tests/lint/headers.sh "$(CC)" "$(or $(CXX),c++)"
	@sh tests/lint/symbols.sh $(so)
	@sh tests/lint/docs.sh $(BUILD)
	@sh tests/lint/version.sh
	@sh tests/lint/environment.sh
	@echo "lint: passed"
e2e: python bench
	@BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q tests/e2e tests/python $(PYTEST)

# A harness with a main() that replays files; the same for libFuzzer; and what
# tests/fuzz/mutate runs.
$(replays): $(BUILD)/replay_%: tests/fuzz/%.c
$(fuzzers): $(BUILD)/%: tests/fuzz/%.c
$(mutants): $(BUILD)/%: tests/fuzz/%.c
$(replays): private mode := -DFUZZ_MAIN
$(fuzzers): private mode := -fsanitize=fuzzer
$(replays) $(fuzzers) $(mutants): $(wildcard tests/fuzz/*.h) $(parts) $(lib)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(mode) $(ALL_LDFLAGS) -o $@ $(filter %.c,$^) $(filter %.a,$^) $(fuzz_libs)

bench: all $(bench) $(standins) $(filter %/test_cuda %/test_upload %/test_gpu_loader,$(units))

fuzz: $(fuzzers)
	@for f in $^; do n=$${f##*/fuzz_}; mkdir -p $(BUILD)/corpus/$$n tests/fuzz/corpus/$$n; \
	  echo "  FUZZ  $$n"; \
	  $$f $(or $(FUZZ),-max_total_time=60) $(BUILD)/corpus/$$n tests/fuzz/corpus/$$n || exit 1; done

# A script per picture. It draws into contrib/docs/pictures.
pictures := $(patsubst %,picture-%,$(notdir $(filter-out %.py %__pycache__,$(wildcard contrib/docs/draw/*))))
pictures: $(pictures)
$(pictures): picture-%: all python
	$(call say,DRAW)
	$(Q)BUILD=$(abspath $(BUILD)) $(PYTHON) contrib/docs/draw/$*

compile_commands.json: ; bear --output $@ -- $(MAKE) -B all $(units)
format: ; clang-format -i $(shell git ls-files '*.c' '*.h')

install: all
	install -d $(addprefix $(DESTDIR),$(bindir) $(sbindir) $(libdir)/pkgconfig $(incdir)/beton $(addprefix $(mandir)/man,1 5 7 8))
	install -m 755 $(progs) $(DESTDIR)$(bindir)
	ln -sfr $(DESTDIR)$(bindir)/betonfs $(DESTDIR)$(sbindir)/mount.beton
	ln -sfr $(DESTDIR)$(bindir)/mkfs.beton $(DESTDIR)$(sbindir)/mkfs.beton
	for f in $(patsubst $(BUILD)/completions/%,%,$(completions)); do install -D -m 644 $(BUILD)/completions/$$f $(DESTDIR)$(PREFIX)/share/$$f || exit 1; done
	install -m 644 $(lib) $(DESTDIR)$(libdir)
	install -m 755 $(so) $(DESTDIR)$(libdir)/libbeton.so.$(VERSION)
	ln -sf libbeton.so.$(VERSION) $(DESTDIR)$(libdir)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libbeton.so
	install -m 644 include/beton/*.h $(DESTDIR)$(incdir)/beton
	install -m 644 $(BUILD)/beton.pc $(DESTDIR)$(libdir)/pkgconfig
	for m in $(man); do install -m 644 $$m $(DESTDIR)$(mandir)/man$${m##*.}/ || exit 1; done

clean: ; rm -rf build build-* compile_commands.json
# The comment at the top of this file, up to the line before "One makefile".
help: ; @sed -n '/^# One makefile/q; s/^# \{0,1\}//p' Makefile
FORCE:
.PHONY: help all python check unit lint e2e pictures bench fuzz format install clean FORCE
