#!/usr/bin/env bash
# usage: needed_libraries.sh FILE WANTED UNWANTED. The dynamic section of FILE asks for a library that matches WANTED and for
# none that matches UNWANTED.
set -euo pipefail
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
grep -E -- "$2" <<<"$needed" >/dev/null || { echo "$1 does not need $2, but only: $needed"; exit 1; }
if grep -E -- "$3" <<<"$needed"; then
  echo "$1 must not need these"
  exit 1
fi
