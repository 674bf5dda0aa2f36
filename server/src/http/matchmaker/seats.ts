import { listOwnSeats } from '@musterhost/contract'
import { developmentOwnSeats } from '../../matchmaker/calls/development.ts'
import { ownSeats } from '../../matchmaker/calls/own-seats.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const seats = ({ context }: Matchmaker): Implementation[] => [
  implement(listOwnSeats, {
    namespace: ({ caller, body }) => ownSeats(context(), caller, body),
    development: ({ caller }) => developmentOwnSeats(context(), caller),
  }),
]
