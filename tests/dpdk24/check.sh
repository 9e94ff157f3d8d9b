#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds qpscope with Debian 13's DPDK (24.11), whose headers know what Debian 12's do not, and runs the unit tests
# there: TAP, exit code 0 when all is well. The Debian 13 tree is made once with debootstrap (half a minute to four
# minutes, 800 MB) in ~/.cache/qpscope-dpdk24; QPSCOPE_DPDK24_CACHE names another place. Needs root.
#
#   tests/dpdk24/check.sh             makes the tree if it is missing, builds, tests
#   tests/dpdk24/check.sh --prepare   makes the tree only
#   tests/dpdk24/check.sh --live      also the test on a live port, with that DPDK's drivers (a minute; after ninja -C build)
set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(realpath "$0")")")")
cache=${QPSCOPE_DPDK24_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/qpscope-dpdk24}
tree=$cache/debian13
packages=gcc,libc6-dev,libcmocka-dev,libdpdk-dev,libmicrohttpd-dev,libnanomsg-dev,libpcap-dev,libsodium-dev,libsqlite3-dev,libzstd-dev,meson,ninja-build,pkgconf,uthash-dev
number=0 failed=0

die() { # die WHAT WHAT_TO_DO
    printf 'dpdk24: error: %s\ndpdk24: %s\n' "$1" "$2" >&2
    echo "not ok $((number + 1)) - $1"
    exit 1
}
report() { # report NAME LOG COMMAND...
    number=$((number + 1))
    if "${@:3}" >"$2" 2>&1; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        tail -n 40 "$2" | sed 's/^/#   /'
        failed=1
    fi
}
prepare() { # all or nothing: the tree gets its name only when it is whole
    local new
    [ ! -e "$tree/.qpscope-ready" ] || [ "$(cat "$tree/.qpscope-ready")" != "$packages" ] || return 0
    [ "$(id -u)" = 0 ] || die "only root can make a Debian tree" "run it with sudo -E"
    command -v debootstrap >/dev/null || die "debootstrap is not installed" "deploy/install.sh installs it"
    mkdir -p "$cache" || die "cannot write to $cache" "set QPSCOPE_DPDK24_CACHE to another place"
    echo "dpdk24: making a Debian 13 tree with DPDK 24.11 (once)" >&2
    new=$(mktemp -d "$cache/.new.XXXXXX")
    chmod 755 "$new"
    if ! debootstrap --variant=minbase --include="$packages" trixie "$new" >"$cache/debootstrap.log" 2>&1; then
        rm -rf "$new"
        die "debootstrap failed; its log is $cache/debootstrap.log" "check the network, then run this again"
    fi
    rm -rf "$new"/var/cache/apt/* "$new"/var/lib/apt/lists/* "$new"/usr/share/doc "$new"/usr/share/locale "$tree"
    echo "$packages" >"$new/.qpscope-ready"
    mv "$new" "$tree"
}
inside() { # inside COMMAND: in the tree, in the folder of the sources, with /proc as long as it runs
    # shellcheck disable=SC2016
    unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 sh -c "cd /qpscope && $1"
}
copy() { # the sources as they are, without what is built; what is built there is kept
    mkdir -p "$tree/qpscope" &&
        find "$tree/qpscope" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} + &&
        (cd "$top" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar c --ignore-failed-read) | tar x -C "$tree/qpscope"
}
unit_tests() { # no test may be missing the library that this is about
    inside "meson test -C build --no-rebuild --suite unit --print-errorlogs" && inside "build/tests/unit/nic/test_nic_rule"
}

live_test() { # the tree's qpscope-nic, which sees this machine's devices and /tmp
    cat >"$cache/qpscope-nic" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount -t proc proc "\$0/proc" && mount --rbind /dev "\$0/dev" && mount --rbind /sys "\$0/sys" &&
    mount --bind /tmp "\$0/tmp" && exec chroot "\$0" /qpscope/build/nic/qpscope-nic "\$@"' "$tree" "\$@"
END
    chmod +x "$cache/qpscope-nic" &&
        TMPDIR=/tmp python3 tests/golden/check_live.py "$cache/qpscope-nic" build/tests/golden/capture_rows build/tests/golden/ask_windows
}

case ${1:-} in
-h | --help) sed -n '3,10s/^# \{0,1\}//p' "$0" && exit 0 ;;
--prepare | --live | '') ;;
*) echo "check.sh: unknown option '$1'; see --help" >&2 && exit 2 ;;
esac
exec 9>"${TMPDIR:-/tmp}/qpscope-dpdk24.lock" && flock 9
prepare
[ "${1:-}" != --prepare ] || exit 0
copy || die "cannot copy the sources to $tree" "is the disk full?"
report "set up with DPDK 24.11" "$cache/setup.log" inside \
    "pkg-config --atleast-version=24.11 libdpdk && if [ -f build/build.ninja ]; then meson configure build; else meson setup build -Ddpdk=enabled -Dbpf=disabled -Dlab=disabled -Dman=disabled; fi"
report "its headers can match the BTH" "$cache/bth.log" grep -q HAVE_IB_BTH "$tree/qpscope/build/build.ninja"
report "builds without a warning" "$cache/build.log" inside "ninja -C build"
report "unit tests" "$cache/test.log" unit_tests
if [ "${1:-}" = --live ]; then
    cd "$top" && report "on a live port" "$cache/live.log" live_test
fi
echo "1..$number"
exit $failed
