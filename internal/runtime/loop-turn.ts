/**
 * Turns of the event loop. No turn waits: whatever comes in it was ready at the same time, and no order is promised
 * among that. So what was read in a turn need not be read again in it.
 */

let turn = 0
let isCounted = false

/** Another number in each turn. */
export function loopTurn(): number {
  if (!isCounted) {
    isCounted = true
    setImmediate(() => {
      isCounted = false
      turn++
    })
  }
  return turn
}
