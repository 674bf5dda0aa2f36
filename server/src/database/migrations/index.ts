// Every migration there is, oldest first. One is added at the end and never changed afterwards: a database remembers
// the checksum of what it ran.
import { statements as first } from './0001-first.ts'
import { statements as people } from './0002-people.ts'
import { statements as cdn } from './0003-cdn.ts'
import { statements as domains } from './0004-domains.ts'
import { statements as storage } from './0005-storage.ts'
import { statements as tokens } from './0006-tokens.ts'
import { statements as usage } from './0006-usage.ts'
import { statements as images } from './0007-images.ts'
import { statements as captcha } from './0008-captcha.ts'
import { statements as retention } from './0009-retention.ts'
import { statements as versionNames } from './0010-version-names.ts'
import { statements as edgePorts } from './0011-edge-ports.ts'
import { statements as certificates } from './0016-certificates.ts'
import { statements as identities } from './0017-identities.ts'
import { statements as runners } from './0018-runners.ts'
import { statements as draining } from './0019-draining.ts'
import { statements as rays } from './0020-rays.ts'
import { statements as parties } from './0021-parties.ts'
import { statements as kv } from './0022-kv.ts'
import { statements as billing } from './0023-billing.ts'
import { statements as rayParts } from './0024-ray-parts.ts'
import { statements as analytics } from './0025-analytics.ts'
import { statements as logQuestions } from './0026-log-questions.ts'
import { statements as analyticsLines } from './0027-analytics-lines.ts'
import { statements as stalled } from './0028-stalled.ts'
import { statements as bookTime } from './0029-book-time.ts'
import { statements as damage } from './0030-damage.ts'
import { statements as domainProofs } from './0031-domain-proofs.ts'
import { statements as loginNetworks } from './0032-login-networks.ts'
import { statements as developmentHosts } from './0033-development-hosts.ts'
import { statements as unusedGuests } from './0034-unused-guests.ts'
import { statements as listening } from './0035-listening.ts'
import { statements as buildFiles } from './0036-build-files.ts'
import { statements as edgeReports } from './0037-edge-reports.ts'
import { statements as packed } from './0038-packed.ts'
import { statements as explanations } from './0039-explanations.ts'
import { statements as contents } from './0040-contents.ts'
import { statements as audit } from './0042-audit.ts'
import { statements as insight } from './0043-insight.ts'
import { statements as lobbyTraffic } from './0044-lobby-traffic.ts'
import { statements as deployMessages } from './0045-deploy-messages.ts'
import { statements as namespaceExpiry } from './0046-namespace-expiry.ts'
import { statements as deployUsers } from './0047-deploy-users.ts'
import { statements as platformRecords } from './0048-platform-records.ts'
import { statements as signIn } from './0049-sign-in.ts'
import { statements as runReadiness } from './0050-run-readiness.ts'
import { statements as lookups } from './0051-lookups.ts'
import { statements as explanationOrder } from './0052-explanation-order.ts'
import { statements as buildImages } from './0053-build-images.ts'
import { statements as lobbyUsage } from './0054-lobby-usage.ts'
import { statements as edgeSeats } from './0055-edge-seats.ts'
import { statements as nodes } from './0060-nodes.ts'
import { statements as shardLeases } from './0065-shard-leases.ts'
import { statements as portClaims } from './0066-port-claims.ts'
import { statements as nodeLinks } from './0070-node-links.ts'
import { statements as roomClaims } from './0080-room-claims.ts'
import { statements as linkRevocation } from './0086-link-revocation.ts'
import { statements as nodeEdges } from './0087-node-edges.ts'
import { statements as upgrades } from './0088-upgrades.ts'
import { statements as nodeRefusal } from './0091-node-refusal.ts'
import { statements as matchmakerTls } from './0093-matchmaker-tls.ts'
import { statements as unnamedProxies } from './0094-unnamed-proxies.ts'
import { statements as refusedAddresses } from './0095-refused-addresses.ts'
import { statements as rollbacks } from './0096-rollbacks.ts'
import { statements as tokenOrigins } from './0099-token-origins.ts'
import { statements as gameSecrets } from './0100-game-secrets.ts'

/** `statements` run as one transaction, so nothing that forbids one (`create index concurrently`) can stand in them. */
export type Migration = { name: string; statements: string }

export const MIGRATIONS: readonly Migration[] = [
  { name: '0001-first', statements: first },
  { name: '0002-people', statements: people },
  { name: '0003-cdn', statements: cdn },
  { name: '0004-domains', statements: domains },
  { name: '0005-storage', statements: storage },
  { name: '0006-tokens', statements: tokens },
  { name: '0006-usage', statements: usage },
  { name: '0007-images', statements: images },
  { name: '0008-captcha', statements: captcha },
  { name: '0009-retention', statements: retention },
  { name: '0010-version-names', statements: versionNames },
  { name: '0011-edge-ports', statements: edgePorts },
  { name: '0016-certificates', statements: certificates },
  { name: '0017-identities', statements: identities },
  { name: '0018-runners', statements: runners },
  { name: '0019-draining', statements: draining },
  { name: '0020-rays', statements: rays },
  { name: '0021-parties', statements: parties },
  { name: '0022-kv', statements: kv },
  { name: '0023-billing', statements: billing },
  { name: '0024-ray-parts', statements: rayParts },
  { name: '0025-analytics', statements: analytics },
  { name: '0026-log-questions', statements: logQuestions },
  { name: '0027-analytics-lines', statements: analyticsLines },
  { name: '0028-stalled', statements: stalled },
  { name: '0029-book-time', statements: bookTime },
  { name: '0030-damage', statements: damage },
  { name: '0031-domain-proofs', statements: domainProofs },
  { name: '0032-login-networks', statements: loginNetworks },
  { name: '0033-development-hosts', statements: developmentHosts },
  { name: '0034-unused-guests', statements: unusedGuests },
  { name: '0035-listening', statements: listening },
  { name: '0036-build-files', statements: buildFiles },
  { name: '0037-edge-reports', statements: edgeReports },
  { name: '0038-packed', statements: packed },
  { name: '0039-explanations', statements: explanations },
  { name: '0040-contents', statements: contents },
  { name: '0042-audit', statements: audit },
  { name: '0043-insight', statements: insight },
  { name: '0044-lobby-traffic', statements: lobbyTraffic },
  { name: '0045-deploy-messages', statements: deployMessages },
  { name: '0046-namespace-expiry', statements: namespaceExpiry },
  { name: '0047-deploy-users', statements: deployUsers },
  { name: '0048-platform-records', statements: platformRecords },
  { name: '0049-sign-in', statements: signIn },
  { name: '0050-run-readiness', statements: runReadiness },
  { name: '0051-lookups', statements: lookups },
  { name: '0052-explanation-order', statements: explanationOrder },
  { name: '0053-build-images', statements: buildImages },
  { name: '0054-lobby-usage', statements: lobbyUsage },
  { name: '0055-edge-seats', statements: edgeSeats },
  { name: '0060-nodes', statements: nodes },
  { name: '0065-shard-leases', statements: shardLeases },
  { name: '0066-port-claims', statements: portClaims },
  { name: '0070-node-links', statements: nodeLinks },
  { name: '0080-room-claims', statements: roomClaims },
  { name: '0086-link-revocation', statements: linkRevocation },
  { name: '0087-node-edges', statements: nodeEdges },
  { name: '0088-upgrades', statements: upgrades },
  { name: '0091-node-refusal', statements: nodeRefusal },
  { name: '0093-matchmaker-tls', statements: matchmakerTls },
  { name: '0094-unnamed-proxies', statements: unnamedProxies },
  { name: '0095-refused-addresses', statements: refusedAddresses },
  { name: '0096-rollbacks', statements: rollbacks },
  { name: '0099-token-origins', statements: tokenOrigins },
  { name: '0100-game-secrets', statements: gameSecrets },
]
