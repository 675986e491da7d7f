#!/usr/bin/env bash
# No two headers of one namespace define a type of one name: the linker would take the two for one. The interface
# (lib/api/mckpt) is the namespace mckpt, everything else mckpt::impl.
set -euo pipefail
cd "$MCKPT_SOURCE"

types() {  # folder...: the names of the types that its headers define
  grep -rhoE --include='*.h' --exclude-dir=mckpt '^(struct|class|enum class|enum) (MCKPT_API )?[A-Za-z0-9]+( final)?( : [^;]*)? \{' "$@" |
    sed -E 's/^(struct|class|enum class|enum) (MCKPT_API )?([A-Za-z0-9]+).*/\3/'
}

unique() {  # at least this many names, each once; names from stdin
  local names twice
  names=$(cat)
  echo "$(wc -l <<<"$names") types"
  twice=$(sort <<<"$names" | uniq -d)
  [ -z "$twice" ] || { echo "defined by more than one header: $twice" && exit 1; }
  [ "$(wc -l <<<"$names")" -ge "$1" ]
}

types lib mappings tools tests | unique 200
types lib/api/mckpt/*.h | unique 20
