# SPDX-License-Identifier: BSD-2-Clause
# Plan for run.sh with hook_when.sh: the same job with the host agent started before it, in its middle and after its last
# step, on RCCL and on the stand-in for NCCL. check_when.py FOLDER... judges them.
# shellcheck shell=bash
for when_library in rccl standin; do
    for QPSCOPE_HOST_WHEN in before during after; do
        when_option=''
        [ $when_library = rccl ] || when_option=--standin
        # shellcheck disable=SC2086
        job_run "$when_library-$QPSCOPE_HOST_WHEN" --ranks 3 --steps 70 --seed 31 --limit 300 $when_option
    done
done
