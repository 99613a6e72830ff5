#!/usr/bin/env bash
# Installs what the tests need, Chromium included, and runs every test. Needs Debian 12 and Python 3.11.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

missing=()
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
# One of GPTQModel's dependencies comes as C source; quanto compiles its C++ at the first use.
command -v c++ >/dev/null || missing+=(g++)
python3 -c 'import os, sysconfig; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
  || missing+=(python3-dev)
command -v chromium >/dev/null || missing+=(chromium)
[ -n "$(find /usr/share/fonts -name 'NotoSansCJK*' -print -quit 2>/dev/null)" ] || missing+=(fonts-noto-cjk)
if [ ${#missing[@]} -gt 0 ]; then
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/python -m pip install --quiet -r requirements.txt -r tests/requirements.txt
.venv/bin/python -m pip check
.venv/bin/ruff check .
.venv/bin/python -m pytest "$@"
