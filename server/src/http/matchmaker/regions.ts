import { listRegions } from '@musterhost/contract'
import { developmentRegions } from '../../matchmaker/calls/development.ts'
import { answerRegions } from '../../matchmaker/calls/regions.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const regions = ({ context }: Matchmaker): Implementation[] => [
  implement(listRegions, {
    namespace: ({ caller, client_ip }) => answerRegions(context(), caller.namespace_id, client_ip),
    development: ({ caller }) => developmentRegions(context(), caller),
  }),
]
