#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Turns a text file into a C string: embed.py FILE NAME
import sys

print("/* Made by embed.py. */\nconst char %s[] =" % sys.argv[2])
for line in open(sys.argv[1], encoding="utf-8"):
    text = line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    print('    "%s\\n"' % text)
print("    ;")
