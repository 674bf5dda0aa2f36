#!/bin/sh
# Collects the program and the rules of Debian's package into build/.
set -eu
program=/usr/games/freeciv-server
data=/usr/share/games/freeciv
[ -x "$program" ] || { echo "$program is missing: sudo apt-get install --no-install-recommends freeciv-server" >&2; exit 1; }
rm -rf build
mkdir -p build/data
cp "$program" build/
for name in civ2civ3 classic default nation override; do cp -RL "$data/$name" build/data/; done
cp "$data"/*.serv build/data/
