// Copies the client of the installed Socket.IO to the page, so that both have the same version.
import { copyFileSync } from 'node:fs'

const from = new URL('./node_modules/socket.io/client-dist/socket.io.esm.min.js', import.meta.url)
copyFileSync(from, new URL('../site/socket.io.js', import.meta.url))
