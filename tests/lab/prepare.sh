#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Fetches what the lab's guest needs, once: a Debian kernel with soft-RoCE, and a Debian 13 tree with the
# collective library that the lab's job runs on. Running it again costs nothing.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/lab/cache.sh
. "$here/cache.sh"

usage() {
    cat <<USAGE
usage: prepare.sh [--help]
Fetches the lab's kernel and its Debian 13 tree into $lab_cache
(set QPSCOPE_LAB_CACHE for another place). About 800 MB on disk, 250 MB to download.
With QPSCOPE_LAB_KERNEL=kernel-13 the kernel is Debian 13's; the same variable makes run.sh boot it.
USAGE
}

# Debian 13's packages from where this machine has its own, beside its lists.
apt_options=()
apt_of_debian13() { # FOLDER
    local from
    from=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' | head -n 1)
    [ -n "$from" ] || lab_die "this machine's apt knows no packages" "run apt-get update"
    mkdir -p "$1/lists/partial" "$1/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from trixie main" > "$1/sources.list"
    apt_options=(-o "Dir::Etc::sourcelist=$1/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$1/lists"
        -o "Dir::Cache=$1" -o Dir::State::status=/dev/null)
    apt-get "${apt_options[@]}" update -q >&2
}

kernel_fetch() {
    local to=$1 package
    [ "${lab_kernel_tree##*/}" != kernel-13 ] || apt_of_debian13 "$to/apt"
    package=$(apt-cache "${apt_options[@]}" depends linux-image-amd64 | awk '/^ *Depends: linux-image-/ { print $2; exit }')
    [ -n "$package" ] || lab_die "apt knows no linux-image-amd64" "run apt-get update, then this again"
    lab_say "fetching the guest's kernel ($package)"
    (cd "$to" && apt-get "${apt_options[@]}" download -q "$package" >&2) ||
        lab_die "could not download $package" "run apt-get update, check the network, then run this again"
    dpkg -x "$to/$package"_*.deb "$to"
    rm -rf "$to/$package"_*.deb "$to/apt"
    [ -d "$to/lib/modules" ] || { mkdir -p "$to/lib" && mv "$to/usr/lib/modules" "$to/lib/modules"; }
    depmod -b "$to" "$(ls "$to/lib/modules")"
}

job_tree_fetch() {
    local to=$1
    lab_say "making a Debian 13 tree with debootstrap (half a minute or more)"
    debootstrap --variant=minbase --include=libibverbs1,ibverbs-providers trixie "$to" > "$lab_cache/debootstrap.log" 2>&1 ||
        lab_die "debootstrap failed; its log is $lab_cache/debootstrap.log" "check the network, then run this again"
    lab_say "fetching the collective library (librccl1, 125 MB)"
    # The package alone: the HIP runtime that it depends on is replaced by the stand-in of tests/workload.
    chroot "$to" sh -c 'cd /tmp && apt-get update -q && apt-get download -q librccl1' >> "$lab_cache/debootstrap.log" 2>&1 ||
        lab_die "could not download librccl1; the log is $lab_cache/debootstrap.log" "check the network, then run this again"
    dpkg -x "$to"/tmp/librccl1_*.deb "$to"
    rm -rf "$to"/tmp/librccl1_*.deb "$to"/var/lib/apt/lists/* "$to"/var/cache/apt/* "$to"/usr/share/doc "$to"/usr/share/locale
    mkdir -p "$to/lab"
}

# tree_make FETCHER PLACE: all or nothing, since the tree gets its name only when it is whole
tree_make() {
    local fetcher=$1 place=$2 new
    if lab_ready "$place"; then
        return
    fi
    new=$(mktemp -d "$lab_cache/.new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    chmod 755 "$new"
    "$fetcher" "$new"
    touch "$new/.qpscope-lab-ready"
    rm -rf "$place"
    mv "$new" "$place"
    trap - EXIT
}

case ${1:-} in
-h | --help) usage && exit 0 ;;
'') ;;
*) usage >&2 && exit 2 ;;
esac
if lab_ready "$lab_kernel_tree" && lab_ready "$lab_job_tree"; then
    exit 0
fi
[ "$(id -u)" = 0 ] || lab_die "only root can make a Debian tree" "run it with sudo -E"
for tool in debootstrap dpkg depmod apt-get; do
    command -v "$tool" > /dev/null || lab_die "$tool is not installed" "deploy/packages.list names the packages"
done
mkdir -p "$lab_cache"
exec 9> "$lab_cache/lock"
flock 9
tree_make kernel_fetch "$lab_kernel_tree"
tree_make job_tree_fetch "$lab_job_tree"
lab_say "ready: $lab_cache ($(du -sh "$lab_cache" | cut -f1))"
