# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, driven through its debugging pipe: JSON messages that end with a zero byte, on descriptors 3 and 4."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 90
NAMES = ("chromium", "chromium-browser", "google-chrome")
KEYS = {"+": (187, "+"), "0": (48, "0"), "ArrowRight": (39, None), "ArrowLeft": (37, None)}


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. `problems` holds what went wrong in it: exceptions, and errors of its console."""

    def __init__(self, program, width=1400, height=1000):
        self.folder = tempfile.mkdtemp(prefix="qpscope-browser-")
        self.number, self.left, self.session, self.problems = 0, b"", None, []
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()
        flags = ["--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={self.folder}",
                 f"--window-size={width},{height}"] + (["--no-sandbox"] if os.geteuid() == 0 else [])

        def place():
            read, write = os.dup(to_read), os.dup(from_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen([program, *flags, "about:blank"], preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(from_write)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")

    def read(self):
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.monotonic()))
            part = os.read(self.back, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser ended" if ready else f"the browser was silent for {PATIENCE_S} s")
            self.left += part
        message, self.left = self.left.split(b"\0", 1)
        return json.loads(message)

    def notice(self, message):
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(message["params"]["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.problems.append(message["params"]["entry"]["text"])

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.notice(answer)

    def visit(self, url):
        self.ask("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.href === {url!r}")

    def open(self, path):
        self.ask("Page.navigate", url="file://" + path)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, script):
        """What the page's own scripts make of an expression."""
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait(self, script):
        until = time.monotonic() + PATIENCE_S
        while not self.value(script):
            if time.monotonic() > until:
                raise RuntimeError(f"it never came to {script}")
            time.sleep(0.05)

    def drawn(self):
        """Until what was asked to be drawn is."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1, buttons=1)

    def key(self, key):
        code, text = KEYS[key]
        more = {"text": text} if text else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def close(self):
        try:
            self.session = None
            self.ask("Browser.close")
        except (RuntimeError, OSError):
            self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)
