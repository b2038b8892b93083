// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dropping.bpf.c - the packet program as it is, but that a frame drops whatever its verdict: so that one that passes ends where one
 * that is dropped does, and nobody's network stack is measured with it. Loaded over the maps of the packet program itself.
 */
#include "rl_path.bpf.c"

SEC("xdp")
__attribute__((flatten)) int dropping(struct xdp_md *ctx)
{
	rl_xdp(ctx);
	return XDP_DROP;
}
