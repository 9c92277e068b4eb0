/* SPDX-License-Identifier: MIT */
/*
 * Demangling is slow, so most mangled names are ruled out before: the identifiers of a demangled
 * name stand in the mangled one, too, unless mangling has an abbreviation for them.
 */
#include "symbols/function_pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/glob.h"
#include "base/mem.h"
#include "symbols/symtab.h"

#define BRACKETS_BYTES_MAX 4096	 /* from a bracket to its other half */
#define OFFERED_MAX	   20000 /* names that are demangled to find what is near to a pattern */
#define OPERATOR	   "operator"
#define ANONYMOUS	   "(anonymous namespace)"

/* Words that demanglers make of something else. */
static const char abbreviations[] =
	"std::allocator std::basic_string<char, std::char_traits<char> > basic_istream "
	"basic_ostream basic_iostream istream ostream iostream string (anonymous namespace) "
	"operator new delete co_await unsigned signed short long int __int128 char wchar_t "
	"char8_t char16_t char32_t bool float double __float128 _Float16 void const volatile "
	"restrict decltype auto nullptr_t non-virtual virtual covariant return thunk to vtable "
	"VTT for construction in typeinfo name guard variable reference temporary initialization "
	"function TLS init wrapper lambda unnamed type default arg clone hidden alias "
	"transaction entry true false sizeof alignof noexcept throw typeid dynamic_cast "
	"static_cast reinterpret_cast const_cast global constructors destructors keyed abi "
	"core alloc closure shim impl self super usize isize u8 u16 u32 u64 u128 i8 i16 i32 i64 "
	"i128 f32 f64 str dyn mut unsafe extern fn as";

void function_pattern_release(struct function_pattern *p)
{
	free(p->text);
	free(p->image);
	free(p->name);
	free(p->needle);
	if (p->is_regex)
		regfree(&p->regex);
	*p = (struct function_pattern){0};
}

/* --- where things end -------------------------------------------------------------------- */

/* The closing slash of the regular expression that begins at `s` and ends the pattern. */
static const char *regex_end(const char *s)
{
	if (*s != '/')
		return NULL;
	for (s++; *s && *s != '/'; s++)
		if (*s == '\\' && s[1])
			s++;
	return *s == '/' && (s[1] == ',' || !s[1]) ? s : NULL;
}

/* The bracket that closes the one at `s`; NULL when none does. */
static const char *bracket_end(const char *s)
{
	int depth = 0;

	for (size_t i = 0; s[i] && i < BRACKETS_BYTES_MAX; i++) {
		depth += (s[i] == '(' || s[i] == '<') - (s[i] == ')' || s[i] == '>');
		if (!depth)
			return s + i;
	}
	return NULL;
}

/* The comma or NUL behind the name at `s`. */
static const char *name_end(const char *s)
{
	const char *end = regex_end(s);

	if (end)
		return end + 1;
	while (*s && *s != ',') {
		if (strncmp(s, OPERATOR, strlen(OPERATOR)) == 0) {
			s += strlen(OPERATOR);
			s += strspn(s, "<>=-");
			continue;
		}
		end = *s == '(' || *s == '<' ? bracket_end(s) : NULL;
		s = end ? end + 1 : s + 1;
	}
	return s;
}

/* The colon behind the image; NULL when there is none. */
static const char *image_end(const char *s)
{
	if (regex_end(s))
		return NULL;
	for (; *s && *s != ','; s++) {
		if (*s != ':')
			continue;
		if (s[1] != ':')
			return s;
		s++;
	}
	return NULL;
}

size_t function_pattern_bytes(const char *list)
{
	const char *colon = image_end(list);

	return (size_t)(name_end(colon ? colon + 1 : list) - list);
}

/* The bracket of the parameters: neither that of operator() nor of the anonymous namespace. The end
 * when there are none. */
static const char *find_parameters(const char *name)
{
	const char *p;

	for (p = strchr(name, '('); p; p = strchr(p + 1, '(')) {
		size_t n = strlen(OPERATOR);
		bool is_call =
			(size_t)(p - name) >= n && p[1] == ')' && strncmp(p - n, OPERATOR, n) == 0;

		if (!is_call && strncmp(p, ANONYMOUS, strlen(ANONYMOUS)) != 0)
			return p;
	}
	return name + strlen(name);
}

/* --- parsing ----------------------------------------------------------------------------- */

/* "\/" becomes "/": the slash is ours, not the expression's. */
static char *unescape_slashes(const char *s, size_t n)
{
	char *text = mem_strndup(s, n);
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] == '/')
			from++;
		else if (from[0] == '\\' && from[1])
			*to++ = *from++;
		*to++ = *from;
	}
	*to = 0;
	return text;
}

/* The longest run of letters that a matching linkage name must have. A glob's run behind '[' or '\'
 * may mean something else. */
static char *find_needle(const char *glob)
{
	const char *best = NULL;
	size_t best_n = 1;

	if (strpbrk(glob, "[\\"))
		return NULL;
	for (const char *s = glob; *s;) {
		size_t n = 0;
		char *run;

		while (isalnum((unsigned char)s[n]) || s[n] == '_')
			n++;
		if (n > best_n) {
			run = mem_strndup(s, n);
			if (!strstr(abbreviations, run) && !isdigit((unsigned char)*run)) {
				best = s;
				best_n = n;
			}
			free(run);
		}
		s += n ? n : 1;
	}
	return best ? mem_strndup(best, best_n) : NULL;
}

static void take_glob(struct function_pattern *p, const char *name)
{
	char *front = mem_strndup(name, (size_t)(find_parameters(name) - name));

	p->name = mem_strdup(name);
	p->needle = find_needle(name);
	p->is_all = strcmp(name, "*") == 0;
	p->has_wildcard = glob_has(name);
	p->is_exact = !glob_has(front);
	free(front);
}

static int take_regex(struct function_pattern *p, const char *name, struct err *err)
{
	char text[200];
	int rc;

	p->name = unescape_slashes(name + 1, strlen(name) - 2);
	if (!*p->name)
		return err_set(err, ERR_FORMAT, "'%s': the expression is empty", p->text);
	rc = regcomp(&p->regex, p->name, REG_EXTENDED | REG_NOSUB);
	if (rc) {
		regerror(rc, &p->regex, text, sizeof(text));
		return err_set(err, ERR_FORMAT, "'%s': %s", p->text, text);
	}
	p->is_regex = true;
	return 0;
}

static int take_name(struct function_pattern *p, const char *name, struct err *err)
{
	const char *end = regex_end(name);

	p->wants_fragments = strstr(name, "cold") || strstr(name, "warm");
	if (end && !end[1])
		return take_regex(p, name, err);
	take_glob(p, name);
	return 0;
}

static int take_text(struct function_pattern *p, const char *text, size_t *at, struct err *err)
{
	const char *colon = image_end(text);
	const char *name = colon ? colon + 1 : text;

	*at = 0;
	p->text = mem_strdup(text);
	if (!*text)
		return err_set(err, ERR_FORMAT, "no function is named");
	if (colon == text)
		return err_set(err, ERR_FORMAT, "'%s': no image before the colon", text);
	*at = (size_t)(name - text);
	if (!*name)
		return err_set(err, ERR_FORMAT, "'%s': no name behind the colon", text);
	if (colon)
		p->image = mem_strndup(text, (size_t)(colon - text));
	return take_name(p, name, err);
}

int function_pattern_init(
	struct function_pattern *p, const char *text, size_t *wrong_at, struct err *err)
{
	size_t at;
	int rc;

	*p = (struct function_pattern){0};
	rc = take_text(p, text, &at, err);
	if (rc < 0) {
		function_pattern_release(p);
		if (wrong_at)
			*wrong_at = at;
	}
	return rc;
}

int function_pattern_init_name(struct function_pattern *p, const char *name, struct err *err)
{
	int rc;

	*p = (struct function_pattern){.text = mem_strdup(name)};
	rc = take_name(p, name, err);
	if (rc < 0)
		function_pattern_release(p);
	return rc;
}

/* --- matching ---------------------------------------------------------------------------- */

bool function_pattern_wants_image(const struct function_pattern *p, const char *path)
{
	const char *name = path_base_name(path);
	size_t n;

	if (!p->image)
		return true;
	if (strchr(p->image, '/'))
		return glob_match(p->image, path);
	n = path_library_stem(name);
	return glob_match(p->image, name) ||
	       (strncmp(p->image, "lib", 3) == 0 && strlen(p->image) == n &&
		       strncmp(p->image, name, n) == 0);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The next letter, with one blank between two words and none elsewhere. */
static char next_letter(const char **text, char before)
{
	const char *s = *text;
	bool is_blank = *s == ' ';

	while (*s == ' ')
		s++;
	*text = s;
	if (is_blank && is_word(before) && is_word(*s))
		return ' ';
	*text += *s != 0;
	return *s;
}

/* Equal but for blanks that separate nothing: "f(char *)" is "f(char*)". */
static bool same_spelling(const char *a, const char *b)
{
	char x = 0, y;

	do {
		y = next_letter(&b, x);
		x = next_letter(&a, x);
	} while (x == y && x);
	return x == y;
}

static bool matches_text(const struct function_pattern *p, const char *text)
{
	if (p->is_regex)
		return regexec(&p->regex, text, 0, NULL, 0) == 0;
	return p->has_wildcard && glob_match(p->name, text);
}

static enum function_match match_linkage(const struct function_pattern *p, const char *linkage)
{
	if (!p->is_regex && strcmp(p->name, linkage) == 0)
		return FUNCTION_MATCH_LINKAGE;
	return matches_text(p, linkage) ? FUNCTION_MATCH_PATTERN : FUNCTION_MATCH_NONE;
}

static enum function_match match_forms(
	const struct function_pattern *p, const struct function_name *name)
{
	enum function_match match = FUNCTION_MATCH_NONE;

	for (size_t i = 0; i < name->n_forms; i++) {
		if (!p->is_regex && same_spelling(p->name, name->forms[i]))
			return FUNCTION_MATCH_READABLE;
		if (!match && matches_text(p, name->forms[i]))
			match = FUNCTION_MATCH_PATTERN;
	}
	return match;
}

/* Whether a name that does not match as it is may have a form that does. */
static bool may_match(const struct function_pattern *p, const char *linkage)
{
	if (symbol_is_mangled(linkage))
		return !p->needle || strstr(linkage, p->needle);
	return strchr(linkage, '@');
}

enum function_match function_pattern_match(
	const struct function_pattern *p, struct function_name *name)
{
	enum function_match match =
		p->is_all ? FUNCTION_MATCH_PATTERN : match_linkage(p, name->linkage);

	if (!match && may_match(p, name->linkage)) {
		function_name_split(name);
		if (name->unversioned)
			match = match_linkage(p, name->unversioned);
		if (!match)
			match = match_forms(p, name);
	}
	if (match && !p->wants_fragments && function_name_is_fragment(name->linkage))
		return FUNCTION_MATCH_NONE;
	return match;
}

/* --- what was meant ---------------------------------------------------------------------- */

/* The form that has as much as the pattern: 0 is all of it, the last one has least. */
static const char *form_like(const struct function_pattern *p, const struct function_name *name)
{
	const char *parameters = find_parameters(p->name);

	for (size_t i = name->n_forms; i > 0; i--) {
		const char *form = name->forms[i - 1];

		if (*parameters ? !*find_parameters(form)
				: strchr(p->name, '<') && !strchr(form, '<'))
			continue;
		return form;
	}
	return name->forms[0];
}

void function_pattern_offer(
	const struct function_pattern *p, struct nearest_names *near, const char *linkage)
{
	struct function_name name = {.linkage = linkage};

	if (p->is_regex || (!p->wants_fragments && function_name_is_fragment(linkage)))
		return;
	if (symbol_is_mangled(linkage) && near->n_demangled++ >= OFFERED_MAX)
		return;
	function_name_split(&name);
	if (name.n_forms && !symbol_is_mangled(p->name)) /* else as the pattern is written */
		nearest_names_add(near, form_like(p, &name));
	else
		nearest_names_add(near, name.unversioned ? name.unversioned : linkage);
	function_name_release(&name);
}
