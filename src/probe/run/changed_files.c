/* SPDX-License-Identifier: MIT */
/*
 * Files that were built again while they were traced. Probes belong to a file, not to its name: programs
 * begun from a new one have none. And in a file that was written over, they stay where they were.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "probe/run/run.h"

static void look_at(struct probe_session *s, const struct target *t)
{
	struct stat now;

	if (!t->inode || stat(t->path, &now) < 0) /* not of a file that was looked for by its path */
		return;
	if (now.st_dev != t->device || now.st_ino != t->inode)
		session_note(s,
			"'%s' was replaced while it was traced: programs begun from the new file are not traced",
			t->path);
	else if (timespec_ns(&now.st_mtim) != t->modified_ns)
		session_note(s,
			"'%s' was written to while it was traced: probes in programs begun since then may be at wrong places",
			t->path);
}

void changed_files_note(struct probe_session *s)
{
	const struct target *last = NULL;

	for (size_t i = 0; i < s->sites.n; i++) {
		const struct target *t = s->sites.v[i].target;
		bool is_known = !t || t == last;

		for (size_t k = 0; k < i && !is_known; k++)
			is_known = s->sites.v[k].target &&
				   (s->sites.v[k].target == t ||
					   !strcmp(s->sites.v[k].target->path, t->path));
		if (!is_known)
			look_at(s, t);
		last = t;
	}
}
