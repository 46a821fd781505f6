#!/bin/sh
# Fetches the opencode that .ci/opencode pins by its hash into build/opencode, for the nightly tests.
set -eu
pinned=.ci/opencode fetched=build/opencode
if cmp -s "$pinned/package-lock.json" "$fetched/pinned"; then exit 0; fi
command -v npm >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends npm >/dev/null; }
rm -rf "$fetched" && mkdir -p "$fetched" && cp "$pinned"/*.json "$fetched/"
timeout 300 npm install --prefix "$fetched" --no-audit --no-fund --loglevel=error
"$fetched/node_modules/.bin/opencode" --version && cp "$pinned/package-lock.json" "$fetched/pinned"
