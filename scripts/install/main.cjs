#!/usr/bin/env node
// The step before every script of package.json: it installs what package-lock.json names, unless it is installed already.
// It runs under the Node of the user's machine. This file uses only what an old Node knows, so that it can name itself.
'use strict'

/** `engines` of package.json names the same version. */
var OLDEST = [20, 19]

var version = process.versions.node.split('.').map(Number)
if (version[0] < OLDEST[0] || (version[0] === OLDEST[0] && version[1] < OLDEST[1])) {
  console.error(
    'Muster needs Node ' +
      OLDEST.join('.') +
      ' or newer, and this is ' +
      process.versions.node +
      ': ' +
      'install a newer Node (https://nodejs.org), then run the command again.',
  )
  process.exit(1)
}
import('./install.js')
