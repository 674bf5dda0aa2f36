import { listRegions } from '@musterhost/contract'
import { developmentRegions } from '../../matchmaker/calls/development.ts'
import { answerRegions } from '../../matchmaker/calls/regions.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const regions = ({ context }: Matchmaker): Implementation[] => [
  implement(listRegions, {
    namespace: ({ caller, address }) => answerRegions(context(), caller.namespace_id, address),
    development: ({ caller }) => developmentRegions(context(), caller),
  }),
]
