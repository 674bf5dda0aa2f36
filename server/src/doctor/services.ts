// Servers of others: the mail server and the captcha provider that logins need, and the S3 service of stored files.
import { isSecretAccepted } from '../captcha/provider.ts'
import { mainUrl } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import { directUploadUrl, findStoreFault } from '../objects/open.ts'
import { findPreflightFault } from '../objects/s3/preflight.ts'
import { type CertificateAuthorities, readCertificateAuthorities } from '../outbound/certificate-authorities.ts'
import { requireMailServer } from '../outbound/mail.ts'
import { type Finding, failed, messageOf, ok, skipped, warning } from './finding.ts'

export async function examineMail({ mail, mode }: Config): Promise<Finding[]> {
  if (mail === null) {
    if (mode === 'development') return [skipped('mail', 'login codes are written to the log')]
    const remedy = 'export MUSTER_SMTP_URL=smtps://USER:PASSWORD@HOST'
    return [warning('mail', 'There is no mail server: nobody can log in by e-mail.', remedy)]
  }
  const { hostname, port, protocol } = new URL(mail.smtp_url)
  const server = `${hostname}:${port || (protocol === 'smtps:' ? 465 : 587)}`
  try {
    await requireMailServer(mail.smtp_url)
    return [ok('mail', `${server} accepts the login`)]
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    const remedy =
      code === 'EAUTH' ? 'export MUSTER_SMTP_URL=smtps://USER:PASSWORD@HOST' : `nc -vz ${server.replace(':', ' ')}`
    return [failed('mail', `The mail server ${server} cannot be used: ${message.split('\n')[0]}`, remedy)]
  }
}

/** Only the captcha of logins is a setting; those of games are in their versions. */
export async function examineCaptcha(config: Config): Promise<Finding[]> {
  if (config.login_turnstile === null) return [skipped('captcha provider', 'logins require no captcha')]
  const url = config.captcha_urls.turnstile
  try {
    const trust = readCertificateAuthorities(config.fetch_authorities)
    if (await isSecretAccepted({ config, trust }, 'turnstile', config.login_turnstile)) {
      return [ok('captcha provider', `${new URL(url).host} accepts the secret key`)]
    }
    const remedy = 'export MUSTER_LOGIN_TURNSTILE_SECRET_KEY=KEY'
    return [failed('captcha provider', `${url} does not accept the secret key of logins.`, remedy)]
  } catch (error) {
    return [failed('captcha provider', `${url} does not work: ${messageOf(error)}`, `curl -sS -X POST ${url}`)]
  }
}

export async function examineStore(config: Config, now_ms: number): Promise<Finding[]> {
  const { objects, fetch_authorities } = config
  if (objects === null) return [skipped('stored files', 'they are in the data folder')]
  const started = performance.now()
  const now = (): number => now_ms + performance.now() - started
  const options = { now, trust: readCertificateAuthorities(fetch_authorities) }
  const fault = await findStoreFault(config, options)
  if (fault !== null) {
    const remedy = fault.remedy.startsWith('sudo') ? fault.remedy : `export ${fault.remedy}=VALUE`
    return [failed('stored files', fault.sentence, remedy)]
  }
  const works = ok('stored files', `s3://${objects.bucket} can be read and written`)
  const url = directUploadUrl(config, options)
  return url === null ? [works] : [works, ...(await examineDirectUploads(config, url, options.trust))]
}

/** The CLI needs no rule of the bucket: only uploads from the hub fail without one. */
async function examineDirectUploads(config: Config, url: string, trust: CertificateAuthorities): Promise<Finding[]> {
  const origin = new URL(mainUrl(config)).origin
  const { host } = new URL(url)
  const bucket = config.objects!.bucket
  const through_api = 'unset MUSTER_S3_UPLOAD_ENDPOINT    (uploads then go through the platform)'
  try {
    const lack = await findPreflightFault({ url, origin, trust })
    if (lack === null) return []
    const rule = { AllowedOrigins: [origin], AllowedMethods: ['PUT'], AllowedHeaders: ['content-type'] }
    const command = `aws s3api put-bucket-cors --bucket ${bucket} --cors-configuration '${JSON.stringify({ CORSRules: [rule] })}'`
    const message = `Browsers cannot upload from the hub: the CORS rules of ${bucket} at ${host} do not allow PUT with content-type from ${origin} (${lack}).`
    return [warning('stored files', message, `${command}    or ${through_api}`)]
  } catch (error) {
    const message = `MUSTER_S3_UPLOAD_ENDPOINT, to which developers send files, cannot be reached from here: ${messageOf(error)}.`
    return [warning('stored files', message, through_api)]
  }
}
