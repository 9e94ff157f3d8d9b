#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The code rules that a machine can check, as TAP: layout, length of files and functions, kinds of header, words that
# mark unfinished work, and that one foreign library is touched by one file.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
number=0 bad=0

mapfile -t sources < <(find bpf nic host correlator cli report wire tests -name '*.[ch]' -not -path '*/build*' 2>/dev/null | sort)

report() { # report NAME FINDINGS: passes when there are none
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/#   /' <<<"$2"
        bad=1
    fi
}

functions_over() { # functions_over LINES: needs universal-ctags
    ctags -x --_xformat='%{input} %N %{line} %{end}' --kinds-C=f --languages=C "${sources[@]}" |
        awk -v limit="$1" '$4 - $3 + 1 > limit { print $1 ":" $3 " " $2 " has " $4 - $3 + 1 " lines" }'
}
share_over() { # share_over LINES PERCENT: more than PERCENT of the functions are longer than LINES
    ctags -x --_xformat='%{line} %{end}' --kinds-C=f --languages=C "${sources[@]}" |
        awk -v limit="$1" -v share="$2" '{ all++; if ($2 - $1 + 1 > limit) long++ }
            END { if (all == 0 || long * 100 > all * share) print long " of " all " functions have more than " limit " lines" }'
}
touched_by_one() { # touched_by_one HEADER-PATTERN: at most one file of a program includes it
    grep -lE "#include <$1" "${sources[@]}" | grep -v '^tests/' | awk -F/ '{ f = f " " $0; if (seen[$1]++) n++ } END { if (n > 0) print "included by" f }'
}

report "clang-format" "$(clang-format-14 --dry-run "${sources[@]}" 2>&1 | grep -E 'warning|error' | cut -d: -f1 | sort -u)"
report "no file over 700 lines" "$(wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 700 { print $2 " has " $1 }')"
report "no function over 80 lines" "$(functions_over 80)"
report "nine of ten functions within 45 lines" "$(share_over 45 10)"
report "SPDX line in every source" "$(grep -L 'SPDX-License-Identifier' "${sources[@]}")"
report "no words of unfinished work" "$(git grep -nE '\b(TODO|FIXME|XXX|HACK)\b' -- '*.[ch]' '*.sh' '*.py' '*.md' '*.build' ':!tests/style/check.sh')"
for library in 'nanomsg/' 'sodium' 'sqlite3' 'zstd' 'bpf/libbpf' 'microhttpd'; do
    report "one file touches $library" "$(touched_by_one "$library")"
done
report "only nic/dpdk touches DPDK" \
    "$(grep -lE '#include <rte_' "${sources[@]}" | grep -vE '^(nic/dpdk/|tests/)')"
echo "1..$number"
exit $bad
