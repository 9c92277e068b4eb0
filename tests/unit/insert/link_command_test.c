/* SPDX-License-Identifier: MIT */
/* Command lines of linkers: what is an input, where it is found, what the linker gets instead. */
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "insert/content_hash.h"
#include "insert/link_command.h"
#include "insert/link_script.h"

/* Reads a command line written as words with blanks between them. */
static void read_line(struct link_command *c, const char *line)
{
	struct link_words words = {0};
	struct err err = {0};

	link_words_split((struct span){(const uint8_t *)line, strlen(line)}, &words);
	if (link_command_read(c, words.v, words.n, &err) < 0) {
		printf("'%s': %s\n", line, err.text);
		check_failures++;
		memset(c, 0, sizeof(*c));
	}
	link_words_release(&words);
}

/* "name" for files, "-lname" for libraries, "T:name" for scripts, with '!' behind -Bstatic and '%' behind -b
 * binary. */
static const char *inputs_of(const char *line)
{
	static char text[4096];
	struct link_command c;
	int n = 0;

	read_line(&c, line);
	text[0] = 0;
	for (size_t i = 0; i < c.inputs.n; i++) {
		const struct link_input *in = &c.inputs.v[i];

		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s%s%s%s", i ? " " : "",
			in->is_library	? "-l"
			: in->is_script ? "T:"
					: "",
			in->name, in->is_static ? "!" : "", in->is_raw ? "%" : "");
	}
	link_command_release(&c);
	return text;
}

static void test_values_are_no_inputs(void)
{
	CHECK_STR(inputs_of("-o out a.o -z now -m elf_x86_64 b.o"), "a.o b.o");
	CHECK_STR(
		inputs_of("-dynamic-linker /lib64/ld.so -soname x --soname y -rpath p a.o"), "a.o");
	CHECK_STR(
		inputs_of("-plugin p.so -plugin-opt=-pass-through=-lgcc -plugin-opt x a.o"), "a.o");
	CHECK_STR(inputs_of("-e start -u sym --undefined sym2 --defsym a=b --wrap f a.o"), "a.o");
	CHECK_STR(inputs_of("-T script.ld -Ttext 0x1000 -Tdata=0x2000 --script s -dT t a.o"),
		"T:script.ld T:s a.o");
	CHECK_STR(inputs_of("-Map m --Map=m -version-script v --dynamic-list d a.o"), "a.o");
	CHECK_STR(inputs_of("-R just.o --just-symbols s.o -y sym a.o"), "a.o");
	CHECK_STR(inputs_of("--hash-style=gnu -hash-style both --build-id -build-id=sha1 a.o"),
		"a.o");
	CHECK_STR(inputs_of("-O1 -O 2 -s -S -x -X --gc-sections -E -q -t -M a.o"), "a.o");
	CHECK_STR(inputs_of("--start-group a.a b.a --end-group -( c.a -)"), "a.a b.a c.a");
	CHECK_STR(inputs_of("-mllvm -opt --thinlto-jobs=2 a.o"), "a.o");
	CHECK_STR(inputs_of("-I interp.so -h name -f aux -F filter -A i386 -c mri a.o"), "a.o");
	CHECK_STR(inputs_of("-init first -fini last -assert definitions a.o"), "a.o");
	CHECK_STR(inputs_of("-export-dynamic -emit-relocs -no-pie -pie -nostdlib a.o"), "a.o");
}

static void test_libraries(void)
{
	CHECK_STR(inputs_of("-lz -l m --library c --library=rt -l:libq.a"),
		"-lz -lm -lc -lrt -l:libq.a");
	CHECK_STR(inputs_of("-la -Bstatic -lb -Bdynamic -lc -dn -ld -dy -le"),
		"-la -lb! -lc -ld! -le");
	CHECK_STR(inputs_of("-static -la --push-state -Bdynamic -lb --pop-state -lc"),
		"-la! -lb -lc!");
	CHECK_STR(inputs_of("--pop-state -la"), "-la");
	CHECK_STR(inputs_of("-non_shared -la -call_shared -lb"), "-la! -lb");
}

static void test_formats(void)
{
	CHECK_STR(inputs_of("a.o -b binary data.o -b elf64-x86-64 b.o"), "a.o data.o% b.o");
	CHECK_STR(inputs_of("--format=binary x -bdefault y --format default z"), "x% y z");
	CHECK_STR(inputs_of("-bbinary x -build-id -belf64-x86-64 y"), "x% y");
}

static void test_results(void)
{
	static const struct {
		const char *line;
		enum link_result result;
	} cases[] = {{"a.o", LINK_RESULT_PROGRAM}, {"-pie a.o", LINK_RESULT_PROGRAM},
		{"-static a.o", LINK_RESULT_PROGRAM}, {"-shared a.o", LINK_RESULT_SHARED},
		{"--shared a.o", LINK_RESULT_SHARED}, {"-Bshareable a.o", LINK_RESULT_SHARED},
		{"-r a.o", LINK_RESULT_RELOCATABLE}, {"-i a.o", LINK_RESULT_RELOCATABLE},
		{"--relocatable a.o", LINK_RESULT_RELOCATABLE},
		{"-Ur a.o", LINK_RESULT_RELOCATABLE}, {"-m elf_i386 a.o", LINK_RESULT_OTHER},
		{"-melf32_x86_64 a.o", LINK_RESULT_OTHER},
		{"-m elf_x86_64 a.o", LINK_RESULT_PROGRAM},
		{"-m elf_i386 -shared a.o", LINK_RESULT_SHARED},
		{"-o shared -soname shared a.o", LINK_RESULT_PROGRAM}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link_command c;

		read_line(&c, cases[i].line);
		if (c.result != cases[i].result)
			printf("'%s'\n", cases[i].line);
		CHECK_EQ(c.result, cases[i].result);
		link_command_release(&c);
	}
}

static void test_output(void)
{
	static const char *const lines[] = {"-o prog a.o", "-oprog a.o", "--output prog a.o",
		"--output=prog a.o", "a.o -o x -o prog"};
	struct link_command c;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		read_line(&c, lines[i]);
		CHECK_STR(c.output, "prog");
		link_command_release(&c);
	}
	read_line(&c, "a.o");
	CHECK_STR(c.output, "a.out");
	link_command_release(&c);
	read_line(&c, "a.o -o");
	CHECK_STR(c.output, "");
	CHECK_EQ(c.inputs.n, 1);
	link_command_release(&c);
}

/* ---- files ---- */

static char folder[] = "link_command_test.XXXXXX";

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void make_files(void)
{
	static const char i386[20] = {
		0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0};
	FILE *f;

	mkdir("one", 0700);
	mkdir("two", 0700);
	write_text("one/libboth.a", "!<arch>\n");
	write_text("one/libboth.so", "shared");
	write_text("two/libboth.a", "!<arch>\n");
	write_text("two/libonlya.a", "!<arch>\n");
	write_text("two/libother.so.1", "x");
	write_text("one/libwrong.a", "!<arch>\n");
	f = fopen("one/libwrong.so", "w");
	if (f) {
		fwrite(i386, 1, sizeof(i386), f);
		fclose(f);
	}
	write_text("plain.o", "x");
}

/* The paths of the inputs, "?" for those that are not there. */
static const char *found(const char *line, const char *more)
{
	static char text[4096];
	struct link_command c;
	int n = 0;

	read_line(&c, line);
	link_words_split((struct span){(const uint8_t *)more, strlen(more)}, &c.own_folders);
	link_command_find(&c);
	text[0] = 0;
	for (size_t i = 0; i < c.inputs.n; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i ? " " : "",
			c.inputs.v[i].path ? c.inputs.v[i].path : "?");
	link_command_release(&c);
	return text;
}

static void test_search(void)
{
	CHECK_STR(found("-Lone -Ltwo -lboth", ""), "one/libboth.so");
	CHECK_STR(found("-lboth -Ltwo -L one", ""), "two/libboth.a");
	CHECK_STR(found("-Lone -Bstatic -lboth -Bdynamic -lboth", ""),
		"one/libboth.a one/libboth.so");
	CHECK_STR(found("-Lone --library-path=two -l:libother.so.1", ""), "two/libother.so.1");
	CHECK_STR(found("-Lone -lonlya -lnone", ""), "? ?");
	CHECK_STR(found("-Lone -lonlya -lboth", "two"), "two/libonlya.a one/libboth.so");
	CHECK_STR(found("-Lone -lwrong", ""), "one/libwrong.a");
	CHECK_STR(found("plain.o missing.o one", ""), "plain.o ? ?");
	CHECK_STR(found("--sysroot=. -L=/one -L$SYSROOT/two -lonlya -lboth", ""),
		"./two/libonlya.a ./one/libboth.so");
}

static void test_response_files(void)
{
	write_text("inner.rsp", "in\\ ner.o 'single quoted.o'\n\t\"double \\\" quoted.o\"");
	write_text("outer.rsp", "a.o @inner.rsp\n-lz @missing.rsp ''");
	CHECK_STR(inputs_of("first.o @outer.rsp last.o"),
		"first.o a.o in ner.o single quoted.o double \" quoted.o -lz @missing.rsp  last.o");
	write_text("empty.rsp", "");
	CHECK_STR(inputs_of("@empty.rsp a.o"), "a.o");
	write_text("option.rsp", "-o");
	CHECK_STR(inputs_of("@option.rsp out.o a.o"), "a.o");
}

static void test_endless_response_file(void)
{
	char word[] = "@self.rsp", *words[] = {word};
	struct link_command c;
	struct err err = {0};

	write_text("self.rsp", "a.o @self.rsp");
	CHECK_EQ((uint64_t)-link_command_read(&c, words, 1, &err), (uint64_t)-ERR_LIMIT);
	CHECK(strstr(err.text, "response files"));
}

static void test_words_come_back(void)
{
	static char odd[] = " a\tb\nc\\d'e\"f", empty[] = "", plain[] = "-o", at[] = "@x";
	char *v[] = {odd, empty, plain, at};
	struct link_words words = {v, 4, 4}, again = {0};
	struct buf text = {0};

	link_words_join(&words, &text);
	link_words_split(buf_span(&text), &again);
	CHECK_EQ(again.n, 4);
	for (size_t i = 0; i < again.n && i < 4; i++)
		CHECK_STR(again.v[i], v[i]);
	link_words_release(&again);
	buf_release(&text);
}

/* ---- the new command line ---- */

/* Replaces every input that has a '.' in its name. */
static const char *rewritten(const char *line, bool with_library)
{
	static char text[4096];
	struct link_words words = {0};
	struct link_command c;
	char **replaced;
	int n = 0;

	read_line(&c, line);
	replaced = mem_calloc(c.inputs.n + 1, sizeof(replaced[0]));
	for (size_t i = 0; i < c.inputs.n; i++)
		replaced[i] = strchr(c.inputs.v[i].name, '.')
				      ? mem_printf("C/%s", c.inputs.v[i].name)
				      : NULL;
	link_command_rewrite(&c, replaced,
		&(struct link_additions){.library = with_library ? "W" : NULL}, &words);
	text[0] = 0;
	for (size_t i = 0; i < words.n; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i ? " " : "", words.v[i]);
	for (size_t i = 0; i < c.inputs.n; i++)
		free(replaced[i]);
	free(replaced);
	link_words_release(&words);
	link_command_release(&c);
	return text;
}

#define LIBRARY "--push-state --whole-archive W --pop-state "

static void test_rewrite(void)
{
	CHECK_STR(rewritten("-o p a.o -lc -l q.x -z now", false), "-o p C/a.o -lc C/q.x -z now");
	CHECK_STR(rewritten("-o p crt1.o crti.o crtbeginS.o -Ld a.o -lc crtn.o", true),
		"-o p C/crt1.o C/crti.o C/crtbeginS.o -Ld " LIBRARY "C/a.o -lc C/crtn.o");
	CHECK_STR(rewritten("Scrt1.o --start-group -lc", true),
		"C/Scrt1.o --start-group " LIBRARY "-lc");
	CHECK_STR(rewritten("-b binary x -b default y", true), LIBRARY "-b binary x -b default y");
	CHECK_STR(rewritten("crt1.o", true), "C/crt1.o --push-state --whole-archive W --pop-state");
	CHECK_STR(rewritten("concrete.o", true), LIBRARY "C/concrete.o");
	CHECK_STR(rewritten("--script=x.ld -Ty.ld a.o", true),
		"-T C/x.ld -T C/y.ld " LIBRARY "C/a.o");
}

/* ---- scripts ---- */

/* Included scripts have a '+' in front, folders a '/' behind. */
static void add_path(void *context, enum link_script_use use, struct span path)
{
	char *text = context;

	snprintf(text + strlen(text), 200, "%s%.*s%s ", use == LINK_SCRIPT_INCLUDE ? "+" : "",
		(int)path.n, (const char *)path.p, use == LINK_SCRIPT_FOLDER ? "/" : "");
}

static const char *script_paths(const char *script)
{
	static char text[4096];

	text[0] = 0;
	return link_script_read(
		       (struct span){(const uint8_t *)script, strlen(script)}, add_path, text)
		       ? text
		       : "no";
}

static void test_scripts(void)
{
	CHECK_STR(script_paths("/* GNU ld script\n*/\nOUTPUT_FORMAT(elf64-x86-64)\n"
			       "GROUP ( /usr/lib/libm-2.36.a /usr/lib/libmvec.a )\n"),
		"/usr/lib/libm-2.36.a /usr/lib/libmvec.a ");
	CHECK_STR(script_paths("INPUT(/a.o,/b.a);"), "/a.o /b.a ");
	CHECK_STR(script_paths("GROUP ( /x.a AS_NEEDED ( /lib64/ld.so ) /y.a )INPUT(z.o)"),
		"/x.a /lib64/ld.so /y.a z.o ");
	CHECK_STR(script_paths("GROUP ( libgcc_s.so.1 -lgcc )"), "libgcc_s.so.1 -lgcc ");
	CHECK_STR(script_paths("STARTUP(first.o) INPUT(\"with blanks/a name.o\"x.o)"),
		"first.o \"with blanks/a name.o\" x.o ");
	CHECK_STR(script_paths("SECTIONS { .text : { *(.text) INPUT(no.o) } } INPUT /**/ (yes.o)"),
		"yes.o ");
	CHECK_STR(script_paths("SECTIONS { .text : { *(.text) } }"), "no");
	CHECK_STR(script_paths("INPUT GROUP GROUP(a.o)"), "a.o ");
	CHECK_STR(script_paths("INCLUDE a.ld INPUT(b.o) INCLUDE \"c d.ld\"; SEARCH_DIR(\"=/e\")"),
		"+a.ld b.o +\"c d.ld\" \"=/e\"/ ");
	CHECK_STR(script_paths("SECTIONS { INCLUDE no.ld } INCLUDE /* */ yes.ld"), "+yes.ld ");
	CHECK_STR(script_paths("INCLUDE (x) INCLUDE"), "no");
	CHECK_STR(script_paths("SEARCH_DIR(a b) INPUT()"), "a/ b/ ");
	CHECK_STR(script_paths("INPUT(\"open"), "no");
	CHECK_STR(script_paths("GROUP ( /x.a"), "no");
	CHECK_STR(script_paths("/* nothing"), "no");
	CHECK_STR(script_paths(""), "no");
}

/* Where a name in a script is: "?" for nowhere, "!" for a doubtful one. Folders of SEARCH_DIR are `more`. */
static const char *named(const char *line, const char *more, const char *script, const char *name)
{
	static char text[4096];
	bool is_library = script[0] == '-';
	struct link_script_place place = {.path = script + is_library, .is_library = is_library};
	struct link_command c;
	enum link_found found;
	char *path = NULL, *here = realpath(".", NULL);

	read_line(&c, line);
	if (*more)
		link_command_add_folder(&c, more);
	found = link_command_find_named(&c, &place, name, &path);
	snprintf(text, sizeof(text), "%s",
		found == LINK_DOUBTFUL	? "!"
		: found == LINK_MISSING ? "?"
					: path);
	if (path && here && !strncmp(path, here, strlen(here)) && path[0] == '/')
		snprintf(text, sizeof(text), "%s", path + strlen(here) + 1);
	free(here);
	free(path);
	link_command_release(&c);
	return text;
}

static void test_names_in_scripts(void)
{
	char absolute[PATH_MAX + 100], *here = realpath(".", NULL);

	mkdir("root", 0700);
	mkdir("root/lib", 0700);
	mkdir("root/rel", 0700);
	write_text("root/lib/x.ld", "");
	write_text("root/lib/in.o", "");
	write_text("root/rel/r.o", "");
	write_text("rootlib", "");
	write_text("root/rootlib", "");
	write_text("outside.ld", "");
	CHECK_STR(named("--sysroot=root", "", "outside.ld", "=/lib/in.o"), "root/lib/in.o");
	CHECK_STR(named("--sysroot=root", "", "outside.ld", "$SYSROOT/lib/in.o"), "root/lib/in.o");
	CHECK_STR(named("--sysroot=root", "", "outside.ld", "=lib/in.o"), "root/lib/in.o");
	CHECK_STR(named("--sysroot=root", "", "root/lib/x.ld", "/lib/in.o"), "root/lib/in.o");
	CHECK_STR(named("--sysroot=root", "", "outside.ld", "/lib/in.o"), "/lib/in.o");
	CHECK_STR(named("", "", "root/lib/x.ld", "/lib/in.o"), "/lib/in.o");
	CHECK_STR(named("", "", "outside.ld", "=/nowhere/in.o"), "/nowhere/in.o");
	/* The same name with and without the sysroot. */
	snprintf(absolute, sizeof(absolute), "%s/plain.o", here ? here : "");
	CHECK_STR(named("--sysroot=root", "", "root/lib/x.ld", absolute), "!");
	CHECK(strncmp(named("--sysroot=root", "", "-root/lib/x.ld", absolute), "root/", 5) == 0);
	/* GNU ld's way and lld's. */
	write_text("rootboth", "");
	write_text("root/both", "");
	CHECK_STR(named("--sysroot=root", "", "outside.ld", "=both"), "!");
	CHECK_STR(named("--sysroot=root", "", "outside.ld", "r.o"), "?");
	CHECK_STR(named("--sysroot=root", "=/rel", "outside.ld", "r.o"), "root/rel/r.o");
	CHECK_STR(named("-nostdlib --sysroot=root", "=/rel", "outside.ld", "r.o"), "?");
	CHECK_STR(named("", "two", "outside.ld", "-lonlya"), "two/libonlya.a");
	CHECK_STR(named("-Lone", "two", "outside.ld", "-lboth"), "one/libboth.so");
	CHECK_STR(found("--sysroot=root =/lib/in.o $SYSROOT/lib/in.o", ""),
		"root/lib/in.o root/lib/in.o");
	CHECK_STR(found("-L root/lib -T x.ld", ""), "root/lib/x.ld");
	free(here);
}

/* The values are those of b2sum -l 256. */
static void test_hash(void)
{
	static const struct {
		size_t n;
		const char *hex;
	} cases[] = {{0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
		{1, "8928aae63c84d87ea098564d1e03ad813f107add474e56aedd286349c0c03ea4"},
		{127, "59e2f1aba240f20aa591016f5ef429990bc9c2131dcd0d30f0ffd75ed18f317d"},
		{128, "ae2aa48507885c4c950fb809b2076f959cde9f8ea6da260d9a3587df33dac450"},
		{129, "2f64744a6de0d2c0b56e64cf6e29a5aaa255010d415d51c75ccc82f73dccd865"},
		{256, "eae4d3a7627549b383179dc18049964f91a6fed14c9f3fb26705eda3eeda5558"},
		{300, "3c1292de00a518e36823f9ff908ac2da46be38718c018713403461df077e15f6"}};
	uint8_t bytes[300];
	char hex[2 * CONTENT_HASH_BYTES + 1];

	memset(bytes, 'a', sizeof(bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t step = 1; step <= 300; step += 59) {
			struct content_hash hash;

			content_hash_init(&hash);
			for (size_t at = 0; at < cases[i].n; at += step)
				content_hash_add(&hash,
					(struct span){bytes,
						cases[i].n - at < step ? cases[i].n - at : step});
			content_hash_hex(&hash, hex);
			CHECK_STR(hex, cases[i].hex);
		}
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"values of options are not inputs", test_values_are_no_inputs},
		{"libraries are inputs, and know whether shared ones count", test_libraries},
		{"what is linked as data is known", test_formats},
		{"what is made is known", test_results},
		{"the output is known", test_output},
		{"files are found where a linker finds them", test_search},
		{"response files are expanded", test_response_files},
		{"a response file that names itself is refused", test_endless_response_file},
		{"words survive a response file", test_words_come_back},
		{"inputs are replaced, and the library goes behind the start-up objects",
			test_rewrite},
		{"scripts that stand for archives are read", test_scripts},
		{"names in scripts are found where a linker finds them", test_names_in_scripts},
		{"contents are hashed by BLAKE2b", test_hash},
	};
	char command[100];
	int rc;

	if (!mkdtemp(folder) || chdir(folder) < 0)
		return 1;
	make_files();
	rc = RUN_TESTS(tests);
	if (chdir("..") < 0)
		return 1;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) ? 1 : rc;
}
