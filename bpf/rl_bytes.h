/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_bytes.h - bytes of the network as numbers, which keep the order of addresses; addresses cut to a prefix; and numbers mixed
 * for a hash. Compiles on both sides.
 *
 * A compiler for BPF takes memory whose alignment it doesn't know byte by byte, and bytes that were stored one by one and are
 * then read as a word cost a stall. The kernels that rl-agent runs on load words from anywhere (the verifier asks for
 * aligned ones where the processor does), so there it is told to.
 */
#ifndef RL_BYTES_H
#define RL_BYTES_H

#include <linux/types.h>

#include "rl_abi.h"

#ifdef __bpf__
#define RL_WORD(type, p) (*(const type *)(p))
#define RL_ORDER(bits, x)                                                                                    \
	(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (__u##bits)__builtin_bswap##bits(x) : (x))

RL_INLINE __u16 rl_be16(const __u8 *p)
{
	return RL_ORDER(16, RL_WORD(__u16, p));
}

RL_INLINE __u32 rl_be32(const __u8 *p)
{
	return RL_ORDER(32, RL_WORD(__u32, p));
}

RL_INLINE __u64 rl_be64(const __u8 *p)
{
	return RL_ORDER(64, RL_WORD(__u64, p));
}

RL_INLINE void rl_put32(__u8 *p, __u32 x)
{
	*(__u32 *)p = RL_ORDER(32, x);
}

RL_INLINE void rl_copy4(__u8 *to, const __u8 *from)
{
	*(__u32 *)to = RL_WORD(__u32, from);
}

RL_INLINE void rl_copy16(__u8 *to, const __u8 *from)
{
	*(__u64 *)to = RL_WORD(__u64, from);
	*(__u64 *)(to + 8) = RL_WORD(__u64, from + 8);
}
#else
RL_INLINE __u16 rl_be16(const __u8 *p)
{
	return (__u16)((__u16)p[0] << 8 | p[1]);
}

RL_INLINE __u32 rl_be32(const __u8 *p)
{
	return (__u32)rl_be16(p) << 16 | rl_be16(p + 2);
}

RL_INLINE __u64 rl_be64(const __u8 *p)
{
	return (__u64)rl_be32(p) << 32 | rl_be32(p + 4);
}

RL_INLINE void rl_put32(__u8 *p, __u32 x)
{
	for (int i = 0; i < 4; i++)
		p[i] = (__u8)(x >> (24 - 8 * i));
}

RL_INLINE void rl_copy4(__u8 *to, const __u8 *from)
{
	__builtin_memcpy(to, from, 4);
}

RL_INLINE void rl_copy16(__u8 *to, const __u8 *from)
{
	__builtin_memcpy(to, from, 16);
}
#endif

/* The first `bits` bits of an address in network byte order; size: 4 or 16 bytes, bits: 0 to 8 * size. */
RL_INLINE void rl_address_cut(__u8 *addr, __u32 size, __u32 bits)
{
	for (__u32 i = 0; i < size; i += 4) {
		__u32 left = bits > i * 8 ? bits - i * 8 : 0;
		__u64 rest = 0xffffffffULL >> (left < 32 ? left : 32);

		rl_put32(addr + i, rl_be32(addr + i) & ~(__u32)rest);
	}
}

/* Finalizer of MurmurHash3: each bit of the input flips each bit of the output with a chance of one half. */
RL_INLINE __u64 rl_mix(__u64 x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

#endif
