#!/bin/sh
# Collects the program and the maps of Debian's packages into build/.
set -eu
program=/usr/games/teeworlds-server
maps=/usr/share/games/teeworlds/data/maps
[ -x "$program" ] || { echo "$program is missing: sudo apt-get install --no-install-recommends teeworlds-server" >&2; exit 1; }
rm -rf build
mkdir -p build
cp "$program" build/
cp -RL "$maps" build/
