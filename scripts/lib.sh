# Shared by the scripts beside it: a virtual environment with pyfilter built and installed. Sourced, not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}
export PIP_DISABLE_PIP_VERSION_CHECK=1

took() {  # took WHAT: says how long, since the script began
  echo "$SECONDS s: $*" >&2
}

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

new_venv() {  # new_venv FOLDER
  python3 -m venv "$1" 2>/dev/null || { need no-such-command python3-venv; python3 -m venv "$1"; }
}

make_venv() {
  need python3 python3 python3-venv
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "pyfilter needs Python >= 3.10" >&2; exit 1; }
  [ -x "$VENV/bin/pip" ] || new_venv "$VENV"
  PATH="$PWD/$VENV/bin:$PATH"
}

# Sets WHEEL to a wheel for this machine: one in dist/ or of an earlier build, or it builds one.
get_wheel() {  # get_wheel [--same]: only one of these sources, with these CMAKE_ARGS
  WHEEL=$(python scripts/built_wheel.py find "$@")
  if [ -n "$WHEEL" ]; then
    echo "using $WHEEL" >&2
    return
  fi
  need g++ g++
  echo "building pyfilter: some minutes" >&2
  rm -f build/wheel/*
  pip wheel -q --no-deps -w build/wheel .
  python scripts/built_wheel.py note build/wheel/*.whl
  WHEEL=$(python scripts/built_wheel.py find --same)
}

install_pyfilter() {  # install_pyfilter EXTRAS [--same]
  get_wheel "${@:2}"
  pip show -q pyfilter 2>/dev/null && pip uninstall -q -y pyfilter h5pyfilter  # the name before it was h5pyfilter
  pip install -q --force-reinstall --no-deps "$WHEEL"
  pip install -q "h5pyfilter[$1] @ file://$WHEEL"
}

try_wheel() {  # try_wheel FOLDER WHEEL...: installs them in a new virtual environment and uses them there
  local folder=$1 cuda=
  shift
  rm -rf "$folder"
  new_venv "$folder"
  "$folder/bin/pip" install -q "$@"
  case "$*" in *h5pyfilter_cuda*) cuda=--cuda ;; esac
  env -u PYTHONPATH -u PYFILTER_LIBRARY "$folder/bin/python" packaging/try_wheel.py $cuda
}
