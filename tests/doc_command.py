"""A document command for tests: `python doc_command.py LOG DOCID` does what the id says, and writes each start and end to LOG."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TEXT = "Text of {}.\r\n\tLine two, \u00e9\u4e2d\U0001d538.\n"


def wait_for(what):
    for _ in range(4000):
        if what():
            return
        time.sleep(0.01)
    sys.exit("nobody came")


def main(log: Path, docid: str) -> None:
    def note(event: str) -> None:
        with open(log, "a", encoding="utf-8") as handle:
            handle.write(f"{event} {docid} {os.getpid()}\n")

    def starts() -> int:
        return log.read_text(encoding="utf-8").count(f"start {docid} ")

    note("start")
    kind = docid.rpartition("-")[0]
    printed = TEXT.format(docid).encode()
    if kind == "fails-twice" and starts() < 3:
        print("a warning\n\x1b[31mnot\tyet\x00", file=sys.stderr)
        sys.exit(7)
    if kind == "hangs-once" and starts() == 1 or kind == "hangs":
        print("half a text", flush=True)
        subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])  # of the same group
    if kind == "meets":  # three commands at once, or none ends well
        wait_for(lambda: len({word for word in log.read_text().split() if word.startswith("meets-")}) >= 3)
    if kind == "waits":  # until the test says go
        wait_for((log.parent / "go").exists)
    if kind == "leaves":  # a grandchild that keeps the pipe
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        log.with_name("grandchild").write_text(str(child.pid))
    if kind == "frees":  # one that does not
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if kind == "closes":  # the answer is whole, then it fails
        os.write(1, printed)
        os.close(1)
        time.sleep(0.2)
        sys.exit(5)
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "exits":
        print("no such document: " + "x" * 500, file=sys.stderr)
        sys.stdout.write("an error page")
        sys.exit(3)
    if kind == "floods":
        for _ in range(100):
            os.write(1, b"x" * (1 << 20))
    if kind == "long":
        printed = b"y" * (3 << 20) + printed
    printed = {"empty": b"", "blank": b"\xef\xbb\xbf \n\xc2\xa0\n", "latin": "caf\u00e9 \u00fc".encode("latin-1"), "nul": b"a\0b"}.get(kind, printed)
    if kind == "chatters":  # more than a pipe holds, on the wrong one
        sys.stderr.write("z" * (1 << 20))
    while printed:
        printed = printed[os.write(1, printed):]
    note("end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
