// A name of the API, such as `games.namespaces.create` or `LOBBY_NOT_FOUND`. A narrow cell breaks it between its words.
import { Fragment } from 'react'

export function ApiName({ name }: { name: string }) {
  const words = name.replaceAll(/[._]|[a-z](?=[A-Z])/g, '$&\n').split('\n')
  return words.map((word, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the words of a name never move.
    <Fragment key={at}>
      {word}
      <wbr />
    </Fragment>
  ))
}
