# SPDX-License-Identifier: BSD-2-Clause
"""TAP lines of the lab's checks: each is a name with what was found against it."""


class Tap:
    """Prints one line a check and remembers whether all held. `shown`: findings that are printed of each."""

    def __init__(self, plan=None, shown=8):
        self.count, self.failed, self.shown = 0, 0, shown
        if plan is not None:
            print(f"1..{plan}")

    def check(self, name, findings, note=""):
        findings = list(findings)
        self.count += 1
        self.failed += bool(findings)
        print(f"{'not ok' if findings else 'ok'} {self.count} - {name}{f' ({note})' if note else ''}")
        for finding in findings[:self.shown]:
            print(f"#   {finding}")
        if len(findings) > self.shown:
            print(f"#   and {len(findings) - self.shown} more")

    @property
    def status(self):
        return 1 if self.failed else 0
