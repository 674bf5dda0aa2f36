// How a version config starts a container image in another way than the image says.
import Type, { type Static } from 'typebox'
import { IMAGE_NAME_LENGTH_MAX } from './registry-image.ts'

/** Signals that end a server. All of them can be handled. */
const StopSignal = Type.Enum(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'], {
  description:
    'Of a container image: the signal that ends the server, in place of its `STOPSIGNAL`. Default: that of the image.',
})

/** Members of a docker block. */
export const imageMembers = {
  image: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: IMAGE_NAME_LENGTH_MAX,
      examples: [`registry.example.com/game@sha256:${'0'.repeat(64)}`],
      description:
        'Container image in a registry, in place of `image_id`: `HOST/NAME@sha256:DIGEST`. The operator must allow the registry (`MUSTER_REGISTRIES`). Each machine pulls it once. Default: the build of `image_id`.',
    }),
  ),
  entrypoint: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
      maxItems: 64,
      description:
        'Of a container image: the program and its first arguments, at most 64, in place of its `ENTRYPOINT` and `CMD`. `args` follow. An empty list leaves only `args`. Placeholders are filled as in `args`. Example: `["/srv/server", "--dedicated"]`.',
    }),
  ),
  working_folder: Type.Optional(
    Type.String({
      pattern: '^/[^\\x00]*$',
      examples: ['/srv/game'],
      maxLength: 1_024,
      description:
        'Of a container image: absolute path of a folder of the image in which the server starts, in place of its `WORKDIR`. Example: `/srv/game`.',
    }),
  ),
  user: Type.Optional(
    Type.String({
      pattern: '^[0-9]{1,5}(:[0-9]{1,5})?$',
      examples: ['1000:1000'],
      description:
        'Of a container image: number of the user that the server sees itself as, and of its group, in place of its `USER`. Each is at most 65535. The group is 0 by default. Example: `1000:1000`.',
    }),
  ),
  stop_signal: Type.Optional(StopSignal),
}
export const IMAGE_MEMBERS = ['entrypoint', 'working_folder', 'user', 'stop_signal'] as const

/** Null: what the image says. */
export type ImageOverrides = {
  entrypoint: readonly string[] | null
  working_folder: string | null
  user: { uid: number; gid: number } | null
  stop_signal: Static<typeof StopSignal> | null
}

type Members = {
  entrypoint?: readonly string[]
  working_folder?: string
  user?: string
  stop_signal?: Static<typeof StopSignal>
}

export function imageOverridesOf({ entrypoint, working_folder, user, stop_signal }: Members): ImageOverrides {
  const [uid = 0, gid = 0] = (user ?? '').split(':').map(Number)
  return {
    entrypoint: entrypoint ?? null,
    working_folder: working_folder ?? null,
    user: user === undefined ? null : { uid, gid },
    stop_signal: stop_signal ?? null,
  }
}
