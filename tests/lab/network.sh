# SPDX-License-Identifier: BSD-2-Clause
# The lab's network. Rank r has the device rxe<r> on ve<r>; the other end, fa<r>, is on the bridge br0: where a NIC's
# wire port would be. Which address a rank has comes from the seed.

network_modules() {
    local module
    for module in crc32_generic veth bridge rdma_rxe ib_uverbs sch_tbf sch_netem sch_red af_packet; do
        modprobe "$module" || lab_say "no module $module"
    done
}

network_addresses() { # RANKS SEED
    local ranks=$1 r other kept numbers=()
    RANDOM=$2
    for ((r = 0; r < ranks; r++)); do numbers[r]=$((10 + 7 * r)); done
    for ((r = ranks - 1; r > 0; r--)); do
        other=$((RANDOM % (r + 1))) kept=${numbers[r]}
        numbers[r]=${numbers[other]} numbers[other]=$kept
    done
    for ((r = 0; r < ranks; r++)); do
        declare -gx "LAB_ADDRESS_$r=10.0.0.${numbers[r]}" "LAB_FAR_$r=fa$r" "LAB_NEAR_$r=ve$r"
        printf -v "lab_mac_$r" '02:00:00:00:00:%02x' "${numbers[r]}"
    done
}

# A device goes when nobody has it open, and the command waits for that, in the kernel, without a limit.
network_release() {
    local holder
    find /proc/[0-9]*/fd -lname '/dev/infiniband/*' 2> /dev/null | while IFS=/ read -r _ _ holder _; do
        lab_say "process $holder ($(tr '\0' ' ' < "/proc/$holder/cmdline")) had a device open after its job; killed"
        kill -KILL "$holder"
    done
}

network_down() {
    local r
    [ "${network_ranks:-0}" = 0 ] || [ -n "${LAB_HERE:-}" ] || network_release
    for ((r = 0; r < ${network_ranks:-0}; r++)); do
        rdma link delete "rxe$r"
        ip link delete "ve$r"
    done
    network_ranks=0
    [ ! -d /sys/class/net/br0 ] || ip link delete br0
}

network_links() { # commands for ip -batch
    local r peer address mac
    for ((r = 0; r < $1; r++)); do
        mac=lab_mac_$r address=LAB_ADDRESS_$r
        echo "link add ve$r address ${!mac} type veth peer name fa$r"
        echo "link set ve$r mtu 4200 up"
        echo "link set fa$r mtu 4200 master br0 up"
        echo "addr add ${!address}/24 dev ve$r"
    done
    for ((r = 0; r < $1; r++)); do
        for ((peer = 0; peer < $1; peer++)); do
            mac=lab_mac_$peer address=LAB_ADDRESS_$peer
            [ "$peer" = "$r" ] || echo "neigh replace ${!address} lladdr ${!mac} dev ve$r nud permanent"
        done
    done
}

# All addresses are local to one kernel: without these it would drop the frames as martians, or answer for others.
# Receive steering keeps the frames of a connection in order when its sender moves to another CPU; else, on a busy
# machine, some overtake others, and are sent again.
network_sysctls() {
    local conf queue
    for queue in /sys/class/net/{ve,fa}[0-9]*/queues/rx-0/rps_cpus; do echo 3 > "$queue"; done
    for conf in /proc/sys/net/ipv4/conf/*; do
        echo 1 > "$conf/accept_local"
        echo 0 > "$conf/rp_filter"
        echo 1 > "$conf/arp_ignore"
    done
}

# network_up RANKS SEED: nothing to do when it is so already
network_up() {
    local r
    [ "${network_ranks:-0}/${network_seed:-}" != "$1/$2" ] || return 0
    network_down
    [ -d /sys/class/net/br0 ] || printf 'link add br0 type bridge\nlink set br0 mtu 4200 up\n' | ip -batch -
    network_addresses "$1" "$2"
    network_links "$1" | ip -batch - || return 1
    network_sysctls
    for ((r = 0; r < $1; r++)); do
        rdma link add "rxe$r" type rxe netdev "ve$r" || return 1
    done
    network_ranks=$1 network_seed=$2
}
