import { watchEvents } from '@musterhost/contract'
import { eventsFor } from '../../matchmaker/calls/events.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { implement } from '../implement.ts'

export const events = ({ context }: Matchmaker) => [
  implement(watchEvents, {
    identity: async ({ caller, query, isGone }) => {
      const news = await eventsFor(context(), caller, query, isGone)
      return news.answer
    },
  }),
]
