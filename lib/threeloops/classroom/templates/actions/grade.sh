#!/usr/bin/env bash
# Grades the repository that is given; ends with 1 where points are missing, so that the push is marked.
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export PYTHONPATH="$here/book/lib"
exec "$here/python/bin/python" -P -m threeloops.classroom.elsewhere.in_actions "$here" "$1"
