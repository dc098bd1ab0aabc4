/** Exit codes (docs/guide/cli.md, "Exit codes"). */
export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  credential: 3,
  notFound: 4,
  unavailable: 5,
  partly: 6,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
