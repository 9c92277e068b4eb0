// SPDX-License-Identifier: MIT

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/**
 * The same work each time: `Rounds WARM MEASURED [CALLS]`. Prints the CPU time of its thread and the time that passed
 * in the rounds that are measured, in nanoseconds, and with CALLS those of a call of leaf() each.
 */
public final class Rounds {
	static int sink;

	static int depth(int n, IntUnaryOperator f) {
		return n == 0 ? f.applyAsInt(n) : depth(n - 1, f) + f.applyAsInt(n);
	}

	static int words(int n) {
		Map<String, Integer> seen = new HashMap<>();
		for (int i = 0; i < n; i++)
			seen.merge("word" + i * 7919 % 500, 1, Integer::sum);
		List<String> keys = new ArrayList<>(seen.keySet());
		keys.sort((a, b) -> a.length() != b.length() ? a.length() - b.length() : a.compareTo(b));
		return keys.get(n % keys.size()).length();
	}

	static int numbers(int n) {
		double[] x = new double[n];
		for (int i = 0; i < n; i++)
			x[i] = Math.sin(i) * i;
		Arrays.sort(x);
		return (int)x[n / 2];
	}

	static int round(int i) {
		int k = i % 5;
		return words(2000) + numbers(2000) + depth(100, n -> n + k)
			+ Arrays.stream(new int[] {i, 2, 3}).map(n -> n * n).sum();
	}

	/** Too large to be inlined into its caller, small enough to cost little. */
	static int leaf(int a, int b) {
		return (a ^ b) + (b >>> 3);
	}

	static double nanosOfACall(int n) {
		long least = Long.MAX_VALUE;
		for (int k = 0; k < 20; k++) {
			long begin = System.nanoTime();
			for (int i = 0; i < n; i++)
				sink = leaf(sink, i);
			least = Math.min(least, System.nanoTime() - begin);
		}
		return (double)least / n;
	}

	public static void main(String[] args) {
		ThreadMXBean threads = ManagementFactory.getThreadMXBean();
		for (int i = 0; i < Integer.parseInt(args[0]); i++)
			sink += round(i);
		long cpu = threads.getCurrentThreadCpuTime(), wall = System.nanoTime();
		for (int i = 0; i < Integer.parseInt(args[1]); i++)
			sink += round(i);
		System.out.println("cpu " + (threads.getCurrentThreadCpuTime() - cpu));
		System.out.println("wall " + (System.nanoTime() - wall));
		if (args.length > 2)
			System.out.println("call " + nanosOfACall(Integer.parseInt(args[2])));
		System.out.println("sum " + (sink != 1));
	}
}
