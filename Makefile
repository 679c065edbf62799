# mpbench: one makefile, no recursion. Everything built goes under $(BUILD).
#
#   make          build/mpbench, installing what is missing      make test    every test
#   make demo     the main job, for a first look                 make soak    the long campaigns
#   make lint     format, include rules, Lua, shell              make asan    tests under sanitizers
#   make bench    this machine, measured                         make deps    install the packages
#   make install  PREFIX=/usr/local                              make dist    a folder that travels
#   make docs     docs/reference.md, docs/history.md             make pictures  those of README
#   make gpu-check  on a machine with a card: docs/gpu.md        make results   docs/results.md: hours

BUILD   ?= build
PREFIX  ?= /usr/local
DATADIR := $(PREFIX)/share/mpbench
LIBDIR  := $(PREFIX)/lib/mpbench
DOCDIR  := $(PREFIX)/share/doc/mpbench
CC      ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif

# All processors, unless -j says otherwise; what one command prints stays together.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2) --output-sync=target
endif
# Begins a recipe that takes long: what it prints shows at once (and -n does not run it).
LIVE = +@$(if $(findstring n,$(firstword -$(MAKEFLAGS))),exit;)

# A line a file; V=1 shows the commands.
ifeq ($(V),)
say = @echo "  $(1) $@";
endif

include packages.mk

# What is missing is installed before anything is looked for: make reads all this anew after that.
.DEFAULT_GOAL := all
ifeq ($(filter clean deps,$(MAKECMDGOALS)),)
include $(BUILD)/deps.mk
endif
$(BUILD)/deps.mk: packages.mk deps.sh
	@mkdir -p $(BUILD)
	@sh deps.sh check $(PACKAGES)
	@touch $@

VERSION := 0.1.0
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
OPT     ?= -O2 -g
LUA_CFLAGS := $(shell pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LUA_LIBS   := $(shell pkg-config --libs lua5.4 2>/dev/null || echo -llua5.4)
CPPFLAGS += -Isrc -I. -D_POSIX_C_SOURCE=200809L -DMPBENCH_VERSION='"$(VERSION)"'
CFLAGS   += -std=c17 $(OPT) $(WARN) -fopenmp -pthread -fno-math-errno -fno-trapping-math
LDFLAGS  += -fopenmp -pthread
LDLIBS   += -ldnnl -lsqlite3 -lncursesw -ltinfo $(LUA_LIBS) -lz -lm

# ---- what is built ------------------------------------------------------------------------------

ROOMS   := base picture number kernel tensor grad precision ops optim data checkpoint store compare run measure cli cpu ref
PLAIN_C := src/backends.c src/plugin.c $(foreach r,$(ROOMS),$(wildcard src/$(r)/*.c)) \
           $(wildcard src/cli/*/*.c lua/*.c lua/bind/*.c ui/*.c ui/*/*.c)
SIMD_C  := $(wildcard src/*/simd/*.c)
AMX_C   := $(wildcard src/*/amx/*.c)

MACHINE := $(shell uname -m)
ifeq ($(MACHINE),x86_64)
ISAS      := base avx2 avxvnni avx512 avx512vnni avx512bf16 spr
WIDE      := -march=x86-64-v4 -mprefer-vector-width=512
ISA_FLAGS_base   := -march=x86-64-v2
ISA_FLAGS_avx2   := -march=x86-64-v3
ISA_FLAGS_avxvnni    := -march=x86-64-v3 -mavxvnni
ISA_FLAGS_avx512 := $(WIDE)
ISA_FLAGS_avx512vnni := $(WIDE) -mavx512vnni
ISA_FLAGS_avx512bf16 := $(WIDE) -mavx512bf16
ISA_FLAGS_spr    := $(WIDE) -mavx512fp16 -mavx512bf16
AMX_FLAGS        := -march=x86-64-v4 -mavx512bf16 -mamx-tile -mamx-bf16
else
ISAS  := base
AMX_C :=
endif
# A file is compiled for the levels whose instructions it uses, or its compiler finds use for.
ISAS_OF = $(filter $(strip \
    $(if $(filter src/number/%,$(1)),base avx2 avx512 spr,\
    $(if $(filter %/gemm_kernel.c,$(1)),base avx2 avx512 avx512bf16,\
    $(if $(filter %/gemm_pack_pairs.c,$(1)),avx512bf16,\
    $(if $(filter %/gemm_elements.c %/gemm_elements_pack.c,$(1)),avx2 avxvnni avx512 avx512vnni,\
    $(if $(filter %/int8.c,$(1)),base avx2 avxvnni avx512 avx512vnni,\
    base avx2 avx512)))))),$(ISAS))

PLAIN_O := $(PLAIN_C:%.c=$(BUILD)/%.o)
SIMD_O  := $(foreach f,$(SIMD_C),$(foreach i,$(call ISAS_OF,$(f)),$(f:%.c=$(BUILD)/%.$(i).o)))
AMX_O   := $(AMX_C:%.c=$(BUILD)/%.o)
LUA_MP  := $(sort $(wildcard lua/mp/*.lua))
EMBEDDED := $(addprefix $(BUILD)/embedded/,lua.o pages.o report.o)
ENGINE  := $(PLAIN_O) $(SIMD_O) $(AMX_O) $(EMBEDDED)

all: $(BUILD)/mpbench

$(BUILD)/mpbench: $(BUILD)/src/main.o $(BUILD)/libmpbench.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The list changes when a source file comes or goes, so that nothing stale stays in the archive.
$(BUILD)/libmpbench.a: $(ENGINE) $(BUILD)/objects.list
	@rm -f $@
	$(call say,ar)ar rcs $@ $(ENGINE)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(CPPFLAGS) $(LUA_CFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

define SIMD_RULE
$(BUILD)/%.$(1).o: %.c
	@mkdir -p $$(@D)
	$$(call say,cc)$$(CC) $$(CPPFLAGS) -DMPBENCH_ISA=$(1) $$(CFLAGS) -O3 -fno-trapping-math $$(ISA_FLAGS_$(1)) $$(EXTRA_CFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call SIMD_RULE,$(i))))

# A tile of AVX2 is so short that it waits to be fetched where its loop does not begin at a cache line:
# that costs a product a twentieth.
$(BUILD)/src/cpu/simd/gemm_kernel.avx2.o: EXTRA_CFLAGS += -falign-functions=64 -falign-loops=64
$(AMX_O): EXTRA_CFLAGS += -O3 $(AMX_FLAGS)

# ---- the card's plugin --------------------------------------------------------------------------

# Built where there is a compiler for its kernels. It has its own copies of what it uses of src/.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_H      := $(firstword $(wildcard $(if $(NVCC),$(dir $(NVCC))../include/cuda.h) /usr/local/cuda/include/cuda.h \
                                      /usr/include/cuda.h))
GPU_CFLAGS  := $(patsubst %,-isystem %,$(filter-out /usr/include,$(abspath $(dir $(CUDA_H))))) -fPIC -fvisibility=hidden
GPU_LDFLAGS := -shared -Wl,-z,defs -pthread
GPU_SHARES  := src/base/error.c src/kernel/allocator.c src/kernel/status.c src/number/format.c
GPU_C       := $(filter-out gpu/dnn_absent.c,$(wildcard gpu/*.c))
GPU_CU      := $(wildcard gpu/kernels/*.cu)
# cuDNN is opened at run time, but its graphs are written in the words of its headers, 9.8 or later.
CUDNN_H     := $(shell grep -ls CUDNN_ATTR_DEVICEPROP_HANDLE $(addsuffix /cudnn_graph.h,\
                   $(patsubst %/,%,$(dir $(CUDA_H))) /usr/include /usr/include/$(MACHINE)-linux-gnu))
DNN_C       := $(if $(and $(CUDA_H),$(CUDNN_H)),$(wildcard gpu/dnn/*.c),gpu/dnn_absent.c)
DNN_O       := $(DNN_C:%.c=$(BUILD)/plugin/%.o)
LIBRARY_O   := $(BUILD)/plugin/gpu/library.o $(BUILD)/plugin/gpu/library_fill.o

ifneq ($(NVCC),)
PLUGIN      := $(BUILD)/mpbench-gpu.so
GPU_O       := $(patsubst %.c,$(BUILD)/plugin/%.o,$(GPU_C) $(GPU_SHARES)) $(DNN_O)
GPU_IMAGE   := $(GPU_CU:gpu/kernels/%.cu=$(BUILD)/plugin/images/%.fatbin)

# Of these cards the compiler knows some; GPU_ARCHS="90" builds for one alone, in less time.
KNOWN_ARCHS := $(filter 80 90 100 120,$(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)))
GPU_ARCHS   ?= $(KNOWN_ARCHS)
NVCC_ARCHS  = $(foreach a,$(GPU_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
              -gencode arch=compute_$(firstword $(GPU_ARCHS)),code=compute_$(firstword $(GPU_ARCHS))
# A kernel whose registers do not suffice is slow: that is found here, without a card.
NVCC_FLAGS := -std=c++17 --fmad=false -Isrc -I. -Werror all-warnings \
              -Xptxas -warn-spills,-warn-lmem-usage,-Werror

all: $(PLUGIN)
$(PLUGIN): $(GPU_O)
	$(call say,link)$(CC) $(GPU_LDFLAGS) -o $@ $^ -lm

$(BUILD)/plugin/gpu/images.o: $(GPU_IMAGE)
$(BUILD)/plugin/gpu/images.o: EXTRA_CFLAGS += -DGPU_ARCHS='"$(GPU_ARCHS)"'

$(GPU_IMAGE): $(BUILD)/plugin/images/%.fatbin: gpu/kernels/%.cu $(BUILD)/gpu_archs.list
	@mkdir -p $(@D)
	$(call say,nvcc)$(NVCC) $(NVCC_FLAGS) $(NVCC_ARCHS) -MD -MF $(@:.fatbin=.d) -MT $@ -fatbin -o $@ $<
endif

$(sort $(GPU_O) $(DNN_O) $(LIBRARY_O)): $(BUILD)/plugin/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(CPPFLAGS) $(CFLAGS) $(GPU_CFLAGS) -DGPU_IMAGES='"$(BUILD)/plugin/images"' $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

# The same plugin over an emulated card, for tests: what asks the machine for a driver or a library
# (gpu/NAME.c where there is a tests/emulator/NAME.c) gives way, and kernels are compiled for the host.
# It needs NVIDIA's headers and a compiler of C++, and nothing else of theirs.
ifneq ($(and $(CUDA_H),$(shell command -v $(CXX) 2>/dev/null)),)
EMULATOR   := $(BUILD)/emulator/mpbench-gpu.so
EMULATOR_C := $(filter-out %_test.c,$(wildcard tests/emulator/*.c))
EMULATED_C := $(filter-out $(EMULATOR_C:tests/emulator/%=gpu/%),$(GPU_C)) $(EMULATOR_C) $(GPU_SHARES)
# Tests of the emulator itself run kernels that are planted in place of the card's.
PLANTED_C  := $(filter-out %/kernels.c %/images.c,$(EMULATOR_C)) gpu/driver_start.c \
              $(wildcard tests/emulator/planted/*.c)
PLANTED_CU := $(wildcard tests/emulator/planted/*.cu)
# In folder $(1), of C and CUDA files.
EMULATED_O  = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(2)) $(patsubst %.cu,$(BUILD)/$(1)/%.o,$(3))
CXXFLAGS_EMULATED := -std=c++17 -fno-exceptions -fno-rtti -ffp-contract=off -Wall -Wextra -Werror \
                     -Wno-unknown-pragmas -Wno-missing-field-initializers

# $(1) the folder, $(2) flags of the emulator, $(3) of kernels
define EMULATED_RULES
$(BUILD)/$(1)/mpbench-gpu.so: $(call EMULATED_O,$(1),$(EMULATED_C),$(GPU_CU))
	$$(call say,link)$$(CC) $$(LDFLAGS) $$(GPU_LDFLAGS) $(3) -o $$@ $$^ -lm

$(call EMULATED_O,$(1),$(sort $(EMULATED_C) $(PLANTED_C))): $(BUILD)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,cc)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(GPU_CFLAGS) $(2) $$(EXTRA_CFLAGS) -MMD -MP -c -o $$@ $$<

$(call EMULATED_O,$(1),,$(GPU_CU) $(PLANTED_CU)): $(BUILD)/$(1)/%.o: %.cu
	@mkdir -p $$(@D)
	$$(call say,c++)$$(CXX) -x c++ $$(CXXFLAGS_EMULATED) $$(OPT) $$(GPU_CFLAGS) $(3) -DGPU_EMULATED='"tests/emulator/emulator.h"' -Isrc -I. -MMD -MP -c -o $$@ $$<
endef
$(eval $(call EMULATED_RULES,emulator))

# Once more as a searcher of races in kernels: tests/emulator/races.h.
ifeq ($(findstring sanitize,$(OPT))$(filter libtsan.so,$(shell $(CC) -print-file-name=libtsan.so)),)
RACES := $(addprefix $(BUILD)/races/,mpbench-gpu.so planted conformance_test multi_test update_test)
$(eval $(call EMULATED_RULES,races,-DEMULATOR_RACES=1,-fsanitize=thread))
endif
endif

# What program and plugin share: one of another build is refused by a hash of it.
CONTRACT   := $(sort $(wildcard src/kernel/*.[ch] src/kernel/*.def src/number/*.h src/number/*.def) src/base/error.h)
CONTRACT_O := $(patsubst %,$(BUILD)/%/plugin.o,src plugin/gpu emulator/gpu races/gpu tests/gpu/bare)
$(CONTRACT_O): EXTRA_CFLAGS += -DMPBENCH_CONTRACT=0x$(firstword $(shell cat $(CONTRACT) | sha256sum | cut -c 1-16))
$(CONTRACT_O): $(CONTRACT)

# Where an installed program finds its plugin and its experiments; the others look beside the program.
$(BUILD)/src/plugin.o: EXTRA_CFLAGS += -DMPBENCH_LIBDIR='"$(LIBDIR)"' $(if $(NVCC),-DMPBENCH_HAS_NVCC)
$(BUILD)/src/plugin.o: $(BUILD)/libdir.list
$(BUILD)/src/cli/experiments.o: EXTRA_CFLAGS += -DMPBENCH_DATADIR='"$(DATADIR)"'
$(BUILD)/src/cli/experiments.o: $(BUILD)/datadir.list

# A list is written anew only where it differs.
$(BUILD)/objects.list: LIST = $(ENGINE)
$(BUILD)/datadir.list: LIST = $(DATADIR)
$(BUILD)/libdir.list: LIST = $(LIBDIR) $(if $(NVCC),nvcc)
$(BUILD)/gpu_archs.list: LIST = $(NVCC) $(NVCC_ARCHS)
$(BUILD)/%.list: FORCE
	@mkdir -p $(@D)
	@echo '$(LIST)' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# Compiled into the binary as text: the Lua half of the module `mp`, the page about it, and the look
# of a report.
$(BUILD)/embedded/lua.c: $(LUA_MP)
$(BUILD)/embedded/pages.c: docs/lua.md
$(BUILD)/embedded/report.c: $(sort $(wildcard src/cli/report/*.css src/cli/report/*.js))
$(EMBEDDED:.o=.c): src/base/embed.sh
	@mkdir -p $(@D)
	$(call say,text)sh src/base/embed.sh embedded_$(basename $(@F)) $(filter-out %.sh,$^) > $@.part && mv $@.part $@

$(EMBEDDED): %.o: %.c
	$(call say,cc)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# ---- tests --------------------------------------------------------------------------------------

TEST_C   := $(wildcard tests/unit/*_test.c tests/conformance/*_test.c tests/golden/*_test.c \
                       tests/fault/*_test.c tests/lua/*_test.c tests/gpu/*_test.c)
TEST_BIN := $(TEST_C:%.c=$(BUILD)/%)

# The screen is tested on a terminal of libvterm.
VTERM_LIBS := $(shell pkg-config --libs vterm 2>/dev/null || echo -lvterm)
SCREEN_PROGRAMS := tests/screen/picture.c tests/screen/measure.c
SCREEN_C   := $(wildcard tests/screen/*_test.c)
SCREEN_O   := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c $(SCREEN_PROGRAMS),\
                  $(wildcard tests/screen/*.c)))
$(SCREEN_O) $(SCREEN_PROGRAMS:%.c=$(BUILD)/%.o): EXTRA_CFLAGS += -Wno-conversion
TEST_BIN += $(SCREEN_C:%.c=$(BUILD)/%)
$(SCREEN_C:%.c=$(BUILD)/%): $(SCREEN_O)
$(SCREEN_C:%.c=$(BUILD)/%): LDLIBS += $(VTERM_LIBS)

$(BUILD)/tests/%_test: tests/%_test.c $(BUILD)/libmpbench.a
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(CPPFLAGS) $(LUA_CFLAGS) $(CFLAGS) -Wno-conversion $(EXTRA_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< \
	    $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

ifneq ($(EMULATOR),)
EMULATOR_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/emulator/*_test.c))
TEST_BIN += $(EMULATOR_TESTS)
$(EMULATOR_TESTS): $(call EMULATED_O,emulator,$(PLANTED_C),$(PLANTED_CU))
$(EMULATOR_TESTS): EXTRA_CFLAGS += $(GPU_CFLAGS)
$(filter %/capture_test %/capture_refused_test,$(EMULATOR_TESTS)): $(call EMULATED_O,emulator,gpu/capture.c gpu/record.c)
endif

# cuDNN needs a driver to compile for, but none that has a card.
MOCK_DRIVER := $(BUILD)/tests/gpu/libcuda.so.1
$(BUILD)/tests/gpu/dnn_test: $(DNN_O) $(LIBRARY_O) | $(MOCK_DRIVER)
$(BUILD)/tests/gpu/dnn_test: EXTRA_CFLAGS += -DMOCK_DRIVER='"$(MOCK_DRIVER)"'
$(MOCK_DRIVER): tests/gpu/mock_driver.c
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

# What the conformance tests share.
CONFORMANCE_O := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard tests/conformance/*.c)))
$(CONFORMANCE_O): EXTRA_CFLAGS += -Wno-conversion
$(filter $(BUILD)/tests/conformance/%,$(TEST_BIN)): $(CONFORMANCE_O)

# What tests/emulator/races_test.sh runs.
ifneq ($(RACES),)
RACES_O := $(addprefix $(BUILD)/tests/,emulator/races/planted.o \
               $(patsubst %_test,conformance/%_test.o,conformance_test multi_test update_test))
$(RACES_O): EXTRA_CFLAGS += -Wno-conversion $(GPU_CFLAGS)
$(BUILD)/races/planted: $(BUILD)/tests/emulator/races/planted.o $(call EMULATED_O,races,$(PLANTED_C),$(PLANTED_CU))
$(filter %_test,$(RACES)): $(BUILD)/races/%_test: $(BUILD)/tests/conformance/%_test.o $(CONFORMANCE_O)
$(filter-out %.so,$(RACES)): $(BUILD)/libmpbench.a
	$(call say,link)$(CC) $(LDFLAGS) -fsanitize=thread -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)
endif

# The program as it is where there is no nvcc, whatever there is here.
BARE := $(BUILD)/tests/gpu/bare/mpbench
$(BUILD)/tests/gpu/bare/plugin.o: src/plugin.c
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<
$(BARE): $(BUILD)/src/main.o $(BUILD)/tests/gpu/bare/plugin.o $(BUILD)/libmpbench.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

TESTED := $(BUILD)/mpbench $(PLUGIN) $(EMULATOR) $(RACES) $(BARE) $(TEST_BIN) $(BUILD)/tests/screen/picture
test: $(TESTED)
	$(LIVE)MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/run.sh $(TEST_BIN)

# ---- long campaigns and measurements ------------------------------------------------------------

# The sanitizers' own code makes gcc see texts that do not fit where they do. What nvcc compiles they do
# not look into: the emulated card's plugin is theirs.
SANITIZED = BUILD=$(BUILD)-asan OPT="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -Wno-format-truncation" \
    LDFLAGS="-fopenmp -pthread -fsanitize=address,undefined" PLUGIN=

FUZZ_BIN  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/*_bench.c))
LIMITS    := $(BUILD)/tests/bench/limits
FUZZ_EXECUTIONS ?= 1000000

$(FUZZ_BIN) $(BENCH_BIN) $(LIMITS): $(BUILD)/%: %.c $(BUILD)/libmpbench.a
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-conversion $(EXTRA_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< \
	    $(BUILD)/libmpbench.a $(LDLIBS)

# Whatever cards are asked for: a kernel may spill on one alone.
soak: override GPU_ARCHS = $(KNOWN_ARCHS)
# The storms run under the sanitizers alone, whole: there they would find most.
STORM := $(filter %/storm_test,$(TEST_BIN))
soak: $(TESTED) $(FUZZ_BIN)
	$(LIVE)status=0; \
	for program in $(FUZZ_BIN); do "$$program" $(FUZZ_EXECUTIONS) || status=1; done; \
	MPBENCH_SOAK=1 MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/run.sh $(filter-out $(STORM),$(TEST_BIN)) || status=1; \
	$(if $(STORM),$(MAKE) $(SANITIZED) storm || status=1; )\
	exit $$status

storm: export MPBENCH_TEST_PATIENCE ?= 4
storm: $(BUILD)/mpbench $(STORM)
	$(LIVE)MPBENCH_SOAK=1 MPBENCH=$(abspath $(BUILD)/mpbench) $(STORM)

# Whole steps, what recording them costs, and the screen: all that a user sees. Its parts are the others'.
bench: $(BUILD)/mpbench $(LIMITS) $(BUILD)/tests/screen/measure
	$(LIVE)MPBENCH=$(abspath $(BUILD)/mpbench) LIMITS=$(LIMITS) sh tests/bench/bench.sh; \
	MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/bench/telemetry_bench.sh; \
	MPBENCH=$(abspath $(BUILD)/mpbench) $(BUILD)/tests/screen/measure

bench-parts: $(BENCH_BIN)
	$(LIVE)for program in $(BENCH_BIN); do echo "$$program"; "$$program" || exit 1; echo; done

# What it runs it names itself.
gpu-check: $(BUILD)/mpbench $(PLUGIN) \
        $(addprefix $(BUILD)/tests/,$(shell grep -oP '(conformance|golden|unit|lua)/[a-z_]+_test(?![.]sh)' tests/gpu/check.sh))
	$(LIVE)MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/gpu/check.sh

demo: $(BUILD)/mpbench
	$(LIVE)MPBENCH=$(abspath $(BUILD)/mpbench) sh demo.sh

# What README shows, from the screen itself.
$(SCREEN_PROGRAMS:%.c=$(BUILD)/%): %: %.o $(SCREEN_O) $(BUILD)/libmpbench.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(VTERM_LIBS)

pictures: $(BUILD)/mpbench $(BUILD)/tests/screen/picture
	@mkdir -p docs/pictures
	MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/screen/pictures.sh $(BUILD)/tests/screen/picture docs/pictures

# What the demo replays; after it UPDATE=1 of stored_test, and the pictures.
recording: $(BUILD)/mpbench
	MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/screen/record_demo.sh experiments/demo.history.gz

docs: $(BUILD)/mpbench
	MPBENCH=$(abspath $(BUILD)/mpbench) sh docs/reference.sh > $(BUILD)/reference.md
	mv $(BUILD)/reference.md docs/reference.md
	MPBENCH=$(abspath $(BUILD)/mpbench) sh docs/history.sh > $(BUILD)/history.md
	mv $(BUILD)/history.md docs/history.md

# Trains what the history in RESULTS lacks, and can be interrupted: the same again goes on.
RESULTS ?= $(BUILD)/results/history.db
results: export RESULTS := $(RESULTS)
results: export MPBENCH := $(abspath $(BUILD)/mpbench)
results: $(BUILD)/mpbench
	@mkdir -p $(dir $(RESULTS))
	sh docs/results.sh train
	sh docs/results.sh time
	-sh docs/results.sh claims
	sh docs/results.sh page > $(BUILD)/results.md
	mv $(BUILD)/results.md docs/results.md

# ---- the program elsewhere ----------------------------------------------------------------------

EXPERIMENTS := $(wildcard experiments/*.lua experiments/*/*.lua experiments/*/*/*.lua experiments/*.gz)
PAGES       := README.md $(wildcard docs/*.md docs/pictures/*.svg)
DIST        := $(BUILD)/dist/mpbench-$(VERSION)

install: $(BUILD)/mpbench $(PLUGIN)
	install -D -m 755 $(BUILD)/mpbench $(DESTDIR)$(PREFIX)/bin/mpbench
	$(if $(PLUGIN),install -D -m 755 $(PLUGIN) $(DESTDIR)$(LIBDIR)/mpbench-gpu.so)
	for file in $(EXPERIMENTS); do install -D -m 644 "$$file" "$(DESTDIR)$(DATADIR)/$$file" || exit 1; done
	for file in $(PAGES); do install -D -m 644 "$$file" "$(DESTDIR)$(DOCDIR)/$$file" || exit 1; done

# Every library travels but the C library's own, which belongs to the machine. DT_RPATH, unlike
# DT_RUNPATH, also holds for what a library needs in turn.
DIST_LINK  = -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib'
LIBC_PARTS = ^(libc|libm|libdl|librt|libpthread|libresolv|ld-linux.*)[.]so

dist: $(BUILD)/src/main.o $(BUILD)/libmpbench.a $(PLUGIN)
	rm -rf $(DIST)
	mkdir -p $(DIST)/lib
	$(CC) $(LDFLAGS) $(DIST_LINK) -o $(DIST)/mpbench $(filter-out %.so,$^) $(LDLIBS)
	strip $(DIST)/mpbench
	ldd $(DIST)/mpbench | awk '$$3 ~ "^/" && $$1 !~ /$(LIBC_PARTS)/ { print $$3 }' | \
	    xargs cp -L -t $(DIST)/lib
	$(if $(PLUGIN),cp $(PLUGIN) $(DIST))
	cp --parents $(EXPERIMENTS) $(PAGES) $(DIST)
	@echo "$(DIST): $$(du -sh $(DIST) | cut -f1)"

# ---- the rest -----------------------------------------------------------------------------------

deps: ; $(LIVE)sh deps.sh install $(PACKAGES)

# Sanitizers take their time: limits of tests are that many times longer (tests/test.h).
asan: export MPBENCH_TEST_PATIENCE ?= 4
asan:
	$(MAKE) $(SANITIZED) test

lint: | $(BUILD)/lint.stamp
	@sh tests/lint/lint.sh

$(BUILD)/lint.stamp: packages.mk deps.sh
	@mkdir -p $(BUILD)
	@sh deps.sh check $(LINT_PACKAGES)
	@touch $@

clean: ; rm -rf $(BUILD) $(BUILD)-asan

FORCE:
.PHONY: all test soak storm lint asan bench bench-parts gpu-check demo docs results pictures recording deps install dist clean FORCE
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
