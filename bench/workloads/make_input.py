# SPDX-License-Identifier: MIT
# make_input.py c FUNCTIONS | text BYTES: input for the compiler and the compressor, always the same.
import random
import sys

FUNCTION = """
struct s{i} {{ int a[{n}]; struct s{i} *next; double d; }};
static int leaf{i}(struct s{i} *p, int k)
{{
	int s = k;
	for (struct s{i} *q = p; q; q = q->next)
		for (int j = 0; j < {n}; j++) {{
			s += q->a[j] * {m};
			switch (s & 7) {{
			case 1: s ^= q->a[(j + 3) % {n}]; break;
			case 3: s -= (int)q->d; break;
			case 5: s = s * 3 + k; break;
			default: q->d += s;
			}}
		}}
	return s;
}}
int f{i}(struct s{i} *p, int k)
{{
	int t[8] = {{0}};
	for (int j = 0; j < k; j++)
		t[(j * {m}) & 7] += j % {n} ? leaf{i}(p, j) : k / (j | 1);
	return t[0] + t[1] * t[2] - t[3] / (t[4] | 1) + (t[5] > t[6] ? leaf{i}(p->next, k) : t[7]);
}}
"""


def make_c(n, rng):
    for i in range(n):
        sys.stdout.write(FUNCTION.format(i=i, n=rng.randrange(3, 30), m=rng.randrange(2, 90)))


def make_text(n, rng):
    words = ["".join(rng.choices("etaoinshrdlucmfw", k=rng.randrange(2, 10))) for _ in range(4000)]
    weights = [1 / (i + 3) for i in range(len(words))]
    written = 0
    while written < n:
        written += sys.stdout.write(" ".join(rng.choices(words, weights, k=1000)) + "\n")


{"c": make_c, "text": make_text}[sys.argv[1]](int(sys.argv[2]), random.Random(1))
