#!/bin/sh
# Joins and minifies the page's scripts and style sheets into webui/dist/, which is checked in, so that
# mimikit needs no Node to run. `make page` runs it after a change of webui/; a test compares
# sources.sha256 with the sources.
set -eu
cd "$(dirname "$0")"
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent
cd ../../webui
../scripts/page/node_modules/.bin/esbuild js/main.js css/page.css --bundle --minify --outdir=dist \
    --format=esm --target=es2022 --entry-names=[name] --legal-comments=inline --log-level=warning \
    --supported:template-literal=false
find js css vendor -name '*.js' -o -name '*.css' | LC_ALL=C sort | xargs sha256sum | sha256sum |
    cut -d' ' -f1 >dist/sources.sha256
