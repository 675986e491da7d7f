#!/usr/bin/env bash
# A header that takes seconds to compile, or ties us to a library, is included where docs/conventions.md says
# and nowhere else; and never by a header (of mckpt-hdf5, which is about nothing else, its own).
set -euo pipefail
cd "$MCKPT_SOURCE"

# include directive (extended regex behind < or ") | files that may have it (extended regex) | how many must
rules='
CLI/                                    ^tools/options/command_line\.cc$            1
zlib\.h                                 ^lib/io/(zip/inflate|file/crc32)\.cc$        1
libdeflate\.h                           ^lib/io/file/crc32\.cc$                  1
nlohmann/                               ^lib/io/json/json\.cc$              1
mpi\.h                                  ^lib/runtime/comm/mpi_module\.cc$        1
nccl\.h                                 ^lib/live/cuda/nccl_module\.cc$          1
nvrtc\.h                                ^$                                  0
hdf5\.h                                 ^tools/hdf5/(handle|fd_driver)\.h$  1
(ATen|c10)/                             ^lib/live/[a-z_/]+\.cc$              1
torch/torch\.h                          ^$                                  0
torch/                                  ^lib/live/[a-z_/]+\.cc$              1
cuda[a-z_]*\.h                          ^$                                  0
'
failed=0
while read -r header owners least; do
  [ -n "$header" ] || continue
  found=$(grep -rlE --include='*.h' --include='*.cc' --include='*.inc' "^ *# *include *[<\"]$header" lib mappings tools || true)
  strangers=$(grep -vE "$owners" <<<"$found" | grep . || true)
  if [ -n "$strangers" ]; then
    echo "$header may be included by $owners only, but is by: $strangers"
    failed=1
  fi
  # A rule that finds nothing where there must be something has stopped checking.
  if [ "$(grep -c . <<<"$found")" -lt "$least" ]; then
    echo "$header is included by nobody; the rule is out of date"
    failed=1
  fi
done <<<"$rules"
exit $failed
