// SPDX-License-Identifier: MIT
package hazard;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** What Java does in jvm.c. Each of its objects belongs to one thread and counts its own calls. */
public final class Work extends Thread {
	static volatile long zero;
	final int n;
	long leaf, recursive, thrower, catcher, called, round, result;

	Work(int n) {
		this.n = n;
	}

	native long nativeLeaf(long n);

	long leaf(long n) {
		leaf++;
		return n * 3 + zero;
	}

	long recursive(long depth) {
		recursive++;
		return depth == 0 ? leaf(0) : recursive(depth - 1) + 1;
	}

	long thrower(int depth) {
		thrower++;
		if (depth == 0)
			throw new IllegalStateException("thrown");
		return thrower(depth - 1) + 1;
	}

	long catcher() {
		catcher++;
		try {
			return thrower(3);
		} catch (IllegalStateException e) {
			return e.getMessage().length();
		}
	}

	/** By C code. */
	long called(long n) {
		called++;
		return leaf(n) + 1;
	}

	long round(int n) {
		long sum = 0;
		round++;
		for (int i = 0; i < n; i++) {
			sum += leaf(i) + recursive(i % 10) + nativeLeaf(i) + new int[i % 100].length;
			if (i % 10 == 0)
				sum += catcher();
		}
		return sum;
	}

	@Override
	public void run() {
		result = round(n);
	}

	void tell(long[] calls) {
		long[] own = {leaf, recursive, thrower, catcher, called, round};
		for (int i = 0; i < own.length; i++)
			calls[i] += own[i];
	}

	static long threads(int n, long[] calls) throws InterruptedException {
		List<Work> all = new ArrayList<>();
		long sum = 0;
		for (int i = 0; i < 20; i++) {
			all.add(new Work(n + i));
			all.get(i).start();
		}
		for (Work w : all) {
			w.join();
			w.tell(calls);
			sum += w.result;
		}
		return sum;
	}

	/** Of the class loader's own making: a class each time, which nobody has when it is collected. */
	static long classes(int n) throws Exception {
		byte[] code = Work.class.getResourceAsStream("Extra.class").readAllBytes();
		long sum = 0;
		for (int i = 0; i < 20; i++) {
			ClassLoader loader = new ClassLoader(Work.class.getClassLoader()) {
				@Override
				protected Class<?> findClass(String name) {
					return defineClass(name, code, 0, code.length);
				}

				@Override
				protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
					return name.equals("hazard.Extra") ? findClass(name) : super.loadClass(name, resolve);
				}
			};
			Object extra = loader.loadClass("hazard.Extra").getDeclaredConstructor().newInstance();
			sum += ((java.util.function.LongUnaryOperator)extra).applyAsLong(n);
			if (i % 5 == 0)
				System.gc();
		}
		return sum;
	}

	static long processes() throws IOException, InterruptedException {
		long sum = 0;
		for (int i = 0; i < 4; i++)
			sum += new ProcessBuilder("/bin/sh", "-c", "exit " + i).start().waitFor();
		return sum;
	}

	static long rounds(int n, String how, long[] calls) throws Exception {
		Work one = new Work(n);
		long sum = one.round(10 * n);
		switch (how) {
		case "threads" -> sum += threads(n, calls);
		case "classes" -> sum += classes(n);
		case "processes" -> sum += processes();
		case "collect" -> System.gc();
		case "sleep" -> TimeUnit.MILLISECONDS.sleep(5);
		default -> sum++;
		}
		one.tell(calls);
		return sum;
	}

	static void leave() throws InterruptedException {
		Thread last = new Thread(() -> System.exit(7), "leaves");
		last.start();
		last.join();
	}
}
