#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of again.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from again import joined  # noqa: E402


class Again(unittest.TestCase):
    def test_right_once_is_right(self):
        first = ["ok 1 - a: bytes (12 operations)", "not ok 2 - a: sizes (9.1 ms)", "#   step 4"]
        second = ["not ok - a: bytes (11 operations)", "ok - a: sizes (3.0 ms)"]
        self.assertEqual(joined([first, second]), ["ok 1 - a: bytes (12 operations)", "ok - a: sizes (3.0 ms)"])

    def test_wrong_in_every_run_stays_wrong(self):
        self.assertEqual(joined([["not ok - a: x (1 of 2)"], ["not ok - a: x (0 of 2)"], ["ok - a: y"]]),
                         ["not ok - a: x (0 of 2)", "ok - a: y"])

    def test_wrong_and_not_run_again_stays_wrong(self):
        self.assertEqual(joined([["not ok - a: x", "ok - a: y"], ["ok - a: y"]]), ["not ok - a: x", "ok - a: y"])

    def test_checks_of_one_name_are_told_apart_by_their_order(self):
        first, second = ["ok - port", "not ok - port"], ["not ok - port", "not ok - port"]
        self.assertEqual(joined([first, second]), ["ok - port", "not ok - port"])

    def test_what_else_was_said_is_no_part_of_a_name(self):
        self.assertEqual(joined([["not ok 1 - hang: hang; else gpu late x2"], ["ok 1 - hang: hang; else nothing"]]),
                         ["ok 1 - hang: hang; else nothing"])


if __name__ == "__main__":
    unittest.main()
