# SPDX-License-Identifier: MIT
"""The page of weir view and of weir report --html in a real browser, beside speedscope: one run, the same profiles.

  view.py WORK-FOLDER TOOLS-FOLDER    prints Markdown
  view.py                             replaces its section of bench/RESULTS.md; about 5 minutes

The environment: WEIR (program), BENCH_QUICK=1 (small trees and traces, one round), BENCH_ROUNDS=n, CHROMIUM,
BENCH_PARTS=pictures,frames,large,page (some of them only), BENCH_ALONE=1 (as root: real-time priority while pictures
and frames are measured, so that what others on the machine do is not). Each page is opened in a browser of its own and asks a
server of its own; bench/view/pictures.mjs says what is measured there. Pictures are in TOOLS-FOLDER/screens. Figures
are the best of the rounds, and of tries while frames are late: on a machine that others use too, noise only adds.
"""
import contextlib
import functools
import http.server
import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "1" if quick else "3"))
weir = os.environ.get("WEIR", os.path.join(root, "build", "weir"))
TITLE = "## The page of weir view"
SPEEDSCOPE = "speedscope@1.25.0"
FRAMES = 60 if quick else 120
TRIES = 1 if quick else 3
LARGE_BYTES = 20_000_000 if quick else 2_000_000_000
PICTURE_AIM_MS, RATE_AIM, PAGE_AIM_KB = 1000, 60, 300
RATE_NOISE = 0.98  # 59 of 60 frames: one is late on any machine
CORE = ["-lzstd", "-llzma", "-lz", "-ldeflate", "-liberty", "-lZydis", "-lpthread", "-lm"]


# ---- profiles ----

def samples_text(f, breadth, depth, chain):
    """One sample for each leaf of a tree; `chain` functions on the way from each branching to the next."""
    def names(level, path):
        if chain == 1:
            return f"level{level}_f{path[level]}"
        caller = path[level - 1] if level else 0
        return " ".join(f"level{level}_f{caller}_{path[level]}_{k}" for k in range(chain))
    for path in itertools.product(range(breadth), repeat=depth):
        f.write("main " + " ".join(names(level, path) for level in range(depth)) + "\n")


def events_text(f, breadth, depth):
    """Each node of the same tree is called once, for a time of its own."""
    r, now = random.Random(1), 0

    def call(name, level):
        nonlocal now
        f.write(f"{now} enter {name}\n")
        for k in range(breadth if level < depth else 0):
            now += r.randrange(40, 400)
            call(f"level{level}_f{k}", level + 1)
        now += r.randrange(40, 400)
        f.write(f"{now} leave {name}\n")
    call("main", 0)


class Profile:
    """A trace and what is made of it. `text` writes what `weir import KIND` reads."""

    def __init__(self, title, path, kind, text):
        self.title, self.trace, self.html, self.folded = title, path + ".weir", path + ".html", path + ".folded"
        with open(path + ".txt", "w") as f:
            text(f)
        run([weir, "import", kind, path + ".txt", "-o", self.trace])
        os.unlink(path + ".txt")
        start = time.monotonic()
        run([weir, "report", "--html", self.html, self.trace])
        self.html_s = time.monotonic() - start


def run(argv, **more):
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if p.returncode not in (0, 3):
        raise SystemExit(f"{argv}: status {p.returncode}: {p.stderr}")
    return p.stdout


def make_trees(work):
    shapes = [("10^4", 10, 4, 1), ("10^5", 10, 5, 1), ("5x10^5", 14, 5, 1), ("5x10^5, 42 deep", 9, 5, 8)]
    return [Profile(title, os.path.join(work, f"tree{i}"), "samples",
                    functools.partial(samples_text, breadth=breadth, depth=depth, chain=chain))
            for i, (title, breadth, depth, chain) in enumerate(shapes[:1] if quick else shapes)]


def make_events(work):
    shapes = [("10^4", 10, 4), ("10^5", 10, 5), ("5x10^5", 14, 5)]
    return [Profile(title, os.path.join(work, f"events{i}"), "events",
                    functools.partial(events_text, breadth=breadth, depth=depth))
            for i, (title, breadth, depth) in enumerate(shapes[:1] if quick else shapes)]


# ---- pages ----

@contextlib.contextmanager
def viewed(trace):
    """weir view of a trace: its address, and what is known of the process when it has ended."""
    start = time.monotonic()
    with subprocess.Popen([weir, "view", trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
        said = ""
        for line in p.stdout:
            said += line
            if found := re.search(r"http://127\S+", line):
                break
        else:
            raise SystemExit(f"weir view {trace}: no address: {said}")
        known = {"url": found.group(0)}
        with urllib.request.urlopen(known["url"]) as page:
            known["bytes"] = len(page.read())
        known["ready_ms"] = (time.monotonic() - start) * 1e3
        try:
            yield known
            with open(f"/proc/{p.pid}/status") as status, open(f"/proc/{p.pid}/stat") as stat:
                kb = dict(re.findall(r"(\w+):\s+(\d+) kB", status.read()))
                known["mb"], known["own_mb"] = int(kb["VmHWM"]) / 1e3, int(kb["RssAnon"]) / 1e3
                known["cpu"] = sum(int(x) for x in stat.read().rpartition(")")[2].split()[11:13]) * 1e3 / os.sysconf("SC_CLK_TCK")
        finally:
            p.send_signal(signal.SIGINT)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The files of a folder, for a page that wants a server."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def opened(viewer, url, acts=None, screen=None):
    job = {"viewer": viewer, "url": url, "name": "^(main|le)", "n": FRAMES, "acts": acts or {}, "tries": TRIES, "enough": RATE_AIM * RATE_NOISE,
           "screen": screen and os.path.join(screens, screen)}
    return json.loads(run(["node", os.path.join(here, "view", "pictures.mjs"), json.dumps(job)],
                          env=dict(os.environ, ROOT=root)))


def open_viewed(profile, *more):
    with viewed(profile.trace) as known:
        result = opened("weir", known["url"], *more)
    return dict(result, **known)


def open_file(profile, *more):
    return opened("weir", "file://" + profile.html, *more)


def open_speedscope(profile, *more):
    """As a file that the program `speedscope` would open, but by a server, which is quicker than its base64."""
    if not os.path.exists(profile.folded):
        run([weir, "export", "folded", profile.trace, "-o", profile.folded])
        os.symlink(profile.folded, os.path.join(speedscope, os.path.basename(profile.folded)))
    with served(speedscope) as url:
        return opened("speedscope", f"{url}index.html#profileURL={url}{os.path.basename(profile.folded)}", *more)


def install_speedscope(work):
    """The folder of its page, or why it is not here."""
    if not shutil.which("npm"):
        return None, "npm is not here"
    p = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", work, SPEEDSCOPE],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    page = os.path.join(work, "node_modules", "speedscope", "dist", "release")
    return (page, None) if os.path.isfile(os.path.join(page, "index.html")) else (None, p.stdout.strip()[-300:])


# ---- figures ----

def spread(values, unit=""):
    """The least, which is the figure, and the most."""
    values = sorted(values)
    if len(values) == 1:
        return f"{values[0]:.0f}{unit}"
    return f"{values[0]:.0f}{unit} (to {values[-1]:.0f})"


def cost_cells(all_of):
    def of_weir(key):
        return f"{min(r[key] for r in all_of):.0f}" if key in all_of[0] else "."
    cpu, mb = (min(r["tab"][key] for r in all_of) for key in ("cpu", "kB"))
    own = f" ({of_weir('own_mb')})" if "own_mb" in all_of[0] else ""
    return f"{cpu:.0f} | {of_weir('cpu')} | {mb / 1e3:.0f} | {of_weir('mb')}{own}"


def verdict(reached):
    return "reached" if reached else "**not reached**"


def of_pages():
    """(name, how to open) of each viewer that is here"""
    return [("weir view", open_viewed), ("weir's file", open_file)] + ([("speedscope", open_speedscope)] if speedscope else [])


def pictures(trees):
    print(f"First picture, ms from the beginning of the navigation to the first frame that shows the functions of the "
          f"profile: least of {rounds} (to the most; aim: at most {PICTURE_AIM_MS}). `weir view` is started anew each "
          "time and builds its tree within this time; the file has its trace in it and does the same in the browser; "
          "speedscope reads folded stacks that `weir export` wrote before. CPU time until then, of the tab (all its "
          "threads, its start included) and of weir, hardly depends on what else the machine does. Memory: what the tab has then "
          "(its share of pages, PSS), and the most that weir had (what it has at the end without the mapped trace).\n")
    print("| tree | viewer | first picture, ms | longest frame before it, ms | tab, CPU ms | weir, CPU ms | tab, MB | weir, MB |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|")
    worst = 0
    for tree in trees:
        seen = {name: [] for name, _ in of_pages()}
        for _ in range(rounds):
            for name, visit in of_pages():
                print(f"bench: view, first picture: {tree.title}, {name}", file=sys.stderr)
                seen[name].append(visit(tree))
        for name, all_of in seen.items():
            ms = [r["picture"] for r in all_of]
            if name != "speedscope":
                worst = max(worst, min(ms))
            print(f"| {tree.title} | {name} | {spread(ms)} | {spread([r['longest'] for r in all_of])} | {cost_cells(all_of)} |", flush=True)
    print(f"\n- first picture within {PICTURE_AIM_MS} ms for every tree: the slowest takes {worst:.0f} ms, {verdict(worst <= PICTURE_AIM_MS)}\n")


def rate_of(act):
    return 1000 * len(act["times"]) / sum(act["times"])


def frame_cells(act):
    if act["empty"] > len(act["times"]) / 10:
        return f"nothing is drawn in {act['empty']} of {len(act['times'])} frames | | | "
    times = sorted(act["times"])
    return f"{statistics.median(times):.1f} | {times[int(len(times) * 0.95)]:.1f} | {times[-1]:.1f} | {rate_of(act):.1f}"


def frame_rows(title, name, visit, acts, screen):
    """Prints the rows of one page; gives the least rate of it."""
    print(f"bench: view, frames: {title}, {name}", file=sys.stderr)
    found = visit(acts, screen)["acts"]
    for pane in acts:
        cells = [frame_cells(found[f"{pane} {act}"]) for act in ("pan", "zoom")]
        print(f"| {title} | {name} | {pane} | {' | '.join(cells)} |", flush=True)
    return min(rate_of(a) if not a["empty"] > len(a["times"]) / 10 else 0 for a in found.values())


def frames(trees, events):
    print(f"Frames: {FRAMES} of them, each with one event of a wheel, once to pan within a zoomed picture and once to zoom in "
          "and out; ms from one requestAnimationFrame to the next, and frames a second (aim: 60, and at least "
          f"{RATE_AIM * RATE_NOISE:.0f} counts as that). Where it is less, it is tried again, {TRIES} times in all, and the best try counts. "
          "A frame counts when a canvas was drawn in it. The browser has no screen and no "
          "graphics processor: all is drawn by the CPU, also speedscope's WebGL, which a graphics processor would make "
          "quicker. The call graph is that of all functions (filter 0), the timeline that of a trace of events.\n")
    print("| tree | viewer | pane | pan: median | 95 % | worst | frames/s | zoom: median | 95 % | worst | frames/s |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    both, least = ["pan", "zoom"], RATE_AIM
    for i, tree in enumerate(trees):
        for name, visit in of_pages():
            acts = {"flame": both} if name == "speedscope" else {"flame": both, "graph": both}
            rate = frame_rows(tree.title, name, functools.partial(visit, tree), acts, f"{name.split()[-1]}{i}")
            least = least if name == "speedscope" else min(least, rate)
    for i, trace in enumerate(events):
        for name, visit in of_pages()[:2]:
            least = min(least, frame_rows(trace.title, name, functools.partial(visit, trace), {"timeline": both},
                                          f"{name.split()[-1]}-events{i}"))
    print(f"\n- 60 frames a second in all panes of weir: the least is {least:.1f}, {verdict(least >= RATE_AIM * RATE_NOISE)}\n")


def large(work):
    print("Large traces, made by bench/view/traces.c through the writer of recordings: `weir view` until it answers, and "
          f"then the page's first picture (least of {rounds}; the largest once).\n")
    print("| trace | bytes | answers, ms | first picture, ms | tab, CPU ms | weir, CPU ms | tab, MB | weir, MB |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|")
    tool = os.path.join(work, "traces")
    run(["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-I" + os.path.join(root, "src"), "-o", tool,
         os.path.join(here, "view", "traces.c"), os.path.join(os.path.dirname(weir), "libweircore.a"), *CORE])
    large_row(work, [tool, "samples"], "samples", "of two CPUs, a tree of 5x10^5 nodes", [], rounds)
    if shutil.disk_usage(work).free < 2 * LARGE_BYTES:
        print(f"\nNot the one of {LARGE_BYTES:,} bytes: there is no room for it.\n")
        return
    large_row(work, [tool, "events"], "events", "of hooked functions in four threads", [str(LARGE_BYTES)], 1)
    print()


def large_row(work, tool, what, of, more, n):
    print(f"bench: view, large: {what}", file=sys.stderr)
    path = os.path.join(work, what + ".weir")
    n_records = int(run([*tool, path, *more]))
    try:
        seen = []
        for _ in range(n):
            with viewed(path) as known:
                result = opened("weir", known["url"])
            seen.append(dict(result, **known))
        print(f"| {n_records:,} {what} {of} | {os.path.getsize(path):,} | {spread([r['ready_ms'] for r in seen])} "
              f"| {spread([r['picture'] for r in seen])} | {cost_cells(seen)} |", flush=True)
    finally:
        os.unlink(path)


def page_bytes(work):
    dist = os.path.join(root, "web", "dist")
    raw = {f: os.path.getsize(os.path.join(dist, f)) for f in sorted(os.listdir(dist))}
    smallest = os.path.join(work, "smallest")
    with open(smallest + ".txt", "w") as f:
        f.write("main\n")
    run([weir, "import", "samples", smallest + ".txt", "-o", smallest + ".weir"])
    run([weir, "report", "--html", smallest + ".html", smallest + ".weir"])
    with viewed(smallest + ".weir") as known:
        sent = known["bytes"] + sum(fetched(known["url"] + f) for f in ("page.js", "page.css"))
    file_bytes = os.path.getsize(smallest + ".html")
    peer = sum(os.path.getsize(os.path.join(speedscope, f)) for f in os.listdir(speedscope)
               if f.endswith((".js", ".css", ".html", ".woff2"))) if speedscope else None
    print(f"Bytes (aim: at most {PAGE_AIM_KB} kB): web/dist has {', '.join(f'{f} {n:,}' for f, n in raw.items())}.\n")
    for what, n in (("as `weir view` sends it", sent), ("a file of `weir report --html` for a trace of one sample", file_bytes)):
        print(f"- {what}: {n:,} bytes, {verdict(n <= PAGE_AIM_KB * 1000)}")
    if peer:
        print(f"- speedscope's page: {peer:,} bytes")
    print()


def fetched(url):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})) as answer:
        return len(answer.read())


FIREFOX = """Firefox Profiler's own front end is not beside it, since it cannot be had here: npm has no version of a package
`firefox-profiler`, and none under the other names that were tried (`@firefox-devtools/profiler`, `-core`, `perf.html`,
`profiler.firefox.com`, `profile-viewer`); `@firefox-devtools/profiler-cli` 0.10.0, which is there, has its code for reading
and summing, but no page. Debian has no package of it: its Firefox, too, loads the page from profiler.firefox.com.
Its sources are on GitHub alone, which this machine does not reach.
"""


@contextlib.contextmanager
def alone():
    """Whatever is started within goes before all others on the machine, if that is asked for."""
    if os.environ.get("BENCH_ALONE") != "1":
        yield
        return
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def section(work):
    global speedscope
    print(TITLE + "\n")
    missing = [what for what, is_here in (("node", shutil.which("node")), ("chromium", shutil.which(os.environ.get("CHROMIUM", "chromium"))),
                                          ("web/node_modules (make web-deps)", os.path.isdir(os.path.join(root, "web", "node_modules", "playwright-core"))))
               if not is_here]
    if missing:
        print(f"Left out: {' and '.join(missing)}: not here.\n")
        return
    speedscope, why = install_speedscope(work)
    browser = run([os.environ.get("CHROMIUM", "chromium"), "--version", "--no-sandbox"]).strip()
    print(f"In {browser}, headless, 1280x800, beside {f'{SPEEDSCOPE} of npm, interleaved' if speedscope else 'nothing'}. "
          f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; load average at the start: "
          f"{' '.join(f'{x:.2f}' for x in os.getloadavg())}.\n")
    if os.environ.get("BENCH_ALONE") == "1":
        print("Pictures and frames were measured with real-time priority: what others on the machine do is not in them.\n")
    if not speedscope:
        print(f"speedscope could not be had: {why}\n")
    parts = os.environ.get("BENCH_PARTS", "pictures,frames,large,page").split(",")
    trees = make_trees(work) if "pictures" in parts or "frames" in parts else []
    events = make_events(work) if "frames" in parts else []
    with alone():
        if "pictures" in parts:
            pictures(trees)
        if "frames" in parts:
            frames(trees, events)
    if "large" in parts:
        large(work)
    if "page" in parts:
        page_bytes(work)
    print(FIREFOX)


def replace_section(text):
    path = os.path.join(root, "bench", "RESULTS.md")
    with open(path) as f:
        old = f.read()
    at = old.find(TITLE)
    at = at if at >= 0 else old.find("## The parts")
    end = old.find("\n## ", at + 1) + 1 if old.startswith(TITLE, at) else at
    with open(path, "w") as f:
        f.write(old[:at] + text + old[end:])
    print(f"bench: written to {path}", file=sys.stderr)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what is large is removed
tools = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else os.path.join(os.path.dirname(weir), "bench")
screens = os.path.join(tools, "screens")
os.makedirs(screens, exist_ok=True)
speedscope = None
if len(sys.argv) > 1:
    own = os.path.join(os.path.abspath(sys.argv[1]), "view")
    os.makedirs(own)
    section(own)
    shutil.rmtree(own)
else:
    with tempfile.TemporaryDirectory(dir=tools) as own, contextlib.redirect_stdout(io.StringIO()) as said:
        section(own)
    replace_section(said.getvalue())
