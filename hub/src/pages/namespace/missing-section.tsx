// A section that is empty, because the config of the deployed version lacks something: what to change, and where.
import type { ReactNode } from 'react'
import { createGameVersion } from '../../api/operations.gen.ts'
import { gameLink } from '../../links.ts'
import { LinkButton } from '../../parts/button.tsx'
import { Empty, Section } from '../../parts/page.tsx'
import { useMay } from '../game/game.ts'
import { useNamespace } from './namespace.ts'

export function MissingSection({ title, children }: { title: string; children: ReactNode }) {
  const { game } = useNamespace()
  const may_create = useMay()(createGameVersion)
  return (
    <Section title={title}>
      <Empty>
        <p>{children}</p>
        {may_create ? (
          <p className="mt-3">
            <LinkButton to={gameLink(game.game_id, 'versions/new')}>New version</LinkButton>
          </p>
        ) : null}
      </Empty>
    </Section>
  )
}
