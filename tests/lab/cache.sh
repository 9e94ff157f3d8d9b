# SPDX-License-Identifier: BSD-2-Clause
# Where the lab keeps what it fetches, and how its scripts speak. Sourced by the scripts of this folder.

lab_cache=${QPSCOPE_LAB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/qpscope-lab}
lab_kernel_tree=$lab_cache/${QPSCOPE_LAB_KERNEL:-kernel}
lab_job_tree=$lab_cache/debian13

lab_say() {
    printf 'lab: %s\n' "$*" >&2
}

# lab_die WHAT WHAT_TO_DO
lab_die() {
    printf 'lab: error: %s\n' "$1" >&2
    [ -z "${2:-}" ] || printf 'lab: %s\n' "$2" >&2
    exit "${3:-1}"
}

lab_kernel_version() {
    ls "$lab_kernel_tree/lib/modules"
}

# A tree counts as ready only with this mark in it, written last.
lab_ready() {
    [ -e "$1/.qpscope-lab-ready" ]
}
