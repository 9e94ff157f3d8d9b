# SPDX-License-Identifier: BSD-2-Clause
# Hook for run.sh: qpscope-nic reads the contexts of all queue pairs and the devices' counters beside a job, over the kernel's
# netlink and sysfs. Left in the job's directory: psn.json (a row a line), psn.log, psn.end (its exit status), and
# hardware-{before,after}.txt: what rxe's own counters said before it began and after it ended.

psn_counters() {
    (cd /sys/class/infiniband && grep . rxe*/ports/1/hw_counters/*) > "$1"
}

before_job() {
    local tries
    psn_counters "$LAB_OUT/hardware-before.txt"
    {
        "$LAB_BUILD/nic/qpscope-nic" --source psn --interval 20ms --json > "$LAB_OUT/psn.json" 2> "$LAB_OUT/psn.log"
        echo $? > "$LAB_OUT/psn.end"
    } &
    for ((tries = 0; tries < 100; tries++)); do
        grep -q ready "$LAB_OUT/psn.log" 2> /dev/null && return 0
        lab_nap 0.1
    done
    cat "$LAB_OUT/psn.log" >&2
    return 1
}

after_job() {
    local tries
    lab_nap 1 # longer than volumes wait to be told
    pkill -TERM -x qpscope-nic
    for ((tries = 0; tries < 100; tries++)); do
        [ -e "$LAB_OUT/psn.end" ] && break
        lab_nap 0.1
    done
    psn_counters "$LAB_OUT/hardware-after.txt"
    [ "$(cat "$LAB_OUT/psn.end")" = 0 ]
}
