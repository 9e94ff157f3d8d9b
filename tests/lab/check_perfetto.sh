#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check_perfetto.sh QPSCOPE FOLDER: the exported trace, decoded again, holds what the store's rows say.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
"$1" export perfetto --store "$2/qpscope.db" -o "$trace"
"$here/../cli/perfetto_check.py" "$trace" "$2/qpscope.db"
