#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs in the guest as process 1 (or, with LAB_HERE=OUT, on this machine): makes a place for jobs, runs the plan, and
# leaves its status in OUT/.lab/status.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
here=$(dirname "$(realpath "$0")")
lab_host=${LAB_HERE:-/lab-host}
# shellcheck source=/dev/null
. "$lab_host/.lab/config.sh"
export QPSCOPE_LAB_CACHE=$lab_cache
# shellcheck source=tests/lab/cache.sh
. "$here/cache.sh"
# shellcheck source=tests/lab/watch.sh
. "$here/watch.sh"
# shellcheck source=tests/lab/network.sh
. "$here/network.sh"
# shellcheck source=tests/lab/lib.sh
. "$here/lib.sh"

# RCCL's threads spin, a dozen of them on two CPUs. With the usual slices a thread that is woken waits 20 to 60 ms for its
# turn, and ranks look late that are not.
guest_wake_soon() {
    local place=/sys/kernel/debug/sched
    mount -t debugfs debugfs /sys/kernel/debug
    [ -w $place/latency_ns ] || return 0
    echo 2000000 > $place/latency_ns
    echo 300000 > $place/min_granularity_ns
    echo 0 > $place/wakeup_granularity_ns
}

guest_mounts() {
    mkdir -p /dev/shm /dev/pts
    ln -s /proc/self/fd /dev/fd
    mount -t tmpfs tmpfs /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tracefs tracefs /sys/kernel/tracing
    mount -t bpf bpf /sys/fs/bpf
    guest_wake_soon
    echo lab > /proc/sys/kernel/hostname # else it is told as "(none)"
    ip link set lo up
    mkdir -p /lib/modules
    [ -e "/lib/modules/$(uname -r)" ] || ln -s "$lab_kernel_tree/lib/modules/$(uname -r)" "/lib/modules/$(uname -r)"
}

# Jobs live in memory, below one folder that they see as /lab, and their output is copied out when they are over.
job_place() {
    lab_dir=/lab
    [ -z "${LAB_HERE:-}" ] || lab_dir=$(mktemp -d)
    mkdir -p "$lab_dir"
    mount -t tmpfs tmpfs "$lab_dir"
    mkdir -p "$lab_dir"/{build,out,meet,library}
    mount --bind "$lab_build/tests/workload" "$lab_dir/build"
    mkdir -p "$lab_job_tree/lab"
    mount --rbind "$lab_dir" "$lab_job_tree/lab"
    for place in proc dev sys; do mount --rbind "/$place" "$lab_job_tree/$place"; done
}

read -r uptime_s _ < /proc/uptime
[ -n "${LAB_HERE:-}" ] || guest_mounts
network_modules
job_place
lab_phase start 60
watch_run &
watch_pid=$!
lab_say "inside: up after $uptime_s s, ready after $(cut -d' ' -f1 /proc/uptime) s"
jobs_recall
lab_phase plan 0
if [ -n "$lab_plan" ]; then
    # shellcheck source=/dev/null
    . "$lab_plan"
else
    job_run "$lab_name"
fi
job_name=''
lab_phase end 60
network_down
kill "$watch_pid"
lab_say "inside: $lab_failures jobs failed"
echo $((lab_failures > 0)) > "$lab_host/.lab/status"
[ -z "${LAB_HERE:-}" ] || exit $((lab_failures > 0))
sync
echo o > /proc/sysrq-trigger
sleep 5
