# SPDX-License-Identifier: BSD-2-Clause
# A plan: loads all probes on the guest's kernel, sets them in the stand-in libraries and, where there is one, in a real
# libnccl, and compares what they tell with what was done. OUT/load.log has the tests' lines.
# shellcheck shell=bash disable=SC2154

load_log=$lab_host/load.log
uname -r > "$load_log"
for load_test in "test_host.py $LAB_BUILD started_before noticed killed family" "test_real.py $LAB_BUILD" "test_rights.py $LAB_BUILD detach"; do
    # shellcheck disable=SC2086
    python3 "$here/../bpf/"$load_test >> "$load_log" 2>&1 || lab_say "failed: $load_test"
done
lab_say "kernel $(head -1 "$load_log"): $(grep -c '^ok' "$load_log") passed, $(grep -c '^not ok' "$load_log") failed"
lab_failures=$(grep -c '^not ok' "$load_log")
