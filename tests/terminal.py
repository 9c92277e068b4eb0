# SPDX-License-Identifier: MIT
"""Runs a command on a terminal of its own; tests/lib.sh has it as on_terminal.

terminal.py WHEN COMMAND...

Types Ctrl-C once: WHEN seconds after the start; when the text WHEN was shown, after 15 seconds at the latest; or, with
"never", not at all. What the command showed goes to shown.txt, with plain ends of lines; how it ended is printed.
TERMINAL_COLUMNS sets the width.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

PATIENCE = 60
when, command = sys.argv[1], sys.argv[2:]
text, seconds = None, None
try:
    seconds = float(when)
except ValueError:
    if when != "never":
        text, seconds = when.encode(), 15.0

pid, fd = pty.fork()
if pid == 0:
    if "TERMINAL_COLUMNS" in os.environ:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(os.environ["TERMINAL_COLUMNS"]), 0, 0))
    os.execvp(command[0], command)
began, is_typed, shown = time.time(), seconds is None, b""
while time.time() - began < PATIENCE:
    ready, _, _ = select.select([fd], [], [], 0.02)
    try:
        data = os.read(fd, 65536) if ready else None
    except OSError:  # the last one has closed it
        break
    if data == b"":
        break
    shown += data or b""
    if not is_typed and (time.time() - began > seconds or (text and text in shown)):
        os.write(fd, b"\x03")
        is_typed = True
with open("shown.txt", "wb") as f:
    f.write(shown.replace(b"\r\n", b"\n"))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(f"signal {-status}" if status < 0 else f"exit {status}")
