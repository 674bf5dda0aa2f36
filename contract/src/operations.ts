// Every operation, in the order in which openapi.json lists them.
import {
  getAdminBackups,
  getAdminFinds,
  listAdminGroups,
  listAdminJobs,
  listAdminProcesses,
  listAdminRegions,
  listAdminSettings,
  listAdminUsers,
  runAdminChecks,
} from './cloud/admin.ts'
import { getAnalytics } from './cloud/analytics.ts'
import { exportAuditEvents, exportGroupAuditEvents, listAuditEvents, listGroupAuditEvents } from './cloud/audit.ts'
import { getUsage } from './cloud/billing.ts'
import { getBootstrap } from './cloud/bootstrap.ts'
import { createGameBuild, listGameBuilds } from './cloud/builds.ts'
import {
  deleteGame,
  deleteGameBuild,
  deleteGameCdnSite,
  deleteGameNamespace,
  deleteGameVersion,
  deleteGroup,
} from './cloud/deletion.ts'
import {
  createGameNamespaceTokenDevelopment,
  listGameNamespaceTokensDevelopment,
  revokeGameNamespaceTokenDevelopment,
  validateGameNamespaceTokenDevelopment,
} from './cloud/development.ts'
import {
  completeDeviceLink,
  getDeviceLink,
  inspectDeviceLink,
  prepareDeviceLink,
  refuseDeviceLink,
} from './cloud/devices.ts'
import { addNamespaceDomain, removeNamespaceDomain } from './cloud/domains.ts'
import { getAnalyticsMatchmakerFinds } from './cloud/finds.ts'
import { createCloudToken, createGame, getGameById, getGames, validateGame } from './cloud/games.ts'
import {
  createGroup,
  getGroupQuotas,
  getGroupSummary,
  listGroups,
  updateGroupProfile,
  validateGroup,
  validateGroupProfile,
} from './cloud/groups.ts'
import {
  gameBannerUploadComplete,
  gameBannerUploadPrepare,
  gameLogoUploadComplete,
  gameLogoUploadPrepare,
} from './cloud/images.ts'
import { consumeGroupInvite, createGroupInvite, getGroupInvite } from './cloud/invites.ts'
import { getAnalyticsMatchmakerLive } from './cloud/live.ts'
import { writeLobbyInput } from './cloud/lobby-input.ts'
import { getLobbyTimeline } from './cloud/lobby-timeline.ts'
import { getLobbyUsage } from './cloud/lobby-usage.ts'
import {
  exportLobbyLogs,
  exportMatchmakerLobbyHistory,
  getLobbyLogs,
  getNamespaceLobby,
  listNamespaceLobbies,
} from './cloud/logs.ts'
import {
  getGroupMembers,
  kickGroupMember,
  leaveGroup,
  setGroupMemberRole,
  transferGroupOwnership,
} from './cloud/members.ts'
import {
  getGameNamespaceVersionHistoryList,
  removeNamespaceCdnAuthUser,
  setNamespaceCdnAuthType,
  toggleNamespaceDomainPublicAuth,
  updateNamespaceCdnAuthUser,
} from './cloud/namespace-cdn.ts'
import {
  createGameNamespace,
  createGameNamespaceTokenPublic,
  getGameNamespaceById,
  updateGameNamespaceExpiry,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  validateGameNamespace,
  validateGameNamespaceMatchmakerConfig,
} from './cloud/namespaces.ts'
import { createNodeInvitation, listNodeInvitations, revokeNodeInvitation } from './cloud/node-invitations.ts'
import { cancelNodeDrain, drainNode, getNodeUse, listNodes, removeNode } from './cloud/nodes.ts'
import {
  deleteNoticeTarget,
  listNoticeDeliveries,
  listNoticeTargets,
  putNoticeTarget,
  resendNotice,
  testNoticeTarget,
} from './cloud/notices.ts'
import { getOverview } from './cloud/overview.ts'
import { getRayPerfLogs, listGameRays } from './cloud/rays.ts'
import {
  renameGame,
  renameGameBuild,
  renameGameCdnSite,
  renameGameNamespace,
  renameGameVersion,
} from './cloud/renaming.ts'
import { endRollout, getRollout, setRollout } from './cloud/rollouts.ts'
import { searchGame } from './cloud/search.ts'
import { listGameSecrets, removeGameSecret, setGameSecret } from './cloud/secrets.ts'
import { createGameCdnSite, listGameCdnSites } from './cloud/sites.ts'
import { getRegionTiers } from './cloud/tiers.ts'
import {
  listGameCloudTokens,
  listGameNamespaceTokensPublic,
  revokeGameCloudToken,
  revokeGameNamespaceTokenPublic,
  revokeToken,
} from './cloud/tokens.ts'
import { completeUpload, getUpload, listStoredContents } from './cloud/uploads.ts'
import {
  createGameVersion,
  getGameVersionById,
  listGameVersions,
  reserveVersionName,
  validateGameVersion,
} from './cloud/versions.ts'
import { setupIdentity } from './identity/identities.ts'
import {
  completeAccessTokenVerification,
  completeEmailVerification,
  inspectAuth,
  refreshIdentityToken,
  startEmailVerification,
} from './identity/login.ts'
import { getSelfProfile, updateProfile, validateProfile } from './identity/profile.ts'
import {
  completeLinkVerification,
  createSignInLink,
  endOtherSessions,
  endSession,
  listSessions,
} from './identity/sessions.ts'
import {
  checkSignInIssuer,
  completeProviderSignIn,
  deleteSignInProvider,
  listOpenSignInProviders,
  listSignInProviders,
  putSignInProvider,
  startProviderSignIn,
} from './identity/sign-in-providers.ts'
import {
  deleteKvBatch,
  deleteKvEntry,
  getKvBatch,
  getKvEntry,
  listKvDirectories,
  listKvEntries,
  listKvKeys,
  putKvBatch,
  putKvEntry,
} from './kv/entries.ts'
import { allocateLobby } from './matchmaker/allocate.ts'
import { watchEvents } from './matchmaker/events.ts'
import { explainRay } from './matchmaker/explanations.ts'
import {
  createLobby,
  findLobby,
  getLobbyState,
  joinLobby,
  listLobbies,
  setLobbyClosed,
  setLobbyReady,
  setLobbyState,
} from './matchmaker/lobbies.ts'
import {
  checkMatchmakerVersion,
  deleteMatchmakerLobby,
  deleteMatchmakerLobbyPlayer,
  listMatchmakerLobbyPlayers,
  setMatchmakerVersionDraining,
} from './matchmaker/lobby-admin.ts'
import { changeOwnLobby, setLobbyPlayers, stopOwnLobby, watchOwnLobby } from './matchmaker/own-lobby.ts'
import {
  createParty,
  getParty,
  joinParty,
  leaveParty,
  removePartyMember,
  setPartyLeader,
} from './matchmaker/parties.ts'
import { getPlayerStatistics, playerConnected, playerDisconnected } from './matchmaker/players.ts'
import {
  exportRatings,
  getIdentityRatings,
  getOwnRatings,
  getPlayerRatings,
  listRatings,
  reportLobbyResult,
  resetRatings,
} from './matchmaker/ratings.ts'
import { listRegions } from './matchmaker/regions.ts'
import { listOwnSeats } from './matchmaker/seats.ts'
import { listWaitingRequests } from './matchmaker/waiting.ts'
import type { Operation } from './operation.ts'

export const OPERATIONS: readonly Operation[] = [
  getBootstrap,
  getRegionTiers,
  startEmailVerification,
  completeEmailVerification,
  completeAccessTokenVerification,
  completeLinkVerification,
  refreshIdentityToken,
  inspectAuth,
  listSessions,
  endSession,
  endOtherSessions,
  setupIdentity,
  getSelfProfile,
  updateProfile,
  validateProfile,
  prepareDeviceLink,
  getDeviceLink,
  inspectDeviceLink,
  completeDeviceLink,
  refuseDeviceLink,
  createGroup,
  listGroups,
  getGroupSummary,
  validateGroup,
  updateGroupProfile,
  validateGroupProfile,
  getGroupQuotas,
  getGroupMembers,
  setGroupMemberRole,
  kickGroupMember,
  leaveGroup,
  transferGroupOwnership,
  createGroupInvite,
  getGroupInvite,
  consumeGroupInvite,
  getOverview,
  listNoticeTargets,
  putNoticeTarget,
  deleteNoticeTarget,
  testNoticeTarget,
  listNoticeDeliveries,
  resendNotice,
  getUsage,
  listGroupAuditEvents,
  exportGroupAuditEvents,
  createGame,
  validateGame,
  getGames,
  getGameById,
  createCloudToken,
  createGameNamespace,
  validateGameNamespace,
  getGameNamespaceById,
  updateGameNamespaceVersion,
  setRollout,
  getRollout,
  endRollout,
  updateGameNamespaceExpiry,
  updateGameNamespaceMatchmakerConfig,
  validateGameNamespaceMatchmakerConfig,
  addNamespaceDomain,
  removeNamespaceDomain,
  listGameSecrets,
  setGameSecret,
  removeGameSecret,
  createGameNamespaceTokenPublic,
  getGameNamespaceVersionHistoryList,
  setNamespaceCdnAuthType,
  updateNamespaceCdnAuthUser,
  removeNamespaceCdnAuthUser,
  toggleNamespaceDomainPublicAuth,
  listGameCloudTokens,
  revokeGameCloudToken,
  listGameNamespaceTokensPublic,
  revokeGameNamespaceTokenPublic,
  createGameNamespaceTokenDevelopment,
  validateGameNamespaceTokenDevelopment,
  listGameNamespaceTokensDevelopment,
  revokeGameNamespaceTokenDevelopment,
  getAnalytics,
  revokeToken,
  listAuditEvents,
  exportAuditEvents,
  listAdminGroups,
  listAdminUsers,
  listAdminRegions,
  listAdminProcesses,
  listAdminJobs,
  listAdminSettings,
  getAdminBackups,
  getAdminFinds,
  runAdminChecks,
  createNodeInvitation,
  listNodeInvitations,
  revokeNodeInvitation,
  listNodes,
  getNodeUse,
  drainNode,
  cancelNodeDrain,
  removeNode,
  listOpenSignInProviders,
  startProviderSignIn,
  completeProviderSignIn,
  listSignInProviders,
  putSignInProvider,
  deleteSignInProvider,
  checkSignInIssuer,
  createSignInLink,
  createGameVersion,
  validateGameVersion,
  reserveVersionName,
  getGameVersionById,
  listGameVersions,
  createGameBuild,
  listGameBuilds,
  createGameCdnSite,
  listGameCdnSites,
  completeUpload,
  getUpload,
  listStoredContents,
  gameLogoUploadPrepare,
  gameLogoUploadComplete,
  gameBannerUploadPrepare,
  gameBannerUploadComplete,
  renameGame,
  renameGameNamespace,
  renameGameVersion,
  renameGameBuild,
  renameGameCdnSite,
  deleteGroup,
  deleteGame,
  deleteGameNamespace,
  deleteGameVersion,
  deleteGameBuild,
  deleteGameCdnSite,
  findLobby,
  joinLobby,
  createLobby,
  allocateLobby,
  setLobbyReady,
  setLobbyClosed,
  setLobbyState,
  watchOwnLobby,
  setLobbyPlayers,
  changeOwnLobby,
  stopOwnLobby,
  getLobbyState,
  listLobbies,
  reportLobbyResult,
  playerConnected,
  playerDisconnected,
  getPlayerStatistics,
  listOwnSeats,
  listRegions,
  deleteMatchmakerLobby,
  listMatchmakerLobbyPlayers,
  deleteMatchmakerLobbyPlayer,
  setMatchmakerVersionDraining,
  checkMatchmakerVersion,
  listWaitingRequests,
  getLobbyLogs,
  writeLobbyInput,
  getLobbyTimeline,
  getLobbyUsage,
  exportLobbyLogs,
  exportMatchmakerLobbyHistory,
  listNamespaceLobbies,
  getNamespaceLobby,
  getAnalyticsMatchmakerLive,
  getAnalyticsMatchmakerFinds,
  explainRay,
  getRayPerfLogs,
  listGameRays,
  searchGame,
  createParty,
  getParty,
  joinParty,
  setPartyLeader,
  removePartyMember,
  leaveParty,
  watchEvents,
  getKvEntry,
  putKvEntry,
  deleteKvEntry,
  getKvBatch,
  putKvBatch,
  deleteKvBatch,
  listKvEntries,
  listKvDirectories,
  listKvKeys,
  getOwnRatings,
  getPlayerRatings,
  listRatings,
  getIdentityRatings,
  exportRatings,
  resetRatings,
] as readonly unknown[] as readonly Operation[]
