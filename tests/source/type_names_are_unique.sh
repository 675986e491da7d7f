#!/usr/bin/env bash
# No two headers define a type of one name: everything is in one namespace, so the linker would take the two for one.
set -euo pipefail
cd "$MCKPT_SOURCE"

names=$(grep -rhoE --include='*.h' '^(struct|class|enum class|enum) [A-Za-z0-9]+( final)?( : [^;]*)? \{' lib mappings tools tests |
  sed -E 's/^(struct|class|enum class|enum) ([A-Za-z0-9]+).*/\2/')
echo "$(wc -l <<<"$names") types"
twice=$(sort <<<"$names" | uniq -d)
[ -z "$twice" ] || { echo "defined by more than one header: $twice" && exit 1; }
[ "$(wc -l <<<"$names")" -gt 200 ]
