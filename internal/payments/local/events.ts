/** Which events of the local provider were told. */

import { type Draft, known } from './draft.ts'
import { decide } from './money-back.ts'
import type { LocalEvent, LocalState } from './state.ts'

/** In their order. */
export function untold({ events }: LocalState): LocalEvent[] {
  return events.filter(({ isTold }) => !isTold)
}

/** The event was acknowledged. A dispute that waited for this is decided. */
export function told(draft: Draft, eventId: string): void {
  const { events, payments } = draft.state
  const event = events.find((each) => each.eventId === eventId)
  if (event === undefined || event.isTold) return
  event.isTold = true
  const payment = payments.find(({ paymentId }) => paymentId === event.decides)
  if (payment !== undefined) decide(draft, payment)
}

/** It will be told again. Throws LocalRefusal when there is no such event (any more). */
export function tellAgain({ state }: Draft, eventId: string): LocalEvent {
  const event = known(
    state.events.find((each) => each.eventId === eventId),
    'Event',
  )
  event.isTold = false
  return event
}
