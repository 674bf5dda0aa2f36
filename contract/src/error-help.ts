// What to do about each error code, in one table: when the platform refuses with the code, what the reader does, and a
// command that shows the state behind the refusal or changes it. The pages of the codes are made from it.
//
// Commands are for `sh`. `$MUSTER_URL` is the main address of the platform. Tokens are in the variables that the API
// reference uses: `$MUSTER_TOKEN` (a person, an administrator or a cloud token), `$PUBLIC_TOKEN`, `$IDENTITY_TOKEN` and
// `$PLATFORM_TOKEN` (a lobby's server).
import type { ErrorCode } from './errors.ts'

/** In `cause` and `remedy`, `backticks` mean code. A command may be several lines, each a command of its own. */
export type ErrorHelp = { cause: string; remedy: string; command: string }

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type TokenVariable = 'MUSTER_TOKEN' | 'PUBLIC_TOKEN' | 'IDENTITY_TOKEN' | 'PLATFORM_TOKEN'

/** A call of an operation. Values of the body that begin with $ are variables of the shell. */
function call(method: Method, path: string, body?: object, token: TokenVariable | null = 'MUSTER_TOKEN'): string {
  const parts = [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} "$MUSTER_URL${path}"`,
    ...(token === null ? [] : [`-H "Authorization: Bearer $${token}"`]),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ]
  return parts.join(' \\\n  ')
}

function quoted(text: string): string {
  return text.includes('$') ? `"${text.replaceAll('"', '\\"')}"` : `'${text}'`
}

const get = (path: string, token?: TokenVariable | null) => call('GET', path, undefined, token)
const post = (path: string, body?: object, token?: TokenVariable | null) => call('POST', path, body, token)
const put = (path: string, body: object, token?: TokenVariable) => call('PUT', path, body, token)
const del = (path: string) => call('DELETE', path)
/** Several commands, one after the other. */
const lines = (...commands: string[]) => commands.join('\n\n')

const GAME = '/cloud/games/$GAME_ID'
const NAMESPACE = `${GAME}/namespaces/$NAMESPACE_ID`

const EXPLAIN = get('/cloud/rays/$RAY_ID/explain')
const PERF = get('/cloud/rays/$RAY_ID/perf')
const INSPECT = get('/cloud/auth/inspect')
const LIST_GAMES = get('/cloud/games')
const SHOW_GAME = get(GAME)
const SHOW_NAMESPACE = get(NAMESPACE)
const SHOW_VERSION = get(`${GAME}/versions/$VERSION_ID`)
const LIST_LOBBIES = get(`${NAMESPACE}/logs/lobbies`)
const SHOW_LOBBY = get(`${NAMESPACE}/logs/lobbies/$LOBBY_ID`)
const LIST_NOTICE_TARGETS = get('/cloud/notices/targets?game_id=$GAME_ID')
const LIST_INCIDENTS = get(`${GAME}/status-page/incidents`)
const LIST_SECRETS = get(`${GAME}/secrets`)
const LIST_BUILDS = get(`${GAME}/builds`)
const LIST_SITES = get(`${GAME}/cdn/sites`)
const LIST_MEMBERS = get('/group/groups/$GROUP_ID/members')
const SHOW_INVITE = get('/group/invites/$GROUP_INVITE_CODE')
const NEW_INVITE = post('/group/groups/$GROUP_ID/invites', { use_count: 5 })
const COMPLETE_UPLOAD = post('/cloud/uploads/$UPLOAD_ID/complete')
const PREPARE_BUILD = post(`${GAME}/builds`, {
  display_name: 'Server',
  image_tag: 'server:1',
  image_file: { path: 'server.tar.gz', content_length: 1_048_576 },
})
const PREPARE_SITE = post(`${GAME}/cdn/sites`, {
  display_name: 'Site',
  files: [{ path: 'index.html', content_type: 'text/html', content_length: 1_024 }],
})
const OPEN_LOBBIES = get('/matchmaker/lobbies/list', 'PUBLIC_TOKEN')
const LIST_REGIONS = get('/matchmaker/regions', 'PUBLIC_TOKEN')
const FIND = post('/matchmaker/lobbies/find', { game_modes: ['default'] }, 'PUBLIC_TOKEN')
const CONNECT = post('/matchmaker/players/connected', { player_token: '$PLAYER_TOKEN' }, 'PLATFORM_TOKEN')
const GUEST = post('/identity/identities', {}, 'PUBLIC_TOKEN')
const OWN_PARTY = get('/parties/self', 'IDENTITY_TOKEN')

const EXPLAINED_VERSION = lines(EXPLAIN, SHOW_VERSION)
const EXPLAINED_NAMESPACE = lines(EXPLAIN, SHOW_NAMESPACE)

export const ERROR_HELP: Readonly<Record<ErrorCode, ErrorHelp>> = {
  // The request itself.
  VALIDATION_ERROR: {
    cause: 'A member of the body, the path or the query is missing, unknown, or not of the documented type or range.',
    remedy:
      'Read `metadata.errors`: each item names a member by its `path`. The command checks a version without creating it.',
    command: post(`${GAME}/versions/validate`, { display_name: '1.0.0', config: {} }),
  },
  API_BAD_BODY: {
    cause: 'The body is not JSON, not UTF-8, or shorter or longer than its Content-Length.',
    remedy: 'Write the body with a JSON serializer, and let the HTTP client set Content-Length.',
    command: post('/matchmaker/lobbies/find', { game_modes: ['default'] }, 'PUBLIC_TOKEN'),
  },
  API_UNSUPPORTED_MEDIA_TYPE: {
    cause:
      'The body is compressed, or it is not JSON and came as another type. An operation without a credential, such as a login, takes only `application/json`.',
    remedy:
      'Send JSON, uncompressed, with the header `Content-Type: application/json`. The message names the type that came, and what the engine needs.',
    command: post('/matchmaker/lobbies/find', { game_modes: ['default'] }, 'PUBLIC_TOKEN'),
  },
  API_BODY_TOO_LARGE: {
    cause: 'The body has more bytes than this operation accepts. The state of a lobby has a lower limit of its own.',
    remedy: 'Send less in one request. Where `metadata.bytes_max` is present, it is the limit.',
    command: put('/matchmaker/lobbies/state', { map: 'dunes' }, 'PLATFORM_TOKEN'),
  },
  API_NOT_FOUND: {
    cause:
      'No operation with this method, no page and no file is at this path, or the platform does not serve this host.',
    remedy: 'Compare method, host and path with the API reference, and the files of a site with its upload.',
    command: lines(get('/cloud/bootstrap', null), LIST_SITES),
  },
  API_METHOD_NOT_ALLOWED: {
    cause:
      'A site or a picture was requested with a method other than GET or HEAD, or by a preflight where no route allows CORS.',
    remedy:
      'Use GET or HEAD for files. Send calls of the API to the main address, as the command does. For a preflight, add a route with `Access-Control-Allow-Origin`.',
    command: get('/cloud/bootstrap', null),
  },
  API_UNAUTHORIZED: {
    cause:
      'The request has no Authorization header, and its Origin stands for no namespace. A protected site refuses a wrong name or password likewise.',
    remedy: 'Send a token as `Authorization: Bearer`. For a site, use a name and password of its namespace.',
    command: INSPECT,
  },
  API_FORBIDDEN: {
    cause:
      'The token is valid, but its kind may not call this operation, or the platform or the version does not allow the request.',
    remedy:
      'Use a token of a kind in `metadata.allowed`; without it, read the message. The command shows what yours is.',
    command: INSPECT,
  },
  API_RATE_LIMIT: {
    cause: 'The client, token or group has sent too many requests in a minute, or has too many open at once.',
    remedy:
      'Wait for the seconds in `Retry-After`. Ask less often: watch with `watch_index` where an operation has it.',
    command: post('/matchmaker/lobbies/find', { game_modes: ['default'] }, 'PUBLIC_TOKEN'),
  },
  API_BAD_REQUEST: {
    cause: 'The request line, the Host header, a header or the percent-encoding of the path breaks the rules of HTTP.',
    remedy:
      'Use an ordinary HTTP client with exactly one Host header, and encode the path as UTF-8. The command is well formed.',
    command: get('/cloud/bootstrap', null),
  },
  API_REQUEST_TIMEOUT: {
    cause: 'The header or the body of the request arrived too slowly, and the platform stopped waiting.',
    remedy: 'Check the connection of the client, and send the request again in one piece. The command needs no body.',
    command: get('/cloud/bootstrap', null),
  },
  API_HEADERS_TOO_LARGE: {
    cause: 'The header of the request has too many bytes or too many lines.',
    remedy: 'Remove headers that the platform does not need. The command sends none but its own.',
    command: get('/cloud/bootstrap', null),
  },
  API_MISDIRECTED_REQUEST: {
    cause: 'The TLS connection was opened for one host name, and the Host header of the request names another.',
    remedy: 'Open a new connection for each host, and send the same name in SNI and Host. The command does both.',
    command: get('/cloud/bootstrap', null),
  },
  API_NOT_AVAILABLE: {
    cause: 'A part of the platform is starting, stopping, full, out of disk space, or cannot reach the database.',
    remedy: 'Repeat the request after the seconds in `Retry-After`. If it lasts, the operator checks log and disk.',
    command: get('/cloud/bootstrap', null),
  },
  INTERNAL_ERROR: {
    cause: 'A fault of the platform stopped the request. The request itself may be correct.',
    remedy: 'Note the `ray_id` and give it to the operator, whose log names the fault under it.',
    command: PERF,
  },

  // Credentials.
  TOKEN_INVALID: {
    cause: 'The token is cut off, changed, issued by another platform, or not sent as `Bearer` and a token.',
    remedy: 'Copy the whole token again, or create a new one.',
    command: lines(INSPECT, post(`${GAME}/tokens/cloud`)),
  },
  TOKEN_EXPIRED: {
    cause: 'The lifetime of the token is over. `metadata.expire_ts` says since when.',
    remedy: 'Create a new token. A user token lives for 15 minutes and is refreshed by the session cookie.',
    command: lines(post(`${GAME}/tokens/cloud`), post(`${NAMESPACE}/tokens/public`)),
  },
  TOKEN_REFRESH_NOT_FOUND: {
    cause: 'The request has no valid session cookie. The session has ended or expired, or its cookie was used twice.',
    remedy: 'Log in again: start a verification, and complete it with the code from the email.',
    command: post('/auth/identity/email/start-verification', { email: 'ada@example.com' }, null),
  },
  SESSION_NOT_FOUND: {
    cause: 'The session has ended, or belongs to another person.',
    remedy: 'List your sessions, and use an id from the list.',
    command: get('/auth/sessions'),
  },
  PASSKEY_NOT_FOUND: {
    cause: 'The passkey was removed, belongs to another person, or you have none.',
    remedy: 'List your passkeys, and use an id from the list.',
    command: get('/auth/passkeys'),
  },
  PASSKEY_LIMIT_REACHED: {
    cause: 'A person may have 10 passkeys.',
    remedy: 'Remove a passkey that you no longer use, at the page `/account`.',
    command: get('/auth/passkeys'),
  },
  PASSKEY_REFUSED: {
    cause:
      'The challenge was used before or is older than five minutes. Or the passkey is not known here, or only confirms. Or its signature, its page or its counter is wrong. The message says what, and `metadata.reason` is for programs.',
    remedy: 'Begin again. When it fails again, sign in another way, remove the passkey and add it again.',
    command: post('/auth/identity/passkey/start', undefined, null),
  },
  PASSKEY_UNAVAILABLE: {
    cause:
      'Browsers allow passkeys only for a host name with HTTPS, and for `localhost`. The address of the hub follows from `MUSTER_DOMAIN_MAIN` and `MUSTER_PUBLIC_SCHEME`.',
    remedy: 'Serve the hub under a host name with HTTPS. Until then, sign in another way.',
    command: get('/cloud/bootstrap', null),
  },
  CONFIRMATION_REQUIRED: {
    cause:
      'The operation destroys something, or gives the right to. You have a passkey, and the session was not confirmed with it in the last five minutes.',
    remedy:
      'Confirm with your passkey: the hub asks for it. A program uses a cloud token or an access token, which are not asked.',
    command: post('/auth/confirmation/start'),
  },
  SIGN_IN_LINK_INVALID: {
    cause: 'A sign-in link is good once, for an hour, and while the access token of its maker is valid.',
    remedy: 'Create a new link, and open it within an hour.',
    command: post('/admin/sign-in-links'),
  },
  TOKEN_REVOKED: {
    cause: 'Somebody revoked the token, or the session or the lobby that it belongs to has ended.',
    remedy: 'Log in again, or create a new token. Tokens in the list with a `revoke_ts` are revoked.',
    command: lines(get(`${GAME}/tokens/cloud`), post(`${GAME}/tokens/cloud`)),
  },
  TOKEN_NOT_FOUND: {
    cause: 'The game or namespace in the path has no token with this id.',
    remedy: 'List the tokens of the game and of the namespace, and use an id from the list of the same kind.',
    command: lines(get(`${GAME}/tokens/cloud`), get(`${NAMESPACE}/tokens/public`)),
  },
  PLAYER_TOKEN_INVALID: {
    cause: 'The `player_token` in the body is malformed, expired, or a token of another kind.',
    remedy: 'Pass on exactly the `player.token` that find, join or create returned to the client.',
    command: CONNECT,
  },
  IDENTITY_NOT_FOUND: {
    cause: 'The guest of this identity token has been deleted, for example after a long time without use.',
    remedy: 'Create a new guest, and store its identity token in the place of the old one.',
    command: GUEST,
  },

  // The management side.
  GROUP_NOT_FOUND: {
    cause: 'No group has this id, or the caller is not a member of it.',
    remedy: 'List your groups, and use an id from the list. The owner of a group can invite you.',
    command: get('/group/groups'),
  },
  GROUP_INSUFFICIENT_PERMISSIONS: {
    cause: 'You are a member of the group, but the operation needs the role in `metadata.needed`.',
    remedy: 'Ask an owner of the group to change your role. The command is for the owner.',
    command: put('/group/groups/$GROUP_ID/members/$IDENTITY_ID/role', { role: 'developer' }),
  },
  GROUP_NOT_MEMBER: {
    cause: 'The person in the request is not a member of this group.',
    remedy: 'List the members, and use an `identity_id` from the list.',
    command: LIST_MEMBERS,
  },
  GROUP_OWNER_REQUIRED: {
    cause: 'The request would take the owner out of the group, or give the owner another role.',
    remedy: 'Transfer the ownership to another member first, then repeat the request.',
    command: post('/group/groups/$GROUP_ID/transfer-owner', { new_owner_identity_id: '$NEW_OWNER_IDENTITY_ID' }),
  },
  GROUP_ALREADY_MEMBER: {
    cause: 'You accepted an invite of a group that you are a member of. The invite was not used up.',
    remedy: 'Nothing is left to do. The group is in the list of your groups.',
    command: get('/group/groups'),
  },
  GROUP_INVITE_CODE_INVALID: {
    cause: 'No invite has this code, or its group has been deleted.',
    remedy: 'Check each character of the code, or ask the owner for a new invite. The command creates one.',
    command: NEW_INVITE,
  },
  GROUP_INVITE_CODE_EXPIRED: {
    cause: 'The time to live of the invite is over.',
    remedy: 'Ask the owner of the group for a new invite. The second command creates one.',
    command: lines(SHOW_INVITE, NEW_INVITE),
  },
  GROUP_INVITE_CODE_REVOKED: {
    cause: 'A member was kicked out of the group, which revokes all open invites of the group.',
    remedy: 'Ask the owner of the group for a new invite. The second command creates one.',
    command: lines(SHOW_INVITE, NEW_INVITE),
  },
  GROUP_INVITE_CODE_ALREADY_USED: {
    cause: 'As many people as its `use_count` allows have joined by this invite.',
    remedy: 'Ask the owner of the group for a new invite. Its `use_count` says how many people may use it.',
    command: NEW_INVITE,
  },
  CLOUD_DEVICE_LINK_INVALID: {
    cause: 'The device link token is malformed, revoked, or older than an hour.',
    remedy: 'Prepare a new device link, and open its `device_link_url` within an hour.',
    command: post('/cloud/devices/links', undefined, null),
  },
  CLOUD_DEVICE_LINK_ALREADY_COMPLETE: {
    cause: 'Somebody has completed this device link. A link gives out one cloud token.',
    remedy: 'Read the cloud token on the device that prepared the link, or prepare a new link.',
    command: lines(
      get('/cloud/devices/links?device_link_token=$DEVICE_LINK_TOKEN', null),
      post('/cloud/devices/links', undefined, null),
    ),
  },
  GAME_NOT_FOUND: {
    cause: 'No game has this id, or the token may not see it: another group or another game owns it.',
    remedy: 'List the games that your token sees, and use an id from the list.',
    command: LIST_GAMES,
  },
  NAMESPACE_NOT_FOUND: {
    cause:
      'The game has no namespace with this id, or the token stands for another namespace. `metadata.expire_ts`: the namespace has expired.',
    remedy: 'Read the game: it lists its namespaces with their ids.',
    command: SHOW_GAME,
  },
  RAY_NOT_FOUND: {
    cause: 'The ray is unknown, was not sampled, is too old, or belongs to a game that you do not develop.',
    remedy: 'Use the `x-ray-id` of a recent response. Refusals are kept for a while, successes only as samples.',
    command: lines(EXPLAIN, PERF),
  },
  ROLLOUT_VERSION_DEPLOYED: {
    cause:
      'A roll-out gives a part of the clients another version than the deployed one, and the call names the deployed one.',
    remedy: 'Name another version. The game lists its versions and its namespaces with the version of each.',
    command: SHOW_GAME,
  },
  ROLLOUT_NOT_UNDER_WAY: {
    cause: 'No roll-out of the namespace is under way. It may have ended by a limit, or by a deploy.',
    remedy: 'Read the last roll-out: it says when and why it ended. Begin another one with a version and a percentage.',
    command: get(`${GAME}/namespaces/$NAMESPACE_ID/rollout`),
  },
  VERSION_NOT_FOUND: {
    cause: 'The game has no version with this id, or the version has been deleted.',
    remedy: 'Read the game: it lists its versions with their ids.',
    command: SHOW_GAME,
  },
  BUILD_NOT_FOUND: {
    cause: 'The game has no build with this id, or the build has been deleted.',
    remedy: 'List the builds of the game, and use an id from the list.',
    command: LIST_BUILDS,
  },
  SITE_NOT_FOUND: {
    cause: 'The game has no site with this id, or the version that is deployed under this host has no site.',
    remedy: 'List the sites of the game. For a host, deploy a version whose config has `cdn.site_id`.',
    command: lines(LIST_SITES, put(`${NAMESPACE}/version`, { version_id: '$VERSION_ID' })),
  },
  NODE_NOT_FOUND: {
    cause: 'No role reports from a node of this name, and it was never drained.',
    remedy: 'List the nodes and use `node_id`.',
    command: get('/nodes'),
  },
  NODE_REMOVED: {
    cause: 'The node had joined by an invitation, and was removed. Its certificate is refused from then on.',
    remedy: 'Invite the machine again, under the same name or another one.',
    command: post('/admin/node-invitations', { name: 'attic' }),
  },
  NODE_HAS_LOBBIES: {
    cause: 'Lobbies run on the node that shall be removed. `metadata.lobby_count` says how many.',
    remedy: 'Drain the node and wait until none is left. With `force` they end, and their players lose their seats.',
    command: post('/nodes/drain', { node_id: 'fra-2' }),
  },
  UPLOAD_NOT_FOUND: {
    cause: 'No upload has this id, or it belongs to another game, or a newer picture has replaced it.',
    remedy: 'Use the `upload_id` that preparing returned, or prepare the upload again.',
    command: PREPARE_SITE,
  },
  NAME_TAKEN: {
    cause: 'Another game, namespace, version or build has this name already. `metadata.errors` names the member.',
    remedy: 'Choose another name. For a version, the platform can give out a name that is free.',
    command: post(`${GAME}/versions/reserve-name`),
  },
  UPLOAD_INVALID: {
    cause:
      'A path of the upload is not allowed, or the sent bytes differ from the announced length or type. Or a file is not compressed as its name or its first bytes say.',
    remedy: 'Read `metadata`, correct the named file, and PUT exactly the announced bytes and Content-Type.',
    command: PREPARE_SITE,
  },
  UPLOAD_TOO_LARGE: {
    cause: 'The files of the upload together are larger than `metadata.content_length_max`.',
    remedy: 'Remove what the game does not need, or compress it, and prepare the upload again.',
    command: PREPARE_BUILD,
  },
  UPLOAD_INCOMPLETE: {
    cause: 'At least one file has not arrived, or was replaced while the platform completed the upload.',
    remedy: 'PUT each missing file to its presigned address, then complete the upload again.',
    command: COMPLETE_UPLOAD,
  },
  UPLOAD_COMPLETE: {
    cause: 'A file was sent to an upload that is complete. Its files never change again.',
    remedy: 'Prepare a new upload for the new content, and deploy a version that uses it.',
    command: PREPARE_SITE,
  },
  UPLOAD_FORBIDDEN: {
    cause:
      'The presigned address was changed or has expired, or method, length or type differ. `metadata.reason` says which.',
    remedy: 'PUT the file to the address as it was returned. If it has expired, prepare the upload again.',
    command: `curl -sS -T "$FILE" "$PRESIGNED_URL"`,
  },
  CDN_INVALID_AUTH_USER_PASSWORD: {
    cause: 'The `password` of a site user is not a bcrypt hash, or its cost is not between 4 and 13.',
    remedy: 'Hash the password with bcrypt, and send the hash. The platform never takes the password itself.',
    command: post(`${NAMESPACE}/auth-user`, { user: 'tester', password: '$PASSWORD_HASH' }),
  },
  CDN_TOO_MANY_AUTH_USERS: {
    cause: 'The namespace has as many site users as `metadata.limit` allows.',
    remedy: 'Remove a user that nobody needs, then add the new one.',
    command: lines(SHOW_NAMESPACE, del(`${NAMESPACE}/auth-user/$SITE_USER`)),
  },
  QUOTA_REACHED: {
    cause: 'The group or namespace has as much as its quota allows. `metadata` names quota, limit and use.',
    remedy: 'Delete what is no longer used. The operator can raise the quotas that are `MUSTER_QUOTA_` settings.',
    command: lines(LIST_GAMES, LIST_BUILDS, LIST_SITES),
  },
  IN_USE: {
    cause: 'Something that still exists needs what you delete. `metadata.held_by` lists the first holders.',
    remedy: 'Delete the holders first, or deploy another version where a namespace is the holder.',
    command: put(`${NAMESPACE}/version`, { version_id: '$OTHER_VERSION_ID' }),
  },
  NODE_NAME_TAKEN: {
    cause: 'A machine with this name has joined and was not removed.',
    remedy: 'Choose another name, or remove the node first: muster nodes remove NAME.',
    command: post('/admin/node-invitations', { name: 'attic-2' }),
  },
  NODE_REGION_UNKNOWN: {
    cause: 'The region of the invitation is missing or unknown. `metadata.regions` lists the regions of the platform.',
    remedy: 'Name one of them.',
    command: get('/admin/regions'),
  },
  NODE_INVITATION_NOT_FOUND: {
    cause: 'There is no invitation with this id, or a machine has joined with it.',
    remedy: 'List the invitations. To undo a join, remove the node: muster nodes remove NAME.',
    command: get('/admin/node-invitations'),
  },
  CDN_INVALID_DOMAIN: {
    cause: 'The text is not a domain name, is not below a public suffix, or is a domain of the platform.',
    remedy: 'Send the bare name of a domain that you own, without protocol, port or path.',
    command: post(`${NAMESPACE}/domains`, { domain: 'play.example.com' }),
  },
  CDN_TOO_MANY_DOMAINS: {
    cause: 'The namespace has as many custom domains as `metadata.limit` allows.',
    remedy: 'Remove a domain that is no longer used, then add the new one.',
    command: lines(SHOW_NAMESPACE, del(`${NAMESPACE}/domains/$DOMAIN`)),
  },
  BACKUP_UNAVAILABLE: {
    cause:
      'MUSTER_BACKUP_TO is not set, its folder or bucket cannot be read, or a restore is under way. The message says which.',
    remedy: 'Set MUSTER_BACKUP_TO and start the platform again, or do what the message says.',
    command: get('/admin/backups'),
  },
  SIGN_IN_PROVIDER_NOT_FOUND: {
    cause: 'No provider has this name. An administrator may have removed it.',
    remedy: 'List the providers, and use a name of the list.',
    command: get('/auth/identity/providers', null),
  },
  SIGN_IN_FAILED: {
    cause:
      'The provider refused the sign-in, cannot be reached, or sent something that is not valid. The message says what, and `metadata.reason` is for programs.',
    remedy:
      'Begin the sign-in again at the page `/sign-in`. When it fails again, an administrator checks the provider: the message names the setting.',
    command: get('/auth/identity/providers', null),
  },
  NOTICE_TARGET_NOT_FOUND: {
    cause: 'No target has this id, or it belongs to a group or game that the caller is no member of.',
    remedy: 'List the targets of the group, the game or the platform, and use an id of the list.',
    command: LIST_NOTICE_TARGETS,
  },
  NOTICE_NOT_FOUND: {
    cause: 'The target has no notice with this id, or it is no longer kept.',
    remedy: 'List the last deliveries of the target, and use an id of the list.',
    command: LIST_NOTICE_TARGETS,
  },
  SCHEDULE_NOT_FOUND: {
    cause: 'The game has no schedule with this id, or it was deleted.',
    remedy: 'List the schedules of the game, and use an id of the list.',
    command: get(`${GAME}/schedules`),
  },
  STATUS_INCIDENT_NOT_FOUND: {
    cause: 'The game has no incident with this id, or it was deleted.',
    remedy: 'List the incidents of the game, and use an id of the list.',
    command: LIST_INCIDENTS,
  },
  SECRET_NOT_FOUND: {
    cause:
      'The game has no secret of this name, or none in this namespace. A secret of the whole game and one of a namespace are two secrets.',
    remedy: 'List the secrets, and name the namespace as the list shows it.',
    command: LIST_SECRETS,
  },
  CDN_DOMAIN_NOT_FOUND: {
    cause: 'The namespace has not claimed the domain that the request names.',
    remedy: 'Read the namespace: its config lists its domains.',
    command: SHOW_NAMESPACE,
  },
  CLOUD_HOSTNAME_TAKEN: {
    cause: 'This namespace has the domain, another namespace has proven it, or another group gave it up recently.',
    remedy:
      'Remove the domain from the other namespace. Where `metadata.quarantine_end_ts` is present, repeat the request after it.',
    command: lines(SHOW_NAMESPACE, del(`${GAME}/namespaces/$OTHER_NAMESPACE_ID/domains/$DOMAIN`)),
  },
  IMAGE_INVALID: {
    cause: 'The logo or banner is not a picture of a supported format and size. `metadata.reason` says why.',
    remedy: 'Export the picture again as the message asks, and upload it anew.',
    command: post(`${GAME}/logo-upload/prepare`, { path: 'logo.png', mime: 'image/png', content_length: 4_096 }),
  },
  STORED_FILE_DAMAGED: {
    cause: 'The stored bytes of the file no longer match their hash, so the platform does not serve them.',
    remedy: 'Upload the same file again, or let the operator restore it from a backup. The command lists the damage.',
    command: 'npm run muster -- verify',
  },
  ARCHIVE_INVALID: {
    cause:
      'The build is not an archive or container image that can be unpacked safely. `metadata` has the entry, the reason, and the layer of an image.',
    remedy:
      'Pack plain files and folders as tar, tar.gz or zip; for an image, follow the message. Upload the file as a new build.',
    command: PREPARE_BUILD,
  },

  // What games keep.
  KV_KEY_VALIDATION_ERROR: {
    cause: 'A key is empty, has more than 511 bytes of UTF-8, holds a NUL, or is not valid Unicode.',
    remedy: 'Read `metadata.path` and `metadata.bytes`, and shorten or correct that key.',
    command: get('/kv/entries?namespace_id=$NAMESPACE_ID&key=players/ada'),
  },
  KV_VALUE_TOO_LONG: {
    cause: 'The JSON text of a value has more than 262,144 bytes.',
    remedy: 'Split the value over several keys. `metadata.bytes` is its present size.',
    command: put('/kv/entries', { namespace_id: '$NAMESPACE_ID', key: 'players/ada', value: { level: 1 } }),
  },
  KV_KEYS_MISSING: {
    cause: 'A batch was read or deleted without any `keys` in the query.',
    remedy: 'Repeat the parameter `keys`, once for each key.',
    command: get('/kv/entries/batch?namespace_id=$NAMESPACE_ID&keys=players/ada&keys=players/grace'),
  },
  KV_ENTRIES_MISSING: {
    cause: 'A batch was written with an empty list of `entries`.',
    remedy: 'Send at least one entry, or leave the call out.',
    command: put('/kv/entries/batch', {
      namespace_id: '$NAMESPACE_ID',
      entries: [{ key: 'players/ada', value: { level: 1 } }],
    }),
  },
  KV_BATCH_TOO_LARGE: {
    cause: 'The batch has more than 64 keys, or more than 16 together with a `watch_index`.',
    remedy: 'Split the batch. A batch is atomic, so keep keys that change together in one part.',
    command: get('/kv/entries/batch?namespace_id=$NAMESPACE_ID&keys=players/ada&keys=players/grace'),
  },

  // Ratings.
  RATING_DISABLED: {
    cause: 'A lobby reported a result, and the version that it runs has no `ratings` in the game mode of the lobby.',
    remedy: 'Add `"ratings": {}` to the game mode and deploy. Lobbies that run keep the config of their version.',
    command: get('/ratings/list?namespace_id=$NAMESPACE_ID&game_mode=default'),
  },
  RATING_PLAYER_NOT_FOUND: {
    cause:
      'A player of the call has never had a seat in the lobby of the token, or is a spectator. `metadata.path` names the player.',
    remedy: 'Send the ids or tokens of players of this lobby, without spectators. Players who have left it count too.',
    command: post(
      '/matchmaker/lobbies/result',
      { teams: [['$PLAYER_ID'], ['$OTHER_PLAYER_ID']], ranks: [1, 2] },
      'PLATFORM_TOKEN',
    ),
  },
  RATING_IDENTITY_REQUIRED: {
    cause: 'No player of the match requested the seat with an identity token, so no rating has an owner.',
    remedy: 'Let the page request seats as a player with an identity: `openPlayer` of the SDK does.',
    command: post('/identity/identities', {}, 'PUBLIC_TOKEN'),
  },
  RATING_RESULT_DIFFERS: {
    cause: 'The lobby has reported another result with the same `match_id`, or another one without a `match_id`.',
    remedy: 'Send a `match_id` of its own with each match of the lobby. The first result of a match stays.',
    command: post(
      '/matchmaker/lobbies/result',
      { teams: [['$PLAYER_ID'], ['$OTHER_PLAYER_ID']], ranks: [1, 2], match_id: 'round-2' },
      'PLATFORM_TOKEN',
    ),
  },

  // The edge.
  LOBBY_NOT_FOUND: {
    cause: 'No lobby has this id, or it has ended, belongs to another game, or has no such port.',
    remedy: 'List the lobbies of the namespace, and use the ports that the seat returned.',
    command: LIST_LOBBIES,
  },
  CDN_RANGE_NOT_SATISFIABLE: {
    cause: 'The Range header begins after the end of the file, or asks for no byte at all.',
    remedy: 'Ask for bytes below `metadata.content_length`. The command returns the length of the file.',
    command: 'curl -sSI "$FILE_URL"',
  },
  CDN_NOT_ACCEPTABLE: {
    cause:
      'The site has only compressed copies of the file, and Accept-Encoding allows neither their encodings nor `identity`.',
    remedy: 'Allow `br`, `gzip` or `identity` in Accept-Encoding, or upload the file uncompressed as well.',
    command: `curl -sSI -H 'Accept-Encoding: br, gzip' "$FILE_URL"`,
  },
  LOBBY_LOGS_NOT_REACHABLE: {
    cause: 'The log is on a machine in `metadata.region` that the platform cannot reach now.',
    remedy: 'Repeat the request after the seconds in `Retry-After`. If it lasts, the operator checks that region.',
    command: get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/logs?stream=std_out`),
  },
  LOBBY_INPUT_DISABLED: {
    cause: 'The game mode of the lobby does not have `standard_input: true` in its `docker` section.',
    remedy: 'Deploy a version with `docker.standard_input: true`. It holds for lobbies that start after the deploy.',
    command: SHOW_VERSION,
  },
  LOBBY_NOT_RUNNING: {
    cause: 'No process of the lobby runs: it has ended, or it is still being started.',
    remedy: 'Choose a lobby that runs, or repeat the request when the lobby is ready.',
    command: get(`${GAME}/namespaces/$NAMESPACE_ID/analytics/matchmaker/live`),
  },
  LOBBY_INPUT_NOT_READ: {
    cause: 'The server left 64 KiB of earlier input unread, and read none of it within 2 seconds.',
    remedy: 'Let the server read its standard input line by line. The log shows which lines were written.',
    command: get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/logs?stream=std_err&format=text`),
  },
  LOBBY_RUNNER_NOT_REACHABLE: {
    cause: 'The lobby is on a machine in `metadata.region` that the platform cannot reach now.',
    remedy: 'Read the log before you repeat the request. If it lasts, the operator checks that region.',
    command: get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/logs?stream=std_err&format=text`),
  },
  LOBBY_NOT_REACHABLE: {
    cause: 'The lobby exists, but its server does not accept the connection, or does not return valid HTTP.',
    remedy: 'Read the log. The server must listen on the port in `PORT_<NAME>`, with the protocol of its port.',
    command: get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/logs?stream=std_err`),
  },

  // Captchas.
  CAPTCHA_CAPTCHA_REQUIRED: {
    cause: 'The version asks for a captcha, and the client has none solved, or has used up its requests.',
    remedy: 'Show the captcha that `metadata` describes, and repeat the request with its response in `captcha`.',
    command: EXPLAIN,
  },
  CAPTCHA_CAPTCHA_FAILED: {
    cause:
      'The provider rejected the response, or it was solved on another host or for another action. `metadata.reason` says which.',
    remedy:
      'Let the player solve a new captcha, on a host of the namespace. A login by e-mail requires one on the main domain. A response is good once.',
    command: EXPLAIN,
  },
  CAPTCHA_CAPTCHA_INVALID: {
    cause:
      'The request carries the response of a captcha provider that the version does not configure. Or a login by e-mail carries none, and this platform requires one.',
    remedy:
      'Use the provider and site key in `metadata`, or change the `captcha` of the version. A login takes `captcha.turnstile.client_response`.',
    command: EXPLAINED_VERSION,
  },
  CAPTCHA_PROVIDER_FAILED: {
    cause: 'The captcha provider cannot be reached, returns no usable result, or rejects the secret key.',
    remedy: 'Repeat the request after a moment. If it lasts, check the secret key in the version.',
    command: EXPLAINED_VERSION,
  },

  // The matchmaker.
  MATCHMAKER_NO_GAME_MODE_PROVIDED: {
    cause: 'The list `game_modes` of a find request is empty.',
    remedy: 'Name at least one game mode of the deployed version. The first command explains the request.',
    command: lines(EXPLAIN, FIND),
  },
  MATCHMAKER_GAME_MODE_NOT_FOUND: {
    cause: 'The version that is deployed in the namespace has no game mode called `metadata.game_mode`.',
    remedy: 'Explain the request, then compare the name with the config of the deployed version.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_REGION_NOT_FOUND: {
    cause: 'The platform has no region called `metadata.region`.',
    remedy: 'Use a `region_id` from the list of regions. The first command explains the request.',
    command: lines(EXPLAIN, LIST_REGIONS),
  },
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: {
    cause: 'A lobby was to be created in a region that the `regions` of the game mode leave out.',
    remedy: 'Choose another region, or deploy a version whose game mode lists it.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_REGION_FULL: {
    cause:
      'The message says what the region lacks. Its lobbies use all the cores or memory that they may use together, or the disk of its runners is nearly full. A Docker Swarm may also have no manager that takes requests.',
    remedy:
      'Repeat the request after `Retry-After`, or choose another region or a smaller tier. The operator can change the setting that `metadata.setting` names.',
    command: lines(EXPLAIN, get('/cloud/region-tiers', null)),
  },
  MATCHMAKER_NO_PORTS: {
    cause: 'A new lobby needs public TCP or UDP ports, and all numbers in `MUSTER_EDGE_PORTS` are taken.',
    remedy: 'End lobbies that are not used, or let the operator widen `MUSTER_EDGE_PORTS`.',
    command: lines(EXPLAIN, del(`${GAME}/matchmaker/lobbies/$LOBBY_ID`)),
  },
  MATCHMAKER_FIND_DISABLED: {
    cause: 'The game mode in `metadata.game_mode` has `actions.find.enabled` set to false.',
    remedy: 'Use join or create, or deploy a version that enables find.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_JOIN_DISABLED: {
    cause: 'The game mode of the lobby has `actions.join.enabled` set to false.',
    remedy: 'Use find, or deploy a version that enables join.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_SPECTATORS_DISABLED: {
    cause: 'The request has the role `spectator`, and `max_spectators` of the game mode is 0.',
    remedy: 'Leave `role` out, or deploy a version with `max_spectators`.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_CUSTOM_LOBBIES_DISABLED: {
    cause: 'The game mode has no `actions.create`, or it is not enabled.',
    remedy: 'Use find, or deploy a version that enables create.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID: {
    cause: 'The game mode does not allow this `publicity`, or `lobby_config` has more than 16,384 bytes.',
    remedy: 'Change the named member, or allow the publicity in `actions.create` of the version.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED: {
    cause: 'The request has `max_players`, and the game mode does not set `allow_dynamic_max_players`.',
    remedy: 'Leave `max_players` out, or deploy a version that allows it.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID: {
    cause: 'The `max_players` of the request is above `metadata.allowed`, the limit of the game mode.',
    remedy: 'Ask for fewer players, or raise `max_players` of the game mode in a new version.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_TAGS_DISABLED: {
    cause: 'The request has tags, and at least one of its game modes is not `taggable`.',
    remedy: 'Leave `tags` out, or deploy a version whose game modes are `taggable`.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_TOO_MANY_TAGS: {
    cause: 'The request has more than 8 tags.',
    remedy: 'Combine tags, and keep only those that lobbies must match. The command explains the request.',
    command: EXPLAIN,
  },
  MATCHMAKER_TAG_NAME_TOO_LONG: {
    cause: 'The name of a tag has more than 128 bytes of UTF-8.',
    remedy: 'Shorten the name. The command explains the request.',
    command: EXPLAIN,
  },
  MATCHMAKER_TAG_TOO_LONG: {
    cause: 'The value of the tag in `metadata.tag` has more than 512 bytes of UTF-8.',
    remedy: 'Shorten the value, or put it into the state of the lobby. The command explains the request.',
    command: EXPLAIN,
  },
  MATCHMAKER_WAITING: {
    cause:
      'The game mode has rules for its matches, and no match was complete within `wait_ms`, or its lobby still starts. The metadata say how many players are missing, and which rules refused others.',
    remedy:
      'Repeat the call with the same Idempotency-Key: the request keeps its place and its age. The SDK does it. The command explains the last call.',
    command: EXPLAIN,
  },
  MATCHMAKER_NO_AVAILABLE_LOBBIES: {
    cause: 'No open lobby matches with enough free places, and `prevent_auto_create_lobby` forbids a new one.',
    remedy: 'Leave out `prevent_auto_create_lobby`, or try again later. The first command explains the request.',
    command: lines(EXPLAIN, OPEN_LOBBIES),
  },
  MATCHMAKER_AUTO_CREATE_FAILED: {
    cause: 'None of the requested game modes runs in any of the requested regions.',
    remedy: 'Name another region, or none, or add the region to the game mode in a new version.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_VERSION_DRAINING: {
    cause:
      'A developer has set the version to draining, or a schedule drains the namespace until `metadata.until_ts`. Its lobbies run on, but take no new players.',
    remedy:
      'Deploy another version, or end the draining with the second command. A schedule that drains ends when it is paused.',
    command: lines(
      EXPLAIN,
      put(`${GAME}/matchmaker/namespaces/$NAMESPACE_ID/versions/$VERSION_ID/draining`, { is_draining: false }),
    ),
  },
  MATCHMAKER_VERSION_REPLACED: {
    cause:
      'The request has the `version_id` of its page, and another version is deployed, or the lobby of the join is of another one.',
    remedy:
      'Load the page again when its version is not `metadata.version_id`. `fill_outdated_lobbies` in the version config lets finds of earlier pages fill open lobbies.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_TOO_MANY_LOBBIES: {
    cause: 'A new lobby is needed, and the namespace has as many as its `lobby_count_max`.',
    remedy: 'Raise the limit in the matchmaker config of the namespace, or end lobbies that are not used.',
    command: EXPLAINED_NAMESPACE,
  },
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: {
    cause: 'The client has as many players at once as the namespace allows, or too many members of parties.',
    remedy: 'Let players leave, or raise `max_players_per_client` of the namespace. VPN and proxy limits are separate.',
    command: EXPLAINED_NAMESPACE,
  },
  MATCHMAKER_VERIFICATION_FAILED: {
    cause: "The game's own verification endpoint returned a status outside 200 to 299.",
    remedy: 'Explain the request, then read in the log of your endpoint why it refused this player.',
    command: EXPLAIN,
  },
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: {
    cause:
      "The game's own verification endpoint did not respond in time, or failed so often that the platform pauses calls.",
    remedy: 'Check that the endpoint in the version is public and responds within seconds. Then repeat the request.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_IDENTITY_REQUIRED: {
    cause: 'The game mode requires an identity, or a party asks for seats, and the request has no identity token.',
    remedy: 'Create a guest, and send its `identity_token` in the Authorization header.',
    command: lines(EXPLAIN, GUEST),
  },
  MATCHMAKER_REGISTRATION_REQUIRED: {
    cause: 'The game mode requires registered players, and every identity of this platform is a guest.',
    remedy: 'Deploy a version whose `identity_requirement` is `guest` or `none`.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED: {
    cause: 'This identity has as many custom lobbies as `max_lobbies_per_identity` of the game mode.',
    remedy: 'Wait until one of the lobbies ends, or raise the limit in a new version.',
    command: EXPLAINED_VERSION,
  },
  MATCHMAKER_PARTY_TOO_LARGE: {
    cause: 'The party has more members than a new lobby of the game mode takes from parties.',
    remedy: 'Split the party, or raise `max_players_party` in a new version.',
    command: lines(EXPLAIN, OWN_PARTY),
  },
  MATCHMAKER_LOBBY_NOT_FOUND: {
    cause: 'The namespace of the token has no lobby with this id.',
    remedy: 'Use an id from the list of open lobbies, and a token of the same namespace.',
    command: lines(EXPLAIN, OPEN_LOBBIES),
  },
  MATCHMAKER_LOBBY_CODE_INVALID: {
    cause: 'No lobby of the namespace has this code: the lobby has ended, or the code was mistyped.',
    remedy: 'Ask a player in the lobby for the code. After 20 wrong codes a client waits 30 s for each further one.',
    command: lines(EXPLAIN, OPEN_LOBBIES),
  },
  MATCHMAKER_LOBBY_FULL: {
    cause: 'The lobby has no place left for the player, or not enough places for the whole party.',
    remedy: 'Join another lobby, or use find, which chooses one with room. The first command explains the request.',
    command: lines(EXPLAIN, OPEN_LOBBIES),
  },
  MATCHMAKER_LOBBY_CLOSED: {
    cause: 'The server of the lobby does not respond, so the platform lets nobody in.',
    remedy: 'Join another lobby. Read the log of this one: its main loop may be blocked.',
    command: lines(EXPLAIN, get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/logs?stream=std_err`)),
  },
  MATCHMAKER_LOBBY_STOPPED: {
    cause:
      'The lobby has ended, or its server ended before it was ready. After several failed starts of a version, no lobby of it is started for a while.',
    remedy:
      'Run the first command, `explain`: it has the exit code and the last lines of the server. `metadata` has the lobby, its `exit_reason` and its `exit_code`. Correct the server, and deploy a new version, which starts at once.',
    command: lines(EXPLAIN, SHOW_LOBBY),
  },
  MATCHMAKER_LOBBY_NOT_STARTED: {
    cause:
      'The server of the lobby was not ready in time. Before its start, no player connects and no log is exported.',
    remedy:
      'Run the first command, `explain`, and read the log. The server must listen on its ports. `ready` of the version says how it becomes ready: by a call, by listening, or by a line of its log.',
    command: lines(EXPLAIN, get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/logs?stream=std_err`)),
  },
  MATCHMAKER_PLAYER_ALREADY_CONNECTED: {
    cause: 'The server called connected with a player token that was used before. A token is good once.',
    remedy: 'Refuse the connection: somebody repeats a token. A repeated call keeps its `Idempotency-Key`.',
    command: get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/players`),
  },
  MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY: {
    cause: 'The player token is for another lobby than the one whose server called.',
    remedy: 'Refuse the connection. The client must connect to the lobby that came with its token.',
    command: get(`${GAME}/matchmaker/lobbies/$LOBBY_ID/players`),
  },
  MATCHMAKER_PLAYER_REGISTRATION_EXPIRED: {
    cause: 'The player did not connect within `player_deadline_ms` of the game mode, so the seat was freed.',
    remedy: 'Let the client find a new seat, and connect at once. Slow clients need a longer deadline.',
    command: SHOW_VERSION,
  },
  MATCHMAKER_PLAYER_REMOVED: {
    cause: 'The player of this token has left the lobby or was removed, or the seat was given back.',
    remedy: 'Refuse the connection, and let the client find a new seat.',
    command: FIND,
  },

  // Parties.
  PARTY_NOT_FOUND: {
    cause: 'The identity of the token is in no party. A party ends with its last member, or after a time without play.',
    remedy: 'Create a party, or join one by its code.',
    command: post('/parties', undefined, 'IDENTITY_TOKEN'),
  },
  PARTY_CODE_INVALID: {
    cause: 'No party has this code: it has ended, has a new code, or the code was mistyped.',
    remedy: 'Ask a member for the present code. The command shows it to members.',
    command: OWN_PARTY,
  },
  PARTY_FULL: {
    cause: 'The party has 32 members, which is the most that a party may have.',
    remedy: 'Wait until a member leaves, or create a second party.',
    command: post('/parties', undefined, 'IDENTITY_TOKEN'),
  },
  PARTY_ALREADY_MEMBER: {
    cause: 'The identity is in a party, and asked to create or join another one.',
    remedy: 'Leave the present party first, then repeat the request.',
    command: post('/parties/leave', undefined, 'IDENTITY_TOKEN'),
  },
  PARTY_LEADER_REQUIRED: {
    cause: 'Only the leader removes members, appoints a leader, or asks for seats for the party.',
    remedy: 'Ask the leader to do it. The command shows who leads the party.',
    command: OWN_PARTY,
  },
  PARTY_MEMBER_NOT_FOUND: {
    cause: 'The identity that the request names is not in the party, or is the leader who removes itself.',
    remedy: 'Use an `identity_id` from the list of members. A leader who wants to go calls leave.',
    command: OWN_PARTY,
  },
}
