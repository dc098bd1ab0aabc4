/** Splits a stream of bytes into lines and parses each as JSON; a last line without its end is an error. */
export async function* jsonLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  // Pieces of the line that is not complete: a long one arrives in many, and joining each time would be quadratic.
  let pieces: string[] = []
  for await (const chunk of bytes) {
    const [first = '', ...lines] = decoder.decode(chunk, { stream: true }).split('\n')
    pieces.push(first)
    for (const line of lines) {
      yield* parsed(pieces.join(''))
      pieces = [line]
    }
  }
  if (pieces.join('').trim() !== '') throw new Error('the stream ended within a line')
}

function* parsed(line: string): Generator<unknown> {
  if (line.trim() !== '') yield JSON.parse(line)
}
