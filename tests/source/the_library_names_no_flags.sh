#!/usr/bin/env bash
# Texts of the library name a setting by its option field, as in `source_tp`; flags are the program's.
set -euo pipefail
cd "$MCKPT_SOURCE"

literals() { # path:line:"text", comments left out
  grep -rnoE '^[^/]*("([^"\\]|\\.)*"[^"]*)+' lib mappings --include='*.cc' --include='*.h' --include='*.inc' --include='*.cu'
}
[ "$(literals | wc -l)" -ge 2000 ] || { echo "only $(literals | wc -l) lines with texts were found"; exit 1; }

flags=$(literals | grep -E '"([^"\\]|\\.)*--[a-z]' || true)
[ -z "$flags" ] || { echo "these texts name flags:"; echo "$flags"; exit 1; }

known=$({ sed -n '/kSettings\[\]/,/};/p' tools/render/setting_names.cc | grep -oE '"[a-z_]+"'
          grep -rhoE '\.name = "[a-z_]+"' lib/options | grep -oE '"[a-z_]+"'; } | tr -d '"')
[ "$(wc -w <<<"$known")" -ge 30 ] || { echo "the list of settings was not found"; exit 1; }
status=0
while read -r name; do
  grep -qx "$name" <<<"$known" ||
    { echo "\`$name\` is named by a text of the library, but is no field of lib/options and not in tools/render/setting_names.cc"; status=1; }
done < <(literals | grep -oE '`[a-z][a-z_]*`' | tr -d '`' | sort -u)
exit $status
