/** Resolves as `work` does; rejects with the text `otherwise` when that takes longer than `ms`. */
export async function within<T>(work: Promise<T>, ms: number, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), ms)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
