/* SPDX-License-Identifier: MIT */
#include "remote/remote_host.h"

#include <string.h>

static const struct {
	const char *prefix, *program;
} kinds[] = {
	[REMOTE_KIND_SSH] = {"", "ssh"},
	[REMOTE_KIND_DOCKER] = {"docker:", "docker"},
	[REMOTE_KIND_KUBECTL] = {"kubectl:", "kubectl"},
};

int remote_host_parse(struct remote_host *h, const char *text, struct err *err)
{
	struct remote_host host = {REMOTE_KIND_SSH, text};

	for (size_t i = REMOTE_KIND_DOCKER; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)))
			host = (struct remote_host){
				(enum remote_kind)i, text + strlen(kinds[i].prefix)};
	if (!*host.name || *host.name == '-')
		return err_set(err, ERR_FORMAT, "'%s' is not a host", text);
	for (const char *c = host.name; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return err_set(
				err, ERR_FORMAT, "'%s' is not a host: no name has blanks", text);
	*h = host;
	return 0;
}

static void add(struct remote_words *w, const char *word)
{
	vec_push(&w->v, mem_strdup(word));
}

void remote_host_command(const struct remote_host *h, char *const *program, size_t n,
	size_t script_bytes, struct remote_words *out)
{
	/* dd takes no byte more than it is told, which a shell that reads its script from there would. */
	char *evaluate = mem_printf("eval \"$(dd bs=1 count=%zu 2>&-)\"", script_bytes);

	for (size_t i = 0; i < n; i++)
		add(out, program[i]);
	if (!n)
		add(out, kinds[h->kind].program);
	if (h->kind == REMOTE_KIND_SSH) {
		/* One text for whatever shell the user has there, a csh, too. A terminal would change bytes. */
		char *line = mem_printf("exec sh -c '%s'", evaluate);

		add(out, "-T");
		add(out, h->name);
		vec_push(&out->v, line);
	} else {
		add(out, "exec");
		add(out, "-i");
		add(out, h->name);
		if (h->kind == REMOTE_KIND_KUBECTL)
			add(out, "--");
		add(out, "sh");
		add(out, "-c");
		add(out, evaluate);
	}
	vec_push(&out->v, NULL);
	free(evaluate);
}
