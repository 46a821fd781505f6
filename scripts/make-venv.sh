#!/bin/sh
# Makes the virtual environment: make-venv.sh PYTHON FOLDER
#
# Debian's python3 comes without ensurepip. Then the system's pip fills the environment; where that is
# missing too, root installs python3-venv and anybody else is told to.
set -eu
python=$1
folder=$2

fail() {
    echo "mimikit: $1" >&2
    rm -rf "$folder"
    exit 1
}

has() { "$python" -c "import $1" 2>/dev/null; }

command -v "$python" >/dev/null || fail "expected a program named $python, found none; install Python 3.11 or newer"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "expected Python 3.11 or newer, got $("$python" -V 2>&1); name another: make up PYTHON=python3.12"

if ! has ensurepip && ! has pip && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Debian's python3-venv, which this needs …"
    { apt-get -qq update && apt-get -qq install -y python3-venv; } >/dev/null || true
fi

if has ensurepip; then
    "$python" -m venv "$folder" || fail "could not make $folder"
elif has pip; then
    "$python" -m venv --without-pip "$folder" || fail "could not make $folder"
    "$python" -m pip --python "$folder/bin/python" --quiet install pip || fail "could not put pip into $folder"
else
    fail "expected Python's venv with pip, found none; run: sudo apt-get install python3-venv, then this again"
fi
