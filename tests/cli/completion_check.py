#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""completion_check.py QPSCOPE SCHEMA FIXTURE: qpscope completion in bash, zsh and fish themselves, as TAP.

What is expected is what --help lists. A shell that is not installed is said to be skipped.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from harness import COMMAND, HERE, equal, main, run, test, text

PATIENCE_S = 60


def help_of(*arguments):
    return text(*arguments, "--help", store=None)


def complete(*words):
    """What bash offers for the last word."""
    script = (f"source <('{COMMAND}' completion bash); COMP_WORDS=(qpscope {' '.join(repr(word) for word in words)}); "
              f"COMP_CWORD={len(words)}; compopt() {{ COMPREPLY=(FILES); }}; _qpscope; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


@test
def bash_completes_what_help_lists():
    names = re.findall(r"^  ([\w-]+) ", help_of().split("Subcommands:")[1].split("Options")[0], re.M)
    equal(sorted(word for word in complete("") if not word.startswith("-")), sorted(names))
    for name in names:
        options = sorted(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", help_of(name), re.M))
        equal(sorted(complete(name, "-")), options)
    equal(complete("export", ""), ["perfetto", "csv", "ndjson"])
    equal(complete("export", "c"), ["csv"])
    equal(complete("follow", "--what", "sub"), ["submissions"])
    equal(complete("steps", "--store", ""), ["FILES"])
    equal(complete("query", "--time-limit", ""), [])


@test
def the_other_shells_have_the_same_words():
    for shell, form in (("zsh", "--{}["), ("fish", "-l {} ")):
        script = text("completion", shell, store=None)
        for name in complete("")[4:]:
            part = [line for line in script.split(f"{name}) _arguments")[-1].split(";;")[0].splitlines()] if shell == "zsh" else \
                   [line for line in script.splitlines() if f"_from {name}'" in line]
            for option in complete(name, "-"):
                assert any(form.format(option[2:]) in line for line in part), (shell, name, option)
    assert "bash, zsh" in run("completion", store=None, code=2).stderr
    assert "none of: bash, zsh, fish" in run("completion", "csh", store=None, code=2).stderr


def script_of(shell, name):
    path = os.path.join(HERE, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text("completion", shell, store=None))
    return path


def has(shell):
    if shutil.which(shell) is None:
        print(f"# {shell} is not installed: skipped")
    return shutil.which(shell) is not None


@test
def fish_offers_what_help_lists():
    if not has("fish"):
        return
    lines = ["qpscope ti", "qpscope record --agents ", "qpscope export c", "qpscope record --ag"]
    lines += [f"qpscope {name} --" for name in complete("")[4:]]
    script = f"source {script_of('fish', 'qpscope.fish')}\n" + "".join(f"complete -C '{line}'\necho '#'\n" for line in lines)
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=True,
                          env={**os.environ, "HOME": HERE})
    equal(done.stderr, "")
    offered = [[line.split("\t")[0] for line in part.splitlines()] for part in done.stdout.split("#\n")]
    equal(offered[:4], [["timeline"], ["auto", "own", "running"], ["csv"], ["--agents"]])
    for name, words in zip(complete("")[4:], offered[4:]):
        equal(sorted(words), sorted(complete(name, "-")))


class Zsh:
    """One in a terminal of its own, with the script where zsh looks for it."""

    def __init__(self):
        folder = os.path.join(HERE, "functions")
        os.makedirs(folder)
        script_of("zsh", "functions/_qpscope")
        self.shown = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": HERE, "PS1": "> "})
        self.say(f"stty cols 250; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print REA''DY\n")
        self.await_shown(rb"READY\r")

    def say(self, keys):
        os.write(self.terminal, keys.encode())

    def await_shown(self, pattern):
        until = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.shown):
            assert time.monotonic() < until, f"{pattern} is not in {self.shown}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.shown += os.read(self.terminal, 65536)

    def completes(self, line, pattern):
        self.shown = b""
        self.say(line + "\t")
        self.await_shown(pattern)
        self.say("\x15")  # the line is taken back

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@test
def zsh_completes_as_it_is_typed():
    if not has("zsh"):
        return
    zsh = Zsh()
    try:
        zsh.completes("qpscope ti", rb"timeline ")
        zsh.completes("qpscope record --ag", rb"--agents ")
        zsh.completes("qpscope record --agents ", rb"auto +own +running")
        zsh.completes("qpscope export ", rb"perfetto")
        zsh.completes("qpscope follow --what su", rb"submissions ")
        for option in complete("steps", "-"):
            zsh.completes("qpscope steps " + option[:-1], re.escape(option.encode()))
    finally:
        zsh.end()


if __name__ == "__main__":
    main()
