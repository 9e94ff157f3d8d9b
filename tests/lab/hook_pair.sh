# SPDX-License-Identifier: BSD-2-Clause
# Hook for plan_pair.sh: qpscope's agents in each of the two guests, the correlator in the first, over TCP links that are
# sealed with OUT/key; and the witness of the clocks. Left in the job's directory: what hook_qpscope.sh leaves.
# shellcheck source=tests/lab/hook_qpscope.sh
. "$here/hook_qpscope.sh"

pair_links=(--link "tcp://10.0.0.10:7471" --clock "tcp://10.0.0.10:7472" --key-file /run/key)

pair_witness() { # its board is the memory of the card that both sides see
    local card
    for card in /sys/bus/pci/devices/*; do
        [ "$(< "$card/device")" = 0x1110 ] || continue
        echo 1 > "$card/enable"
        nice -n -19 "$LAB_BUILD/tests/lab/clock_witness" answer "$card/resource2" &
        pair_witness_pid=$!
    done
}

pair_start() {
    local address=LAB_ADDRESS_$pair_rank
    qpscope_start nic "$LAB_BUILD/nic/qpscope-nic" --port "net_pcap0,iface=eth0@${!address}" "${pair_links[@]}" \
        --record "$QPSCOPE_RUN/nic.capture"
    qpscope_start host "$LAB_BUILD/host/qpscope-host" "${pair_links[@]}" --root "$lab_job_tree" --record "$QPSCOPE_RUN/host.capture" --json
    qpscope_wait_ready nic && qpscope_wait_ready host
}

pair_meet() { # MARK: until both guests have come here, half a minute at most
    local tries
    : > "$lab_dir/meet/$1.$pair_rank"
    for ((tries = 0; tries < 300; tries++)); do
        [ ! -e "$lab_dir/meet/$1.$((1 - pair_rank))" ] || return 0
        lab_nap 0.1
    done
    lab_say "the other guest did not come to $1 within 30 s"
    return 1
}

before_job() {
    rm -rf "$QPSCOPE_RUN" && mkdir -p "$QPSCOPE_RUN"
    install -m 600 "$lab_host/key" /run/key
    pair_witness
    [ "$pair_rank" != 0 ] || {
        qpscope_start correlator "$LAB_BUILD/correlator/qpscope-correlator" --intake "tcp://10.0.0.10:7471" --clock "tcp://10.0.0.10:7472" \
            --key-file /run/key --store "$QPSCOPE_RUN/qpscope.db"
        qpscope_wait_ready correlator
    }
    pair_meet correlator
    pair_start
    pair_meet agents
}

after_job() {
    lab_nap 2
    qpscope_stop nic host
    pair_meet stopped
    [ "$pair_rank" != 0 ] || qpscope_stop correlator
    kill "$pair_witness_pid"
    cp "$QPSCOPE_RUN"/* "$LAB_OUT/"
}
