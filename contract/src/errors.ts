// All error codes with status and message, in one table. Server code throws `new ApiError(code)` and names no status; the client
// parses an error response into the same class.

type ErrorEntry = { status: number; message: string }

export const ERRORS = {
  // The request itself.
  VALIDATION_ERROR: { status: 400, message: 'The request does not have the documented form.' },
  API_BAD_BODY: { status: 400, message: 'The body is not valid JSON.' },
  API_UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'The body must be sent as application/json.' },
  API_BODY_TOO_LARGE: { status: 413, message: 'The body is larger than this operation accepts.' },
  API_NOT_FOUND: { status: 404, message: 'No operation, page or file is at this address.' },
  API_METHOD_NOT_ALLOWED: { status: 405, message: 'This address does not support the method.' },
  API_UNAUTHORIZED: { status: 401, message: 'This operation needs a credential.' },
  API_FORBIDDEN: { status: 403, message: 'The credential is valid, but does not allow this.' },
  API_RATE_LIMIT: { status: 429, message: 'Too many requests; try again later.' },
  API_BAD_REQUEST: { status: 400, message: 'The request is not well-formed HTTP.' },
  API_REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
  API_HEADERS_TOO_LARGE: { status: 431, message: 'The header of the request is too large.' },
  API_MISDIRECTED_REQUEST: {
    status: 421,
    message: 'The secure connection was made to another host than the one that the request names.',
  },
  API_NOT_AVAILABLE: { status: 503, message: 'The platform is temporarily unavailable; try again in a moment.' },
  INTERNAL_ERROR: {
    status: 500,
    message: 'The platform failed. The ray id finds this request in its log.',
  },

  // Credentials.
  TOKEN_INVALID: { status: 401, message: 'The token is malformed, or was not issued by this platform.' },
  TOKEN_EXPIRED: { status: 401, message: 'The token has expired.' },
  TOKEN_REFRESH_NOT_FOUND: { status: 401, message: 'There is no session, or it has ended: log in again.' },
  TOKEN_REVOKED: { status: 401, message: 'The token has been revoked.' },
  SESSION_NOT_FOUND: { status: 404, message: 'You have no such session, or it has ended.' },
  PASSKEY_NOT_FOUND: { status: 404, message: 'You have no such passkey.' },
  PASSKEY_LIMIT_REACHED: { status: 400, message: 'You have 10 passkeys, which is the maximum. Remove one first.' },
  PASSKEY_REFUSED: { status: 400, message: 'The passkey was not accepted.' },
  PASSKEY_UNAVAILABLE: {
    status: 400,
    message: 'Passkeys need HTTPS and a host name, or `localhost`. The hub of this platform has another address.',
  },
  CONFIRMATION_REQUIRED: {
    status: 403,
    message:
      'This destroys something or gives the right to, so it must be confirmed with a passkey. Confirm with `auth.confirmation.start`, and repeat the call within five minutes.',
  },
  SIGN_IN_LINK_INVALID: { status: 401, message: 'The sign-in link is unknown, was used, or has expired.' },
  TOKEN_NOT_FOUND: { status: 404, message: 'There is no such token.' },
  /** 400, because a player token in a body is data and not the credential of the caller. */
  PLAYER_TOKEN_INVALID: { status: 400, message: 'The player token is malformed, or was not issued by this platform.' },

  IDENTITY_NOT_FOUND: { status: 404, message: 'The identity does not exist any more.' },

  // Cloud operations.
  GROUP_NOT_FOUND: { status: 404, message: 'There is no such group.' },
  GROUP_INSUFFICIENT_PERMISSIONS: { status: 403, message: 'Your role in the group does not allow this.' },
  GROUP_NOT_MEMBER: { status: 404, message: 'The group has no such member.' },
  GROUP_OWNER_REQUIRED: { status: 409, message: 'A group keeps its owner until the ownership is transferred.' },
  GROUP_ALREADY_MEMBER: { status: 409, message: 'You are a member of the group already.' },
  GROUP_INVITE_CODE_INVALID: { status: 404, message: 'There is no such invite.' },
  GROUP_INVITE_CODE_EXPIRED: { status: 409, message: 'The invite has expired.' },
  GROUP_INVITE_CODE_REVOKED: { status: 409, message: 'The invite has been revoked.' },
  GROUP_INVITE_CODE_ALREADY_USED: { status: 409, message: 'The invite has reached its maximum number of uses.' },
  CLOUD_DEVICE_LINK_INVALID: { status: 400, message: 'The device link is malformed, or has expired.' },
  CLOUD_DEVICE_LINK_ALREADY_COMPLETE: { status: 409, message: 'The device link has been completed already.' },
  GAME_NOT_FOUND: { status: 404, message: 'There is no such game.' },
  NAMESPACE_NOT_FOUND: { status: 404, message: 'There is no such namespace.' },
  RAY_NOT_FOUND: {
    status: 404,
    message: 'The ray does not exist, or was not kept. Failed requests and some others are kept for a while.',
  },
  ROLLOUT_VERSION_DEPLOYED: { status: 409, message: 'The namespace runs this version already.' },
  ROLLOUT_NOT_UNDER_WAY: { status: 409, message: 'The namespace has no roll-out under way.' },
  VERSION_NOT_FOUND: { status: 404, message: 'There is no such version.' },
  BUILD_NOT_FOUND: { status: 404, message: 'There is no such build.' },
  SITE_NOT_FOUND: { status: 404, message: 'There is no such site.' },
  UPLOAD_NOT_FOUND: { status: 404, message: 'There is no such upload.' },
  NAME_TAKEN: { status: 409, message: 'This name is taken.' },
  UPLOAD_INVALID: { status: 400, message: 'The upload is invalid.' },
  UPLOAD_TOO_LARGE: { status: 413, message: 'The upload is larger than the platform accepts.' },
  UPLOAD_INCOMPLETE: { status: 409, message: 'Some files of the upload are missing.' },
  UPLOAD_COMPLETE: { status: 409, message: 'The upload is complete and does not change any more.' },
  UPLOAD_FORBIDDEN: { status: 403, message: 'The presigned address is not valid for this request.' },
  CDN_INVALID_AUTH_USER_PASSWORD: {
    status: 400,
    message: 'The password must be a bcrypt hash ($2a$, $2b$ or $2y$) of a cost from 4 to 13.',
  },
  CDN_TOO_MANY_AUTH_USERS: { status: 400, message: 'The site has the maximum number of users.' },
  QUOTA_REACHED: { status: 409, message: 'The group has reached its quota.' },
  IN_USE: { status: 409, message: 'This is in use and cannot be deleted.' },
  NODE_NAME_TAKEN: { status: 409, message: 'The platform has a node of this name.' },
  NODE_REGION_UNKNOWN: { status: 400, message: 'The platform has no such region.' },
  NODE_INVITATION_NOT_FOUND: { status: 404, message: 'There is no such invitation that could be revoked.' },
  CDN_INVALID_DOMAIN: { status: 400, message: 'A site cannot have this domain name.' },
  CDN_TOO_MANY_DOMAINS: { status: 400, message: 'The namespace has the maximum number of domains.' },
  BACKUP_UNAVAILABLE: { status: 400, message: 'Backups by a schedule are not set up, or their place cannot be read.' },
  SIGN_IN_PROVIDER_NOT_FOUND: { status: 404, message: 'There is no such provider of sign-ins.' },
  SIGN_IN_FAILED: { status: 400, message: 'The sign-in with the provider failed.' },
  NOTICE_TARGET_NOT_FOUND: { status: 404, message: 'There is no such target of notices.' },
  NOTICE_NOT_FOUND: { status: 404, message: 'The target has no such notice.' },
  SCHEDULE_NOT_FOUND: { status: 404, message: 'The game has no such schedule.' },
  STATUS_INCIDENT_NOT_FOUND: { status: 404, message: 'The game has no such incident.' },
  SECRET_NOT_FOUND: { status: 404, message: 'There is no such secret.' },
  CDN_DOMAIN_NOT_FOUND: { status: 404, message: 'The namespace has no such domain.' },
  CLOUD_HOSTNAME_TAKEN: { status: 409, message: 'This domain is taken.' },
  IMAGE_INVALID: { status: 400, message: 'The file is not a picture in a supported format.' },
  STORED_FILE_DAMAGED: {
    status: 503,
    message: 'The stored file is damaged, so it is not served. Uploading the same file again repairs it.',
  },
  ARCHIVE_INVALID: { status: 400, message: 'The archive cannot be unpacked safely.' },

  // Entries.
  KV_KEY_VALIDATION_ERROR: { status: 400, message: 'A key has 1 to 511 bytes, and no NUL.' },
  KV_VALUE_TOO_LONG: { status: 400, message: 'A value has at most 262,144 bytes of JSON.' },
  KV_KEYS_MISSING: { status: 400, message: 'At least one key must be named.' },
  KV_ENTRIES_MISSING: { status: 400, message: 'At least one entry must be given.' },
  KV_BATCH_TOO_LARGE: { status: 400, message: 'A batch has at most 64 keys, and 16 when it is watched.' },

  // Ratings.
  RATING_DISABLED: { status: 400, message: 'The game mode of the lobby has no `ratings` in its version config.' },
  RATING_PLAYER_NOT_FOUND: {
    status: 400,
    message: 'A player of the call has never had the seat of a player in this lobby.',
  },
  RATING_IDENTITY_REQUIRED: {
    status: 400,
    message: 'No player of the match has an identity, so there is nothing to rate.',
  },
  RATING_RESULT_DIFFERS: { status: 409, message: 'The match has another result already.' },

  // The edge.
  LOBBY_NOT_FOUND: { status: 404, message: 'There is no such lobby, or it has ended, or it has no such port.' },
  CDN_RANGE_NOT_SATISFIABLE: { status: 416, message: 'The file has no such range.' },
  CDN_NOT_ACCEPTABLE: { status: 406, message: 'The request accepts none of the encodings of the file.' },
  LOBBY_LOGS_NOT_REACHABLE: {
    status: 503,
    message: 'The log of this lobby is on a machine that does not respond now; try again in a moment.',
  },
  LOBBY_INPUT_DISABLED: {
    status: 409,
    message: "The lobby's version does not allow input: its docker section has no standard_input, or it is false.",
  },
  LOBBY_NOT_RUNNING: {
    status: 409,
    message: "The lobby's server does not run: it has ended, or has not been started.",
  },
  LOBBY_INPUT_NOT_READ: {
    status: 409,
    message: "The lobby's server does not read its standard input, and its pipe is full. The line was not written.",
  },
  LOBBY_RUNNER_NOT_REACHABLE: {
    status: 503,
    message:
      "The machine that runs this lobby does not respond now. The lobby's log says whether the line was written.",
  },
  LOBBY_NOT_REACHABLE: { status: 502, message: "The lobby's server does not respond with valid HTTP." },

  // Nodes.
  NODE_NOT_FOUND: { status: 404, message: 'The platform has no node of this name.' },
  NODE_REMOVED: {
    status: 409,
    message: 'The node was removed, and its certificate is revoked: invite the machine again.',
  },
  NODE_HAS_LOBBIES: { status: 409, message: 'The node runs lobbies: drain it first, or remove it with `force`.' },

  // Captchas. The metadata of CAPTCHA_CAPTCHA_REQUIRED is what the client needs to show the widget.
  CAPTCHA_CAPTCHA_REQUIRED: { status: 403, message: 'A captcha is required: repeat the request with its response.' },
  CAPTCHA_CAPTCHA_FAILED: { status: 400, message: 'The captcha was not solved, or its response was used before.' },
  CAPTCHA_CAPTCHA_INVALID: { status: 403, message: 'The captcha response is missing, or of another provider.' },
  CAPTCHA_PROVIDER_FAILED: { status: 503, message: 'The captcha cannot be checked now; try again in a moment.' },

  // The matchmaker. Nearly all have the status 400, as known clients expect.
  MATCHMAKER_NO_GAME_MODE_PROVIDED: { status: 400, message: 'At least one game mode must be named.' },
  MATCHMAKER_GAME_MODE_NOT_FOUND: { status: 400, message: 'The current version has no such game mode.' },
  MATCHMAKER_REGION_NOT_FOUND: { status: 400, message: 'There is no such region.' },
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: { status: 400, message: 'The game mode does not run in this region.' },
  MATCHMAKER_REGION_FULL: { status: 503, message: 'The region has no room for another lobby.' },
  MATCHMAKER_NO_PORTS: { status: 400, message: 'No TCP or UDP port is left for another lobby.' },
  MATCHMAKER_FIND_DISABLED: { status: 400, message: 'The game mode does not allow find.' },
  MATCHMAKER_JOIN_DISABLED: { status: 400, message: 'The game mode does not allow join.' },
  MATCHMAKER_SPECTATORS_DISABLED: { status: 400, message: 'The game mode has no seats for spectators.' },
  MATCHMAKER_CUSTOM_LOBBIES_DISABLED: { status: 400, message: 'The game mode does not allow create.' },
  MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID: {
    status: 400,
    message: 'The lobby cannot be created with this configuration.',
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED: { status: 400, message: 'The game mode has a fixed number of players.' },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID: { status: 400, message: 'max_players is above what the game mode allows.' },
  MATCHMAKER_TAGS_DISABLED: { status: 400, message: 'The game mode does not allow tags.' },
  MATCHMAKER_TOO_MANY_TAGS: { status: 400, message: 'There are too many tags.' },
  MATCHMAKER_TAG_NAME_TOO_LONG: { status: 400, message: 'The name of a tag is too long.' },
  MATCHMAKER_TAG_TOO_LONG: { status: 400, message: 'The value of a tag is too long.' },
  MATCHMAKER_WAITING: {
    status: 503,
    message: 'No match is complete yet. Repeat the call with the same Idempotency-Key: it keeps its place.',
  },
  MATCHMAKER_NO_AVAILABLE_LOBBIES: { status: 400, message: 'No lobby has room, and none may be created.' },
  MATCHMAKER_AUTO_CREATE_FAILED: { status: 400, message: 'None of the game modes runs in one of the regions.' },
  MATCHMAKER_VERSION_DRAINING: { status: 400, message: 'The version is drained: its lobbies take no new players.' },
  MATCHMAKER_VERSION_REPLACED: {
    status: 400,
    message: 'Another version of the game was deployed: load the page again.',
  },
  MATCHMAKER_TOO_MANY_LOBBIES: { status: 400, message: 'The namespace has the maximum number of lobbies.' },
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: { status: 400, message: 'Too many players come from this address.' },
  MATCHMAKER_VERIFICATION_FAILED: { status: 400, message: "The game's own verification refused the player." },
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: { status: 400, message: "The game's own verification did not respond." },
  MATCHMAKER_IDENTITY_REQUIRED: {
    status: 400,
    message: 'The game mode requires an identity token.',
  },
  MATCHMAKER_REGISTRATION_REQUIRED: {
    status: 400,
    message: 'The game mode accepts registered players only, not guests.',
  },
  MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED: { status: 400, message: 'You have the maximum number of custom lobbies.' },
  MATCHMAKER_PARTY_TOO_LARGE: { status: 400, message: 'The party has more members than a lobby accepts.' },
  MATCHMAKER_LOBBY_NOT_FOUND: { status: 400, message: 'There is no such lobby.' },
  MATCHMAKER_LOBBY_CODE_INVALID: { status: 404, message: 'No lobby has this code.' },
  MATCHMAKER_LOBBY_FULL: { status: 400, message: 'The lobby is full.' },
  MATCHMAKER_LOBBY_CLOSED: {
    status: 400,
    message: 'The server of the lobby does not respond, so players cannot join now.',
  },
  MATCHMAKER_LOBBY_STOPPED: { status: 400, message: 'The lobby has stopped.' },
  MATCHMAKER_LOBBY_NOT_STARTED: { status: 503, message: 'The lobby did not become ready in time.' },
  MATCHMAKER_PLAYER_ALREADY_CONNECTED: { status: 400, message: 'The player token has been used.' },
  MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY: { status: 400, message: 'The player belongs to another lobby.' },
  MATCHMAKER_PLAYER_REGISTRATION_EXPIRED: { status: 400, message: 'The player did not connect in time.' },
  MATCHMAKER_PLAYER_REMOVED: { status: 400, message: 'The player has left the lobby.' },

  // Parties.
  PARTY_NOT_FOUND: { status: 404, message: 'You are in no party.' },
  PARTY_CODE_INVALID: { status: 404, message: 'No party has this code any more.' },
  PARTY_FULL: { status: 409, message: 'The party has the maximum number of members.' },
  PARTY_ALREADY_MEMBER: { status: 409, message: 'You are in another party: leave it first.' },
  PARTY_LEADER_REQUIRED: { status: 403, message: 'Only the leader of the party may do this.' },
  PARTY_MEMBER_NOT_FOUND: { status: 404, message: 'The party has no such other member.' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof ERRORS

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[]

/** One member that is wrong. `path` and `reason` are snake_case. */
export type ErrorDetail = { path: string[]; reason: string; message: string }

export type ErrorMetadata = Record<string, unknown>

/** The body of every error response. */
export type ErrorBody = {
  code: string
  message: string
  documentation: string
  metadata: ErrorMetadata
  ray_id: string
}

/** An error that the caller receives. Every other thrown error is a bug, and is returned as INTERNAL_ERROR. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly metadata: ErrorMetadata
  /** Retry-After of the response, in whole seconds. */
  readonly retry_after_s: number | undefined
  /** Ray id of the response. Undefined in the server, where the response has it. */
  readonly ray_id: string | undefined
  /** Address of the page that explains the code, as the response has it. Undefined in the server. */
  readonly documentation: string | undefined

  constructor(
    code: ErrorCode,
    metadata: ErrorMetadata = {},
    options: { message?: string; retry_after_s?: number; ray_id?: string; documentation?: string } = {},
  ) {
    super(options.message ?? ERRORS[code].message)
    this.name = 'ApiError'
    this.code = code
    this.metadata = metadata
    this.retry_after_s = options.retry_after_s
    this.ray_id = options.ray_id
    this.documentation = options.documentation
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** VALIDATION_ERROR with the members that are wrong, in `metadata.errors`. */
export function validationError(errors: ErrorDetail[]): ApiError {
  return new ApiError('VALIDATION_ERROR', { errors }, { message: errors.map((error) => error.message).join(' ') })
}

/** The body of an error response. `main_url` is the main address of the platform, where each code has a page. */
export function errorBody(error: ApiError, options: { ray_id: string; main_url: string }): ErrorBody {
  return {
    code: error.code,
    message: error.message,
    documentation: `${options.main_url}/docs/errors/${error.code}`,
    metadata: error.metadata,
    ray_id: options.ray_id,
  }
}

/** Whether `body` is an error body. Its code may be unknown to this version. */
export function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === 'object' && body !== null && 'code' in body && 'message' in body && 'ray_id' in body
}
