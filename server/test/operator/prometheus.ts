// A Prometheus of its own, on the configuration that is delivered in deploy/, pointed at the port of a test.
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../support/free-ports.ts'

export const DEPLOY = fileURLToPath(new URL('../../../deploy/', import.meta.url))

export type Sample = { metric: Record<string, string>; value: number }
export type Prometheus = { query: (expression: string) => Promise<Sample[]> }

/** It scrapes `metrics_port` every second, as if the api were there, with `token` if there is one. */
export async function startPrometheus(t: TestContext, metrics_port: number, token: string): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-prometheus-'))
  cpSync(join(DEPLOY, 'prometheus'), folder, { recursive: true })
  const file = join(folder, 'prometheus.yml')
  const config = readFileSync(file, 'utf8')
    .replaceAll('15s', '1s')
    .replace('127.0.0.1:9480', `127.0.0.1:${metrics_port}`)
    // Nobody listens there; at the documented ports there may be a platform of the developer.
    .replaceAll(/127\.0\.0\.1:948[123]/g, '127.0.0.1:1')
    .replace('# authorization:', 'authorization:')
    .replace('#   credentials_file: /etc/prometheus/muster-token', `  credentials: ${token}`)
  writeFileSync(file, config)
  const [port] = await freePorts(1)
  const child: ChildProcess = spawn(
    'prometheus',
    [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`],
    { stdio: 'ignore' },
  )
  const ended = new Promise((resolve) => child.once('close', resolve))
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    /** None while it has not started. */
    async query(expression) {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`
      const answer = await fetch(url).catch(() => null)
      if (answer === null || !answer.ok) return []
      const { data } = (await answer.json()) as {
        data: { result: { metric: Record<string, string>; value: [number, string] }[] }
      }
      return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
  }
}
