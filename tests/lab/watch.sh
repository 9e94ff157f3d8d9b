# SPDX-License-Identifier: BSD-2-Clause
# Sourced in the guest: no wait without a limit, and somebody who notices when one is outlived all the same. Each phase of a
# job is said on the console with its limit, where guest_watch.py reads it, outside; watch_run is its counterpart inside, which
# tells what stands. It starts no program: what stands may be the file system that programs come from.

# lab_phase NAME LIMIT_S: from now on; a limit of 0 is none
lab_phase() {
    local now
    read -r now _ < /proc/uptime
    echo "${now%.*} ${job_name:--} $1 $2" > "$lab_dir/phase"
    [ -n "${LAB_HERE:-}" ] || echo "lab-phase: $now ${job_name:--} $1 $2" >&2
}

# wait_gone LIMIT_S PID...: waits for children to end, and kills those that do not. 1 when one had to be killed.
wait_gone() {
    local deadline=$((SECONDS + $1)) pid status=0
    shift
    for pid; do
        while kill -0 "$pid" 2> /dev/null && ((SECONDS < deadline)); do lab_nap 0.1; done
        kill -KILL "$pid" 2> /dev/null || continue
        lab_say "${job_name:-lab}: process $pid had to be killed in phase $(< "$lab_dir/phase")"
        status=1
    done
    return $status
}

watch_functions() { # FILE: the kernel's stack, innermost function first
    local line lines=() names=''
    mapfile -t lines < "$1"
    for line in "${lines[@]:0:9}"; do
        line=${line#*] }
        names+="${names:+ < }${line%%+*}"
    done
    watch_stack=$names
}

watch_task() { # /proc/PID/task/TID IS_MAIN: says it, unless it is a thread that merely sleeps
    local state name wchan='' parent line rest words=()
    read -r line < "$1/stat" || return
    rest=${line##*) } name=${line#*(} name=${name%)*}
    read -r state parent _ <<< "$rest"
    [[ $parent = 2 && $state != D ]] && return
    [[ -z $2 && $state = S ]] && return
    read -r wchan < "$1/wchan"
    mapfile -d '' -t words < "$1/cmdline"
    watch_functions "$1/stack"
    echo "lab-standing: ${1##*/} of $parent $state $name wchan=$wchan stack: $watch_stack (${words[*]:0:6})" >&2
}

watch_tell() {
    local task pid main
    echo "lab-standing: inside: phase $(< "$lab_dir/phase") is over its limit; processes:" >&2
    for task in /proc/[0-9]*/task/[0-9]*; do
        pid=${task#/proc/} pid=${pid%%/*} main=''
        [ "$pid" != "${task##*/}" ] || main=1
        watch_task "$task" "$main"
    done
    echo 8 > /proc/sysrq-trigger
    echo w > /proc/sysrq-trigger
    echo l > /proc/sysrq-trigger
    echo "lab-standing: inside: end" >&2
}

watch_run() {
    local now begun job phase limit told=''
    while :; do
        lab_nap 3
        read -r now _ < /proc/uptime
        read -r begun job phase limit < "$lab_dir/phase"
        ((limit == 0 || ${now%.*} - begun <= limit)) || [ "$told" = "$begun" ] || {
            told=$begun
            watch_tell "$job" "$phase"
        }
    done
}
