// Previews: a deploy to a namespace that is named after a branch, and that expires. It is created with the first version that
// arrives, and each further deploy to it prolongs it. A namespace that does not expire is never used as a preview.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  ApiError,
  createGameNamespace,
  NAMESPACE_LIFETIME_MS_MAX,
  updateGameNamespaceExpiry,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GameFull, Session, SessionNamespace } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { durationText } from '../times.ts'
import type { DeployTarget } from './target.ts'
import { readVersion } from './versions.ts'

/** As in the contract. */
const NAME_LENGTH_MAX = 16
/** Characters of the hash at the end of a name that was cut. */
const HASH_LENGTH = 4
const TTL_MS_DEFAULT = 3 * 24 * 60 * 60_000
/** How long a command waits for the deletion of an expired namespace of the same name. */
const DELETION_WAIT_MS_MAX = 60_000
const DELETION_POLL_MS = 1_000
/** The branch in CI systems, the first that is set. For a pull request GITHUB_REF_NAME is no branch. */
const BRANCH_VARIABLES = ['GITHUB_HEAD_REF', 'GITHUB_REF_NAME', 'CI_COMMIT_REF_NAME', 'BRANCH_NAME'] as const

export type PreviewOptions = {
  /** True: the name of the branch. */
  preview?: string | true
  ttl?: number
  namespace?: string
  message?: string
}

/** The namespace of the preview. Throws a Failure (exit code 2) for a name or a lifetime that cannot be. */
export async function previewTarget(
  terminal: Terminal,
  session: Session,
  options: PreviewOptions,
): Promise<DeployTarget> {
  const name_id = previewName(options.preview === true ? await branchName(terminal) : String(options.preview))
  const ttl_ms = options.ttl ?? TTL_MS_DEFAULT
  const found = findPreview(await session.gameFull(), name_id)
  const preview = { terminal, session, name_id, ttl_ms, message: options.message }
  // At once, so that it does not expire during the deploy.
  if (found !== null) await prolong(preview, found)
  return {
    name_id,
    namespace: found,
    current: found === null ? null : await readVersion(session, found.version_id),
    put: (version_id) => put(preview, version_id),
  }
}

/** Throws a Failure (exit code 2) for options that do not belong together. */
export function checkPreviewOptions({ preview, ttl, namespace }: PreviewOptions): void {
  const refuse = (message: string, remedy: string): never => {
    throw new Failure(message, { exit_code: EXIT.usage, remedy })
  }
  if (preview === undefined && ttl !== undefined) {
    refuse('--ttl is for previews only.', 'Add --preview, which creates a namespace that expires.')
  }
  if (preview !== undefined && namespace !== undefined) {
    refuse('--preview and --namespace exclude each other.', 'Name the preview: --preview NAME')
  }
  if (ttl !== undefined && ttl > NAMESPACE_LIFETIME_MS_MAX) {
    refuse(`--ttl is at most ${durationText(NAMESPACE_LIFETIME_MS_MAX)}.`, 'Each deploy of the preview prolongs it.')
  }
}

/** Lower-case letters, digits and dashes. A longer name is cut, and ends with a hash, so that two branches stay two previews. */
export function previewName(text: string): string {
  const words = text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
  const name = words.join('-')
  if (name === '') {
    throw new Failure(`${JSON.stringify(text)} has no letters and digits for the name of a preview.`, {
      exit_code: EXIT.usage,
      remedy: 'Name the preview: --preview NAME',
    })
  }
  if (name.length <= NAME_LENGTH_MAX) return name
  const hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH)
  const head = name.slice(0, NAME_LENGTH_MAX - HASH_LENGTH - 1)
  return `${head.endsWith('-') ? head.slice(0, -1) : head}-${hash}`
}

async function branchName({ env, cwd }: Terminal): Promise<string> {
  const variable = BRANCH_VARIABLES.find((name) => env[name])
  if (variable !== undefined) return env[variable]!
  const git = promisify(execFile)('git', ['symbolic-ref', '--quiet', '--short', 'HEAD'], { cwd, env: { ...env } })
  const branch = await git.then(({ stdout }) => stdout.trim()).catch(() => '')
  if (branch !== '') return branch
  throw new Failure('This folder is on no branch of git that could name the preview.', {
    exit_code: EXIT.usage,
    remedy: 'Name the preview: --preview NAME',
  })
}

type Preview = { terminal: Terminal; session: Session; name_id: string; ttl_ms: number; message: string | undefined }
type Found = SessionNamespace & { version_id: string; expire_ts: string }

function findPreview({ namespaces }: GameFull, name_id: string): Found | null {
  const found = namespaces.find((one) => one.name_id === name_id)
  if (found === undefined) return null
  const { namespace_id, version_id, expire_ts } = found
  if (expire_ts !== undefined) return { namespace_id, name_id, version_id, expire_ts }
  throw new Failure(`The namespace ${name_id} is no preview: it does not expire.`, {
    exit_code: EXIT.usage,
    remedy: `Choose another name: --preview NAME. Or deploy to it: --namespace ${name_id}`,
  })
}

/** A deploy never shortens the life of a preview. */
async function prolong({ terminal, session, ttl_ms }: Preview, found: Found): Promise<string> {
  const expire_ts = new Date(terminal.now() + ttl_ms).toISOString()
  if (Date.parse(found.expire_ts) >= Date.parse(expire_ts)) return found.expire_ts
  const { game_id } = await session.game()
  const params = { game_id, namespace_id: found.namespace_id }
  await session.client.call(updateGameNamespaceExpiry, { params, body: { expire_ts } })
  return expire_ts
}

/** Another deploy may have created the preview meanwhile, and an expired one of this name may still be there. */
async function put(preview: Preview, version_id: string): Promise<SessionNamespace> {
  const { terminal, session, name_id } = preview
  const deadline_ms = performance.now() + DELETION_WAIT_MS_MAX
  for (let attempt = 0; ; attempt++) {
    const found = findPreview(await session.gameFull(), name_id)
    if (found !== null) return update(preview, found, version_id)
    try {
      return await create(preview, version_id)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'NAME_TAKEN' || performance.now() > deadline_ms) throw error
      if (attempt === 0) terminal.note(`An expired namespace ${name_id} is being deleted; waiting for that.`)
      await sleep(DELETION_POLL_MS, undefined, { signal: terminal.signal })
    }
  }
}

async function update(preview: Preview, found: Found, version_id: string): Promise<SessionNamespace> {
  const { session, message } = preview
  const { game_id } = await session.game()
  await prolong(preview, found)
  const body = message === undefined ? { version_id } : { version_id, message }
  const params = { game_id, namespace_id: found.namespace_id }
  await session.client.call(updateGameNamespaceVersion, { params, body })
  return { namespace_id: found.namespace_id, name_id: found.name_id }
}

async function create(preview: Preview, version_id: string): Promise<SessionNamespace> {
  const { terminal, session, name_id, ttl_ms, message } = preview
  const { game_id } = await session.game()
  const expire_ts = new Date(terminal.now() + ttl_ms).toISOString()
  const body = { name_id, display_name: name_id, version_id, expire_ts }
  const { namespace_id } = await session.client.call(createGameNamespace, {
    params: { game_id },
    body: message === undefined ? body : { ...body, message },
  })
  return { namespace_id, name_id }
}
