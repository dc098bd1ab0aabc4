/** Turns of the event loop. What one turn has read stays true within it, as long as nothing else runs in between. */

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
