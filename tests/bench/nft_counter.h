/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_counter.h - a named counter of nftables, asked of the kernel: `nft list counter` reads every element of the sets beside it,
 * which takes minutes for millions.
 */
#ifndef BENCH_NFT_COUNTER_H
#define BENCH_NFT_COUNTER_H

#include <linux/types.h>

/* Packets counted by `name` of a netdev table in a network namespace. 0 or a negative errno. */
int nft_counter_read(int netns, const char *table, const char *name, __u64 *packets);

#endif
