# SPDX-License-Identifier: BSD-2-Clause
# Hook for run.sh: as hook_qpscope.sh, but the host agent starts when QPSCOPE_HOST_WHEN says: `before` the job, `during`
# it (the first step has ended), or `after` its last step, while its processes still have their communicators.
# shellcheck source=tests/lab/hook_qpscope.sh
. "$here/hook_qpscope.sh"

before_job() {
    rm -rf "$QPSCOPE_RUN" && mkdir -p "$QPSCOPE_RUN"
    qpscope_start_correlator
    qpscope_start_nic
    qpscope_wait_ready correlator && qpscope_wait_ready nic
    [ "$QPSCOPE_HOST_WHEN" != before ] || host_start
}

host_start() {
    qpscope_start_host
    qpscope_wait_ready host
    lab_say "$job_name: host agent ready at $(lab_uptime) s"
}

during_job() {
    [ "$QPSCOPE_HOST_WHEN" = during ] || return 0
    until_steps
    host_start
}

resting_job() {
    [ "$QPSCOPE_HOST_WHEN" = after ] || return 0
    host_start
    lab_nap 12 # it looks at the kernel's list every 10 s
}
