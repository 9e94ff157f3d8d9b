#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian packages of packages.list that are missing; does nothing when all are there.
set -euo pipefail
here=$(dirname "$(realpath "$0")")

mapfile -t wanted < <(sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$here/packages.list")
missing=()
for package in "${wanted[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "install.sh: these packages are missing, and there is no sudo: become root and run it again: ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "install.sh: installing ${#missing[@]} packages: ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1
}
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
    tail -n 20 "$log" >&2
    echo "install.sh: apt-get failed (its last lines are above): is there a network, and is this Debian 12 or later?" >&2
    exit 1
fi
