// Records with a name in openapi.json, which makes generated code readable. openapi.ts replaces each use of them by a
// reference.
import type { TSchema } from 'typebox'
import { AnalyticsDataSet } from './cloud/analytics.ts'
import { AuditEvent } from './cloud/audit.ts'
import { BillingUsage } from './cloud/billing.ts'
import { Bootstrap } from './cloud/bootstrap.ts'
import { BuildSummary } from './cloud/builds.ts'
import { DevelopmentPort } from './cloud/development.ts'
import { GameFull, GameSummary, RegionSummary } from './cloud/games.ts'
import { GroupHandle, GroupSummary } from './cloud/groups.ts'
import { LobbySummaryAnalytics } from './cloud/live.ts'
import { LobbyMetrics, LogsLobbySummary } from './cloud/logs.ts'
import { Member } from './cloud/members.ts'
import { NamespaceVersion } from './cloud/namespace-cdn.ts'
import { CdnConfig, CdnDomain, MatchmakerLimits, NamespaceFull, NamespaceSummary } from './cloud/namespaces.ts'
import { PlatformNode } from './cloud/nodes.ts'
import { OverviewDeploy, OverviewNamespace, Problem } from './cloud/overview.ts'
import { ServicePerf } from './cloud/rays.ts'
import { SiteSummary } from './cloud/sites.ts'
import { RegionTier } from './cloud/tiers.ts'
import { TokenSummary } from './cloud/tokens.ts'
import { PrepareFile, PresignedRequest } from './cloud/uploads.ts'
import { ValidationErrors } from './cloud/validation.ts'
import { VersionFull, VersionSummary } from './cloud/versions.ts'
import { SessionSummary } from './identity/sessions.ts'
import { KvEntry } from './kv/entries.ts'
import { GlobalEvent } from './matchmaker/events.ts'
import { Explanation } from './matchmaker/explanations.ts'
import { JoinPort, LobbyInfo, Seat } from './matchmaker/lobbies.ts'
import { LobbyPlayer } from './matchmaker/lobby-admin.ts'
import { Party } from './matchmaker/parties.ts'
import { RatedIdentity, Rating } from './matchmaker/ratings.ts'
import { RegionInfo } from './matchmaker/regions.ts'
import { OwnSeat } from './matchmaker/seats.ts'
import { Empty, ErrorDetailRecord } from './records.ts'
import { GameMode, VersionConfig } from './version-config.ts'
export const COMPONENTS: Readonly<Record<string, TSchema>> = {
  PlatformNode,
  AnalyticsDataSet,
  AuditEvent,
  BillingUsage,
  Bootstrap,
  BuildSummary,
  CdnConfig,
  CdnDomain,
  DevelopmentPort,
  Empty,
  ErrorDetail: ErrorDetailRecord,
  Explanation,
  GameFull,
  GameMode,
  GameSummary,
  GlobalEvent,
  GroupHandle,
  GroupSummary,
  JoinPort,
  KvEntry,
  LobbyInfo,
  LobbyPlayer,
  LobbySummaryAnalytics,
  LobbyMetrics,
  LogsLobbySummary,
  MatchmakerLimits,
  Member,
  NamespaceFull,
  NamespaceSummary,
  NamespaceVersion,
  OverviewDeploy,
  OverviewNamespace,
  OwnSeat,
  Party,
  PrepareFile,
  PresignedRequest,
  Problem,
  RatedIdentity,
  Rating,
  RegionInfo,
  RegionSummary,
  RegionTier,
  Seat,
  ServicePerf,
  SessionSummary,
  SiteSummary,
  TokenSummary,
  ValidationErrors,
  VersionConfig,
  VersionFull,
  VersionSummary,
}
