#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Installs what is missing, builds, runs every test. The last line is "N passed, N failed" (", N skipped" where a test
# names what it lacks); exit code 0 when none failed.
#
#   tests/run.sh              everything
#   tests/run.sh --no-lab     without the lab (no guest is booted) and without Debian 13's DPDK: what a developer runs
#                             every few minutes
#   tests/run.sh --keep DIR   keeps the lab's output there
set -uo pipefail
top=$(dirname "$(dirname "$(realpath "$0")")")
cd "$top" || exit 1
# What was started by nohup ignores SIGHUP, and so does all that it starts; tests send it.
[ -n "${QPSCOPE_TEST_SIGNALS:-}" ] || QPSCOPE_TEST_SIGNALS=default exec env --default-signal "$top/tests/run.sh" "$@"

usage() {
    sed -n '3,10s/^# \{0,1\}//p' "$0"
}
lab=1 keep=
while [ $# -gt 0 ]; do
    case $1 in
    --no-lab) lab=0 ;;
    --keep) keep=$(realpath -m "$2") && shift ;;
    -h | --help) usage && exit 0 ;;
    *) echo "run.sh: unknown option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done

LATE_S=(- 3300 2700) # after that no stage that has run once, twice is begun again
passed=0 failed=0 skipped=0 repeated=0 began=$(date +%s)
say() { printf '\n== %s (%d s)\n' "$*" $(($(date +%s) - began)); }
finish() {
    say "done"
    [ "$repeated" = 0 ] || echo "tests and stages of the lab that were run again: $repeated"
    line="$passed passed, $failed failed"
    [ "$skipped" = 0 ] || line="$line, $skipped skipped"
    echo "$line"
    [ "$failed" = 0 ]
    exit
}
stop() { # a stage that everything after it needs
    echo "not ok - $*"
    failed=$((failed + 1))
    finish
}
count() { # adds the TAP lines of a file to the totals
    passed=$((passed + $(grep -cE '^ok ' "$1") - $(grep -ciE '^ok .*# skip' "$1")))
    skipped=$((skipped + $(grep -ciE '^ok .*# skip' "$1")))
    failed=$((failed + $(grep -cE '^not ok ' "$1")))
}
tap() { # tap NAME COMMAND...: a command that prints TAP; it must end with 0 and print at least one line
    local log rc
    log=$(mktemp)
    "${@:2}" 2>&1 | tee "$log"
    rc=${PIPESTATUS[0]}
    count "$log"
    if [ "$rc" != 0 ] && ! grep -q '^not ok ' "$log"; then
        echo "not ok - $1 ended with $rc" | tee "$log.end" && count "$log.end"
    fi
    grep -qE '^(not )?ok ' "$log" || stop "$1 ran no test"
    rm -f "$log" "$log.end"
}
# An emulated guest is kept from its processor for seconds now and then, and what it timed is off. So a stage with failures
# is run again, whole, twice at most, and a check has failed when it did in every run; each failure stays in the log.
again() { # again NAME OUT COMMAND...: as tap; OUT may be empty
    local logs run rc
    logs=$(mktemp -d)
    for run in 1 2 3; do
        [ "$run" = 1 ] || { repeated=$((repeated + 1)) && say "$1, run $run"; }
        "${@:3}" ${2:+--out "$2$([ "$run" = 1 ] || echo "-$run")"} 2>&1 | tee "$logs/$run" | sed -u "s/^not ok /# run $run: not ok /"
        rc=${PIPESTATUS[0]}
        grep -qE '^(not )?ok ' "$logs/$run" || stop "$1 ran no test"
        if [ "$rc" != 0 ] && ! grep -q '^not ok ' "$logs/$run"; then
            echo "not ok - $1 ended well" >>"$logs/$run"
        else
            echo "ok - $1 ended well" >>"$logs/$run"
        fi
        if tests/lab/again.py "$logs"/[123] >"$logs/joined" || [ $(($(date +%s) - began)) -gt "${LATE_S[run]:-0}" ]; then
            break
        fi
    done
    grep -E '^not ok ' "$logs/joined"
    count "$logs/joined"
    rm -rf "$logs"
}
# Daemons, browsers and probes of many tests share the machine, and some wait for each other's times. So tests that fail, if
# they are few, are run again alone, twice at most.
meson_tests() { # meson_tests BUILD [MESON TEST ARGUMENTS...]
    local log=$1/meson-logs/testlog.json logs=() names=() run
    for run in 1 2 3; do
        if [ "$run" = 1 ]; then
            meson test -C "$1" --no-rebuild --print-errorlogs --timeout-multiplier 3 "${@:2}"
        else
            meson test -C "$1" --no-rebuild --print-errorlogs --timeout-multiplier 3 --num-processes 1 "${names[@]}"
        fi
        cp "$log" "$1/run-$run.json" || stop "no test log in $1"
        logs+=("$1/run-$run.json")
        mapfile -t names < <(tests/meson_tap.py --failed "${logs[@]}")
        [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le 6 ] && [ "$run" -lt 3 ] || break
        printf "# run $run: not ok: %s\n" "${names[@]}"
        repeated=$((repeated + ${#names[@]}))
    done
    tests/meson_tap.py "${logs[@]}" >"$1/tap.log" || stop "no test log in $1"
    grep '^not ok' "$1/tap.log"
    grep -i '# skip' "$1/tap.log"
    count "$1/tap.log"
}
build() { # build DIRECTORY [MESON SETUP ARGUMENTS...]
    if [ -f "$1/build.ninja" ]; then
        meson configure "$1" "${@:2}" >/dev/null
    else
        meson setup "$1" "${@:2}"
    fi && ninja -C "$1"
}

prometheus() { # unpacked, not installed: the package would start a server. Where it cannot be had its test is skipped
    local cache=${QPSCOPE_PROMETHEUS_CACHE:-$HOME/.cache/qpscope-prometheus}
    if ! command -v prometheus >/dev/null && [ ! -x "$cache/usr/bin/prometheus" ]; then
        mkdir -p "$cache" && (cd "$cache" && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb . && rm -f ./*.deb)
    fi
    PATH=$PATH:$cache/usr/bin
}

say "packages"
deploy/install.sh || stop "packages are missing"
prometheus
say "build"
build build || stop "the build failed"
say "tests"
meson_tests build
say "the same with AddressSanitizer and UndefinedBehaviorSanitizer"
build build-sanitize -Db_sanitize=address,undefined -Db_lundef=false -Dlab=disabled || stop "the build with sanitizers failed"
meson_tests build-sanitize --suite sanitize
say "the fuzz targets, each for a short while from its corpus"
CC=clang-14 build build-fuzz -Dfuzz=true -Db_lundef=false -Ddpdk=disabled -Dbpf=disabled -Dlab=disabled || stop "the fuzz build failed"
meson_tests build-fuzz --suite fuzz
say "the build without DPDK, mlx5, netlink and BPF"
if build build-without -Ddpdk=disabled -Dmlx5=disabled -Dpsn=disabled -Dbpf=disabled -Dlab=disabled; then
    echo "ok - builds without DPDK, mlx5, netlink and BPF" >build-without/tap.log
else
    echo "not ok - builds without DPDK, mlx5, netlink and BPF" >build-without/tap.log
fi
count build-without/tap.log
if [ "$lab" = 1 ]; then
    say "the build with DPDK 24.11, in a Debian 13 tree"
    tap "dpdk24" tests/dpdk24/check.sh
    say "lab: real RCCL over soft-RoCE in a guest"
    again "lab" "${keep:+$keep/jobs}" tests/lab/check.sh
    say "lab: two guests"
    again "pair" "${keep:+$keep/pair}" tests/lab/pair.sh
    say "lab: bad networks"
    again "disturbed" "${keep:+$keep/disturbed}" tests/lab/check_disturbed.sh
    say "lab: kinds of faults"
    again "kinds" "${keep:+$keep/kinds}" tests/lab/check_kinds.sh latency hang sockets
fi
finish
