# Shared by demo and test: a virtual environment with pyfilter built and installed. Sourced, not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}

# Debian/Ubuntu packages, installed only where a tool is missing.
need() {  # need COMMAND PACKAGE ...
  local command=$1
  shift
  command -v "$command" >/dev/null 2>&1 && return
  echo "installing $* (Debian package)" >&2
  local sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  [ -n "${APT_UPDATED:-}" ] || $sudo apt-get update -q >&2
  APT_UPDATED=1
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "$@" >&2
}

make_venv() {
  need python3 python3 python3-venv
  need g++ g++
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "pyfilter needs Python >= 3.10" >&2; exit 1; }
  if ! [ -x "$VENV/bin/pip" ]; then
    python3 -m venv "$VENV" 2>/dev/null || { need no-such-command python3-venv; python3 -m venv "$VENV"; }
  fi
  PATH="$PWD/$VENV/bin:$PATH"
}

install_pyfilter() {  # install_pyfilter EXTRAS
  pip install --disable-pip-version-check -q ".[$1]"
}
