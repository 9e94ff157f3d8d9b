#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""deploy_check.py DEPLOY UNITS PROGRAM...: service files, their example configurations and the Kubernetes file, as TAP.

Each option that they give stands in --help of the program that gets it; where systemd-analyze is installed it reads the units.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEPLOY, UNITS, PROGRAMS = sys.argv[1], sys.argv[2], {os.path.basename(path): path for path in sys.argv[3:]}
DAEMONS = sorted(name for name in PROGRAMS if name != "qpscope")
EXPOSURE_MOST = {"qpscope-correlator": 25, "qpscope-nic": 35, "qpscope-host": 45}  # tenths of systemd-analyze's scale, 100 is the worst
RIGHTS = {"qpscope-correlator": "", "qpscope-nic": "CAP_NET_RAW CAP_NET_ADMIN CAP_IPC_LOCK",
          "qpscope-host": "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_CHECKPOINT_RESTORE CAP_DAC_READ_SEARCH"}
count = failed = 0


def say(name, problems):
    global count, failed
    count += 1
    failed += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for problem in problems:
        print("# " + str(problem).replace("\n", "\n# "))


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "SYSTEMD_COLORS": "0"})


def unknown_options(name, given):
    known = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", run(PROGRAMS[name], "--help").stdout, re.M))
    return [f"{name} has no --{option}" for option in given if option not in known]


def check_unit(name):
    unit = read(UNITS, name + ".service")
    program, *words = re.search(r"^ExecStart=(.*)$", unit, re.M).group(1).split()
    problems = unknown_options(name, [word[2:] for word in words if word.startswith("--")])
    problems += [] if os.path.basename(program) == name and os.path.isabs(program) else [f"it starts {program}"]
    rights = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1)
    problems += [] if rights == RIGHTS[name] else [f"its rights are {rights}"]
    say(f"{name}.service starts {name}, with the rights that it needs", problems)
    example = os.path.join(DEPLOY, "systemd", name + ".conf")
    done = run(PROGRAMS[name], "--config", example, "--check-config")
    problems = [done] if done.returncode != 0 else []
    hidden = re.findall(r"^# ([\w-]+) = ", read(example), re.M)
    say(f"{name}.conf is right, with what is commented out in it", problems + unknown_options(name, hidden))


def check_with_systemd(name, folder):
    path = os.path.join(folder, name + ".service")
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^ExecStart=\S+", "ExecStart=" + os.path.abspath(PROGRAMS[name]), read(UNITS, name + ".service"), flags=re.M))
    done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path)
    say(f"systemd reads {name}.service", [done] if done.returncode != 0 or name in done.stderr else [])
    done = run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MOST[name]}", path)
    say(f"systemd finds {name}.service no more exposed than it has to be", [done.stdout[-300:], done.stderr] if done.returncode != 0 else [])


def check_kubernetes():
    text = re.sub(r"(^|\s)#.*", "", read(DEPLOY, "kubernetes/qpscope.yaml"))
    found = re.findall(r"command: \[([\w-]+)\]\s+args: \[([^\]]*)\]", text)
    problems = [] if sorted(name for name, _ in found) == sorted(RIGHTS) else [f"it starts {found}"]
    for name, arguments in found:
        if name in PROGRAMS:
            problems += unknown_options(name, re.findall(r"--([\w-]+)", arguments.replace("--eal, --no-huge", "--eal")))
        added = re.search(rf"command: \[{name}\].*?capabilities: \{{drop: \[ALL\](?:, add: \[([^\]]*)\])?", text, re.S).group(1) or ""
        rights = " ".join("CAP_" + word for word in added.split(", ") if word)
        problems += [] if rights == RIGHTS[name] else [f"{name} has {rights}"]
    say("the Kubernetes file gives options that there are, and the same rights", problems)


def main():
    built = sorted(os.path.basename(path) for path in glob.glob(UNITS + "/*.service"))
    say("each daemon has its service", [] if built == [name + ".service" for name in DAEMONS] else [f"built: {built}; daemons: {DAEMONS}"])
    for name in DAEMONS:
        check_unit(name)
    check_kubernetes()
    if shutil.which("systemd-analyze"):
        with tempfile.TemporaryDirectory() as folder:
            for name in DAEMONS:
                check_with_systemd(name, folder)
    print(f"1..{count}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
