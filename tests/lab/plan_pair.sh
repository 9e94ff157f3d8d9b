# SPDX-License-Identifier: BSD-2-Clause
# Plan for run.sh, as pair.sh calls it: half of a job whose two ranks run in two guests, each with a kernel and clocks of its
# own, joined by a virtual network card. OUT/rank says which half this is; what both guests see is the share `meet`.
# shellcheck shell=bash disable=SC2154,SC2034
pair_rank=$(< "$lab_host/rank")

[ "$pair_rank" = 0 ] && echo guest-a > /proc/sys/kernel/hostname || echo guest-b > /proc/sys/kernel/hostname

network_up() { # in place of the one in network.sh
    local r
    LAB_ADDRESS_0=10.0.0.10 LAB_ADDRESS_1=10.0.0.17
    for r in 0 1; do declare -g "LAB_FAR_$r=eth0" "LAB_NEAR_$r=eth0"; done
    modprobe virtio_net && ip link set eth0 mtu 4200 up || return
    local address=LAB_ADDRESS_$pair_rank
    ip addr add "${!address}/24" dev eth0 && rdma link add "rxe$pair_rank" type rxe netdev eth0
}

meet_clear() { :; } # it came empty, and the other guest may have been first

mkdir -p "$lab_dir/meet"
mount -t 9p -o trans=virtio,version=9p2000.L meet "$lab_dir/meet"
mount --bind "$lab_dir/meet" "$lab_job_tree/lab/meet"
job_here=("$pair_rank") lab_interface=eth0
job_run pair --ranks 2 --limit 120
