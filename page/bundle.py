#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bundle.py OUTPUT UPLOT LACK SOURCE...: the page as one file.

SOURCEs are index.html, then style sheets and scripts in the order in which they are loaded; UPLOT is the folder of the package.
When LACK says what is missing, the output is that text.
"""
import os
import sys


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def inline(text, kind):
    """As the content of an element, which it must not end."""
    assert f"</{kind}" not in text.lower() and "<!--" not in text, f"this text would end its {kind} element"
    return text


def main():
    output, uplot, lack, index, *sources = sys.argv[1:]
    page = lack
    if not lack:
        licence = "/*! uPlot\n" + read(uplot, "LICENSE") + "*/\n"
        styles = [licence + read(uplot, "dist", "uPlot.min.css")] + [read(name) for name in sources if name.endswith(".css")]
        scripts = [licence + read(uplot, "dist", "uPlot.iife.min.js")] + [read(name) for name in sources if name.endswith(".js")]
        page = read(index).replace("@STYLE@", inline("\n".join(styles), "style"), 1)
        head, tail = page.split("@SCRIPT@")
        page = head + inline("\n".join(scripts), "script") + tail
        assert page.count("@DATA@") == 1 and page.count("@CONNECT@") == 1
    with open(output, "w", encoding="utf-8") as file:
        file.write(page + "\n")


main()
