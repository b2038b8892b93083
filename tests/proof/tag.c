// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What bucket.c takes tags for: 128 to 255, one more with each generation, and 128 again after 255. So a tag
 * repeats after 128 generations and not before. A program: to go through all generations is quicker than to
 * decide a division.
 */
#include <stdio.h>

#include "../../bpf/rl_gcra.h"

int main(void)
{
	__u64 expected = rl_gcra_tag(0);

	if (expected < 128 || expected > 255)
		return 1;
	for (__u32 gen = 0; gen < 0xffffffff; gen++) {
		expected = expected == 255 ? 128 : expected + 1;
		if (rl_gcra_tag(gen + 1) == expected)
			continue;
		printf("generation %u has tag %llu, expected %llu\n", gen + 1, rl_gcra_tag(gen + 1),
		       expected);
		return 1;
	}
	return 0;
}
