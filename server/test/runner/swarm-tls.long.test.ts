// An engine of a Swarm over TCP: only a client with a certificate of its authority reaches it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../../src/config/read-config.ts'
import { openNodes } from '../../src/runner/drivers/swarm/host.ts'
import { lacking } from '../run/optional-programs.ts'
import { startEngine } from '../support/container-engine.ts'
import { freePorts } from '../support/free-ports.ts'
import { needsOf } from './driver-fixture.ts'

/** A key and a certificate, of `issuer` or its own. */
function certify(folder: string, name: string, issuer: string | null): void {
  const [key, request, certificate, extensions] = ['-key.pem', '.csr', '.pem', '.ext'].map((end) => folder + name + end)
  const openssl = (args: readonly string[]): Buffer => execFileSync('openssl', args, { stdio: 'pipe' })
  const new_key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key!]
  if (issuer === null) {
    openssl(['req', '-x509', ...new_key, '-subj', `/CN=${name}`, '-days', '2', '-out', certificate!])
    return
  }
  writeFileSync(extensions!, 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n')
  openssl(['req', ...new_key, '-subj', `/CN=${name}`, '-out', request!])
  const by = ['-CA', `${folder}${issuer}.pem`, '-CAkey', `${folder}${issuer}-key.pem`, '-CAcreateserial']
  openssl(['x509', '-req', '-in', request!, ...by, '-days', '2', '-extfile', extensions!, '-out', certificate!])
}

test('an engine over TLS takes requests of the platform with its certificate, and none without', async (t) => {
  const missing = lacking(...needsOf('docker'), 'openssl')
  if (missing !== null) return t.skip(missing)
  const folder = `${mkdtempSync(join(tmpdir(), 'muster-tls-'))}/`
  certify(folder, 'ca', null)
  certify(folder, 'engine', 'ca')
  certify(folder, 'cert', 'ca')
  execFileSync('cp', [`${folder}cert-key.pem`, `${folder}key.pem`])
  certify(folder, 'stranger', null)
  const stranger = `${folder}stranger/`
  mkdirSync(stranger)
  execFileSync('cp', [`${folder}ca.pem`, stranger])
  execFileSync('cp', [`${folder}stranger.pem`, `${stranger}cert.pem`])
  execFileSync('cp', [`${folder}stranger-key.pem`, `${stranger}key.pem`])
  const [port] = await freePorts(1)
  const engine = await startEngine(t, join(folder, 'docker'), {
    has_network: false,
    args: [
      ...['--host', `tcp://127.0.0.1:${port}`, '--tlsverify', '--tlscacert', `${folder}ca.pem`],
      ...['--tlscert', `${folder}engine.pem`, '--tlskey', `${folder}engine-key.pem`],
    ],
  })

  t.after(async () => {
    await engine.end()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const [tls_folder, failure] of [
    [folder, /^the engine is in no Swarm$/],
    [stranger, /certificate|alert|socket hang up|ECONNRESET/],
    ['', /HTTP|status 400|Parse Error|socket hang up/],
  ] as const) {
    const { swarm } = readConfig({
      MUSTER_SWARM_ENGINES: `one=tcp://127.0.0.1:${port}`,
      MUSTER_SWARM_TLS: tls_folder,
    })
    const [node] = openNodes(swarm, 'muster-test', Date.now)
    await node!.check()
    node!.close()
    assert.match(node!.failure ?? '', failure, tls_folder)
  }
})
