import { listRegions } from '@muster/contract'
import { developmentRegions } from '../../matchmaker/calls/development.ts'
import { answerRegions } from '../../matchmaker/calls/regions.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'
import { requireKind } from './lobbies.ts'

export const regions = (matchmaker: Matchmaker): Implementation[] => [
  implement(listRegions, ({ caller, address }) =>
    caller.kind === 'development'
      ? developmentRegions(matchmaker.desk(), caller)
      : answerRegions(matchmaker.desk(), requireKind(caller, 'namespace').namespace_id, address),
  ),
]
