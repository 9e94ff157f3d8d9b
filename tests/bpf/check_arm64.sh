#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The probes that are linked for AArch64 have the programs of those for x86-64, and read arguments where the calling
# convention and the kernel's struct of registers (asm/ptrace.h) have them: the stream of ncclAllReduce (on x86-64 on the
# stack, hence rsp; x6), the type of ncclAllGather (rcx, x3), the count of ncclSend (rsi, x1), what ncclCommDestroy gets.
# usage: check_arm64.sh OBJECT_FOR_X86 OBJECT_FOR_ARM64
set -euo pipefail
bad=0

programs() { # OBJECT
    llvm-readelf-14 -sW "$1" | awk '$4 == "FUNC" && $5 == "GLOBAL" { print $8 }' | sort
}
reads() { # OBJECT PROGRAM OFFSET: in the struct of registers, which is in r1 at the begin and soon in another register
    local code
    code=$(llvm-objdump-14 -d --no-show-raw-insn "$1" | awk -v name="<$2>:" '/^[0-9a-f]+ <[^L]/ { is_it = $2 == name } is_it')
    grep -qE "= \*\(u64 \*\)\(r[1-9] \+ $3\)" <<< "$code" ||
        { echo "FAILED: $2 in $(basename "$1") does not read offset $3 of its registers" && bad=1; }
}
count=$(programs "$1" | wc -l)
[ "$count" -gt 50 ] || { echo "FAILED: $1 has $count programs" && bad=1; }
diff <(programs "$1") <(programs "$2") || { echo "FAILED: the programs differ" && bad=1; }
while read -r program x86 arm64; do
    reads "$1" "$program" "$x86"
    reads "$2" "$program" "$arm64"
done <<'PLACES'
nccl_all_reduce 152 48
nccl_all_gather 88 24
nccl_send 104 8
nccl_destroy 112 0
PLACES
[ $bad = 0 ] || exit 1
echo "ok: $count programs"
