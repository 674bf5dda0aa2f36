// Settings of a game: its name, its pictures, its export, and its deletion.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import {
  deleteGame,
  exportGame,
  exportPlayerData,
  gameBannerUploadComplete,
  gameBannerUploadPrepare,
  gameLogoUploadComplete,
  gameLogoUploadPrepare,
  renameGame,
} from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { gameLink, HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { startDownload } from '../../parts/download.ts'
import { Notice } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { RenameForm } from '../rename-form.tsx'
import { PictureForm } from '../uploads/picture.tsx'
import { useGame, useMay } from './game.ts'
import { PlayerDataSection } from './player-data.tsx'

export default function GameSettings() {
  const { game } = useGame()
  const may = useMay()
  const [is_deleting, setDeleting] = useState(false)
  const params = { game_id: game.game_id }
  const rename = useChange(renameGame, { done: 'The game is renamed.', shows_errors: true })
  return (
    <Page
      title="Game settings"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
    >
      {may(renameGame) ? (
        <>
          <RenameForm
            name={game.display_name}
            length_max={24}
            is_busy={rename.isPending}
            error={rename.error}
            onSubmit={(display_name) => rename.mutate({ params, body: { display_name } })}
            copyAs={(display_name) => (
              <CopyAs
                operation={renameGame}
                input={{ params, body: { display_name } }}
                muster={`games rename ${game.name_id} "${display_name}"`}
              />
            )}
          />
          <PictureForm
            what="logo"
            url={game.logo_url}
            limit="smaller than 5 MB"
            prepare={gameLogoUploadPrepare}
            complete={gameLogoUploadComplete}
          />
          <PictureForm
            what="banner"
            url={game.banner_url}
            limit="smaller than 10 MB"
            prepare={gameBannerUploadPrepare}
            complete={gameBannerUploadComplete}
          />
        </>
      ) : (
        <Notice>Developers and owners of the group change these settings.</Notice>
      )}
      {may(exportGame) ? <Export /> : null}
      {may(exportPlayerData) ? <PlayerDataSection /> : null}
      {may(deleteGame) ? (
        <Section title="Delete the game">
          <div className="flex flex-wrap items-center justify-between gap-3 p-4">
            <p>Its lobbies stop, its sites go, and its data are deleted.</p>
            <Button kind="danger" onClick={() => setDeleting(true)}>
              Delete the game
            </Button>
          </div>
        </Section>
      ) : null}
      {is_deleting ? <Delete onClose={() => setDeleting(false)} /> : null}
    </Page>
  )
}

function Export() {
  const { game } = useGame()
  const input = { params: { game_id: game.game_id } }
  const run = useChange(exportGame, { onDone: ({ url }) => startDownload(url) })
  return (
    <Section title="Export the game">
      <div className="flex flex-wrap items-center justify-between gap-3 p-4">
        <p>
          One file with its namespaces, versions, builds, sites, stored data and analytics, for another platform.
          Secrets, tokens and domains are not in it.
        </p>
        <div className="flex flex-wrap items-center gap-2">
          <CopyAs operation={exportGame} input={input} muster={`games export ${game.name_id} ${game.name_id}.tar`} />
          <Button disabled={run.isPending} onClick={() => run.mutate(input)}>
            Export the game
          </Button>
        </div>
      </div>
    </Section>
  )
}

function Delete({ onClose }: { onClose: () => void }) {
  const { game } = useGame()
  const navigate = useNavigate()
  return (
    <ActionDialog
      operation={deleteGame}
      input={{ params: { game_id: game.game_id } }}
      words={{
        title: `Delete ${game.display_name}`,
        submit: 'Delete the game',
        done: `The game ${game.display_name} is deleted.`,
        is_danger: true,
      }}
      muster={`games delete ${game.name_id}`}
      typed_name={game.name_id}
      onDone={() => void navigate({ to: HOME })}
      onClose={onClose}
    >
      <p>
        All namespaces, versions, builds, sites, tokens and stored data of {game.display_name} are deleted. Players are
        disconnected. This cannot be undone.
      </p>
    </ActionDialog>
  )
}
