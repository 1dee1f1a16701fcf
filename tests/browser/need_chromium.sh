#!/usr/bin/env bash
# The browser tests drive a real Chromium. Where there is none and the system is Debian-like with root, install it.
set -eu
for name in chromium chromium-browser google-chrome; do command -v "$name" >/dev/null && exit 0; done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && apt-get install -y -qq chromium >/dev/null
else
  echo "The browser tests need Chromium on the PATH (Debian: apt-get install chromium)." >&2
  exit 1
fi
