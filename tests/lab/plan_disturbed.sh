# SPDX-License-Identifier: BSD-2-Clause
# Plan for run.sh, with hook_qpscope.sh and hook_disturb.sh: small jobs on a bad network, of each kind one.
disturbed_job() { # NAME RANKS TC-COMMANDS [STEPS]
    DISTURB=$3 job_run "$1" --ranks "$2" --steps "${4:-4}" --pcap --seed 31
}

shape="qdisc add dev {dev} root handle 1: tbf rate 40mbit burst 20480 limit 4m"
mark="qdisc add dev {dev} parent 1:1 handle 10: red limit 4000000 min 12000 max 36000 avpkt 4100 burst 6 bandwidth 40mbit probability 1 ecn"

disturbed_job loss-low 4 "qdisc add dev {dev} root netem limit 10000 loss 0.1%" 6
disturbed_job loss-high 2 "qdisc add dev {dev} root netem limit 10000 loss 1%"
disturbed_job reorder 2 "qdisc add dev {dev} root netem limit 10000 delay 2ms reorder 99% gap 1"
disturbed_job duplicate 2 "qdisc add dev {dev} root netem limit 10000 duplicate 1%"
DISTURB_RANK=1 disturbed_job lossy 3 "qdisc add dev {dev} root netem limit 10000 loss 3%" 12
QPSCOPE_ALL_WINDOWS=1 disturbed_job rate 2 "$shape"
DISTURB_TC=2 disturbed_job marks 2 "$shape;$mark"
