# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Test programs. Each suite is one Criterion program; what runs without root is built with sanitizers.

UNIT_SRC  := $(wildcard tests/unit/*.c) tests/lib/frame.c tests/lib/ranges_shapes.c
UNIT_OBJ  := $(UNIT_SRC:%.c=$(B)/san/%.o) $(LIB_SRC:%.c=$(B)/san/%.o)
PURE_OBJ  := $(patsubst %,$(B)/user/%.o,error plain units prefix target class limit)
BPF_SRC   := $(filter-out %.bpf.c,$(wildcard tests/bpf/*.c)) tests/lib/frame.c tests/lib/ranges_shapes.c
BPF_OBJ   := $(BPF_SRC:%.c=$(B)/%.o) $(LIB_OBJ)
TEST_TOOLS := $(B)/tests/rl-send $(B)/tests/rl-tcp $(B)/tests/oldkernel.so

$(B)/san/%.o: %.c $(SKEL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANITIZE) $(RL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/%.o: tests/%.c $(SKEL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/unit-tests: $(UNIT_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANITIZE) -o $@ $^ $(LDFLAGS) $(RL_LDLIBS) -lcriterion

$(B)/tests/bpf-tests: $(BPF_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(RL_LDLIBS) -lcriterion

# BPF programs of the tests themselves.
$(B)/tests/%.bpf.o: tests/%.bpf.c $(BPF_HEADERS)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@.tmp $<
	$(Q)$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(B)/tests/%.skel.h: $(B)/tests/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*) > $@.tmp
	@mv $@.tmp $@

$(B)/tests/bpf/parser.o: $(B)/tests/bpf/parse.skel.h
$(B)/tests/bpf/fixture.o: $(B)/tests/bpf/offer.skel.h
$(B)/tests/bpf/crowd.o: $(B)/tests/bpf/many.skel.h
$(B)/tests/bpf/ranges.o: $(B)/tests/bpf/classify.skel.h

$(B)/tests/rl-send: $(B)/tests/lib/send.o $(B)/tests/lib/frame.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) -lpopt

$(B)/tests/rl-tcp: $(B)/tests/lib/tcp.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) -lpopt

# The benchmark (scripts/bench). Its objects stand apart: build/tests/bench is the program.
BENCH_SRC  := $(filter-out %.bpf.c tests/bench/ranges.c,$(wildcard tests/bench/*.c))
BENCH_SKEL := $(patsubst tests/bench/%.bpf.c,$(B)/bench/%.skel.h,$(wildcard tests/bench/*.bpf.c))
BENCH_OBJ  := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%.o) $(B)/tests/lib/frame.o $(LIB_OBJ)

$(B)/bench/%.bpf.o: tests/bench/%.bpf.c tests/bench/traffic.h $(BPF_HEADERS) bpf/rl_path.bpf.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@.tmp $<
	$(Q)$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(B)/bench/%.skel.h: $(B)/bench/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*) > $@.tmp
	@mv $@.tmp $@

$(B)/bench/%.o: tests/bench/%.c $(SKEL) $(BENCH_SKEL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/bench: $(BENCH_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(RL_LDLIBS)

# What finding a prefix costs: build/tests/bench-ranges [PREFIXES].
RANGES_OBJ := $(B)/bench/ranges.o $(LIB_OBJ)
$(B)/bench/ranges.o: $(B)/tests/bpf/classify.skel.h
$(B)/tests/bench-ranges: $(RANGES_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(RL_LDLIBS)

$(B)/tests/oldkernel.so: tests/lib/oldkernel.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RL_CFLAGS) -shared -fPIC -o $@ $< -ldl

# Fuzzers: run one as `build/tests/fuzz-parse -max_total_time=60`.
FUZZ := -std=gnu11 $(WARN) -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

$(B)/tests/fuzz-parse: tests/fuzz/fuzz_parse.c $(BPF_HEADERS)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ) -o $@ $<

$(B)/tests/fuzz-units: tests/fuzz/fuzz_units.c $(patsubst %,user/%.c,error plain units prefix target class limit) $(wildcard user/*.h bpf/rl_*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ) -o $@ $(filter %.c,$^)

$(B)/tests/fuzz-policy_file: tests/fuzz/fuzz_policy_file.c \
		$(patsubst %,user/%.c,error plain units prefix target class limit device cmd statement large phrases policy_file policy_order order diff) $(wildcard user/*.h bpf/rl_*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ) -o $@ $(filter %.c,$^) -lpopt -lmnl -lbpf

$(B)/tests/fuzz-ranges: tests/fuzz/fuzz_ranges.c $(wildcard user/ranges*.c) user/large.c user/order.c user/prefix.c user/error.c user/plain.c $(wildcard user/*.h bpf/rl_*.h) tests/lib/lpm.h
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ) -o $@ $(filter %.c,$^)

fuzz: $(B)/tests/fuzz-parse $(B)/tests/fuzz-units $(B)/tests/fuzz-policy_file $(B)/tests/fuzz-ranges

unit: $(B)/tests/unit-tests
	$(B)/tests/unit-tests

tests: $(B)/tests/unit-tests $(B)/tests/bpf-tests $(B)/tests/bench $(B)/tests/bench-ranges $(TEST_TOOLS)

check: all tests
	scripts/test --no-install

.PHONY: unit fuzz tests check
-include $(UNIT_OBJ:.o=.d) $(BPF_OBJ:.o=.d) $(BENCH_OBJ:.o=.d) $(RANGES_OBJ:.o=.d)

# The reference model beside the program: build/tests/model natively, build/tests/model-bpf by BPF_PROG_TEST_RUN (root);
# both take [SEED] [PACKETS]. Their objects stand apart, as the benchmark's do.
$(B)/model/%.o: tests/model/%.c $(SKEL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RL_CFLAGS) -MMD -MP -c -o $@ $<

MODEL_OBJ := $(patsubst %,$(B)/model/%.o,level model ops play shrink generate run) $(B)/tests/lib/frame.o
MODEL_NATIVE_OBJ := $(patsubst %,$(B)/model/%.o,run_native native native_policy)
MODEL_BPF_OBJ := $(patsubst %,$(B)/model/%.o,run_bpf bpf)

$(B)/tests/model: $(MODEL_NATIVE_OBJ) $(MODEL_OBJ) $(PURE_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS)

$(B)/tests/model-bpf: $(MODEL_BPF_OBJ) $(MODEL_OBJ) $(LIB_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(RL_LDLIBS)

tests: $(B)/tests/model $(B)/tests/model-bpf

-include $(MODEL_OBJ:.o=.d) $(MODEL_NATIVE_OBJ:.o=.d) $(MODEL_BPF_OBJ:.o=.d)

# Simulated CPUs over the packet path, in every order (tests/interleave): build/tests/interleave [SCENARIO]. subject.c is
# compiled with the calls of the thread sanitizer, which schedule.c answers: as it is, and with each mistake of mutants.def.
MUTANTS := $(shell grep -o '^MUTANT.[a-z_]*' tests/interleave/mutants.def | cut -c8-)
INTERLEAVE_OBJ := $(patsubst %,$(B)/interleave/%.o,schedule world scenarios run)
SUBJECT_OBJ := $(B)/interleave/subject_true.o $(MUTANTS:%=$(B)/interleave/subject_%.o)
SUBJECT_DEPS := $(addprefix tests/interleave/,subject.c world.h schedule.h mutants.def mutate) tests/lib/no_lru.h $(BPF_HEADERS)

$(B)/interleave/%.o: tests/interleave/%.c tests/interleave/mutants.def
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/interleave/subject_true.o: $(SUBJECT_DEPS)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g $(RL_CFLAGS) -fsanitize=thread -c -o $@ tests/interleave/subject.c

$(B)/interleave/subject_%.o: $(SUBJECT_DEPS)
	$(Q)tests/interleave/mutate $* $(B)/interleave/$*
	$(Q)$(CC) -O1 -g $(RL_CFLAGS) -fsanitize=thread -DSUBJECT=subject_$* -c -o $@ $(B)/interleave/$*/tests/interleave/subject.c

$(B)/tests/interleave: $(INTERLEAVE_OBJ) $(SUBJECT_OBJ) $(B)/tests/lib/frame.o $(PURE_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS)

tests: $(B)/tests/interleave

-include $(INTERLEAVE_OBJ:.o=.d)
