# SPDX-License-Identifier: BSD-2-Clause
# Hook for run.sh: a bad network around a job. DISTURB is what tc is told of each rank's far end: what the frames to that
# rank pass last, behind the place where their sender's port shows them and before the place where their receiver's does.
# "{dev}" stands for the interface; DISTURB_RANK leaves it to that rank's. Left in the job's directory: qdisc.txt, the queue disciplines' own counters.

disturb_each() { # COMMAND...: with {dev} replaced, for each rank's far end that is to be disturbed
    local rank far command
    for ((rank = 0; rank < LAB_RANKS; rank++)); do
        [ "${DISTURB_RANK:-$rank}" = "$rank" ] || continue
        far=LAB_FAR_$rank
        for command; do tc ${command//\{dev\}/${!far}} || lab_say "hook: tc ${command//\{dev\}/${!far}} failed"; done
    done
}

# Only RoCE may pass the disciplines: their counters are compared with the captures'.
disturb_quiet() {
    local rank far
    echo 1 > /proc/sys/net/ipv6/conf/br0/disable_ipv6
    for ((rank = 0; rank < LAB_RANKS; rank++)); do
        far=LAB_FAR_$rank
        echo 1 > "/proc/sys/net/ipv6/conf/${!far}/disable_ipv6"
        ip link set "${!far}" type bridge_slave mcast_flood off bcast_flood off
    done
}

before_job() {
    [ -n "${DISTURB:-}" ] || return 0
    # A lost frame that nothing follows is waited for until the time-out: a quarter of a second instead of four.
    export NCCL_IB_TIMEOUT=16 NCCL_IB_TC=${DISTURB_TC:-0}
    disturb_quiet
    local commands
    IFS=';' read -ra commands <<< "$DISTURB"
    disturb_each "${commands[@]}"
}

after_job() {
    [ -n "${DISTURB:-}" ] || return 0
    tc -s -j qdisc show > "$LAB_OUT/qdisc.json"
    tc -s qdisc show > "$LAB_OUT/qdisc.txt"
    disturb_each "qdisc del dev {dev} root"
}
