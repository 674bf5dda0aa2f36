// The events and the kinds of targets of notices, without schemas, for pages too.

export const NOTICE_KINDS = ['discord', 'slack', 'telegram', 'ntfy', 'email', 'webhook'] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

/** Every event with what it means. */
export const NOTICE_EVENTS = {
  deploy_begun: 'A version was deployed to a namespace.',
  deploy_live: 'The first lobby server of a deploy is ready.',
  deploy_failed: 'A lobby server of a deploy failed before any was ready.',
  deploy_rolled_back: 'A namespace was rolled back to an earlier version.',
  rollout_begun: 'A part of the clients gets another version.',
  rollout_promoted: 'The version of a roll-out was deployed.',
  rollout_rolled_back: 'A roll-out was ended by a person.',
  rollout_failed: 'A roll-out passed its limit, and the platform rolled it back.',
  servers_crashing: 'The last three servers of a version failed; with exit reason and last lines.',
  never_ready: 'A server did not call ready in time.',
  lobbies_stalled: 'Servers of lobbies do not respond.',
  region_full: 'Requests were refused because a region has no room.',
  limit_near: 'A namespace uses 80 % of its lobbies, or a group 80 % of a quota.',
  domain_failing: 'The proof of a custom domain failed.',
  certificate_failing: 'A certificate expires soon or cannot be ordered.',
  captcha_failing: 'The captcha provider does not check captchas.',
  verification_failing: "The game's own verification does not respond.",
  players_first: 'Players came after an hour without any.',
  players_record: 'More players than ever before are in a namespace.',
  node_away: 'A node, or a role of the platform, does not report.',
  node_back: 'It reports again.',
  node_drained: 'A node that is drained has no lobbies any more.',
  disk_low: 'A runner has little disk space.',
  backup_done: 'A backup was made.',
  backup_failed: 'A backup of the schedule failed.',
  backup_missing: 'No backup was made for a week, or a verification found damage.',
  job_failing: 'A job of the platform failed.',
  sign_in_new_place: 'A person signed in from an address that they did not use before.',
  token_made: 'A token was made.',
  target_paused: 'Another target was paused because it does not take notices.',
} as const
export type NoticeEvent = keyof typeof NOTICE_EVENTS
export const NOTICE_EVENT_NAMES = Object.keys(NOTICE_EVENTS) as NoticeEvent[]

/** Events of the platform itself, which targets of groups and games do not get. */
export const PLATFORM_NOTICE_EVENTS: readonly NoticeEvent[] = [
  ...(['node_away', 'node_back', 'node_drained', 'disk_low'] as const),
  ...(['backup_done', 'backup_failed', 'backup_missing', 'job_failing'] as const),
]
