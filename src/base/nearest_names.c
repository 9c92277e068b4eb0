/* SPDX-License-Identifier: MIT */
#include "base/nearest_names.h"

#include <stdio.h>
#include <string.h>

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The letters of a name that are not *. */
static size_t count_letters(const char *name, size_t n)
{
	size_t letters = 0;

	for (size_t i = 0; i < n; i++)
		letters += name[i] != '*';
	return letters;
}

/* Optimal string alignment over three rows. */
unsigned name_distance(const char *a, const char *b, unsigned max)
{
	size_t n = strnlen(a, NEAREST_NAME_BYTES), m = strnlen(b, NEAREST_NAME_BYTES);
	size_t letters = count_letters(a, n);
	unsigned rows[3][NEAREST_NAME_BYTES];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	if (n >= NEAREST_NAME_BYTES || m >= NEAREST_NAME_BYTES || letters > m + max ||
		(letters == n && m > n + max))
		return max + 1;
	for (size_t j = 0; j <= m; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		bool is_star = a[i - 1] == '*', is_any = a[i - 1] == '?';
		unsigned best = row[0] = last[0] + !is_star;
		unsigned *free_row = before;

		for (size_t j = 1; j <= m; j++) {
			row[j] = is_star ? smaller(last[j], row[j - 1])
					 : smaller(smaller(last[j], row[j - 1]) + 1,
						   last[j - 1] + (!is_any && a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], before[j - 2] + 1);
			best = smaller(best, row[j]);
		}
		if (best > max)
			return max + 1;
		before = last;
		last = row;
		row = free_row;
	}
	return smaller(last[m], max + 1);
}

/* How far a name may be off. With a * the rest says less, so that it must fit better. */
static unsigned distance_max(const char *wanted)
{
	size_t n = strnlen(wanted, NEAREST_NAME_BYTES), letters = count_letters(wanted, n);

	if (letters < n)
		return letters < 3 ? 0 : letters < 6 ? 1 : 2;
	return n < 4 ? 1 : n < 8 ? 2 : 3;
}

/* Names come out of files, and what is near is printed. */
static bool is_printable(const char *name)
{
	while (*name && (unsigned char)*name >= ' ' && *name != 0x7f)
		name++;
	return !*name;
}

void nearest_names_add(struct nearest_names *near, const char *name)
{
	size_t n = strnlen(near->wanted, NEAREST_NAME_BYTES), bytes, at;
	unsigned max = distance_max(near->wanted);
	unsigned distance;

	/* "foo.constprop.0" is what the compiler made of foo. */
	if (strncmp(near->wanted, name, n) == 0 && n > 2 && (name[n] == '.' || name[n] == '@'))
		distance = 0;
	else
		distance = name_distance(near->wanted, name, max);
	bytes = strnlen(name, NEAREST_NAME_BYTES);
	if (distance > max || bytes >= NEAREST_NAME_BYTES || !is_printable(name))
		return;
	for (size_t i = 0; i < near->n; i++)
		if (strcmp(near->v[i].name, name) == 0)
			return;
	for (at = near->n; at > 0 && near->v[at - 1].distance > distance; at--)
		;
	if (at == NEAREST_NAMES_MAX)
		return;
	if (near->n < NEAREST_NAMES_MAX)
		near->n++;
	memmove(&near->v[at + 1], &near->v[at], (near->n - at - 1) * sizeof(near->v[0]));
	near->v[at].distance = distance;
	memcpy(near->v[at].name, name, bytes + 1);
}

bool nearest_names_text(const struct nearest_names *near, char *to, size_t bytes)
{
	size_t used = 0;

	*to = 0;
	for (size_t i = 0; i < near->n && used < bytes; i++) {
		const char *before = !i ? "" : i + 1 == near->n ? " or " : ", ";

		used += (size_t)snprintf(
			to + used, bytes - used, "%s'%s'", before, near->v[i].name);
	}
	return near->n > 0;
}
