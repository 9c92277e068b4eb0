# SPDX-License-Identifier: MIT
# Every feature of the probe language, a case each; those that need no traced program are one script.
. "$ROOT/tests/lib.sh"
if [ "$(id -u)" -ne 0 ]; then
	skip "the probe language: needs root"
	exit
fi

# --- cases of tests/fixtures/probe/language.txt ------------------------------------------------------------
cat >cases.py <<'E'
import re, subprocess, sys
cases, sections = [], []
for line in open(sys.argv[2], encoding="utf-8"):
    if line.startswith("# ---"):
        sections.append([])  # each is a script: the verifier has limits for a program
    if line.strip() and not line.startswith("#"):
        name, rest = line.rstrip("\n").split(" :: ", 1)
        body, expected = rest.split(" => ", 1)
        sections[-1].append((name, body, expected.replace("\\n", "\n")))
declarations = """struct lang_pair { char a; uint64_t b; };
struct lang_bits { unsigned a : 3; unsigned b : 30; };
enum lang { LANG_ONE = 1, LANG_TWO = 42, LANG_NEXT };
"""


def script(some):
    text = declarations
    for name, body, _ in some:
        text += 'begin { printf("## %s\\n"); }\nbegin {\n%s\n}\n' % (name, body)
    return text


def run(some):
    open("cases.wr", "w", encoding="utf-8").write(script(some))
    return subprocess.run([sys.argv[1], "probe", "-q", "-i", "cases.wr", "42", "hello", "0x1f"], capture_output=True,
                          encoding="utf-8", timeout=60)


def split(out):
    found, name = {}, None
    for line in out.split("\n"):
        if line.startswith("## "):
            name = line[3:]
            found[name] = []
        elif name:
            found[name].append(line)
    return {k: "\n".join(v).rstrip("\n") for k, v in found.items()}


def is_right(expected, got):
    e = re.escape(expected[:-2] + " " if expected.endswith(" $") else expected)
    if expected.startswith("[0-9]"):
        e = expected
    return any(re.fullmatch(x, got) for x in [e] + [re.escape(p) for p in expected.split("|")])


def run_section(cases):
    whole = run(cases)
    bad = []
    if "error:" in whole.stderr or whole.returncode == 1:
        # Something does not compile: find out which, so that the others are still looked at.
        for case in cases:
            one = run([case])
            if "error:" in one.stderr or one.returncode == 1:
                bad.append(case[0])
                print("not ok %s: %s" % (case[0], next((l for l in one.stderr.split("\n") if "warning" not in l), "")))
        whole = run([c for c in cases if c[0] not in bad])
    found = split(whole.stdout)
    for name, body, expected in cases:
        if name in bad:
            continue
        got = found.get(name)
        if got is not None and is_right(expected, re.split(r"\n+@", got)[0] if name == cases[-1][0] else got):
            print("ok", name)
        else:
            print("not ok %s: expected %r, got %r" % (name, expected, got))
    losses = [l for l in whole.stderr.split("\n") if l.startswith("weir:")]
    print("not ok" if losses else "ok", "cases from %s on lose nothing" % cases[0][0], *losses)


for section in sections:
    run_section(section)
E
python3 cases.py "$WEIR" "$ROOT/tests/fixtures/probe/language.txt" || not_ok "the cases run"
