// SPDX-License-Identifier: MIT
package hazard;

import java.util.function.LongUnaryOperator;

/** Defined anew by each loader of Work.classes(). */
public final class Extra implements LongUnaryOperator {
	@Override
	public long applyAsLong(long n) {
		long x = n;
		for (int i = 0; i < 1000 * n; i++)
			x = x * 31 + i;
		return x & 0xffff;
	}
}
