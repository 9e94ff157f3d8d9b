# SPDX-License-Identifier: BSD-2-Clause
# Hook for run.sh: what the job cannot do to itself. KIND_TIMEOUT, KIND_CLASS: NCCL_IB_TIMEOUT, NCCL_IB_TC.
# KIND_STOP="RANK STEP SECONDS": after that step the rank's process is stopped, once, for so long. KIND_END="RANK SECONDS":
# so long after that rank's fault the job is ended, by SIGKILL. KIND_QUEUE="COMMANDS": for tc, before the job: to put a queue
# where another one is drops what is in that. KIND_DOWN="INTERFACE": it is down all the time, and with it its RDMA device's port. KIND_LOSE="INTERFACE RANK STEP SECONDS": it
# goes down after that step of the rank; so long after it the job is ended.

until_told() { # FILE TEXT: until a line of the truth has the text; false when the job ends before
    local truth=()
    until [[ ${truth[*]} == *"$2"* ]]; do
        ((SECONDS < job_deadline)) || return 1
        lab_nap 0.2
        mapfile -t truth < "$LAB_OUT/$1"
    done 2> /dev/null
}

stop_rank() { # RANK STEP SECONDS
    local pid
    until_told "truth$1.jsonl" "\"rank\":$1,\"step\":$2,\"begun_ns\"" || return
    pid=$(pgrep -f "train --rank $1 ")
    kill -STOP "$pid"
    lab_uptime > "$LAB_OUT/stopped.txt"
    lab_nap "$3"
    kill -CONT "$pid"
}

end_job() { # RANK SECONDS
    until_told "truth$1.jsonl" '"kind":"fault"' || return
    lab_nap "$2"
    kill_ranks
}

lose_port() { # INTERFACE RANK STEP SECONDS
    until_told "truth$2.jsonl" "\"rank\":$2,\"step\":$3,\"begun_ns\"" || return
    ip link set "$1" down
    lab_uptime > "$LAB_OUT/lost.txt"
    lab_nap "$4"
    kill_ranks
}

kill_ranks() {
    local rank
    for ((rank = 0; rank < LAB_RANKS; rank++)); do : > "$lab_dir/meet/killed.$rank"; done
    pkill -KILL -x train
    for ((rank = 0; rank < LAB_RANKS; rank++)); do : > "$lab_dir/meet/done.$rank"; done
}

before_job() {
    [ -z "${KIND_TIMEOUT:-}" ] || export NCCL_IB_TIMEOUT=$KIND_TIMEOUT
    [ -z "${KIND_CLASS:-}" ] || export NCCL_IB_TC=$KIND_CLASS
    [ -z "${KIND_DOWN:-}" ] || ip link set "$KIND_DOWN" down
    [ -z "${KIND_QUEUE:-}" ] || tc -batch - <<< "${KIND_QUEUE//;/$'\n'}"
}

during_job() {
    # shellcheck disable=SC2086
    [ -z "${KIND_STOP:-}" ] || stop_rank $KIND_STOP
    # shellcheck disable=SC2086
    [ -z "${KIND_END:-}" ] || end_job $KIND_END
    # shellcheck disable=SC2086
    [ -z "${KIND_LOSE:-}" ] || lose_port $KIND_LOSE
}

after_job() { # what was down has lost its neighbours' addresses
    [ -z "${KIND_DOWN:-}${KIND_LOSE:-}" ] || network_seed=''
}
