#!/usr/bin/env bash
# scripts/release refuses to release: a folder that is not a checkout, changes that are not committed, a
# version that CHANGELOG.md does not describe; --check refuses files that differ from SHA256SUMS. The release
# itself is not made here.
. "$MCKPT_SOURCE/tests/support/common.inc"
command -v git >/dev/null || skip "there is no git"
version=$(sed -n 's/^project(mckpt VERSION \([0-9.]*\).*/\1/p' "$MCKPT_SOURCE/CMakeLists.txt")

mkdir -p tree/scripts
cd tree
cp "$MCKPT_SOURCE/CMakeLists.txt" "$MCKPT_SOURCE/CHANGELOG.md" .
cp "$MCKPT_SOURCE"/scripts/{release,changelog-of} scripts/
echo /dist >.gitignore
# In place of the build of the wheel.
printf '#!/bin/sh\necho the build begins\nexit 7\n' >scripts/wheel
chmod +x scripts/wheel

export GIT_CEILING_DIRECTORIES=$t GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
expect 1 scripts/release
has err "not a git checkout"

git init -q .
commit() { git add -A && git -c user.name=x -c user.email=x@x commit -qm "$1"; }
commit first
expect 7 scripts/release
has out "the build begins"

echo change >>CHANGELOG.md
expect 1 scripts/release
has err "not committed"
lacks out "the build begins"
git checkout -q CHANGELOG.md
touch new_file
expect 1 scripts/release
has err "new_file"
rm new_file

for edit in "s/^## \[$version\] - .*/## [$version]/" "s/^## \[$version\]/## [9.9.9]/" "/^## \[$version\]/,\$d"; do
  sed -i "$edit" CHANGELOG.md
  commit "$edit"
  expect 1 scripts/release
  has err "CHANGELOG.md has no section [$version] with a date"
  lacks out "the build begins"
  git -c user.name=x -c user.email=x@x revert --no-edit HEAD >/dev/null
done
expect 7 scripts/release

expect 2 scripts/release --chek
expect 1 scripts/release --check
has err "SHA256SUMS is not there"
files=("mckpt-$version-py3-none-manylinux_2_28_x86_64.whl" "mckpt-$version.tar.gz" "mckpt-$version-linux-x86_64.tar.gz" Containerfile)
mkdir -p dist
for file in "${files[@]}"; do echo "$file" >"dist/$file"; done
sums() { (cd dist && sha256sum "${files[@]}" >SHA256SUMS); }
sums
echo more >>"dist/${files[1]}"
expect 1 scripts/release --check
has err "not those of SHA256SUMS"
sums
sed -i 3d dist/SHA256SUMS
expect 1 scripts/release --check
has err "does not name ${files[2]}"
truncate -s 10000001 "dist/${files[0]}"
sums
expect 1 scripts/release --check
has err "more than 10000000"
truncate -s 10 "dist/${files[0]}"
sums
expect 1 scripts/release --check
has err "installs another wheel"
