// A certificate that cannot be renewed, on a platform with domains of its own: the hub shows it, and where it is mended.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { addNamespaceDomain, getGameNamespaceById } from '@musterhost/contract'
import { ORDER_BACK_OFF_MS } from '../../server/src/cloud/certificates/certificates.ts'
import { checkDomain } from '../../server/src/cloud/domains/check.ts'
import { mainUrl } from '../../server/src/config/addresses.ts'
import { ask, HERE } from '../../server/test/cloud/domain-steps.ts'
import { orderDueCertificates } from '../../server/test/edge/certificate-runs.ts'
import { openBrowser } from '../../server/test/end-to-end/browser.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { type NameServer, startNameServer } from '../../server/test/outbound/name-server.ts'
import { ACME_HOST, type AcmeServer, startAcme } from '../../server/test/support/acme-server.ts'
import { makeAuthority } from '../../server/test/support/certificates.ts'
import { startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { type OpenHub, openView, problemOf, signInAsAdmin, type View } from './steps.ts'

const HOUR_MS = 3_600_000
const MAIN = 'muster.example'
const DOMAIN = 'play.example.com'
/** The authority issues certificates for a day, which are renewed after two thirds of it. */
const LIFETIME_MS = 24 * HOUR_MS
const RENEWAL_MS = 17 * HOUR_MS

type Params = { game_id: string; namespace_id: string }
type CertificateScene = { hub: OpenHub; acme: AcmeServer; names: NameServer }

test('a certificate that cannot be renewed', async (t) => {
  const scene = await openCertified(t)
  if (scene === null) return
  const { hub, acme } = scene
  const { platform } = hub
  const game = await platform.game()
  await claimDomain(scene, { game_id: game.game_id, namespace_id: game.namespace_id })
  await until('the first certificate to be issued', async () => {
    await ask(platform, DOMAIN, '/')
    await orderDueCertificates(platform.ctx)
    return (await certificateOf(scene))?.chain
  })
  acme.fails.add(DOMAIN)
  platform.advance(RENEWAL_MS)
  await orderDueCertificates(platform.ctx)
  const view = await openView(hub, { ignoreHTTPSErrors: true })
  await signInAsAdmin(hub, view)
  await t.test('the button leads to the domain, its expiry and the reason; a renewal ends the problem', () =>
    renewCertificate(scene, view),
  )
  assert.deepEqual(view.faults, [])
  await view.context.close()
})

/** A platform with domains of its own, whose hub is at its main domain over HTTPS. Null without Chromium. */
async function openCertified(t: TestContext): Promise<CertificateScene | null> {
  const authority = await makeAuthority()
  const folder = await mkdtemp(join(tmpdir(), 'muster-hub-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const trusted = join(folder, 'authority.pem')
  await writeFile(trusted, authority.cert)
  const names = await startNameServer(t)
  names.zones.set(ACME_HOST, HERE)
  let edge_port = 0
  const acme = await startAcme(t, { authority, edgePort: () => edge_port })
  acme.lifetime_ms = LIFETIME_MS
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: {
      MUSTER_DOMAIN_MAIN: MAIN,
      MUSTER_DOMAIN_CDN: 'pages.test',
      MUSTER_DOMAIN_JOB: 'lobbies.invalid',
      MUSTER_ADVERTISED_HTTPS_PORT: '443',
      MUSTER_ACME: acme.directory_url,
      MUSTER_FETCH_AUTHORITIES: trusted,
      MUSTER_DNS_SERVERS: names.address,
      MUSTER_SMTP_URL: mail.url,
    },
  })
  const { config } = platform.ctx
  edge_port = config.edge_http_port
  const rules = `MAP ${MAIN}:443 127.0.0.1:${config.edge_https_port}`
  const browser = await openBrowser(t, [`--host-resolver-rules=${rules}`])
  if (browser === null) return null
  const hub: OpenHub = { platform, browser, url: mainUrl(config) }
  const scene: CertificateScene = { hub, acme, names }
  await until('the hub to have its certificate', async () => {
    await ask(platform, MAIN, '/')
    await orderDueCertificates(platform.ctx)
    return (await certificateOf(scene, MAIN))?.chain
  })
  return scene
}

function certificateOf({ hub }: CertificateScene, host = DOMAIN) {
  return hub.platform.ctx.db.selectFrom('certificates').selectAll().where('host', '=', host).executeTakeFirst()
}

/** The namespace proves the domain by its CNAME record, which leads to this platform. */
async function claimDomain({ hub, names }: CertificateScene, params: Params): Promise<void> {
  const { client, ctx } = hub.platform
  await client.call(addNamespaceDomain, { params, body: { domain: DOMAIN } })
  const { namespace } = await client.call(getGameNamespaceById, { params })
  const record = namespace.config.cdn.domains[0]!.verification_records.find(({ type }) => type === 'CNAME')!
  names.zones.set(record.name, { CNAME: record.value, ...HERE })
  const { domain_id } = await ctx.db
    .selectFrom('domains')
    .select('domain_id')
    .where('domain', '=', DOMAIN)
    .executeTakeFirstOrThrow()
  await checkDomain(ctx, domain_id)
}

async function renewCertificate(scene: CertificateScene, { page }: View): Promise<void> {
  const { hub, acme } = scene
  const problem = problemOf(page, `The certificate of ${DOMAIN} expires soon`)
  await problem.getByText('warning', { exact: true }).waitFor()
  const { error } = (await certificateOf(scene))!
  assert.ok(error !== null && error.length > 0)
  await problem.getByText(error, { exact: true }).waitFor()
  await problem.getByRole('link', { name: 'Show the domain' }).click()
  const domains = page.getByRole('region', { name: 'Domains' }).getByRole('listitem').filter({ hasText: DOMAIN })
  await domains.getByText('active', { exact: true }).waitFor()
  await domains
    .getByText(/^Its certificate expires in .*The last order failed\. The platform orders it again\.$/)
    .waitFor()
  await domains.getByText(error, { exact: true }).waitFor()
  acme.fails.delete(DOMAIN)
  hub.platform.advance(ORDER_BACK_OFF_MS[0]!)
  await until('the certificate to be renewed', async () => {
    await orderDueCertificates(hub.platform.ctx)
    return (await certificateOf(scene))?.error === null
  })
  await page.reload()
  await domains.getByText(/^Its certificate expires in .*The platform renews it\.$/).waitFor()
  await page.goto(hub.url)
  await page.getByRole('table', { name: 'Namespaces' }).waitFor()
  await problem.waitFor({ state: 'detached' })
}
