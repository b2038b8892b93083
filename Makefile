# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            build/rl-agent, with the BPF programs inside it
# make install    into DESTDIR and PREFIX (/usr/local)
# make check      formatting, linters and every test; as root (scripts/test also installs what is missing)
# make unit       the tests that need no root

PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
B       := build

# `make V=1` shows the commands.
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

VERSION := 0.1.0
LIBS    := popt jansson ncursesw libbpf libcap-ng libmnl
WARN    := -Wall -Wextra -Wshadow -Werror
CFLAGS  ?= -O2 -g
RL_CFLAGS  := -std=gnu11 $(WARN) -D_GNU_SOURCE -DRL_VERSION='"$(VERSION)"' -I$(B) $(shell pkg-config --cflags $(LIBS))
RL_LDLIBS  := $(shell pkg-config --libs $(LIBS)) -lpthread
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 $(WARN) -I/usr/include/$(shell gcc -print-multiarch) -Ibpf
SANITIZE   := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

BPF_HEADERS := $(wildcard bpf/*.h)
USER_SRC    := $(wildcard user/*.c)
USER_OBJ    := $(USER_SRC:%.c=$(B)/%.o)
LIB_SRC     := $(filter-out user/main.c,$(USER_SRC))
LIB_OBJ     := $(LIB_SRC:%.c=$(B)/%.o)
SKEL        := $(B)/rl_path.skel.h $(B)/rl_reset.skel.h $(B)/rl_zero.skel.h

all: $(B)/rl-agent

$(B)/rl-agent: $(USER_OBJ)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(RL_LDLIBS)

$(B)/user/%.o: user/%.c $(SKEL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/%.bpf.o: bpf/%.bpf.c $(BPF_HEADERS)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@.tmp $<
	$(Q)$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(B)/%.skel.h: $(B)/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@.tmp
	@mv $@.tmp $@

install: $(B)/rl-agent
	install -D -m 0755 $(B)/rl-agent $(DESTDIR)$(PREFIX)/sbin/rl-agent

clean:
	rm -rf $(B)

include tests/tests.mk

.PHONY: all install clean
.SECONDARY:
-include $(USER_OBJ:.o=.d)
