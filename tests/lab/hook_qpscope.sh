# SPDX-License-Identifier: BSD-2-Clause
# Hook for run.sh: runs qpscope's three daemons around a job, as they would run on a real host. The host agent is told
# only where to look for libraries; nothing of the job's truth reaches it.
#
# Left in the job's directory: qpscope.db (the store), nic.capture, host.capture, host.json (what the host agent
# says, one record a line), each daemon's log, and ends.txt: each daemon's exit status as it ended.
# Variables of the caller: QPSCOPE_NIC_PREFIX, QPSCOPE_HOST_PREFIX (a command put before the daemon, such as one that
# enters a time namespace), QPSCOPE_KILLS, QPSCOPE_STALL, QPSCOPE_FOLLOW, QPSCOPE_ALL_WINDOWS (asks for every window at
# the end), QPSCOPE_METRICS (each daemon is asked for its metrics at the end: DAEMON.metrics), QPSCOPE_CORRELATOR_NICE, QPSCOPE_NIC_OPTIONS, QPSCOPE_HOST_OPTIONS, QPSCOPE_CORRELATOR_OPTIONS, and
# QPSCOPE_HOST_ONLY: no other daemon than the host agent; with `stays` it goes on after the job, into the next one.

QPSCOPE_RUN=/run/qpscope

QPSCOPE_PAGES="nic:9417 host:9418 correlator:9419"

qpscope_http() { # qpscope_http DAEMON: its option, where metrics are asked for
    local page
    [ -n "${QPSCOPE_METRICS:-}" ] || return 0
    for page in $QPSCOPE_PAGES; do [ "${page%:*}" != "$1" ] || echo "--http ${page#*:}"; done
}

qpscope_scrape() { # qpscope_scrape DAEMON: what it tells now, into DAEMON.metrics
    local page
    for page in $QPSCOPE_PAGES; do
        [ "${page%:*}" = "$1" ] || continue
        {
            printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
            timeout 20 cat <&3 >"$LAB_OUT/$1.metrics"
        } 3<>"/dev/tcp/127.0.0.1/${page#*:}"
    done
}

# Until it has taken in that the agents have ended: then all is in that will ever be.
qpscope_scrape_correlator() {
    local tries
    for ((tries = 0; tries < 40; tries++)); do
        qpscope_scrape correlator
        [ "$(grep -c '^qpscope_agent_ended{.* 1' "$LAB_OUT/correlator.metrics")" -lt 2 ] || return 0
        lab_nap 0.5
    done
}

qpscope_wait_ready() { # qpscope_wait_ready DAEMON: until it says that it is ready
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        grep -q "ready" "$QPSCOPE_RUN/$1.log" 2>/dev/null && return 0
        lab_nap 0.1
    done
    echo "hook: $1 did not become ready within 30 s:" >&2
    cat "$QPSCOPE_RUN/$1.log" >&2
    return 1
}

qpscope_start() { # qpscope_start DAEMON COMMAND...: in the background
    local daemon=$1
    shift
    {
        "$@" >>"$QPSCOPE_RUN/$daemon.json" 2>>"$QPSCOPE_RUN/$daemon.log"
        echo "$daemon $?" >>"$QPSCOPE_RUN/ends.txt"
    } &
}

# On a real cluster it runs elsewhere: here it must not take the job's two CPUs.
qpscope_start_correlator() {
    qpscope_start correlator nice -n "${QPSCOPE_CORRELATOR_NICE:-19}" "$LAB_BUILD/correlator/qpscope-correlator" --intake "ipc://$QPSCOPE_RUN/intake" \
        --clock "ipc://$QPSCOPE_RUN/clock" --store "$QPSCOPE_RUN/qpscope.db" \
        --control "ipc://$QPSCOPE_RUN/control" $(qpscope_http correlator) $QPSCOPE_CORRELATOR_OPTIONS
}

qpscope_start_nic() {
    local ports=() rank far address
    for ((rank = 0; rank < LAB_PORTS; rank++)); do
        far=LAB_FAR_$rank address=LAB_ADDRESS_$rank
        ports+=(--port "net_pcap$rank,iface=${!far}@${!address}")
    done
    qpscope_start nic $QPSCOPE_NIC_PREFIX "$LAB_BUILD/nic/qpscope-nic" "${ports[@]}" --link "ipc://$QPSCOPE_RUN/intake" \
        --clock "ipc://$QPSCOPE_RUN/clock" --control "ipc://$QPSCOPE_RUN/control" \
        --record "$QPSCOPE_RUN/nic.capture" $(qpscope_http nic) $QPSCOPE_NIC_OPTIONS
}

qpscope_start_host() {
    local links=(--link "ipc://$QPSCOPE_RUN/intake" --clock "ipc://$QPSCOPE_RUN/clock" --control "ipc://$QPSCOPE_RUN/host-control")
    [ -z "${QPSCOPE_HOST_ONLY:-}" ] || links=()
    qpscope_start host $QPSCOPE_HOST_PREFIX "$LAB_BUILD/host/qpscope-host" "${links[@]}" --root "$lab_job_tree" \
        --record "$QPSCOPE_RUN/host.capture" --json $(qpscope_http host) $QPSCOPE_HOST_OPTIONS
}

# A process's name is at most 15 characters long; by name, since a prefix command may be the parent.
qpscope_pid() { # qpscope_pid DAEMON
    local name=qpscope-$1
    pgrep -x "${name:0:15}"
}

qpscope_signal() { # qpscope_signal SIGNAL DAEMON
    local name=qpscope-$2
    pkill "-$1" -x "${name:0:15}"
}

qpscope_stop() { # qpscope_stop DAEMON...: in order and together, waiting for their ends
    local daemon tries
    for daemon; do qpscope_signal TERM "$daemon"; done
    for daemon; do
        for ((tries = 0; tries < 300; tries++)); do
            qpscope_signal 0 "$daemon" || continue 2
            lab_nap 0.1
        done
        echo "hook: $daemon did not end within 30 s of SIGTERM; killed" >&2
        qpscope_signal KILL "$daemon"
    done
}

qpscope_ready_count() { # qpscope_ready_count DAEMON: how often it has said that it is ready
    grep -c "ready" "$QPSCOPE_RUN/$1.log"
}

until_steps() { # until the job's first step has ended
    local truth=()
    until [[ ${truth[*]} == *'"kind":"step"'* ]]; do
        lab_nap 0.3
        mapfile -t truth < "$LAB_OUT/truth0.jsonl"
    done 2>/dev/null
}

# With QPSCOPE_STALL=SECONDS: the NIC side is kept from its processor for so long, in the middle of the job, as it is on
# a machine that is too busy. It must lose nothing by it.
stall() {
    qpscope_signal STOP nic
    lab_nap "$QPSCOPE_STALL"
    qpscope_signal CONT nic
}

# With QPSCOPE_KILLS=N: kills a daemon N times at random instants, each in its turn, and starts it again up to a second
# later; the next is killed when it is ready (which takes seconds beside a job that spins on both CPUs). kills.txt tells
# what was done: daemon, and seconds of CLOCK_BOOTTIME before the kill, after it, and when it was started again.
kill_in_turn() {
    local daemons=(nic host correlator) daemon before after started pid ready tries i
    for ((i = 0; i < QPSCOPE_KILLS; i++)); do
        daemon=${daemons[i % 3]} ready=$(qpscope_ready_count "$daemon") pid=$(qpscope_pid "$daemon")
        lab_nap "0.$((RANDOM % 900 + 100))"
        read -r before _ < /proc/uptime
        kill -KILL $pid
        read -r after _ < /proc/uptime
        lab_nap "0.$((RANDOM % 900 + 100))"
        read -r started _ < /proc/uptime
        "qpscope_start_$daemon"
        echo "$daemon $before $after $started" >>"$LAB_OUT/kills.txt"
        for ((tries = 0; tries < 400; tries++)); do
            [ "$(qpscope_ready_count "$daemon")" = "$ready" ] || break
            lab_nap 0.5
        done
    done
}

# Asks once more when nothing is heard of it: a request is not answered, and a machine this slow may lose one. follow.txt
# tells when it asked (seconds of CLOCK_BOOTTIME).
follow_posts() {
    local tries
    for ((tries = 0; tries < 3; tries++)); do
        lab_uptime >>"$LAB_OUT/follow.txt"
        timeout 30 "$LAB_BUILD/cli/qpscope" follow --control "ipc://$QPSCOPE_RUN/host-control" $QPSCOPE_FOLLOW
        lab_nap 2
        ! grep -q '"work"' "$QPSCOPE_RUN/host.json" || return 0
    done
}

during_job() {
    [ -n "${QPSCOPE_KILLS:-}${QPSCOPE_STALL:-}${QPSCOPE_FOLLOW:-}" ] || return 0
    until_steps
    [ -z "${QPSCOPE_STALL:-}" ] || stall
    # With QPSCOPE_FOLLOW=OPTIONS: posts and completions are followed for a while, in the middle of the job.
    [ -z "${QPSCOPE_FOLLOW:-}" ] || follow_posts
    [ -z "${QPSCOPE_KILLS:-}" ] || kill_in_turn
}

before_job() {
    [ -z "${QPSCOPE_HOST_ONLY:-}" ] || ! qpscope_signal 0 host || return 0
    rm -rf "$QPSCOPE_RUN" && mkdir -p "$QPSCOPE_RUN"
    if [ -n "${QPSCOPE_HOST_ONLY:-}" ]; then
        qpscope_start_host
        qpscope_wait_ready host
        return
    fi
    qpscope_start_correlator
    qpscope_start_nic
    qpscope_start_host
    qpscope_wait_ready correlator && qpscope_wait_ready nic && qpscope_wait_ready host
}

after_job() {
    [ "${QPSCOPE_HOST_ONLY:-}" != stays ] || return 0
    if [ -n "${QPSCOPE_HOST_ONLY:-}" ]; then
        qpscope_stop host
        cp "$QPSCOPE_RUN"/{host.log,host.json,host.capture,ends.txt} "$LAB_OUT/"
        return
    fi
    if [ -n "${QPSCOPE_ALL_WINDOWS:-}" ]; then
        timeout 60 "$LAB_BUILD/tests/golden/ask_windows" "ipc://$QPSCOPE_RUN/control"
        lab_nap 6
    fi
    [ -z "${QPSCOPE_METRICS:-}" ] || { qpscope_scrape nic; qpscope_scrape host; }
    qpscope_stop nic host
    [ -z "${QPSCOPE_METRICS:-}" ] || qpscope_scrape_correlator
    qpscope_stop correlator
    cp "$QPSCOPE_RUN"/*.log "$QPSCOPE_RUN"/host.json "$QPSCOPE_RUN"/*.capture "$QPSCOPE_RUN"/qpscope.db* \
        "$QPSCOPE_RUN"/ends.txt "$LAB_OUT/"
}
