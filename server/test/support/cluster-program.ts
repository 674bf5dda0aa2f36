// Opens a cluster, runs a program on it, prints the ids of its processes, and waits to be killed.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Cluster } from './cluster.ts'

const LIFE_MS_MAX = 60_000

const cluster = await Cluster.open({ after: () => undefined }, ['one'])
const program = cluster.run('one', ['sleep', '600'])
console.log(JSON.stringify([program.pid, ...childrenOf(process.pid)]))
await delay(LIFE_MS_MAX)

function childrenOf(parent: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return readFileSync(`/proc/${name}/status`, 'utf8').includes(`\nPPid:\t${parent}\n`) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}
