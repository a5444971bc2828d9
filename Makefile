# betonfs - mount FFCV datasets, and load them.
#
# make [TARGET] [VARIABLE=VALUE]...
#
#   all                    the programs, libbeton.a and libbeton.so (default)
#   help                   print this list
#   python                 the Python package in build/python, for PYTHONPATH
#   sdist                  source distribution of the Python package, in dist/
#   wheel                  sdist, and a manylinux wheel by PYTHON, in dist/
#   check                  lint, unit and e2e
#   lint                   check includes, headers, symbols, pages, language
#   unit                   run unit tests and the fuzzers' corpora that changed
#   e2e                    test programs and Python; mounts need /dev/fuse
#   quick                  the tests of e2e that are marked so, one or two of an area
#   docs                   the documentation site in build/docs/html, with Sphinx
#   pictures               draw the pictures of the documentation again
#   bench                  build what contrib/bench/gpu runs, with its tests
#   fuzz                   run libFuzzer for 60 s per harness; needs clang
#   format                 run clang-format on all tracked C files
#   compile_commands.json  write the commands for editors; needs bear
#   abi                    write the baseline of the ABI that lint compares with
#   deb                    make Debian packages in build/deb; needs debhelper
#   install                install into DESTDIR and PREFIX
#   uninstall              remove what install put there, with the same variables
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
unitdir ?= $(PREFIX)/lib/systemd/system

comma := ,
# clang compiles the harnesses, and all that is linked with them, for
# libFuzzer. A run ends with the first report of a sanitizer. Warnings come
# from gcc.
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
# pixels do not depend on the compiler (beton-resize(7)).
ALL_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden -ffp-contract=off \
             -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -I. -I$(BUILD) \
             $(WARN) $(base_cflags) $(CPPFLAGS) $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
ALL_LDFLAGS = $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))
# The first Python that has the packages of the tests. This only looks for the
# packages: importing them takes half a second in every call of make.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(or $(shell for p in python3 /usr/bin/python3; do \
            $$p -c 'import sys; from importlib.util import find_spec as f; sys.exit(not (f("pytest") and f("numpy") and f("PIL")))' \
            2>/dev/null && echo $$p && break; done),python3)
endif
Q := $(if $(V),,@)
progress = $(if $(V),,@printf '  %-5s %s\n' $(1) $@)

# --- sources and outputs ------------------------------------------------------

# The sources of a list of directories: a new file needs no line here.
in = $(sort $(wildcard $(addsuffix /*.c,$(1))))

# The library: the engine, which is the half of fs/ without FUSE, and the
# loader. tests/lint/layers.py has the order of the directories.
lib_src    := $(call in,fs/base/util fs/base/files fs/base/memory fs/base/metrics fs/base/order fs/base/settings \
              fs/source/net fs/source/url fs/source/keys fs/source/pacing fs/source/upload fs/source/tier fs/source/local fs/source/object \
              fs/data/dataset fs/data/writer fs/data/cache fs/data/engine fs/data/wire loader loader/util \
              loader/image/jpeg loader/image/codec loader/image/resize loader/image/pixels \
              loader/pipeline/policy loader/pipeline/list loader/pipeline/text loader/pipeline/op loader/pipeline/grid loader/pipeline/ops loader/pipeline/graph \
              loader/run/jit loader/run/feed loader/run/transform loader/run/gpu loader/run/loop loader/run/ring loader/run/link)
# Directories named isa/ are compiled once for each instruction set.
isa_src    := $(call in,$(shell find loader -name isa))
ops_src    := $(call in,loader/pipeline/ops)
# The programs. The linker takes only the objects that each one refers to.
prog_src   := $(call in,fs/mount/namespace fs/mount/zerocopy fs/mount/fuse fs/mount/daemon \
              $(addprefix loader/tools/,ui python machine picture formats input input/library combine mkfs fsck top doctor beton))
unit_src   := $(sort $(wildcard tests/unit/test_*.c))
fuzz_src   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
man        := $(sort $(shell find fs loader -name '*.[1578]'))

# Libraries that the programs use if they are installed: NAME=PACKAGE of
# pkg-config. The sources see HAVE_NAME.
optional   := WEBP=libwebp TIFF=libtiff-4 HEIF=libheif JXL=libjxl
found      := $(foreach o,$(optional),$(shell $(PKG_CONFIG) --exists $(lastword $(subst =, ,$o)) && echo $o))
found_pkgs := $(foreach o,$(found),$(lastword $(subst =, ,$o)))
# Those that mkfs.beton loads when a file needs them, because that takes longer
# than to write a small dataset. HEIF_LIBRARY is the name with the ABI's version.
lazy       := libheif libjxl
soname = $(or $(shell readelf -d $(shell $(PKG_CONFIG) --variable=libdir $1)/$1.so 2>/dev/null | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'),$1.so)
lazy_cflags = $(foreach o,$(found),$(if $(filter $(lazy),$(lastword $(subst =, ,$o))),-D$(firstword $(subst =, ,$o))_LIBRARY='"$(call soname,$(lastword $(subst =, ,$o)))"'))
found_cflags := $(foreach o,$(found),-DHAVE_$(firstword $(subst =, ,$o))) $(lazy_cflags) $(call pkg,--cflags,$(found_pkgs))
found_libs := $(call pkg,--libs,$(filter-out $(lazy),$(found_pkgs)))
# The headers of libcurl, which is loaded at run time.
curl_cflags := $(shell $(PKG_CONFIG) --exists libcurl && echo -DHAVE_CURL $$($(PKG_CONFIG) --cflags libcurl))

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
lib   := $(BUILD)/libbeton.a
so    := $(BUILD)/libbeton.so
parts := $(BUILD)/programs.a
progs := $(BUILD)/betonfs $(BUILD)/mkfs.beton $(BUILD)/fsck.beton $(BUILD)/beton
# Completions for shells, in the same tree as below PREFIX/share.
bash_dir := $(BUILD)/completions/bash-completion/completions
zsh_dir  := $(BUILD)/completions/zsh/site-functions
fish_dir := $(BUILD)/completions/fish/vendor_completions.d
completions := $(foreach p,$(notdir $(progs)),$(bash_dir)/$p $(zsh_dir)/_$p $(fish_dir)/$p.fish)
units := $(patsubst tests/unit/%.c,$(BUILD)/%,$(unit_src))
# Stand-ins for GPU libraries, for tests on machines without a GPU.
standins := $(patsubst tests/standin/%.c,$(BUILD)/standin/%.so,$(wildcard tests/standin/*.c))
# A slow link between network namespaces, for tests and contrib/bench/remote.
link := $(BUILD)/standin/link
# A network file system, in FUSE.
netfs := $(BUILD)/standin/netfs
# The program that contrib/bench/gpu runs.
bench := $(BUILD)/bench_gpu
mutants := $(BUILD)/mutants
fuzzers := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(fuzz_src))
replays := $(patsubst tests/fuzz/%.c,$(BUILD)/replay_%,$(fuzz_src))
# Compiled once for each instruction set: the baseline, and what most CPUs
# have.
isas      := plain $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),v3)
isa_objs  := $(foreach i,$(isas),$(patsubst %.c,$(BUILD)/kernels/$i/%.o,$(isa_src)) $(BUILD)/kernels/$i/prebuilt.o)
v3_flags  := -mavx2 -mf16c
lib_objs := $(call obj,$(lib_src)) $(isa_objs)
# The Python package, for Python 3.11 and later. If $(PYTHON) has no headers,
# there is no package. A free-threaded Python needs a build of its own.
# In a source distribution, python_tree is the top of the tree.
python_tree := contrib/python
python_dir := $(BUILD)/python/betonfs
# The package has this program for python -m betonfs.convert.
python_mkfs := $(python_dir)/bin/mkfs.beton
python_include := $(shell $(PYTHON) -c 'import os, sys, sysconfig; p = sysconfig.get_path("include"); sys.version_info >= (3, 11) and os.path.exists(p + "/Python.h") and print(p)' 2>/dev/null)
python_suffix := $(shell $(PYTHON) -c 'import sysconfig as s; print(s.get_config_var("EXT_SUFFIX") if s.get_config_var("Py_GIL_DISABLED") else ".abi3.so")' 2>/dev/null)
python_src := $(sort $(wildcard $(python_tree)/src/*.c))
python_files := $(patsubst $(python_tree)/betonfs/%,$(python_dir)/%,$(sort $(shell find $(python_tree)/betonfs -name '*.py' -o -name '*.pyi' -o -name py.typed)))
python_objs := $(call obj,$(python_src))
# The ring, with the checks of its invariants.
checked := $(patsubst %.c,$(BUILD)/checked/%.o,$(call in,loader/run/ring loader/run/link))
objs  := $(sort $(lib_objs) $(call obj,$(prog_src) $(unit_src) loader/run/jit/prebuild/prebuild.c contrib/bench/gpu.c) $(python_objs) $(checked))

all: $(lib) $(so) $(progs) $(BUILD)/beton.pc $(BUILD)/betonfs@.service $(BUILD)/man/man3/stamp $(completions)

$(lib): $(lib_objs)
# Link objects, not the archive: the linker drops members of an archive that no
# object refers to.
$(so) $(python_dir)/$(SONAME): $(lib_objs) loader/libbeton.map
$(parts): $(call obj,$(prog_src))
$(BUILD)/betonfs: $(call obj,fs/mount/daemon/betonfs.c) $(parts) $(lib)
$(BUILD)/mkfs.beton $(python_mkfs): $(call obj,loader/tools/mkfs/mkfs.c) $(parts) $(lib)
$(BUILD)/fsck.beton: $(call obj,loader/tools/fsck/fsck.c) $(parts) $(lib)
$(BUILD)/beton: $(call obj,loader/tools/beton/beton.c) $(parts) $(lib)
$(addprefix $(BUILD)/test_,cuda upload device_batch gpu_loader link callback machine): | $(standins)
$(bench): $(call obj,contrib/bench/gpu.c) $(lib)
# These programs check the ring's invariants (loader/run/ring/turns.h). Objects
# before the archive replace those in it.
checked_units := $(addprefix $(BUILD)/test_,callback gpu_loader link link_faults loader loader_stop phases replay residence synthetic turns)
$(filter $(checked_units),$(units)): $(checked)
$(units): $(BUILD)/%: $(BUILD)/tests/unit/%.o $(parts) $(lib)

$(call obj,$(call in,fs/source/net)): private CPPFLAGS += $(curl_cflags)
$(call obj,$(call in,fs/mount/fuse fs/mount/daemon)): private CPPFLAGS += $(call pkg,--cflags,fuse3)
$(call obj,$(call in,loader/tools/picture loader/tools/input loader/tools/ui)) $(fuzzers) $(replays): private CPPFLAGS += $(found_cflags)

fuzz_libs = $(base_libs) $(call pkg,--libs,libpng zlib) $(found_libs)
base_cflags := $(call pkg,--cflags,libjpeg libpng jansson liblz4)
base_libs := $(call pkg,--libs,libjpeg libpng jansson liblz4) -ldl -lm -lpthread
$(so) $(python_dir)/$(SONAME): private LDFLAGS += -Wl,-soname,$(SONAME) -Wl,--version-script=loader/libbeton.map $(if $(SAN),,-Wl$(comma)-z$(comma)defs)
$(BUILD)/betonfs: private LDLIBS += $(call pkg,--libs,fuse3)
$(BUILD)/mkfs.beton $(python_mkfs) $(BUILD)/test_picture $(filter $(BUILD)/test_input_%,$(units)): private LDLIBS += $(call pkg,--libs,libpng zlib) $(found_libs)
$(so) $(python_dir)/$(SONAME) $(python_mkfs) $(progs) $(units) $(bench): private LDLIBS += $(base_libs)

$(python_objs): $(BUILD)/python.flags
$(python_objs): private CPPFLAGS += -isystem $(python_include)
# The extension finds the library beside it, and the library finds its
# dependencies there, in whichever directory they are. A package whose extension
# uses the system's library sets PYTHON_RPATH= (empty).
PYTHON_RPATH ?= $$ORIGIN
$(python_dir)/_beton$(python_suffix) $(python_dir)/$(SONAME): private LDFLAGS += $(if $(PYTHON_RPATH),-Wl$(comma)-rpath$(comma)'$(PYTHON_RPATH)')

# --- rules --------------------------------------------------------------------

$(lib) $(parts) $(BUILD)/generator.a:
	$(call progress,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(so):
	$(call progress,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $(filter %.o,$^) $(LDLIBS)
	$(Q)ln -sf libbeton.so $(BUILD)/$(SONAME)
$(progs) $(units) $(bench):
	$(call progress,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

complete = @mkdir -p $(@D) && $(BUILD)/$1 --completions | awk -f contrib/completions -v shell=$2 -v program=$1 > $@.tmp && mv $@.tmp $@
$(filter $(bash_dir)/%,$(completions)): $(bash_dir)/%: $(BUILD)/% contrib/completions ; $(call complete,$*,bash)
$(filter $(zsh_dir)/%,$(completions)): $(zsh_dir)/_%: $(BUILD)/% contrib/completions ; $(call complete,$*,zsh)
$(filter $(fish_dir)/%,$(completions)): $(fish_dir)/%.fish: $(BUILD)/% contrib/completions ; $(call complete,$*,fish)

python: $(if $(python_include),$(python_files) $(python_dir)/_beton$(python_suffix) $(if $(PYTHON_RPATH),$(python_mkfs)))
	$(if $(python_include),,@echo "make python: $(PYTHON) is older than 3.11, or python3-dev is not installed")
$(python_dir)/_beton$(python_suffix): $(python_objs) $(python_dir)/$(SONAME)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $(python_objs) $(python_dir)/$(SONAME)
$(python_dir)/$(SONAME):
	@mkdir -p $(@D)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $(filter %.o,$^) $(LDLIBS)
$(python_mkfs): private LDFLAGS += -s $(if $(PYTHON_RPATH),-Wl$(comma)-rpath$(comma)'$(PYTHON_RPATH)/..')
$(python_mkfs):
	@mkdir -p $(@D)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)
$(python_files): $(python_dir)/%: $(python_tree)/betonfs/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Tests declare the functions where they call them.
$(standins): $(BUILD)/standin/%.so: tests/standin/%.c tests/standin/cuda.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-missing-prototypes $(ALL_LDFLAGS) -shared -o $@ $< -ldl -lpthread

$(netfs): tests/standin/netfs/netfs.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(call pkg,--cflags,fuse3) $(ALL_LDFLAGS) -o $@ $< $(call pkg,--libs,fuse3)

$(link): $(wildcard tests/standin/link/*.[ch]) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.c,$^) -lm

$(BUILD)/%.o: %.c $(BUILD)/flags Makefile
	@mkdir -p $(@D)
	$(call progress,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(checked): $(BUILD)/checked/%.o: %.c $(BUILD)/flags Makefile
	@mkdir -p $(@D)
	$(call progress,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -DTURNS_CHECKED -MMD -MP -c -o $@ $<

# Rewritten only if the content changes, so that nothing rebuilds needlessly.
update = @mkdir -p $(@D); { $(1); } | cmp -s - $@ || { $(1); } > $@
$(BUILD)/flags: FORCE
	$(call update,echo '$(CC) $(filter-out -I$(BUILD),$(ALL_CFLAGS)) found=$(found) $(curl_cflags)')
# Rebuild the objects if the interpreter changes.
$(BUILD)/python.flags: FORCE
	$(call update,echo '$(python_include) $(python_suffix)')

# The registry of operations is the directory listing of loader/pipeline/ops.
$(BUILD)/ops.inc: FORCE
	$(call update,printf 'OP(%s)\n' $(basename $(notdir $(ops_src))))
$(call obj,loader/pipeline/graph/op_table.c): $(BUILD)/ops.inc

# HTML and CSS files lie beside the programs that write them. If a C file needs
# FILE as a string, it includes FILE.inc; its .d file has the dependency.
strings := $(patsubst %,$(BUILD)/%.inc,$(wildcard loader/tools/*/*.html loader/tools/*/*.css))
$(strings): $(BUILD)/%.inc: % Makefile
	@mkdir -p $(@D)
	$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< > $@.tmp && mv $@.tmp $@
$(call obj,$(prog_src)): | $(strings)

# The code generator itself writes the kernels of the standard pipelines. The
# flags are those of loader/run/jit/compiler.c.
kernel_flags := -O3 -fno-math-errno -fno-trapping-math
# Operations on whole images are loops over their pixels, too.
$(call obj,$(ops_src) $(call in,loader/pipeline/grid)): private ALL_CFLAGS += $(kernel_flags)
# The generator is linked with the code for pipelines, and needs no kernels.
generator_src := $(call in,fs/base/util fs/base/files loader/util loader/image/resize loader/image/pixels \
                 loader/pipeline/policy loader/pipeline/list loader/pipeline/text loader/pipeline/op loader/pipeline/grid loader/pipeline/ops loader/pipeline/graph loader/run/jit)
generator_isa := $(foreach i,$(isas),$(patsubst %.c,$(BUILD)/kernels/$i/%.o,$(call in,loader/image/pixels/isa)))
$(BUILD)/generator.a: $(call obj,$(generator_src)) $(generator_isa)
$(BUILD)/prebuild: $(call obj,loader/run/jit/prebuild/prebuild.c) $(BUILD)/generator.a
	$(call progress,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm
$(BUILD)/prebuilt.new: $(BUILD)/prebuild
	$(call progress,GEN)
	$(Q)$(EMULATOR) $< > $@.tmp && mv $@.tmp $@
# The kernels take seconds to compile, so compile them only if their text
# changes.
$(BUILD)/prebuilt.c: $(BUILD)/prebuilt.new
	$(Q)cmp -s $< $@ || cp $< $@
# Short loops are up to a fifth slower if they are not aligned.
isa_align := -falign-loops=32
define isa_rules
$(BUILD)/kernels/$1/prebuilt.o: $(BUILD)/prebuilt.c
	@mkdir -p $$(@D)
	$$(call progress,CC)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $$(kernel_flags) $$($1_flags) -DISA=$1 -MMD -MP -c -o $$@ $$<
$(BUILD)/kernels/$1/%.o: %.c $(BUILD)/flags Makefile
	@mkdir -p $$(@D)
	$$(call progress,CC)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $$(kernel_flags) $$($1_flags) $$(isa_align) -DISA=$1 -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(isas),$(eval $(call isa_rules,$i)))

$(BUILD)/beton.pc: FORCE
	$(call update,printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(libdir)' 'includedir=$(incdir)' '' 'Name: beton' 'Description: loader of FFCV datasets' 'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lbeton' 'Libs.private: $(base_libs)')

# Manual pages of the C API, from the public headers. Without Python there are
# none.
$(BUILD)/man/python: FORCE
	$(call update,command -v $(PYTHON) || echo none)
$(BUILD)/man/man3/stamp: contrib/man3 $(wildcard include/beton/*.h) $(BUILD)/man/python
	$(call progress,GEN)
	$(Q)mkdir -p $(@D) && rm -f $(@D)/*.3
	$(Q)! command -v $(PYTHON) >/dev/null || $(PYTHON) contrib/man3 $(@D) $(filter %.h,$^)
	$(Q)touch $@

-include $(objs:.o=.d)

# --- Python distributions ----------------------------------------------------

sdist:
	$(Q)mkdir -p dist && rm -f dist/betonfs-*.tar.gz
	$(Q)cd contrib/python && PYTHONWARNINGS=ignore $(PYTHON) -c 'from setuptools.build_meta import build_sdist; build_sdist("../../dist")' >/dev/null
	$(Q)for f in dist/betonfs-*.tar.gz; do echo "  SDIST $$f"; done
wheel: ; $(Q)BUILD=$(BUILD) contrib/wheels/build $(PYTHON)

# --- checks ------------------------------------------------------------------

# Unit tests use all cores, whether or not make is called with -j. In check, e2e runs
# after them, because it does so, too.
ifneq ($(and $(filter 0,$(MAKELEVEL)),$(filter check unit,$(MAKECMDGOALS))),)
MAKEFLAGS += -j$(shell nproc)
endif
check: lint unit e2e
ifneq ($(filter check,$(MAKECMDGOALS)),)
e2e: | unit
endif
# A program runs again if it or what it reads has changed; X.passed has the output of
# its last run. Variables of the tests name libraries and datasets.
passed := $(addsuffix .passed,$(units) $(replays))
corpora := $(shell find tests/fuzz/corpus -type f)
corpus = $(filter tests/fuzz/corpus/$1/%,$(corpora))
$(BUILD)/unit.environment: FORCE
	$(call update,echo '$(EMULATOR)'; env | sed -n /^BETON_/p | sort)
$(foreach r,$(replays),$(eval $r.passed: $(call corpus,$(r:$(BUILD)/replay_fuzz_%=%))))
$(BUILD)/test_vectors.passed: tests/vectors.json
$(BUILD)/test_op.passed: loader/pipeline/ops/beton-operations.7
$(passed): %.passed: % $(standins) $(link) $(netfs) $(BUILD)/unit.environment
	$(call progress,TEST)
	@$(EMULATOR) $< $(filter tests/fuzz/corpus/%,$^) >$@.tmp 2>&1 </dev/null || { echo "FAILED: $<" | cat - $@.tmp; exit 1; }
	@grep -iw 'skip\(ped\)\?' $@.tmp; mv $@.tmp $@
$(BUILD)/unit.passed: $(passed)
	$(eval ran := $(words $?))
	@touch $@
unit: $(BUILD)/unit.passed
	@echo "unit: $(words $(units)) programs, $(words $(replays)) corpora passed, $(or $(ran),0) of them now"
lint: all
	@python3 tests/lint/layers.py
	@python3 tests/lint/circles.py $(BUILD)
	@python3 tests/lint/names.py
	@sh tests/lint/headers.sh "$(CC)" "$(or $(CXX),c++)"
	@sh tests/lint/symbols.sh $(so) $(parts) $(lib)
	@CC="$(CC)" SAN="$(SAN)" sh tests/lint/abi.sh $(so)
	@sh tests/lint/docs.sh $(BUILD)
	@sh tests/lint/version.sh
	@sh tests/lint/environment.sh
	@python3 tests/lint/words.py
	@sh tests/lint/spelling.sh
	@sh tests/lint/format.sh
	@BUILD="$(BUILD)" sh tests/lint/python.sh
	@echo "lint: passed"
# Tests wait more than they compute: with pytest-xdist, one process more than cores.
pytest = BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q $(shell $(PYTHON) -c 'import os, xdist; print("--dist=loadfile -n", len(os.sched_getaffinity(0)) + 1)' 2>/dev/null)
e2e: python bench $(link) $(netfs) $(BUILD)/test_remote_reader
	@$(pytest) tests/e2e tests/python $(PYTEST)
quick: all python $(standins) $(link) $(netfs)
	@$(pytest) -m quick tests/e2e tests/python $(PYTEST)

# Harnesses with a main() that replays files, the same for libFuzzer, and the
# programs that tests/fuzz/mutate runs.
$(replays): $(BUILD)/replay_%: tests/fuzz/%.c
$(fuzzers): $(BUILD)/%: tests/fuzz/%.c
$(mutants): $(BUILD)/%: tests/fuzz/%.c
$(replays): private mode := -DFUZZ_MAIN
$(fuzzers): private mode := -fsanitize=fuzzer
$(replays) $(fuzzers) $(mutants): $(wildcard tests/fuzz/*.h) $(parts) $(lib)
	$(call progress,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(mode) $(ALL_LDFLAGS) -o $@ $(filter %.c,$^) $(filter %.a,$^) $(fuzz_libs)

bench: all $(bench) $(standins) $(filter %/test_cuda %/test_upload %/test_gpu_loader,$(units))

fuzz: $(fuzzers)
	@for f in $^; do n=$${f##*/fuzz_}; mkdir -p $(BUILD)/corpus/$$n tests/fuzz/corpus/$$n; \
	  echo "  FUZZ  $$n"; \
	  $$f $(or $(FUZZ),-max_total_time=60) $(BUILD)/corpus/$$n tests/fuzz/corpus/$$n || exit 1; done

# The documentation site; contrib/docs/site checks that its packages are there.
docs: python $(BUILD)/man/man3/stamp
	$(call progress,GEN)
	$(Q)$(PYTHON) contrib/docs/site $(BUILD)

# A script per picture. It draws into contrib/docs/pictures.
pictures := $(patsubst %,picture-%,$(notdir $(filter-out %.py %__pycache__,$(wildcard contrib/docs/draw/*))))
pictures: $(pictures)
$(pictures): picture-%: all python
	$(call progress,DRAW)
	$(Q)BUILD=$(abspath $(BUILD)) $(PYTHON) contrib/docs/draw/$*

compile_commands.json: ; bear --output $@ -- $(MAKE) -B all $(units)
format: ; clang-format -i $(shell git ls-files '*.c' '*.h')

# --- packages ---------------------------------------------------------------

# A list of make ends a path at a space, and the shell interprets these characters.
ifneq ($(filter install uninstall,$(MAKECMDGOALS)),)
odd := ' " ` \ $$ & ; < > ( ) * ? [ ~ : |
is_odd = $(or $(word 2,$(1)),$(filter-out /%,$(1)),$(strip $(foreach c,$(odd),$(findstring $c,$(1)))))
$(foreach v,PREFIX bindir sbindir libdir incdir mandir unitdir,$(if $(call is_odd,$($v)),$(error \
  $v=$($v): expected an absolute path without spaces and characters of the shell)))
$(if $(findstring ',$(DESTDIR)),$(error DESTDIR=$(DESTDIR): expected a path without '))
endif

# The installed files, as MODE:SOURCE:PATH or link:PATH:NAME (contrib/install).
# The pages of section 3 exist only once they are built: never expand it before.
put = $(foreach f,$(2),$(1):$f:$(3)/$(notdir $f))
real_so := libbeton.so.$(VERSION)
installed = $(call put,755,$(progs),$(bindir)) \
  link:$(bindir)/betonfs:$(sbindir)/mount.beton link:$(bindir)/mkfs.beton:$(sbindir)/mkfs.beton link:$(bindir)/fsck.beton:$(sbindir)/fsck.beton \
  $(foreach f,$(completions),644:$f:$(PREFIX)/share/$(patsubst $(BUILD)/completions/%,%,$f)) \
  $(call put,644,$(lib),$(libdir)) 755:$(so):$(libdir)/$(real_so) \
  link:$(libdir)/$(real_so):$(libdir)/$(SONAME) link:$(libdir)/$(SONAME):$(libdir)/libbeton.so \
  $(call put,644,$(wildcard include/beton/*.h),$(incdir)/beton) \
  $(call put,644,$(BUILD)/beton.pc,$(libdir)/pkgconfig) $(call put,644,$(unit),$(unitdir)) \
  $(foreach m,$(man) $(shell ls $(BUILD)/man/man3/*.3 2>/dev/null),644:$m:$(mandir)/man$(subst .,,$(suffix $m))/$(notdir $m))
list_installed = printf '%s\n' $(installed) | sh contrib/install

unit := $(BUILD)/betonfs@.service
$(unit): FORCE
	$(call update,sed 's|/usr/local/bin|$(bindir)|' contrib/systemd/betonfs@.service)

install: all
	$(Q)$(list_installed) put $(BUILD)/installed.dirs '$(DESTDIR)'
uninstall: $(BUILD)/man/man3/stamp
	$(Q)$(list_installed) remove $(BUILD)/installed.dirs '$(DESTDIR)'

# Into build/deb. The package of Python needs the system's to be 3.11 or later.
deb: ; sh contrib/debian/build $(BUILD)/deb
abi: $(so) ; sh tests/lint/abi.sh --write $(so) > include/libbeton.abi

clean: ; rm -rf build build-* compile_commands.json
# The comment at the top of this file, up to the line before "One makefile".
help: ; @sed -n '/^# One makefile/q; s/^# \{0,1\}//p' Makefile
FORCE:
.PHONY: help all python sdist wheel check unit lint e2e quick docs pictures bench fuzz format abi deb install uninstall clean FORCE
