#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""help_man_check.py MAN-FOLDER PROGRAM...: what --help says and what the man pages say, as TAP.

Every option of a program's --help stands in its man page, with the same argument, and the reverse; for qpscope the same
of every subcommand and its section. Options stand in a page as "*-s*, *--long* _ARGUMENT_" or "*--long*".
"""
import glob
import os
import re
import subprocess
import sys

OPTION_IN_HELP = re.compile(r"^  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?=\s|$)", re.M)
OPTION_IN_PAGE = re.compile(r"^(?:\*-(\w)\*, )?\*--([\w-]+)\*(?: _(.+)_)?$", re.M)
count = failed = 0


def say(name, problems):
    global count, failed
    count += 1
    failed += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for problem in problems:
        print("# " + problem)


def help_of(*command):
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def options(pattern, text):
    return {tuple(part or "" for part in found) for found in pattern.findall(text)}


def sections(page):
    """Heading -> text of a page's parts, of either depth."""
    parts = re.split(r"^##? (.+)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def compare(shown, described, common=frozenset()):
    problems = [f"--{name} is in --help and not in the man page as it is there" for _, name, _ in sorted(shown - described - common)]
    problems += [f"--{name} is in the man page and not in --help as it is there" for _, name, _ in sorted(described - shown)]
    problems += [f"--{name} is said to be in every subcommand" for _, name, _ in sorted(common - shown)]
    return problems


LACKS = {"store": {"follow", "record", "merge", "check-config", "version", "completion"}, "json": {"completion"}}


def check_command(command, page):
    parts = sections(page)
    common = options(OPTION_IN_PAGE, parts["OPTIONS OF EVERY SUBCOMMAND"])
    shown = help_of(command)
    names = re.findall(r"^  ([\w-]+) ", shown.split("Subcommands:")[1].split("Options:")[0], re.M)
    described = [heading.split()[1] for heading in parts if heading.startswith("qpscope ")]
    say("qpscope has the subcommands of its man page", [] if sorted(names) == sorted(described) and len(names) > 3 else
        [f"--help: {sorted(names)}; page: {sorted(described)}"])
    for name in names:
        says = re.compile(rf"qpscope {name}\b")
        say(f"qpscope {name} has an example in --help and in the man page",
            [where for where, text in (("--help", help_of(command, name).split("--version  ")[-1]),
                                       ("the man page", "\n".join(re.findall(r"^\t.*", parts.get(f"qpscope {name}", ""), re.M))))
             if not says.search(text)])
    for name in names:
        expected = {option for option in common if name not in LACKS.get(option[1], ())}
        say(f"qpscope {name}", compare(options(OPTION_IN_HELP, help_of(command, name)),
                                       options(OPTION_IN_PAGE, parts.get(f"qpscope {name}", "")), expected))


def main():
    folder, programs = sys.argv[1], sys.argv[2:]
    for program in programs:
        name = os.path.basename(program)
        pages = glob.glob(os.path.join(folder, name + ".[18].scd"))
        if not pages:
            say(name, [f"it has no man page in {folder}"])
            continue
        with open(pages[0], encoding="utf-8") as file:
            page = file.read()
        if name == "qpscope":
            check_command(program, page)
        else:
            say(name, compare(options(OPTION_IN_HELP, help_of(program)), options(OPTION_IN_PAGE, page)))
    print(f"1..{count}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
