// The commands of the model test by kind. Each is given to the book and to the plain book.

import type { Command } from './draw.ts'
import { EDGE_COMMANDS } from './edge-commands.ts'
import { HOLD_COMMANDS } from './hold-commands.ts'
import { LOBBY_COMMANDS } from './lobby-commands.ts'
import { PARTY_COMMANDS } from './party-commands.ts'
import { PLAYER_COMMANDS } from './player-commands.ts'
import { SEAT_COMMANDS } from './seat-commands.ts'
import type { StepKind } from './steps.ts'

export type CommandKind = Exclude<StepKind, 'commit' | 'fail' | 'time'>

export const COMMANDS: Readonly<Record<CommandKind, Command>> = {
  ...SEAT_COMMANDS,
  ...HOLD_COMMANDS,
  ...LOBBY_COMMANDS,
  ...PLAYER_COMMANDS,
  ...PARTY_COMMANDS,
  ...EDGE_COMMANDS,
}
