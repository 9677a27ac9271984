# Shared by aarch64 and wheels: a Python for aarch64 under QEMU, in the folder $ROOM. Sourced after lib.sh, not run.

# The aarch64 packages that make a Python, with what they depend on. A state of its own keeps apt from noticing that
# there is a machine around it, and the machine's packages from foreign ones.
arm64_apt() {
  apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$ROOM/apt" \
    -o Dir::State::status="$ROOM/apt/status" -o Dir::Cache="$ROOM/apt/cache" "${sources[@]}" "$@" >&2
}
unpack_python() {
  local sources=() deb
  mkdir -p "$ROOM"/apt/{lists/partial,cache/archives/partial}
  : >"$ROOM/apt/status"
  if [ "$(. /etc/os-release && echo "$ID")" = ubuntu ]; then  # which has other processors' packages elsewhere
    (. /etc/os-release && for suite in "" -updates -security; do
      echo "deb http://ports.ubuntu.com/ubuntu-ports $VERSION_CODENAME$suite main"
    done) >"$ROOM/apt/sources.list"
    sources=(-o Dir::Etc::SourceList="$ROOM/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null)
  fi
  arm64_apt update
  arm64_apt install --download-only --no-install-recommends python3 libstdc++6
  rm -rf "$ROOM/sysroot.new"
  mkdir -p "$ROOM"/sysroot.new/usr/{bin,lib}
  ln -s usr/lib "$ROOM/sysroot.new/lib"
  for deb in "$ROOM"/apt/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$ROOM/sysroot.new" --keep-directory-symlink
  done
  rm -rf "$ROOM/sysroot" "$ROOM/apt"
  mv "$ROOM/sysroot.new" "$ROOM/sysroot"
}

# A virtual environment whose python is a script, so that sys.executable can start further ones without binfmt_misc.
make_arm64_venv() {  # make_arm64_venv FOLDER PACKAGE...
  local version wheels=() platform folder=$1
  shift
  version=$(basename "$(readlink "$ROOM/sysroot/usr/bin/python3")")
  for platform in manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 manylinux2014; do
    wheels+=(--platform "${platform}_aarch64")
  done
  pip install --disable-pip-version-check -q --upgrade --target "$folder/lib/$version/site-packages" \
    "${wheels[@]}" --only-binary=:all: --implementation cp --python-version "${version#python}" \
    "$@"
  mkdir -p "$folder/bin"
  printf 'home = %s\nversion = %s\n' "$ROOM/sysroot/usr/bin" "${version#python}" >"$folder/pyvenv.cfg"
  cat >"$folder/bin/python3" <<EOF
#!/bin/sh
exec qemu-aarch64-static -L "$ROOM/sysroot" -0 "$folder/bin/python3" "$ROOM/sysroot/usr/bin/$version" "\$@"
EOF
  chmod +x "$folder/bin/python3"
}
