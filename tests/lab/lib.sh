# SPDX-License-Identifier: BSD-2-Clause
# What plans and hooks may call, inside the guest.
# A plan calls job_run NAME [OPTIONS of run.sh] once a job; it may also call in_other_time, lab_nap and lab_say.
# A hook defines any of before_job NAME (the network is up, no rank runs yet), during_job NAME (in the background, from
# the ranks' start; ended half a minute after they are done), resting_job NAME (the ranks have run all their steps and
# still have their communicators) and after_job NAME (its failure is the job's). They find
# LAB_OUT (the job's folder, which comes back), LAB_BUILD (the Meson build folder), LAB_RANKS, and for each rank r
# LAB_FAR_<r>, LAB_NEAR_<r> (interfaces) and LAB_ADDRESS_<r>; LAB_PORTS is how many of these there are. lab_dir/meet/ready.<r>: rank r has its communicators.

LAB_BUILD=$lab_build

# Sleeps without a fork, which costs 67 ms under emulation. A helper, one for each shell that naps, does it: bash before 5.3
# whose `read -t` is late, since its process did not get a CPU before the time was over, takes what its stack holds for its
# signal mask. With SIGCHLD blocked a shell no longer notices that its children ended. The helper has none.
lab_nap() { # SECONDS
    [ "${lab_nap_owner:-}" = "$BASHPID" ] || nap_helper_start
    echo "$1" >&"$lab_nap_ask"
    read -r -u "$lab_nap_answer" || true
}

nap_helper_start() {
    local fifo=$lab_dir/nap.$BASHPID
    mkfifo "$fifo"
    exec {lab_nap_answer}<> "$fifo" {lab_nap_ask}> >(nap_helper "$lab_nap_answer")
    rm "$fifo"
    lab_nap_owner=$BASHPID
}

nap_helper() { # ANSWER: until its shell is gone
    local seconds never
    mkfifo "$lab_dir/never.$BASHPID"
    exec {never}<> "$lab_dir/never.$BASHPID"
    rm "$lab_dir/never.$BASHPID"
    while read -r seconds; do
        read -r -t "$seconds" -u "$never"
        echo >&"$1"
    done
}

lab_uptime() {
    local uptime
    read -r uptime _ < /proc/uptime
    echo "$uptime"
}

# in_other_time COMMAND...: with a monotonic clock that is 7 s ahead
in_other_time() {
    unshare --time --fork --monotonic 7 --boottime 7 -- "$@"
}

hooks_call() { # FUNCTION JOB
    local script
    for script in "${lab_hooks[@]}"; do
        unset -f before_job during_job resting_job after_job
        # shellcheck source=/dev/null
        . "$script"
        if declare -F "$1" > /dev/null; then "$1" "$2"; fi
    done
}

# Ranks have their communicators and begin to train.
job_await_ready() {
    local r
    for ((r = 0; r < job_ranks; r++)); do
        until [ -e "$lab_dir/meet/ready.$r" ] || ((SECONDS >= job_deadline)); do lab_nap 0.1; done
    done
}

# foreign_traffic A B [COUNT]: an ib_write_bw of COUNT times 64 KiB from rank A's device to rank B's, which are no part
# of the job; returns when it is over. Its own output, with the QPNs, is foreign-server.log and foreign-client.log.
foreign_traffic() {
    local address=LAB_ADDRESS_$2 options=(-x 1 -s 65536 -n "${3:-300}" -u 20 -p 18515) server tries
    timeout -k 1 100 ib_write_bw -d "rxe$2" "${options[@]}" > "$LAB_OUT/foreign-server.log" 2>&1 &
    server=$!
    # The server takes seconds to listen when the job keeps both CPUs busy. The client's exit status says little here: it
    # fails when it cannot tell the emulated CPU's frequency.
    for ((tries = 0; tries < 15; tries++)); do
        lab_nap 1
        timeout -k 1 60 ib_write_bw -d "rxe$1" "${options[@]}" "${!address}" > "$LAB_OUT/foreign-client.log" 2>&1
        [[ $(< "$LAB_OUT/foreign-client.log") != *"remote address"* ]] || break
    done
    # A server that is left would keep the devices busy for ever, and the guest's kernel with them.
    ((tries < 15)) || kill "$server"
    wait "$server"
    grep -q 'remote address' "$LAB_OUT/foreign-client.log" || lab_say "foreign traffic failed: see foreign-client.log"
}

job_defaults() {
    job_ranks=4 job_steps=12 job_fault=none job_rank=1 job_delay=100 job_first_step=4 job_seed=1 job_channels=2
    job_two_in_one='' job_gdr='' job_qps=1 job_algorithm=Ring job_protocol=Simple job_library='' job_foreign=''
    job_last_step=999999 job_every=1 job_command='' job_net=IB
    job_with_next='' job_rails=1 job_one_rail='' job_tracer=1 job_pcap='' job_train='' job_limit_s=240 job_standin='' job_exercise='' job_settle_ms=1000
}

job_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --two-in-one) job_two_in_one=1 && shift && continue ;;
        --gdr) job_gdr=1 && shift && continue ;;
        --no-tracer) job_tracer='' && shift && continue ;;
        --pcap) job_pcap=1 && shift && continue ;;
        --standin) job_standin=1 && shift && continue ;;
        --with-next) job_with_next=1 && shift && continue ;;
        --exercise) job_exercise=$2 ;;
        --settle) job_settle_ms=$2 ;;
        --ranks) job_ranks=$2 ;;
        --rails) job_rails=$2 ;;
        --one-rail) job_one_rail=$2 ;;
        --steps) job_steps=$2 ;;
        --fault) job_fault=$2 ;;
        --rank) job_rank=$2 ;;
        --delay) job_delay=$2 ;;
        --first-step) job_first_step=$2 ;;
        --last-step) job_last_step=$2 ;;
        --every) job_every=$2 ;;
        --command) job_command=$2 ;;
        --net) job_net=$2 ;;
        --seed) job_seed=$2 ;;
        --channels) job_channels=$2 ;;
        --qps) job_qps=$2 ;;
        --algorithm) job_algorithm=$2 ;;
        --protocol) job_protocol=$2 ;;
        --library-name) job_library=$2 ;;
        --foreign) job_foreign=$2 ;;
        --train) job_train=$2 ;;
        --limit) job_limit_s=$2 ;;
        *) lab_say "job_run: unknown option $1" && return 1 ;;
        esac
        shift 2
    done
}

# What RCCL needs to know: only soft-RoCE, the IPv4 GID, a patient time-out, and each rank a host of its own.
job_environment() {
    export LD_LIBRARY_PATH=/lab/build:/lab/build/nccl NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET NCCL_NET=$job_net NCCL_SOCKET_IFNAME=${lab_interface:-lo}
    export NCCL_IB_GID_INDEX=1 NCCL_IB_TIMEOUT=20 NCCL_IB_RETRY_CNT=7 NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
    export NCCL_MIN_NCHANNELS=$job_channels NCCL_MAX_NCHANNELS=$job_channels NCCL_MAX_P2P_NCHANNELS=$job_channels
    export NCCL_IB_QPS_PER_CONNECTION=$job_qps NCCL_ALGO=$job_algorithm NCCL_PROTO=$job_protocol
    [ "$job_algorithm" != auto ] || unset NCCL_ALGO
    [ "$job_protocol" != auto ] || unset NCCL_PROTO
    unset NCCL_NET_GDR_LEVEL
    [ -z "$job_gdr" ] || gdr_enable
}

# RCCL believes in GPU-direct when it finds this file.
gdr_enable() {
    export NCCL_NET_GDR_LEVEL=SYS
    mount -t tmpfs tmpfs "$lab_job_tree/sys/kernel/mm"
    mkdir -p "$lab_job_tree/sys/kernel/mm/memory_peers/amdkfd"
    echo 1 > "$lab_job_tree/sys/kernel/mm/memory_peers/amdkfd/version"
}

gdr_disable() {
    [ -z "$job_gdr" ] || umount "$lab_job_tree/sys/kernel/mm"
}

# A link that is to be slowed has its queue from the beginning, so that slowing it drops nothing.
link_prepare() {
    ((job_rank >= job_ranks)) || [ "$job_fault" != link ] ||
        tc qdisc add dev "ve$job_rank" root tbf rate 50gbit burst 4mb limit 16mb
}

# A block device that takes 50 ms for each request: few of them, since the thread waits for a CPU after each.
disk_prepare() {
    [[ $job_fault = io || $job_fault = pages ]] || return 0
    [ -b /dev/nullb0 ] || modprobe null_blk nr_devices=1 gb=4 irqmode=2 completion_nsec=50000000 ||
        lab_say "no module null_blk"
}

link_restore() {
    ((job_rank < job_ranks)) && [ "$job_fault" = link ] || return 0
    tc -s qdisc show dev "ve$job_rank" > "$LAB_OUT/qdisc.txt"
    tc qdisc del dev "ve$job_rank" root
}

job_library_place() {
    job_library_path=librccl.so.1
    [ -z "$job_standin$job_exercise" ] || job_library_path=libnccl.so.2
    [ -n "$job_library" ] || return 0
    job_library_path=/lab/library/$job_library
    [ -e "$lab_dir/library/$job_library" ] ||
        cp "$(readlink -f "$lab_job_tree"/usr/lib/*/librccl.so.1)" "$lab_dir/library/$job_library"
}

# rank_devices FIRST COUNT: what the process may use. Rank r's second device (--rails 2) has the number of ranks added to r.
rank_devices() {
    local r rail
    devices='='
    for ((r = $1; r < $1 + $2; r++)); do
        for ((rail = 0; rail < job_rails; rail++)); do
            [ "$rail" = 0 ] || [ "$r" != "$job_one_rail" ] || break
            devices+="rxe$((r + rail * job_ranks)),"
        done
    done
    devices=${devices%,}
}

# rank_start FIRST COUNT: one process of the job, with COUNT ranks
rank_start() {
    local r=$1 devices preload='' arguments=() launched=() program=train
    rank_devices "$r" "$2"
    [ -z "$job_tracer" ] || preload=/lab/build/libtracer.so
    arguments=(--rank "$r" --ranks-here "$2" --ranks "$job_ranks" --steps "$job_steps" --seed "$job_seed" --meet /lab/meet
        --library "$job_library_path" --settle-ms "$job_settle_ms" --wait-release --link-fifo /lab/tc --link-name "ve$job_rank"
        --fault "$job_fault" --fault-rank "$job_rank" --fault-delay-ms "$job_delay" --fault-first-step "$job_first_step"
        --fault-last-step "$job_last_step" --fault-every "$job_every" --fault-command "${job_command//;/$'\n'}")
    [ -z "$job_exercise" ] || {
        program=exercise/exercise
        arguments=(--rank "$r" --ranks-here "$2" --ranks "$job_ranks" --meet /lab/meet --wait-release --library "$job_library_path"
            --settle-ms "$job_settle_ms")
    }
    # As launchers do, which is where qpscope has the order of the ranks from when communicators of all of them disagree.
    [ "$2" != 1 ] || launched=("RANK=$r" "WORLD_SIZE=$job_ranks")
    # shellcheck disable=SC2086
    NCCL_HOSTID=host$r NCCL_IB_HCA=$devices STANDIN_DEVICES=$2 LAB_TRUTH=/lab/out/$job_name/truth$r.jsonl \
        chroot "$lab_job_tree" /usr/bin/env "${launched[@]}" ${preload:+LD_PRELOAD=$preload} "/lab/build/$program" "${arguments[@]}" \
        $job_train $job_exercise > "$LAB_OUT/rank$r.log" 2>&1 &
    job_pids+=($!)
}

captures_start() {
    local r deadline=$((SECONDS + 20))
    capture_pids=()
    [ -n "$job_pcap" ] || return 0
    for ((r = 0; r < job_ranks; r++)); do
        tcpdump -i "fa$r" -s 128 -B 16384 --time-stamp-precision=nano -Z root -w "$LAB_OUT/far$r.pcap" udp port 4791 \
            2> "$LAB_OUT/far$r.log" &
        capture_pids+=($!)
    done
    for ((r = 0; r < job_ranks; r++)); do
        until grep -qs "listening on" "$LAB_OUT/far$r.log" || ((SECONDS > deadline)); do lab_nap 0.1; done
    done
}

captures_stop() {
    [ ${#capture_pids[@]} -gt 0 ] || return 0
    lab_nap 1.5
    kill -INT "${capture_pids[@]}"
    wait_gone 20 "${capture_pids[@]}"
}

counters_note() { # WHEN
    grep -H . /sys/class/infiniband/rxe*/ports/1/hw_counters/* > "$LAB_OUT/counters-$1.txt"
    cat /proc/net/dev > "$LAB_OUT/interfaces-$1.txt"
}

# All ranks have said that they are done, one is gone, or the time is up.
job_await_done() {
    local r missing
    while :; do
        missing=''
        for ((r = 0; r < job_ranks; r++)); do [ -e "$lab_dir/meet/done.$r" ] || missing=1; done
        [ -n "$missing" ] || return 0
        for r in "${!job_pids[@]}"; do
            kill -0 "${job_pids[r]}" 2> /dev/null || [ -e "$lab_dir/meet/killed.$r" ] ||
                { lab_say "$job_name: a rank is gone: see its log" && return 1; }
        done
        ((SECONDS < job_deadline)) || { lab_say "$job_name: not done after $job_limit_s s" && return 1; }
        lab_nap 0.2
    done
}

foreign_start() {
    [ -n "$job_foreign" ] || return 0
    job_await_ready
    foreign_traffic "${job_foreign%,*}" "${job_foreign#*,}"
}

# What runs beside the job gets half a minute more than it.
background_end() { # PID...
    local deadline=$((SECONDS + 30)) pid
    for pid; do
        while kill -0 "$pid" 2> /dev/null && ((SECONDS < deadline)); do lab_nap 0.1; done
        kill "$pid" 2> /dev/null
    done
    wait_gone 10 "$@"
}

# A plan whose other ranks run in other guests says in job_here which run here, and in lab_interface where ranks find each other.
job_processes() {
    local r=0 begun
    begun=$(lab_uptime)
    lab_phase ranks $((job_limit_s + 60))
    if [ -n "$job_two_in_one" ]; then
        rank_start 0 2
        r=2
    fi
    for (( ; r < job_ranks; r++)); do [[ " ${job_here[*]:-$r} " != *" $r "* ]] || rank_start "$r" 1; done
    if job_await_done; then
        lab_say "$job_name: ranks done, $begun s to $(lab_uptime) s"
    else
        job_failed=1
        kill "${job_pids[@]}" 2> /dev/null
    fi
    lab_phase rest 90
    hooks_call resting_job "$job_name"
    rdma resource show qp > "$LAB_OUT/qp.txt"
    counters_note after
    : > "$lab_dir/meet/release"
    lab_phase end 180
    wait_gone 60 "${job_pids[@]}"
    for r in "${!job_pids[@]}"; do wait "${job_pids[r]}" || [ -e "$lab_dir/meet/killed.$r" ] || job_failed=1; done
}

job_describe() {
    local r address
    echo "name=$job_name ranks=$job_ranks steps=$job_steps fault=$job_fault rank=$job_rank delay_ms=$job_delay" \
        "first_step=$job_first_step last_step=$job_last_step every=$job_every seed=$job_seed channels=$job_channels two_in_one=${job_two_in_one:-0}" \
        "gdr=${job_gdr:-0} foreign=$job_foreign"
    for ((r = 0; r < job_ranks * job_rails; r++)); do
        address=LAB_ADDRESS_$r
        echo "rank=$((r % job_ranks)) device=rxe$r address=${!address} near=ve$r far=fa$r"
    done
}

meet_clear() { # what ranks of a job before have left there
    rm -rf "$lab_dir"/meet/*
}

# job_run NAME [OPTIONS of run.sh]: one job with its hooks; counts into lab_failures when anything of it fails
job_run() {
    local tc_pid during_pid='' foreign_pid='' begun
    job_name=$1 job_failed='' job_pids=() begun=$(lab_uptime)
    shift
    [[ " $lab_done " != *" $job_name "* ]] || return 0
    lab_phase network 90
    job_defaults
    if ! job_options "${lab_options[@]}" "$@" || ! network_up $((job_ranks * job_rails)) "$job_seed"; then
        lab_failures=$((lab_failures + 1))
        return 1
    fi
    LAB_OUT=$lab_dir/out/$job_name LAB_RANKS=$job_ranks LAB_PORTS=$((job_ranks * job_rails))
    export LAB_OUT LAB_RANKS LAB_PORTS LAB_BUILD
    rm -rf "$LAB_OUT"
    meet_clear
    mkdir -p "$LAB_OUT"
    job_describe > "$LAB_OUT/job.txt"
    job_environment
    job_library_place
    rm -f "$lab_dir/tc"
    mkfifo "$lab_dir/tc"
    exec {tc_fd}<> "$lab_dir/tc"
    tc -force -batch - <&"$tc_fd" > "$LAB_OUT/tc.log" 2>&1 &
    tc_pid=$!
    lab_phase before 150
    link_prepare
    disk_prepare
    captures_start
    hooks_call before_job "$job_name"
    counters_note before
    job_deadline=$((SECONDS + job_limit_s))
    hooks_call during_job "$job_name" &
    during_pid=$!
    foreign_start &
    foreign_pid=$!
    job_processes
    background_end "$during_pid" "$foreign_pid"
    lab_phase after 240
    kill "$tc_pid"
    exec {tc_fd}>&-
    link_restore
    gdr_disable
    captures_stop
    hooks_call after_job "$job_name" || job_failed=1
    [ -z "$job_failed" ] || lab_failures=$((lab_failures + 1))
    lab_say "$job_name: ${job_failed:+FAILED, }$begun s to $(lab_uptime) s"
    lab_phase out 90
    job_out
    lab_phase plan 0
}

# What comes back of a job, and that it is done: it is not run again should this guest stand still later. A job that goes on
# into the next one (--with-next) is done when that is.
job_out() {
    rm -rf "${lab_host:?}/$job_name"
    cp -r "$LAB_OUT" "$lab_host/$job_name"
    rm -rf "$LAB_OUT"
    jobs_ended+="$job_name ${job_failed:-0}"$'\n'
    [ -n "$job_with_next" ] || {
        echo -n "$jobs_ended" >> "$lab_host/.lab/done"
        jobs_ended=''
    }
}

# The jobs that guests before this one have done, and how many of them failed.
jobs_recall() {
    local name failed
    lab_done='' lab_failures=0 jobs_ended=''
    while read -r name failed; do
        lab_done+=" $name" lab_failures=$((lab_failures + failed))
    done < "$lab_host/.lab/done"
}
