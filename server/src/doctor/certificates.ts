// The certificates of the edge: those in the operator's folder, or the authority that issues them.
import { certifiedHosts, hasHttps, wildcardOf } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import { byName, type Certificate, certificateFor } from '../edge/tls/certificate.ts'
import { findPairs, loadPair } from '../edge/tls/files.ts'
import { askOperatorsServer } from './ask.ts'
import { type Finding, failed, messageOf, ok, skipped, warning } from './finding.ts'

const DAY_MS = 24 * 60 * 60_000
/** Authorities and programs renew earlier than this. */
const SOON_MS = 7 * DAY_MS

export async function examineCertificates(config: Config, now_ms: number): Promise<Finding[]> {
  if (config.mode === 'development') return [skipped('certificates', 'the platform has an authority of its own')]
  if (!hasHttps(config)) {
    const remedy = 'export MUSTER_ACME=https://acme-v02.api.letsencrypt.org/directory    (docs/https.md)'
    return [warning('certificates', 'The edge has none: a proxy in front of it must speak HTTPS.', remedy)]
  }
  const of_files = config.certificates_dir === null ? [] : await examineFiles(config, config.certificates_dir, now_ms)
  const of_authority = config.acme === null ? [] : await examineAuthority(config, config.acme.directory_url)
  return [...of_files, ...of_authority]
}

async function examineFiles(config: Config, folder: string, now_ms: number): Promise<Finding[]> {
  let pairs: Awaited<ReturnType<typeof findPairs>>
  try {
    pairs = await findPairs(folder)
  } catch (error) {
    const message = `MUSTER_TLS_CERTIFICATES names ${folder}, which cannot be read (${messageOf(error)}).`
    return [failed('certificates', message, `ls -ld ${folder}`)]
  }
  const findings: Finding[] = []
  const certificates: Certificate[] = []
  for (const pair of pairs) {
    const show = `openssl x509 -in ${pair.chain} -noout -subject -dates -ext subjectAltName`
    try {
      const certificate = await loadPair(pair)
      certificates.push(certificate)
      const days = Math.floor((certificate.expire_ms - now_ms) / DAY_MS)
      const until = new Date(certificate.expire_ms).toISOString()
      if (certificate.expire_ms <= now_ms) {
        findings.push(
          failed('certificates', `${pair.chain} expired at ${until}.`, 'certbot renew    (or what wrote it)'),
        )
      } else if (certificate.valid_from_ms > now_ms) {
        findings.push(failed('certificates', `${pair.chain} is not valid yet: is the clock right?`, show))
      } else if (certificate.expire_ms - now_ms < SOON_MS) {
        findings.push(warning('certificates', `${pair.chain} expires in ${days} days, at ${until}.`, 'certbot renew'))
      } else findings.push(ok('certificates', `${certificate.names.join(', ')} for ${days} days`))
    } catch (error) {
      findings.push(failed('certificates', `${pair.chain} cannot be used: ${messageOf(error)}`, show))
    }
  }
  return config.acme === null ? [...findings, ...missingHosts(config, certificates, now_ms)] : findings
}

/** Without orders, files must cover each host of the platform. */
function missingHosts(config: Config, certificates: readonly Certificate[], now_ms: number): Finding[] {
  const known = byName(certificates)
  const { own, cdn } = certifiedHosts(config)
  return [...own, `muster-doctor.${cdn}`]
    .filter((host) => certificateFor(known, host, now_ms) === null)
    .map((host) => {
      const wildcard = host === config.domains.main ? host : wildcardOf(host)
      return failed(
        'certificates',
        `No valid certificate covers ${host}.`,
        `certbot certonly --manual -d '${wildcard}'`,
      )
    })
}

async function examineAuthority(config: Config, url: string): Promise<Finding[]> {
  const remedy = `curl -sSf ${url}`
  try {
    const { status, body } = await askOperatorsServer(config, { url, method: 'GET' })
    if (status !== 200) return [failed('certificates', `MUSTER_ACME: ${url} returns status ${status}.`, remedy)]
    const { newOrder } = JSON.parse(body.toString()) as { newOrder?: unknown }
    if (typeof newOrder === 'string') return [ok('certificates', `the authority at ${url} responds`)]
    return [failed('certificates', `MUSTER_ACME: ${url} is not the directory of an ACME authority.`, remedy)]
  } catch (error) {
    return [failed('certificates', `MUSTER_ACME: ${url} does not respond: ${messageOf(error)}`, remedy)]
  }
}
