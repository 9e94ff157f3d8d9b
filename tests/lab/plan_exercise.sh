# SPDX-License-Identifier: BSD-2-Clause
# Plan for run.sh: what the stand-in NCCL can do and RCCL cannot, for check_exercise.py. Each scenario once; those that
# change their process for good, or end a rank, in jobs of their own.
job_run creators --exercise "plain modes several group group_async remake" --no-tracer --limit 150
job_run families --exercise "split split_async split_part split_shared grow revoke" --no-tracer --limit 150
job_run calls --exercise "put graph cuda tree" --no-tracer --limit 100
job_run pxn --exercise "pxn pxn_shared" --no-tracer --pcap --limit 100
job_run shrink --exercise "shrink" --no-tracer --limit 60
job_run failure --exercise "failure" --ranks 3 --no-tracer --limit 60
job_run wide --exercise "many_queues" --ranks 2 --no-tracer --limit 100
job_run devices --exercise "all" --ranks 2 --two-in-one --no-tracer --limit 60
job_run sockets --exercise "sockets" --no-tracer --limit 60
