# SPDX-License-Identifier: MIT
"""Random valid scripts of the probe language, one clause a line, for the kernel's verifier to judge.

probe_verifier.py SEED CLAUSES FILE [PROGRAM...]: programs with functions f0 to f9 of three arguments
"""
import random
import sys

DECLS = """struct inner { char x; long long y; };
struct item { int a; short b; char name[6]; char tail[16]; unsigned c:3; int d:13; long long ll;
	long l; struct item *next; int arr[4]; struct inner in; double f; unsigned long long big:60;
	unsigned long long far:40; unsigned char bytes[12]; };
"""
CALLS = ("read write openat close mmap munmap fstat lseek ioctl access pipe dup getpid socket fork "
	 "execve exit kill uname fcntl flock fsync ftruncate getdents getcwd chdir rename mkdir "
	 "rmdir link unlink symlink readlink chmod chown umask getuid sysinfo ptrace syslog setuid "
	 "getppid setsid utime statfs prctl sync mount reboot gettid futex tkill splice tee").split()
ARITHMETIC = ["+", "-", "*", "&", "|", "^"]
COMPARE = ["==", "!=", "<", "<=", ">", ">="]
CASTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "long", "bool"]


class Clause:
	def __init__(self, rng, kind):
		self.rng = rng
		self.kind = kind  # entry, return, or other
		self.depth = 0
		self.loops = 0
		self.left = 14  # statements
		self.has_stack = False

	def pick(self, *choices):
		return self.rng.choice(choices)

	def number(self, depth=0):
		r = self.rng
		if depth > 3 or r.random() < 0.3:
			return self.leaf()
		n = lambda: self.number(depth + 1)
		k = r.randrange(12)
		if k < 4:
			return f"({n()} {r.choice(ARITHMETIC)} {n()})"
		if k == 4:
			return f"({n()} {r.choice(['/', '%'])} {self.pick('7', '-3', '($a | 1)', '$b', '1000000')})"
		if k == 5:
			return f"({n()} {r.choice(['<<', '>>'])} {self.pick('3', '31', '$c', '63')})"
		if k == 6:
			return f"({self.condition(depth + 1)} ? {n()} : {n()})"
		if k == 7:
			return f"({r.choice(CASTS)}){n()}"
		if k == 8:
			return f"{r.choice(['-', '~', '!'])}({n()})"
		if k == 9:
			return f"({self.condition(depth + 1)})"
		if k == 10:
			return f"bswap((uint{self.pick(16, 32, 64)}){n()})"
		return self.from_text(depth + 1)

	def from_text(self, depth):
		t = self.text(depth)
		return self.pick(f"strlen({t})", f'strncmp({t}, "abcdef", 4)', 'strcontains(comm, "eir")',
				 f"strcmp({t}, {self.text(3)})")

	def leaf(self):
		leaves = ["$a", "$b", "$c", "$d", "pid", "tid", "uid", "gid", "cpu", "nsecs", "rand", "elapsed", "bits",
			  "0", "1", "-1", "255", "0x80000000", "0xffffffffffffffff", "9223372036854775807", "@n",
			  "@i[$a]", "@is[pid, comm]", "self->n", "sizeof(struct item)", "offsetof(struct item, l)",
			  "$t.0", "cgroup", "($a++)", "(--$b)"]
		if self.kind == "entry":
			leaves += ["arg0", "arg1", "arg5", "$p->a", "$p->b", "$p->c", "$p->d", "$p->ll", "$p->l", "$p->big",
				   "$p->far", "$p->arr[2]", "$p->arr[arg0]", "$p->in.y", "$p->next->a", "$p->bytes[3]",
				   "$s.a", "$s.d", "$s.big", "$s.far", "$s.arr[1]", "$s.in.y", "(*(int16 *)arg1)",
				   "(*(uint64 *)(arg0 + 8))", "(uint64)$p->next", "(uint64)($p + 2)"]
		if self.kind == "return":
			leaves += ["retval", "(int32)retval"]
		return self.rng.choice(leaves)

	def text(self, depth=0):
		texts = ["comm", '"abc"', '"a longer text of twenty-odd bytes"', "$x", "self->s", "@s", "$t.1"]
		if self.kind == "entry":
			texts += ["str(arg1)", "str(arg0, 16)", "str(arg0, 33)", "str(arg2, 300)", "$p->name", "$p->tail",
				  "$s.name", "$s.tail", "str($p->tail)", "$p->next->name"]
		if depth < 2 and self.rng.random() < 0.2:
			return f"({self.condition(2)} ? {self.text(depth + 1)} : {self.text(depth + 1)})"
		return self.rng.choice(texts)

	def condition(self, depth=0):
		k = self.rng.randrange(6)
		if k < 3 or depth > 3:
			return f"{self.number(depth + 2)} {self.rng.choice(COMPARE)} {self.number(depth + 2)}"
		if k == 3:
			return f"{self.text(1)} {self.pick('==', '!=')} {self.text(2)}"
		if k == 4:
			return f"({self.condition(depth + 1)}) {self.pick('&&', '||')} ({self.condition(depth + 1)})"
		return f"!({self.condition(depth + 1)})"

	def stack(self):
		if self.has_stack or self.loops or self.kind == "interval":
			return "ksym(1)"
		self.has_stack = True
		return self.pick("kstack", "kstack(3)", "ustack", "ustack(5)")

	def output(self):
		return self.pick(f'printf("%d %s %x\\n", {self.number(2)}, {self.text(1)}, {self.number(2)});',
				 f'printf("%p %c %lld %u\\n", {self.number(3)}, 65, {self.number(3)}, {self.number(3)});',
				 f"print(({self.number(2)}, {self.text(1)}, ({self.number(3)}, comm)));",
				 f"print({self.number(2)});", f"print({self.text(1)});", 'time("%H:%M:%S\\n");', "print(@i);",
				 "clear(@s2);", f"print(usym({self.number(3)}));", 'print(strftime("%H", nsecs));',
				 f"print(ntop((uint32){self.number(3)}));", "print($t);", "printf(\"%s\", probe);")

	def aggregate(self):
		n = self.number(1)
		return self.pick("@count[comm] = count();", f"@sum[pid] = sum({n});", f"@avg = avg({n});",
				 f"@min[{self.number(3)}] = min((int64){n});", f"@max = max((uint64){n});", f"@stats = stats({n});",
				 f"@hist[comm] = hist((uint64){n});", f"@hist2 = hist((int64){n});",
				 f"@lhist = lhist({n}, -100, 1000, 7);", f"@lhist2[cpu] = lhist({n}, 0, 100, 1);",
				 f"@byks[{self.pick('kstack(2)', 'kstack')}] = count();" if self.stack() != "ksym(1)"
				 else "@byksym[ksym(1)] = count();")

	def assign(self):
		v = self.pick("$a", "$b", "$c", "$d")
		return self.pick(f"{v} = (int64){self.number()};", f"{v} {self.pick('+=', '-=', '*=', '|=', '^=')} {self.number(1)};",
				 f"{v}++;", f"@n = (int64){self.number()};", f"@i[{self.number(2)}] = (int64){self.number(1)};",
				 f"@is[{self.number(2)}, {self.text(1)}] {self.pick('=', '+=')} (int64){self.number(2)};", "@i[pid]++;",
				 f"@s = {self.text()};", f"@s2[{self.number(3)}] = {self.text(1)};", f"self->n = (int64){self.number(1)};",
				 f"self->s = {self.text(1)};", f"$t = ((int64){self.number(2)}, comm);", "$t = ($t.0 + 1, $t.1);",
				 f"@tuple[({self.number(3)}, comm)] = ({self.number(3)}, {self.number(3)});", "delete(@i[pid]);",
				 "@m %= 7; @m /= 2; @m <<= 1;", "delete(@is[1, comm]);")

	def of_entry(self):
		if self.kind != "entry":
			return self.output()
		return self.pick("@buf = buf(arg1, 16);", "print(buf(arg1, arg2));", "print($p->in.y);",
				 "print($s.arr[0]);", "print($s.name);", "join(arg1);", "@bytes[buf($p->bytes, 12)] = count();",
				 "@name[$p->name, $s.tail] = count();", "$s = *$p;")

	def statement(self):
		self.left -= 1
		if self.left < 0:
			return "$a++;"
		k = self.rng.randrange(20)
		if k < 7:
			return self.assign()
		if k < 10:
			return self.aggregate()
		if k < 13:
			return self.output()
		if k < 15:
			return self.of_entry()
		if self.depth >= 2:
			return self.assign()
		self.depth += 1
		text = self.nested(k)
		self.depth -= 1
		return text

	def nested(self, k):
		if k < 18:
			text = f"if ({self.condition()}) {{ {self.statements(3)} }}"
			return text + (f" else {{ {self.statements(2)} }}" if self.pick(True, False) else "")
		self.loops += 1
		if k == 18 and self.loops == 1:
			v = f"$i{self.left}"
			text = self.pick(f"for ({v} : 0..{self.pick(3, 10, 40)}) {{ @i[{v}] = {v}; {self.statements(1)} }}",
					 f"while ({self.condition(3)}) {{ $a++; {self.statements(1)} if ($a > 5) {{ break; }} }}",
					 f"for ({v} : 0..$b) {{ @n += {v}; if ({self.condition(3)}) {{ continue; }} }}")
		else:
			text = f"unroll({self.pick(2, 3, 5)}) {{ {self.statements(1)} }}"
		self.loops -= 1
		return text

	def statements(self, n):
		return " ".join(self.statement() for _ in range(self.rng.randint(1, n)))

	def body(self):
		head = '$a = (int64)pid; $b = (int64)3; $c = (int64)nsecs; $d = (int64)0; $x = comm; $t = ((int64)1, comm);'
		if self.kind == "entry":
			head += " $p = (struct item *)arg1; $s = *$p;"
		return f"{head} {self.statements(6)}"


def points(rng, n, programs):
	out = [(f"syscall:{c}:entry", "entry") for c in CALLS] + [(f"syscall:{c}:return", "return") for c in CALLS]
	out += [(f"interval:s:{1000 + i}", "interval") for i in range(20)]
	out += [("profile:s:1000", "other"), ("software:alignment-faults:1000", "other"), ("software:emulation-faults:1000", "other")]
	for program in programs:
		out += [(f"uprobe:{program}:f{i}", "entry") for i in range(10)]
		out += [(f"uretprobe:{program}:f{i}", "return") for i in range(10)]
	rng.shuffle(out)
	return [out[i % len(out)] for i in range(n)]


def main():
	seed, n, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
	rng = random.Random(seed)
	lines = [DECLS.replace("\n", " "), "begin { exit(); }",
		 'begin { @s = ""; @n = (int64)0; @m = (int64)0; self->n = (int64)0; self->s = comm; @i[0] = (int64)0; @is[0, comm] = (int64)0; '
		 '@s2[0] = comm; }']
	if rng.random() < 0.5:
		lines.append('error { printf("%d %d\\n", errno, errline); @errors[errno] = count(); }')
	for point, kind in points(rng, n, sys.argv[4:]):
		clause = Clause(rng, kind)
		predicate = f" /{clause.condition(2)}/" if rng.random() < 0.3 else ""
		if any(word in predicate for word in ("$", "/ ")):
			predicate = ""
		lines.append(f"{point}{predicate} {{ {clause.body()} }}")
	with open(path, "w") as out:
		out.write("\n".join(lines) + "\n")


main()
