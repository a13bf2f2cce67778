#!/usr/bin/env bash
# Gradescope runs this once, as root, when the autograder is uploaded. What it fetches comes from the distribution's
# packages and from PyPI.
set -euo pipefail
source="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
base="$(dirname "$source")"
export DEBIAN_FRONTEND=noninteractive

apt-get update
apt-get install -y --no-install-recommends bubblewrap python3 python3-venv

newest() {
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
}
python="$(newest)"
if [ -z "$python" ]; then # Ubuntu 22.04's own is 3.10
    apt-get install -y --no-install-recommends python3.11 python3.11-venv
    python="$(newest)"
fi
if [ -z "$python" ]; then
    echo "This autograder needs Python 3.11 to 3.14, and the image has none: choose a newer base image." >&2
    exit 1
fi

"$python" -m venv "$base/three-loops-python"
"$base/three-loops-python/bin/python" -m pip install --quiet --no-cache-dir \
    -c "$source/book/requirements.lock" -r "$source/requirements.txt"
chmod -R go+rX "$base/three-loops-python"
chmod -R go= "$source"
chmod 755 "$source/run_autograder"

# What every hand-in would wait for.
PYTHONPATH="$source/book/lib" "$base/three-loops-python/bin/python" -P \
    -m threeloops.classroom.elsewhere.in_gradescope "$base" --prepare
