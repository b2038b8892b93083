// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "spread.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread spread_of(const double *values, int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, sizeof(*values) * (size_t)n);
	qsort(sorted, (size_t)n, sizeof(*sorted), compare);
	return (struct spread){.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2,
			       .low = sorted[n / 4],
			       .high = sorted[n - 1 - n / 4]};
}
