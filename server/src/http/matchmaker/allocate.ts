import { allocateLobby } from '@musterhost/contract'
import { allocateSeats } from '../../matchmaker/seats/seats.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const allocations = (matchmaker: Matchmaker): Implementation[] => [
  implement(allocateLobby, { cloud: (call) => allocateSeats(matchmaker, call) }),
]
