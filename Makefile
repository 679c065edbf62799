# mpbench: one makefile, no recursion. Everything built goes under $(BUILD).
#
#   make          build/mpbench, installing what is missing      make test    every test
#   make demo     the main job, for a first look                 make soak    the long campaigns
#   make lint     format, include rules, Lua, shell              make asan    tests under sanitizers
#   make bench    this machine, measured                         make deps    install the packages
#   make install  PREFIX=/usr/local                              make dist    a folder that travels

BUILD  ?= build
PREFIX ?= /usr/local
CC     ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif

include packages.mk

VERSION := 0.1.0
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
OPT     ?= -O2 -g
LUA_CFLAGS := $(shell pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LUA_LIBS   := $(shell pkg-config --libs lua5.4 2>/dev/null || echo -llua5.4)
CPPFLAGS += -Isrc -I. -D_POSIX_C_SOURCE=200809L -DMPBENCH_VERSION='"$(VERSION)"'
CFLAGS   += -std=c17 $(OPT) $(WARN) -fopenmp -pthread -fno-math-errno -fno-trapping-math
LDFLAGS  += -fopenmp -pthread
LDLIBS   += -ldnnl $(LUA_LIBS) -lz -lm

# ---- what is built ------------------------------------------------------------------------------

ROOMS   := base number kernel tensor grad precision ops optim data run cli cpu ref
PLAIN_C := $(foreach r,$(ROOMS),$(wildcard src/$(r)/*.c)) $(wildcard lua/*.c lua/bind/*.c)
SIMD_C  := $(wildcard src/*/simd/*.c)
AMX_C   := $(wildcard src/*/amx/*.c)

MACHINE := $(shell uname -m)
ifeq ($(MACHINE),x86_64)
ISAS      := base avx2 avx512 spr
ISA_FLAGS_base   := -march=x86-64-v2
ISA_FLAGS_avx2   := -march=x86-64-v3
ISA_FLAGS_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
ISA_FLAGS_spr    := -march=x86-64-v4 -mprefer-vector-width=512 -mavx512fp16 -mavx512bf16
AMX_FLAGS        := -march=x86-64-v4 -mavx512bf16 -mamx-tile -mamx-bf16
else
ISAS  := base
AMX_C :=
endif
# The kernels gain nothing from the fourth level that their compiler could find by itself.
ISAS_OF = $(if $(filter src/number/%,$(1)),$(ISAS),$(filter-out spr,$(ISAS)))

PLAIN_O := $(PLAIN_C:%.c=$(BUILD)/%.o)
SIMD_O  := $(foreach f,$(SIMD_C),$(foreach i,$(call ISAS_OF,$(f)),$(f:%.c=$(BUILD)/%.$(i).o)))
AMX_O   := $(AMX_C:%.c=$(BUILD)/%.o)
LUA_MP  := $(sort $(wildcard lua/mp/*.lua))
ENGINE  := $(PLAIN_O) $(SIMD_O) $(AMX_O) $(BUILD)/lua/embedded.o

all: $(BUILD)/mpbench

$(BUILD)/mpbench: $(BUILD)/src/main.o $(BUILD)/libmpbench.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libmpbench.a: $(ENGINE)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/%.o: %.c | $(BUILD)/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(LUA_CFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

define SIMD_RULE
$(BUILD)/%.$(1).o: %.c | $(BUILD)/deps.stamp
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) -DMPBENCH_ISA=$(1) $$(CFLAGS) -O3 -fno-trapping-math $$(ISA_FLAGS_$(1)) $$(EXTRA_CFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call SIMD_RULE,$(i))))

$(AMX_O): EXTRA_CFLAGS += -O3 $(AMX_FLAGS)

# The Lua half of the module `mp`, compiled into the binary as text.
$(BUILD)/lua/embedded.c: $(LUA_MP) lua/embed.sh
	@mkdir -p $(@D)
	sh lua/embed.sh $(LUA_MP) > $@.part && mv $@.part $@

$(BUILD)/lua/embedded.o: $(BUILD)/lua/embedded.c
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# ---- tests --------------------------------------------------------------------------------------

TEST_C   := $(wildcard tests/unit/*_test.c tests/conformance/*_test.c tests/golden/*_test.c \
                       tests/fault/*_test.c tests/lua/*_test.c)
TEST_BIN := $(TEST_C:%.c=$(BUILD)/%)

$(BUILD)/tests/%_test: tests/%_test.c $(BUILD)/libmpbench.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(LUA_CFLAGS) $(CFLAGS) -Wno-conversion $(EXTRA_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< \
	    $(filter-out %_test.c %.h %.a,$^) $(filter %.a,$^) $(LDLIBS)

# What the conformance tests share.
CONFORMANCE_O := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard tests/conformance/*.c)))
$(CONFORMANCE_O): EXTRA_CFLAGS += -Wno-conversion
$(filter $(BUILD)/tests/conformance/%,$(TEST_BIN)): $(CONFORMANCE_O)

test: $(BUILD)/mpbench $(TEST_BIN)
	@MPBENCH=$(abspath $(BUILD)/mpbench) sh tests/run.sh $(TEST_BIN)

# ---- the rest -----------------------------------------------------------------------------------

deps: ; @sh deps.sh install $(PACKAGES)
$(BUILD)/deps.stamp: packages.mk deps.sh
	@mkdir -p $(BUILD)
	@sh deps.sh check $(PACKAGES)
	@touch $@

asan:
	$(MAKE) BUILD=$(BUILD)-asan OPT="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	    LDFLAGS="-fopenmp -pthread -fsanitize=address,undefined" test

lint: | $(BUILD)/lint.stamp
	@sh tests/lint/lint.sh

$(BUILD)/lint.stamp: packages.mk deps.sh
	@mkdir -p $(BUILD)
	@sh deps.sh check $(LINT_PACKAGES)
	@touch $@

clean: ; rm -rf $(BUILD) $(BUILD)-asan

.PHONY: all test soak lint asan bench demo deps install dist clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
