# SPDX-License-Identifier: BSD-2-Clause
# Plan for run.sh: queue pairs that UCX makes, by Open MPI and by ucx_perftest, over two soft-RoCE devices, beside
# qpscope-host. check_ucx.py judges the folder `ucx`. The programs themselves say nothing of their queue pairs: the truth
# is the kernel's own list of them, taken again and again while they run.

ucx_list() { # until the file `done` is there: the kernel's list, each time with the names of the threads' processes
    local listed tid
    while [ ! -e "$LAB_OUT/done" ]; do
        listed=$(rdma --json --details resource show qp)
        [ "$listed" = "[]" ] || printf '%s\n' "$listed" >> "$LAB_OUT/kernel.jsonl"
        lab_nap 0.2
    done
}

# Open MPI wants its machine's name to be known.
ucx_environment() {
    echo '127.0.0.1 localhost lab' > /etc/hosts
    export UCX_TLS=rc_verbs,ud_verbs,self UCX_IB_GID_INDEX=1 UCX_RC_VERBS_TIMEOUT=2000000us UCX_WARN_UNUSED_ENV_VARS=n
    export UCX_IB_REG_METHODS=direct OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

ucx_open_mpi() {
    timeout 90 mpirun -np 1 --mca pml ucx --mca btl ^openib --oversubscribe -x UCX_NET_DEVICES=rxe0:1 "$LAB_BUILD/tests/lab/mpi_pair" : \
        -np 1 -x UCX_NET_DEVICES=rxe0:1 "$LAB_BUILD/tests/lab/mpi_pair" > "$LAB_OUT/open_mpi.log" 2>&1
    echo "open_mpi $?" >> "$LAB_OUT/ends.txt"
}

ucx_own_test() {
    UCX_NET_DEVICES=rxe0:1 timeout 60 ucx_perftest -t tag_bw -s 65536 -n 200 -w 10 > "$LAB_OUT/perftest_server.log" 2>&1 &
    local server=$! tries
    for ((tries = 0; tries < 3; tries++)); do
        lab_nap 1
        UCX_NET_DEVICES=rxe0:1 timeout 40 ucx_perftest -t tag_bw -s 65536 -n 200 -w 10 127.0.0.1 > "$LAB_OUT/perftest_client.log" 2>&1 && break
    done
    wait "$server"
    echo "perftest $?" >> "$LAB_OUT/ends.txt"
}

ucx_run() {
    LAB_OUT=$lab_host/ucx
    mkdir -p "$LAB_OUT"
    network_up 2 1 || return 1
    "$LAB_BUILD/host/qpscope-host" --json > "$LAB_OUT/host.json" 2> "$LAB_OUT/host.log" &
    local host=$! lister tries
    for ((tries = 0; tries < 600; tries++)); do
        ! grep -q ready "$LAB_OUT/host.log" || break
        lab_nap 0.1
    done
    ucx_list &
    lister=$!
    ucx_environment
    ucx_open_mpi
    ucx_own_test
    touch "$LAB_OUT/done"
    wait "$lister"
    lab_nap 1
    kill -TERM "$host"
    wait "$host"
    echo "host $?" >> "$LAB_OUT/ends.txt"
}

ucx_run || lab_failures=$((lab_failures + 1))
