/* SPDX-License-Identifier: MIT */
/*
 * list = part {"," part}
 * part = [image ":"] name
 * name = glob | "/" regex "/"		a slash inside a regular expression is written "\/"
 *
 * A name is compared with the linkage name and, when that is mangled, with the demangled one:
 * whole, without its parameters, and without the type that a template returns. Demangling is slow,
 * so most linkage names are ruled out before: the identifiers of a demangled name stand in the
 * mangled one, too, unless mangling has an abbreviation for them.
 */
#include "record/hooks/wish.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "symbols/symtab.h"

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
	"static_cast reinterpret_cast const_cast core alloc closure shim impl self super usize "
	"isize u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 str";

static void wish_release(struct wish *w)
{
	free(w->what.image);
	free(w->what.name);
	free(w->text);
	free(w->needle);
	if (w->has_regex)
		regfree(&w->regex);
}

void wishes_release(struct wishes *w)
{
	for (size_t i = 0; i < w->all.n; i++)
		wish_release(&w->all.v[i]);
	vec_release(&w->all);
}

/* --- parsing ----------------------------------------------------------------------------- */

/* The closing slash of the regular expression that begins at `s`, when it ends the part. */
static const char *regex_end(const char *s)
{
	if (*s != '/')
		return NULL;
	for (s++; *s && *s != '/'; s++)
		if (*s == '\\' && s[1])
			s++;
	return *s == '/' && (s[1] == ',' || !s[1]) ? s : NULL;
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

static const char *part_end(const char *name)
{
	const char *end = regex_end(name);

	return end ? end + 1 : name + strcspn(name, ",");
}

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

static int compile(struct wish *w, struct err *err)
{
	int rc = regcomp(&w->regex, w->what.name, REG_EXTENDED | REG_NOSUB);
	char text[200];

	if (rc) {
		regerror(rc, &w->regex, text, sizeof(text));
		return err_set(err, ERR_FORMAT, "'%s': %s", w->text, text);
	}
	w->has_regex = true;
	return 0;
}

static int parse_part(struct wish *w, const char *part, const char **end, enum hook_action action,
	struct err *err)
{
	const char *colon = image_end(part);
	const char *name = colon ? colon + 1 : part;

	*end = part_end(name);
	*w = (struct wish){
		.text = mem_strndup(part, (size_t)(*end - part)), .what = {.action = action}};
	if (*end == part)
		return err_set(err, ERR_FORMAT, "a name is missing before or behind a comma");
	if (colon == part)
		return err_set(err, ERR_FORMAT, "'%s': no image before the colon", w->text);
	if (*end == name)
		return err_set(err, ERR_FORMAT, "'%s': no name behind the colon", w->text);
	if (colon)
		w->what.image = mem_strndup(part, (size_t)(colon - part));
	w->what.is_regex = regex_end(name) != NULL;
	if (!w->what.is_regex) {
		w->what.name = mem_strndup(name, (size_t)(*end - name));
		w->is_all = strcmp(w->what.name, "*") == 0;
		w->needle = find_needle(w->what.name);
		return 0;
	}
	w->what.name = unescape_slashes(name + 1, (size_t)(*end - name - 2));
	if (!*w->what.name)
		return err_set(err, ERR_FORMAT, "'%s': the expression is empty", w->text);
	return compile(w, err);
}

int wishes_add(struct wishes *w, const char *list, enum hook_action action, struct err *err)
{
	size_t n_before = w->all.n;
	int rc = 0;

	for (const char *part = list;; part++) {
		struct wish wish;

		rc = parse_part(&wish, part, &part, action, err);
		vec_push(&w->all, wish);
		if (rc == 0 && w->all.n > WISHES_MAX)
			rc = err_set(
				err, ERR_LIMIT, "more than %d names are asked for", WISHES_MAX);
		if (rc < 0 || *part != ',')
			break;
	}
	while (rc < 0 && w->all.n > n_before)
		wish_release(&w->all.v[--w->all.n]);
	return rc;
}

/* --- matching ---------------------------------------------------------------------------- */

bool wish_concerns(const struct wish *w, const char *path, bool is_main)
{
	if (!w->what.image)
		return is_main;
	if (strchr(w->what.image, '/'))
		return fnmatch(w->what.image, path, 0) == 0;
	return fnmatch(w->what.image, path_base_name(path), 0) == 0;
}

static bool matches_text(const struct wish *w, const char *text)
{
	if (w->has_regex)
		return regexec(&w->regex, text, 0, NULL, 0) == 0;
	return fnmatch(w->what.name, text, 0) == 0;
}

/* Where the parameters of a demangled name begin: the bracket that the last one belongs to, with
 * only qualifiers behind it. */
static size_t parameters_at(const char *name)
{
	const char *clone = strstr(name, " [clone");
	size_t n = clone ? (size_t)(clone - name) : strlen(name);
	int depth = 0;

	while (n && name[n - 1] != ')') {
		if (!isalpha((unsigned char)name[n - 1]) && !strchr(" &", name[n - 1]))
			return strlen(name);
		n--;
	}
	while (n) {
		n--;
		depth += (name[n] == ')') - (name[n] == '(');
		if (!depth)
			return n ? n : strlen(name);
	}
	return strlen(name);
}

/* The start of the name behind the type that a template function returns. */
static const char *behind_type(const char *plain)
{
	size_t n = strlen(plain);
	int depth = 0;

	if (strstr(plain, "operator")) /* may have spaces of its own */
		return plain;
	while (n) {
		char c = plain[--n];

		depth += (c == '>' || c == ')') - (c == '<' || c == '(');
		if (c == ' ' && depth == 0)
			return plain + n + 1;
	}
	return plain;
}

static void ensure_demangled(struct wish_name *name)
{
	const char *last;

	if (name->full)
		return;
	name->full = symbol_demangle(name->name);
	name->plain = mem_strndup(name->full, parameters_at(name->full));
	last = behind_type(name->plain);
	if (last != name->plain)
		name->last = mem_strdup(last);
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

bool wish_matches(const struct wish *w, struct wish_name *name)
{
	if (w->is_all || matches_text(w, name->name))
		return true;
	if (!is_mangled(name->name) || (w->needle && !strstr(name->name, w->needle)))
		return false;
	ensure_demangled(name);
	return matches_text(w, name->full) || matches_text(w, name->plain) ||
	       (name->last && matches_text(w, name->last));
}

void wish_name_release(struct wish_name *name)
{
	free(name->full);
	free(name->plain);
	free(name->last);
	*name = (struct wish_name){0};
}
