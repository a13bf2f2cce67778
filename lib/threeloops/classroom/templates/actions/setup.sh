#!/usr/bin/env bash
# Makes a runner of GitHub's ready: a sandbox and the grader's packages, from the distribution's packages and from PyPI.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

sudo apt-get update -qq
sudo apt-get install -y -qq --no-install-recommends bubblewrap python3-venv
# Ubuntu keeps programs without root from making namespaces; bubblewrap is made of them.
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
    sudo sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0
fi
python3 -m venv "$here/python"
"$here/python/bin/python" -m pip install --quiet -c "$here/book/requirements.lock" -r "$here/requirements.txt"
