# SPDX-License-Identifier: MIT
# Every wrong script of tests/probe/err gives the messages that its first lines name: tag, line and
# column, no other error, and status 1. Each file may expect several: // expect: TAG LINE:COL
. "$ROOT/tests/lib.sh"

cat >compare.py <<'EOF'
import glob, json, os, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

weir, folder = sys.argv[1:]

def look(path):
    text = open(path, encoding="utf-8", errors="surrogateescape").read()
    expected = sorted((tag, int(line), int(column)) for tag, line, column in
                      re.findall(r"^// expect: (\S+) (\d+):(\d+)", text, re.M))
    run = subprocess.run([weir, "probe", "--dry-run", "-f", "json", path], capture_output=True, timeout=60)
    try:
        found = json.loads(run.stderr.decode("utf-8"))
    except ValueError:
        return [f"no JSON: {run.stderr[:300]!r}"]
    errors = sorted((d["tag"], d["line"], d["column"]) for d in found if d["severity"] == "error")
    wrong = []
    if not expected:
        wrong.append("names nothing")
    if errors != expected:
        wrong.append(f"expected {expected}, got {errors}")
    if run.returncode != 1:
        wrong.append(f"status {run.returncode}")
    if any(not d["message"] or d["message"][0] in " ." for d in found):
        wrong.append("a message without a sentence")
    if os.path.basename(path).split(".")[0] not in [t for t, _, _ in expected]:
        wrong.append("the name's tag is not expected")
    return wrong

paths = sorted(glob.glob(folder + "/*.wr"))
with ThreadPoolExecutor(2) as pool:
    for path, wrong in zip(paths, pool.map(look, paths)):
        name = os.path.basename(path)
        print(f"not ok {name}: {'; '.join(wrong)}" if wrong else f"ok {name} gives its tag and column")
print(f"ok there are at least 200 of them" if len(paths) >= 200 else f"not ok there are only {len(paths)}")
EOF
python3 compare.py "$WEIR" "$ROOT/tests/probe/err"
