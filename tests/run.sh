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

passed=0 failed=0 skipped=0 repeated=0 began=$(date +%s)
say() { printf '\n== %s (%d s)\n' "$*" $(($(date +%s) - began)); }
finish() {
    say "done"
    [ "$repeated" = 0 ] || echo "tests and stages of the lab that were run twice: $repeated"
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
# An emulated guest is kept from its processor for seconds now and then, and what it timed is off. So what fails in up to
# three lines is run once more, from the start, and only what fails again has failed; the first failures stay in the log.
twice() { # twice NAME OUT COMMAND...: as tap; OUT may be empty
    local log rc bad
    log=$(mktemp)
    "${@:3}" ${2:+--out "$2"} 2>&1 | tee "$log" | sed -u 's/^not ok /# at first not ok /'
    rc=${PIPESTATUS[0]}
    bad=$(grep -cE '^not ok ' "$log")
    if [ "$bad" -gt 3 ]; then # that is no accident
        grep -E '^not ok ' "$log"
        count "$log"
    elif [ "$bad" -gt 0 ] || [ "$rc" != 0 ]; then
        repeated=$((repeated + 1))
        say "$1, once more"
        tap "$1" "${@:3}" ${2:+--out "$2-again"}
    else
        grep -qE '^ok ' "$log" || stop "$1 ran no test"
        count "$log"
    fi
    rm -f "$log"
}
# Daemons, browsers and probes of many tests share the machine, and some wait for each other's times. So up to three tests
# that fail are run once more, alone.
meson_tests() { # meson_tests BUILD [MESON TEST ARGUMENTS...]
    local log=$1/meson-logs/testlog.json logs bad
    meson test -C "$1" --no-rebuild --print-errorlogs "${@:2}"
    logs=("$log")
    mapfile -t bad < <(tests/meson_tap.py --failed "$log")
    if [ ${#bad[@]} -gt 0 ] && [ ${#bad[@]} -le 3 ]; then
        printf '# at first not ok: %s\n' "${bad[@]}"
        repeated=$((repeated + ${#bad[@]}))
        cp "$log" "$1/first.json"
        meson test -C "$1" --no-rebuild --print-errorlogs --num-processes 1 "${bad[@]}"
        logs=("$1/first.json" "$log")
    fi
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
    twice "lab" "${keep:+$keep/jobs}" tests/lab/check.sh
    say "lab: two guests"
    twice "pair" "${keep:+$keep/pair}" tests/lab/pair.sh
    say "lab: bad networks"
    twice "disturbed" "${keep:+$keep/disturbed}" tests/lab/check_disturbed.sh
    say "lab: kinds of faults"
    twice "kinds" "${keep:+$keep/kinds}" tests/lab/check_kinds.sh latency hang sockets
fi
finish
